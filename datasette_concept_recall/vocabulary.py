"""The names of a database as a cached matcher that is never stale."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from typing import NamedTuple

from .config import DatabaseConfig
from .index_schema import is_usable
from .mapped import read_mapping
from .mapping import Mapping
from .matching import ConceptMatcher
from .near_misses import NearMisses
from .reading import Reader, as_text, reading


class Knowledge(NamedTuple):
    """What is known of a database before anything is asked: its tables and its names.

    ``names_are_plain`` tells that every name has the value that it reads as.
    """

    mapping: Mapping
    matcher: ConceptMatcher
    near_misses: NearMisses
    names_are_plain: bool


class _Verified(NamedTuple):
    """What a thread knows, and the state of which connection it knows it of."""

    connection: sqlite3.Connection
    version: tuple[int, int, int]
    knowledge: Knowledge


class Vocabulary:
    """The cached `Knowledge` of one database, shared by all threads that read it.

    Every connection tells cheaply whether anything was committed since it last looked
    (``PRAGMA data_version`` and ``schema_version``, and its own changes). Only then are the names
    read again, and only when they differ is a matcher built. What a thread verified it keeps for
    itself, so a reader of an older snapshot can never give another thread an older matcher.

    ``remember_connections=False`` reads the names at every call: for connections that come and
    go, since SQLite connections cannot be referenced weakly. ``config`` describes the tables of a
    database where somebody did. ``builds`` counts built matchers.
    """

    def __init__(
        self, *, remember_connections: bool = True, config: DatabaseConfig | None = None
    ) -> None:
        self.builds = 0
        self._config = config
        self._remember = remember_connections
        self._lock = threading.Lock()
        self._names: list[str] | None = None
        self._matcher, self._near_misses = ConceptMatcher(()), NearMisses(())
        self._verified = threading.local()
        self._mapping: tuple[str, Mapping] | None = None  # with the schema it was read from

    def matcher(self, conn: sqlite3.Connection) -> ConceptMatcher:
        """The matcher of the names that the database holds now."""
        with reading(conn) as reader:
            return self.knowledge(reader).matcher

    def knowledge(self, reader: Reader) -> Knowledge:
        """The tables and names that the database holds in this snapshot."""
        if reader.in_foreign_transaction:  # for this caller only
            mapping = self._read_mapping(reader)
            names, plain = _read_names(reader, mapping)
            return Knowledge(mapping, *self._finders_of(names, share=False), plain)
        version = _version(reader)
        known: _Verified | None = getattr(self._verified, "entry", None)
        if known and known.connection is reader.connection and known.version == version:
            return known.knowledge
        mapping = self._current_mapping(reader)
        names, plain = _read_names(reader, mapping)
        knowledge = Knowledge(mapping, *self._finders_of(names), plain)
        if self._remember:
            self._verified.entry = _Verified(reader.connection, version, knowledge)
        return knowledge

    def mapping(self, conn: sqlite3.Connection) -> Mapping:
        """The tables that the database holds now; no name is read, so this is always cheap."""
        with reading(conn) as reader:
            if reader.in_foreign_transaction:
                return self._read_mapping(reader)
            return self._current_mapping(reader)

    @property
    def latest_mapping(self) -> Mapping | None:
        """The mapping that was read last, by any thread; it may be out of date."""
        return self._mapping[1] if self._mapping else None

    def _current_mapping(self, reader: Reader) -> Mapping:
        # Another file may have come in the place of the one that was read, with the same version.
        ((schema,),) = reader.rows(
            "select (select schema_version from pragma_schema_version)"
            " || coalesce(group_concat(type || name || length(sql)), '') from sqlite_master"
        )
        known = self._mapping
        if not self._remember or known is None or known[0] != schema:
            known = self._mapping = schema, self._read_mapping(reader)
        return known[1]

    def _read_mapping(self, reader: Reader) -> Mapping:
        mapping = read_mapping(reader, self._config)
        may_have_index = mapping.is_knowledge and bool(mapping.sources)
        return replace(mapping, is_indexed=may_have_index and is_usable(reader, mapping))

    def _finders_of(
        self, names: list[str], *, share: bool = True
    ) -> tuple[ConceptMatcher, NearMisses]:
        with self._lock:
            if names == self._names:
                return self._matcher, self._near_misses
            matcher, near_misses = self._built(names), NearMisses(names)
            self.builds += 1
            if share:
                self._names, self._matcher, self._near_misses = names, matcher, near_misses
            return matcher, near_misses

    def _built(self, names: list[str]) -> ConceptMatcher:
        known, wanted = set(self._names or ()), set(names)
        if known and known < wanted:  # the usual change: somebody added some
            return self._matcher.extended(wanted - known)
        return ConceptMatcher(names)


def _version(reader: Reader) -> tuple[int, int, int]:
    (data,), (schema,) = reader.rows("pragma data_version") + reader.rows("pragma schema_version")
    return data, schema, reader.connection.total_changes


def _read_names(reader: Reader, mapping: Mapping) -> tuple[list[str], bool]:
    """All names, and whether none has another value than it reads as."""
    concepts = mapping.concepts
    if concepts is None:
        return [], True
    rows = reader.rows(f"select {concepts.name} from {concepts.rows}")
    values = [name for (name,) in rows if name]
    odd = any(type(v) is not str or "\0" in v or "\ufffd" in v for v in values)
    return [as_text(value) for value in values], not odd


_passing = Vocabulary(remember_connections=False)


def vocabulary_of(vocabulary: Vocabulary | None) -> Vocabulary:
    """The given vocabulary, or the one for connections of which nothing is known."""
    return vocabulary or _passing


def match_concept_names(
    conn: sqlite3.Connection, text: str, *, vocabulary: Vocabulary | None = None
) -> list[str]:
    """The stored names of all concepts that a text mentions, each once, in code-point order.

    A database without concepts has no names. Raises `sqlite3.Error` when it cannot be read.
    """
    return vocabulary_of(vocabulary).matcher(conn).names(text)


def stored_names(conn: sqlite3.Connection) -> list[str]:
    """The names of all concepts of a database, as they are found in it; some may be there twice.

    Raises `sqlite3.Error` when it cannot be read.
    """
    with reading(conn) as reader:
        return _read_names(reader, read_mapping(reader))[0]
