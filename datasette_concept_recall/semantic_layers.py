"""The semantic layer of each index in Datasette: its vectors in memory, and its embedder.

Both are kept for each instance, and read or loaded in the background when it starts.
"""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple
from weakref import ReferenceType, WeakKeyDictionary, ref

from .deadlines import InTime
from .errors import BadConfiguration, RecallError
from .file_layers import embedder_name, not_allowed
from .indexing.embedding import Embedder, EmbedderFailure
from .instances import index_config, layers_config, read_files, vocabulary_for
from .layer_search import Semantic
from .layered import RankedList
from .query_vectors import QueryVectors
from .reading import Reader, reading
from .registered import embedder_named
from .semantic import VectorIndex

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.database import Database


class _Known(NamedTuple):
    database: ReferenceType[Database]
    embedder: str
    semantic: Semantic | str


@dataclass
class Kept:
    """What is kept of one Datasette: the semantic layer of each index by name, with the database
    that has the name and the name of its embedder, or why there is none; the calls of each fallback
    by its ``id``, since it is there as long as the instance is; and which indexes are being read in
    the background."""

    semantic: dict[str, _Known] = field(default_factory=dict)
    embedders: dict[str, Embedder] = field(default_factory=dict)
    calls: dict[int, InTime[RankedList | str]] = field(default_factory=partial(defaultdict, InTime))
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
    instance, served = kept_of(datasette), datasette.get_database(database)
    with instance.lock:
        known = instance.semantic.get(database)
        is_of_another = known is None or (known.database(), known.embedder) != (served, name)
        if known is None or is_of_another or isinstance(known.semantic, str):
            made = _made(datasette, instance, database, name)
            known = instance.semantic[database] = _Known(ref(served), name, made)
    semantic = known.semantic
    return (None, semantic) if isinstance(semantic, str) else (semantic, None)


def _made(datasette: Datasette, instance: Kept, database: str, name: str) -> Semantic | str:
    try:
        embedder = instance.embedders.get(name) or embedder_named(datasette, name)
    except RecallError as error:
        return str(error)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # whatever the code of another plugin raises
        return f"{type(error).__name__}: {error}"
    instance.embedders[name] = embedder
    config = index_config(datasette)
    is_allowed = config is not None and (config.database, config.embedder) == (database, name)
    if embedder.is_remote and not is_allowed:
        return not_allowed(name, "as index.embedder in the configuration of this plugin")
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
    return read_files(datasette, _load, "concept-recall-warm-up-layers", only)


def _load(datasette: Datasette, database: str, conn: sqlite3.Connection) -> None:
    """Does nothing where another thread is at it. What is still to come is not yet ``loading``:
    a question may have it read before its turn, however long the others take."""
    loading = kept_of(datasette).loading
    if database in loading or not vocabulary_for(datasette, database).mapping(conn).vectors:
        return
    loading.add(database)
    try:
        with reading(conn) as reader:
            semantic, _ = semantic_of(datasette, database, reader)
            width = semantic.vectors.width(reader) if semantic else None
        if semantic and width is not None and not semantic.queries.embedder.is_remote:
            semantic.queries.vector("warm-up", width, None)
    except EmbedderFailure:
        return  # the request that asks this index will be answered without it, and say why
    finally:
        loading.discard(database)
