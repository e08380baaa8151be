"""The semantic layer of each index in Datasette: its vectors in memory, and its embedder.

Both are kept for each instance, and read or loaded in the background when it starts.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary, ref

from .deadlines import InTime
from .errors import BadConfiguration, RecallError
from .file_layers import embedder_name
from .indexing.embedding import Embedder, EmbedderFailure
from .instances import index_config, layers_config, vocabulary_for
from .layer_search import Semantic
from .query_vectors import QueryVectors
from .reading import Reader, reading
from .registered import embedder_named
from .semantic import VectorIndex

if TYPE_CHECKING:
    from datasette.app import Datasette

REMOTE = (
    "the index was made with the embedder {}, which sends questions to another machine; name it as"
    " index.embedder in the configuration of this plugin to allow that"
)


@dataclass
class Kept:
    """What is kept of one Datasette: the semantic layer of each index by name, with the name of
    its embedder, or why there is none."""

    semantic: dict[str, tuple[str, Semantic | str]] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    calls: InTime[list[str]] = field(default_factory=InTime)
    lock: Lock = field(default_factory=Lock)
    loading: set[str] = field(default_factory=set)


_kept: WeakKeyDictionary[Datasette, Kept] = WeakKeyDictionary()
_lock = Lock()


def kept_of(datasette: Datasette) -> Kept:
    """What is kept of an instance; nothing at first."""
    with _lock:
        return _kept.setdefault(datasette, Kept())


def semantic_of(
    datasette: Datasette, database: str, reader: Reader
) -> tuple[Semantic | None, str | None]:
    """The semantic layer of an index, or why it cannot be asked; neither where the index has no
    embedder."""
    name = embedder_name(reader)
    if name is None:
        return None, None
    instance = kept_of(datasette)
    with instance.lock:
        known = instance.semantic.get(database)
        if known is None or known[0] != name or isinstance(known[1], str):
            known = instance.semantic[database] = name, _made(datasette, instance, database, name)
    semantic = known[1]
    return (None, semantic) if isinstance(semantic, str) else (semantic, None)


def _made(datasette: Datasette, instance: Kept, database: str, name: str) -> Semantic | str:
    try:
        embedder = instance.embedders.get(name) or embedder_named(datasette, name)
    except RecallError as error:
        return str(error)
    except Exception as error:  # whatever the code of another plugin raises
        return f"{type(error).__name__}: {error}"
    instance.embedders[name] = embedder
    config = index_config(datasette)
    is_allowed = config is not None and (config.database, config.embedder) == (database, name)
    if embedder.is_remote and not is_allowed:
        return REMOTE.format(name)
    deadline = layers_config(datasette).deadline_ms / 1000
    of = ref(datasette)

    def load() -> None:
        served = of()
        if served is not None and database not in instance.loading:
            warm_up(served, database)

    elsewhere = load if datasette.get_database(database).path else None
    vectors = VectorIndex(embedder.identity.name, elsewhere=elsewhere)
    return Semantic(vectors, QueryVectors(embedder), deadline)


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
    instance = kept_of(datasette)
    with instance.lock:
        if name is not None and name not in instance.embedders:
            instance.embedders[name] = embedder_named(datasette, name)
        return None if name is None else instance.embedders[name]


def warm_up(datasette: Datasette, only: str | None = None) -> Thread:
    """Starts to read the vectors of every index, or of one, and to load its embedder, so that the
    first question need not wait. One that sends texts elsewhere is not asked."""
    files = {
        name: f"{Path(served.path).absolute().as_uri()}?mode=ro"
        + ("" if served.is_mutable else "&immutable=1")
        for name, served in list(datasette.databases.items())
        if served.path and only in (None, name)
    }
    loading = kept_of(datasette).loading
    loading.update(files)
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
            finally:
                loading.discard(name)

    thread = Thread(target=load, name="concept-recall-warm-up-layers", daemon=True)
    thread.start()
    return thread


def _load(datasette: Datasette, database: str, conn: sqlite3.Connection) -> None:
    if not vocabulary_for(datasette, database).mapping(conn).vectors:
        return
    with reading(conn) as reader:
        semantic, _ = semantic_of(datasette, database, reader)
        if semantic is None:
            return
        width = semantic.vectors.width(reader)
    if width is not None and not semantic.queries.embedder.is_remote:
        semantic.queries.vector("warm-up", width, None)
