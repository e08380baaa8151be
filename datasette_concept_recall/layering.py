"""The layers behind the concepts in Datasette: which database they look into, and for whom.

An index that is served answers for itself, and for every served database whose rows it holds. What
it finds of these is looked up in their own tables, so it may know of more than an actor may see;
but an actor who may not see the index is not answered from it.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterable
from contextlib import closing, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary, ref

from datasette.utils import sqlite_timelimit

from . import access, compat
from .deadlines import InTime, TooLate
from .errors import BadConfiguration, RecallError
from .fallbacks import SemanticFallback
from .file_layers import (
    embedder_name,
    outdated,
    sources_from,
    sources_named,
    tables_of,
    without,
)
from .indexing.embedding import Embedder, EmbedderFailure
from .instances import index_config, layers_config, vocabulary_for
from .layer_search import (
    Semantic,
    references,
    search_full_text,
    search_layers,
    wanted,
    warned,
    without_semantic,
)
from .layered import Layers, Origin, RankedList
from .lexical import Within
from .mapping import Mapping
from .models import RecallRequest
from .query_vectors import QueryVectors
from .reading import Reader, reading
from .registered import embedder_named, semantic_fallbacks
from .search import Fusion
from .semantic import VectorIndex

if TYPE_CHECKING:
    from datasette.app import Datasette

T = TypeVar("T")

REMOTE = (
    "the index was made with the embedder {}, which sends questions to another machine; name it"
)
REMOTE += " as index.embedder in the configuration of this plugin to allow that"


@dataclass
class _Instance:
    """What is kept of one Datasette: the semantic layer of each index by name, with the name of
    its embedder, or why there is none."""

    semantic: dict[str, tuple[str, Semantic | str]] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    calls: InTime[list[str]] = field(default_factory=InTime)
    lock: Lock = field(default_factory=Lock)


_instances: WeakKeyDictionary[Datasette, _Instance] = WeakKeyDictionary()
_lock = Lock()


def _instance(datasette: Datasette) -> _Instance:
    with _lock:
        return _instances.setdefault(datasette, _Instance())


def fusion_of(datasette: Datasette) -> Fusion:
    """How layers are fused, as configured."""
    config = layers_config(datasette)
    fusion = Fusion(config.k, config.lexical, config.semantic)
    if config.not_topical is None:
        return fusion
    return replace(fusion, not_topical=config.not_topical)


async def find_layers(
    datasette: Datasette,
    actor: compat.Actor,
    database: str,
    visible: Mapping,
    request: RecallRequest,
    asked_too: Iterable[str] = (),
) -> Layers:
    """What the layers find for an actor who sees ``visible`` of a database. What fails becomes a
    warning: a recall is answered without it. Rows of databases that are ``asked_too`` are theirs
    to find, and not once more as documents of an index."""
    fusion = fusion_of(datasette)
    elsewhere = frozenset(
        Path(served.path).resolve()
        for name in asked_too
        if (served := datasette.databases.get(name)) and served.path
    )
    if visible.is_index:
        found = await _in_index(datasette, database, visible, request, fusion, elsewhere)
    else:
        found = await _in_rows(datasette, actor, database, visible, request, fusion)
    others = [each for each in semantic_fallbacks(datasette) if each.database == database]
    if "semantic" not in wanted(request) or not others:
        return found
    answered = await asyncio.gather(
        *(_asked(datasette, other, request.text, fusion) for other in others)
    )
    lists = [each for each in found.lists if each.layer != "semantic"]
    lists += [each for each in answered if isinstance(each, RankedList)]
    warnings = [each for each in answered if isinstance(each, str)]
    return Layers(tuple(lists), (*found.warnings, *warnings))


async def _in_rows(
    datasette: Datasette,
    actor: compat.Actor,
    database: str,
    visible: Mapping,
    request: RecallRequest,
    fusion: Fusion,
) -> Layers:
    found = await _in_index_of(datasette, actor, database, visible, request, fusion)
    if found is None:
        return await _in_full_text(datasette, database, visible, request, fusion)
    return found


_FALLBACK_LIMIT = 100
"""So many references a fallback is asked for, of which some may be gone or not to be seen."""


async def _asked(
    datasette: Datasette, fallback: SemanticFallback, text: str, fusion: Fusion
) -> RankedList | str:
    """What another plugin finds, in a thread, or why it does not answer."""
    deadline = layers_config(datasette).deadline_ms / 1000
    calls = _instance(datasette).calls

    def search() -> list[str]:
        return [str(ref) for ref in fallback.search(text, _FALLBACK_LIMIT)][:_FALLBACK_LIMIT]

    try:
        return references(await asyncio.to_thread(calls.call, search, deadline), fusion)
    except TooLate as late:
        return without_semantic(str(late))
    except Exception as error:  # whatever the code of another plugin raises
        return without_semantic(f"{type(error).__name__}: {error}")


# --- in an index ---------------------------------------------------------------------------------


async def _trip(
    datasette: Datasette, database: str, reader: Callable[[sqlite3.Connection], T]
) -> T | str:
    """What a function reads from a database under the time limit, or why it could not."""
    limit = datasette.setting("sql_time_limit_ms")

    def trip(conn: sqlite3.Connection) -> T:
        with sqlite_timelimit(conn, limit):
            return reader(conn)

    try:
        found: T = await datasette.get_database(database).execute_fn(trip)
    except (sqlite3.Error, KeyError) as error:
        why = "took too long" if "interrupted" in str(error) else f"failed ({error})"
        return f"Searching the words in {database} {why}, so only concepts were found."
    return found


async def _in_index(
    datasette: Datasette,
    database: str,
    visible: Mapping,
    request: RecallRequest,
    fusion: Fusion,
    elsewhere: frozenset[Path],
) -> Layers:
    """What an index finds among its own documents; rows only that still hold where they are from,
    as far as that is served, and none of the files that are asked themselves."""
    if not visible.full_text:
        return Layers()

    def search(conn: sqlite3.Connection) -> Layers:
        with reading(conn) as reader:
            sources = sources_named(reader, request.project, elsewhere)
            within = Within(sources, None, request.types or None)
            semantic, problem = _semantic(datasette, database, visible, reader, request)
        found = search_layers(conn, request, within, fusion, semantic)
        return warned(found, problem)

    found = await _trip(datasette, database, search)
    if isinstance(found, str):
        return Layers(warnings=(found,))
    return await _without_outdated(datasette, found)


async def _without_outdated(datasette: Datasette, layers: Layers) -> Layers:
    """Without the rows that no longer hold in the databases that they come from."""
    origins = {each.origin for found in layers.lists for each in found.found if each.origin}
    gone: set[Origin] = set()
    for path in {origin.path for origin in origins}:
        here = [origin for origin in origins if origin.path == path]
        for name in _served_from(datasette, Path(path)):
            mapping = await access.known_mapping(datasette, name)
            found = await _trip(datasette, name, partial(outdated, origins=here, mapping=mapping))
            gone |= found if isinstance(found, set) else set()
    return without(layers, gone)


def _served_from(datasette: Datasette, path: Path) -> list[str]:
    """The databases that are served from a file."""
    resolved = path.resolve()
    return [
        name
        for name, database in datasette.databases.items()
        if database.path and Path(database.path).resolve() == resolved
    ]


async def _in_index_of(
    datasette: Datasette,
    actor: compat.Actor,
    database: str,
    visible: Mapping,
    request: RecallRequest,
    fusion: Fusion,
) -> Layers | None:
    """What an index finds among the rows of a database; None when no index that the actor may see
    holds them."""
    served = datasette.databases.get(database)
    if served is None or not served.path:
        return None
    path, tables = Path(served.path), tables_of(visible, request)
    for name in access.databases(datasette):
        seen = None if name == database else await _visible_index(datasette, actor, name)
        if seen is None:
            continue

        def search(
            conn: sqlite3.Connection, name: str = name, seen: Mapping = seen
        ) -> Layers | None:
            with reading(conn) as reader:
                sources = sources_from(reader, path)
                if not sources:
                    return None
                semantic, problem = _semantic(datasette, name, seen, reader, request)
            within = Within(sources, tables)
            found = search_layers(conn, request, within, fusion, semantic, rows_only=True)
            return warned(found, problem)

        found = await _trip(datasette, name, search)
        if found is not None:
            return Layers(warnings=(found,)) if isinstance(found, str) else found
    return None


async def _visible_index(
    datasette: Datasette, actor: compat.Actor, database: str
) -> Mapping | None:
    """What an actor sees of an index; None when the database is none, or its text is not to be
    seen."""
    try:
        mapping = await access.known_mapping(datasette, database)
        if not mapping.is_index:
            return None
        visible = await access.visible_mapping(datasette, actor, database, mapping)
    except (sqlite3.Error, KeyError):
        return None  # its own pages say what is wrong with it
    return visible if visible is not None and visible.full_text else None


async def _in_full_text(
    datasette: Datasette, database: str, visible: Mapping, request: RecallRequest, fusion: Fusion
) -> Layers:
    if not visible.full_text:
        return Layers()
    found = await _trip(
        datasette, database, lambda conn: search_full_text(conn, visible, request, fusion)
    )
    return Layers(warnings=(found,)) if isinstance(found, str) else found


# --- the semantic layer of an index --------------------------------------------------------------


def _semantic(
    datasette: Datasette, database: str, visible: Mapping, reader: Reader, request: RecallRequest
) -> tuple[Semantic | None, str | None]:
    """The semantic layer of an index as the actor may use it, or why it cannot be asked."""
    if not visible.vectors or "semantic" not in wanted(request):
        return None, None
    return semantic_of(datasette, database, reader)


def semantic_of(
    datasette: Datasette, database: str, reader: Reader
) -> tuple[Semantic | None, str | None]:
    """The semantic layer of an index, or why it cannot be asked; neither where the index has no
    embedder."""
    name = embedder_name(reader)
    if name is None:
        return None, None
    instance = _instance(datasette)
    with instance.lock:
        known = instance.semantic.get(database)
        if known is None or known[0] != name or isinstance(known[1], str):
            known = instance.semantic[database] = name, _made(datasette, instance, database, name)
    semantic = known[1]
    return (None, semantic) if isinstance(semantic, str) else (semantic, None)


def _made(datasette: Datasette, instance: _Instance, database: str, name: str) -> Semantic | str:
    try:
        embedder = instance.embedders.get(name) or embedder_named(datasette, name)
    except RecallError as error:
        return str(error)
    instance.embedders[name] = embedder
    config = index_config(datasette)
    is_allowed = config is not None and (config.database, config.embedder) == (database, name)
    if embedder.is_remote and not is_allowed:
        return REMOTE.format(name)
    deadline = layers_config(datasette).deadline_ms / 1000
    return Semantic(VectorIndex(embedder.identity.name), QueryVectors(embedder), deadline)


def configured_embedder(datasette: Datasette) -> str | None:
    """The name of the embedder that is configured, if one is; what is wrong with the configuration
    is told when Datasette starts."""
    with suppress(BadConfiguration):
        config = index_config(datasette)
        return config.embedder if config else None
    return None


def sql_embedder(datasette: Datasette) -> Embedder | None:
    """The embedder that is configured. Raises `RecallError`."""
    name = configured_embedder(datasette)
    instance = _instance(datasette)
    with instance.lock:
        if name is not None and name not in instance.embedders:
            instance.embedders[name] = embedder_named(datasette, name)
        return None if name is None else instance.embedders[name]


def warm_up(datasette: Datasette) -> Thread:
    """Starts to read the vectors of every index and to load its embedder, so that the first
    question need not wait. One that sends texts elsewhere is not asked."""
    files = {
        name: f"{Path(served.path).absolute().as_uri()}?mode=ro"
        for name, served in datasette.databases.items()
        if served.path and served.is_mutable
    }
    of = ref(datasette)  # a thread must not keep an instance that nobody else does

    def load() -> None:
        for name, uri in files.items():
            instance = of()
            if instance is None:
                return
            try:
                with closing(sqlite3.connect(uri, uri=True)) as conn:
                    _load(instance, name, conn)
            except (sqlite3.Error, EmbedderFailure):
                continue  # the request that asks this index will fail by itself, and say why

    thread = Thread(target=load, name="concept-recall-warm-up-layers", daemon=True)
    thread.start()
    return thread


def _load(datasette: Datasette, database: str, conn: sqlite3.Connection) -> None:
    if not vocabulary_for(datasette, database).mapping(conn).vectors:
        return
    with reading(conn) as reader:
        semantic, _ = semantic_of(datasette, database, reader)
        if semantic is None or semantic.queries.embedder.is_remote:
            return
        width = semantic.vectors.width(reader)
    if width is not None:
        semantic.queries.vector("warm-up", width, None)
