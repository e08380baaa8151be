"""What is kept per Datasette instance: its configuration, and a vocabulary for each database."""

from __future__ import annotations

import logging
import sqlite3
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Lock, Thread
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, ref

from .config import (
    DatabaseConfig,
    IndexConfig,
    LayersConfig,
    parse_configuration,
    parse_index,
    parse_layers,
)
from .errors import BadConfiguration
from .index_mapping import is_index
from .mapped import build_mapping
from .opening import read_only_uri
from .reading import reading
from .schema import read_schema
from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasette.app import Datasette

log = logging.getLogger("datasette_concept_recall")

PLUGIN = "datasette-concept-recall"
"""The name under which the plugin is configured."""


class _Kept(NamedTuple):
    """A vocabulary, and a way to the database it is of, which may be gone."""

    database: Callable[[], object]
    vocabulary: Vocabulary


def _nothing() -> None:
    """In place of a reference while a database is not yet in the list of the instance."""


_vocabularies: WeakKeyDictionary[Datasette, dict[str, _Kept]] = WeakKeyDictionary()
_lock = Lock()


def vocabulary_for(datasette: Datasette, database: str) -> Vocabulary:
    """The vocabulary of a database of this instance, which all its threads share.

    A database that takes the name of one that was removed gets a vocabulary of its own.
    """
    current = datasette.databases.get(database)
    with _lock:
        known = _vocabularies.setdefault(datasette, {})
        kept = known.get(database)
        if kept is None or kept.database() is not current:
            config = _configuration(datasette)
            described = config.get(database) if isinstance(config, dict) else None
            vocabulary = Vocabulary(config=described)
            kept = known[database] = _Kept(ref(current) if current else _nothing, vocabulary)
        return kept.vocabulary


_configurations: WeakKeyDictionary[Datasette, dict[str, DatabaseConfig] | BadConfiguration] = (
    WeakKeyDictionary()
)


def _configuration(datasette: Datasette) -> dict[str, DatabaseConfig] | BadConfiguration:
    """What is configured by name of database; what is wrong with it is for `check_configuration`,
    since this is also asked for by connections that Datasette opens before its start."""
    if datasette not in _configurations:
        try:
            found = parse_configuration(datasette.plugin_config(PLUGIN))
            _configurations[datasette] = found
        except BadConfiguration as error:
            _configurations[datasette] = error
    return _configurations[datasette]


async def check_configuration(datasette: Datasette) -> None:
    """Raises `BadConfiguration` when the configuration does not fit what is served."""
    config = _configuration(datasette)
    if isinstance(config, BadConfiguration):
        raise config
    await _check_index(datasette, index_config(datasette))
    layers_config(datasette)
    for name, described in config.items():
        database = datasette.databases.get(name)
        if database is None:
            raise BadConfiguration(f"databases.{name}", "no database of this name is served")
        problems = await database.execute_fn(partial(_problems_of, described))
        for problem in problems:
            raise problem.within(f"databases.{name}")


def index_config(datasette: Datasette) -> IndexConfig | None:
    """What is configured of the index. Raises `BadConfiguration`."""
    return parse_index(datasette.plugin_config(PLUGIN))


def layers_config(datasette: Datasette) -> LayersConfig:
    """What is configured of the layers behind the concepts. Raises `BadConfiguration`."""
    return parse_layers(datasette.plugin_config(PLUGIN))


async def _check_index(datasette: Datasette, config: IndexConfig | None) -> None:
    if config is None:
        return
    for key, name in (
        ("database", config.database),
        *((f"concepts_of.{n}", name) for n, name in enumerate(config.concepts_of or ())),
    ):
        if name not in datasette.databases:
            raise BadConfiguration(f"index.{key}", f"no database named {name} is served")
    database = datasette.databases[config.database]
    if not database.path or not database.is_mutable:
        raise BadConfiguration("index.database", f"{config.database} is no file that is written")

    def is_index_or_empty(conn: sqlite3.Connection) -> bool:
        with reading(conn) as reader:
            return is_index(reader) or not reader.rows("select 1 from sqlite_master limit 1")

    if not await database.execute_fn(is_index_or_empty):
        problem = f"{config.database} is no index: 'datasette concept-recall index add' makes one"
        raise BadConfiguration("index.database", problem)


def _problems_of(described: DatabaseConfig, conn: sqlite3.Connection) -> list[BadConfiguration]:
    with reading(conn) as reader:
        return build_mapping(reader, read_schema(reader), described)[1]


def warm_up(datasette: Datasette) -> Thread:
    """Starts to load the vocabularies of all files, so that the first request need not."""

    def load(served: Datasette, name: str, conn: sqlite3.Connection) -> None:
        vocabulary_for(served, name).matcher(conn)

    return read_files(datasette, load, "concept-recall-warm-up")


def read_files(
    datasette: Datasette,
    read: Callable[[Datasette, str, sqlite3.Connection], None],
    thread_name: str,
    only: str | None = None,
) -> Thread:
    """Starts to read every file that is served, or the one that is served as ``only``: ``read`` is
    called with the instance, the name of each and a connection to it.

    This happens in a thread of its own with connections of its own, beside the event loop and the
    threads that answer requests. Whatever fails with one file leaves the others as they are.
    """
    files = {
        name: read_only_uri(Path(database.path), immutable=not database.is_mutable)
        for name, database in list(datasette.databases.items())
        if database.path and only in (None, name)
    }
    of = ref(datasette)  # a thread must not keep an instance that nobody else does

    def run() -> None:
        for name, uri in files.items():
            served = of()
            if served is None:
                return
            try:
                with closing(sqlite3.connect(uri, uri=True)) as conn:
                    read(served, name, conn)
            except sqlite3.Error:
                continue  # the request that asks this database will fail by itself, and say why
            except BaseException:  # also of other plugins, such as panics of Rust
                log.exception("%s could not be read in the background", name)

    thread = Thread(target=run, name=thread_name, daemon=True)
    thread.start()
    return thread
