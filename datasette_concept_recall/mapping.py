"""What recall reads in a database: where the concepts are, and what is tagged with them.

A `Mapping` is data: the parts of the SQL that differ between databases. `knowledge_schema` makes
the one of a knowledge database, `mapped` that of any other one.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, replace
from typing import NamedTuple

from .reading import quote_identifier
from .schema import lowered

FULL_TEXT = "kb_fts"
"""The full-text table of a knowledge database."""


@dataclass(frozen=True)
class Concepts:
    """The names of a database, as the parts of the queries that read them.

    ``rows`` is a FROM clause in which ``c`` holds a row for each name. ``key`` (to which links
    refer), ``name``, ``description``, ``identifier_type`` and ``identifier_value`` are SQL
    expressions over it. ``table`` is the table of the names, None when they are the values of
    arrays. ``tables`` are all that are read, in lower case: an actor needs every one.
    """

    table: str | None
    tables: tuple[str, ...]
    rows: str
    key: str
    name: str
    description: str = "null"
    identifier_type: str = "null"
    identifier_value: str = "null"


class TaggedRows(NamedTuple):
    """A FROM clause of items with what they are tagged with, and its expressions for a concept."""

    rows: str
    key: str
    name: str


@dataclass(frozen=True)
class Source:
    """One kind of tagged item, as the parts of the queries that find and fill it.

    ``rows`` is a FROM clause in which ``i`` is the item's table; ``link`` is another one (of the
    table ``link_table``, None for arrays in the items), to be joined as ``l`` where ``on`` holds,
    and ``concept`` the expression over it that refers to the key of a concept, or with
    ``links_by_name`` to its name. The other attributes are SQL expressions over the items, but
    for these:

    - ``name``, and ``order``, by which ties of rank are broken
    - ``kinds``: every value of ``source_type`` with what a person calls it
    - ``tables``: all that it reads, in lower case (an actor needs every one)
    - ``item_table``, and ``key``: its columns that name a row in the address of its page
    - ``is_view``: its rows have no pages
    - ``project_is_name`` tells that ``project_id`` is the name of a project itself, and
      ``project_table`` where else it is read, if anywhere
    - ``searched``: all text that an item says, several expressions
    - ``relations``: the table of which item supersedes which, or None
    - ``passages``: where the text of an item is in pieces, a query for the piece of each that
      carries most of some concepts: of a JSON array of ids and one of names of concepts it makes
      (item, number of the piece, its place in words, its text); ``passage`` the same for the pieces
      of a JSON array of their numbers; and ``pieces`` one for all of an item: of its id it makes
      (text, start, end), of which the next may repeat some
    - ``active``: a condition under which an item still holds, besides its status; empty for none
    - ``link_item`` and ``link_concept`` (columns of the link table), ``ranked_by`` (the columns of
      each table on which the rank and the narrowing of an item depend) and ``parent`` (the table
      joined as ``p`` and the item's column that refers to it, or None), for the recall index

    ``id`` is a whole number, or with ``id_is_text`` a text; ``own_id`` is the same where the item's
    table stands under its own name. ``created`` is an expression that
    has no declared type, by which some connections convert what they read.
    """

    name: str
    order: int
    kinds: tuple[tuple[str, str], ...]
    tables: tuple[str, ...]
    rows: str
    item_table: str
    key: tuple[str, ...]
    id: str
    own_id: str
    link: str
    link_table: str | None
    on: str
    concept: str
    source_type: str
    project_id: str
    created: str
    title: str
    body: str
    searched: tuple[str, ...]
    summary_status: str = "null"
    summary_stale: str = "null"
    status: str = "null"
    id_is_text: bool = False
    links_by_name: bool = False
    is_view: bool = False
    project_is_name: bool = False
    project_table: str | None = None
    relations: str | None = None
    passages: str | None = None
    pieces: str | None = None
    passage: str | None = None
    active: str = ""
    link_item: str = ""
    link_concept: str = ""
    ranked_by: tuple[tuple[str, tuple[str, ...]], ...] = ()
    parent: tuple[str, str] | None = None

    @property
    def item_tables(self) -> frozenset[str]:
        """All that is read of the items without their links."""
        return frozenset(self.tables) - {self.link_table}

    @property
    def shown_id(self) -> str:
        """The expression of what tells items apart for people: their key, as JSON if compound."""
        key = [f"i.{quote_identifier(column)}" for column in self.key]
        return key[0] if len(key) == 1 else f"json_array({', '.join(key)})"

    @property
    def links(self) -> str:
        """A FROM clause in which every link ``l`` stands beside its item ``i``."""
        return f"{self.rows} join {self.link} l on {self.on}"

    def tagged(self, concepts: Concepts) -> TaggedRows:
        """The links to concepts that there are, each beside its item and its concept."""
        if concepts.table is None:  # the names in arrays are all there is of a concept
            return TaggedRows(self.links, self.concept, self.concept)
        referred = concepts.name if self.links_by_name else concepts.key
        rows = f"{self.links} join {concepts.rows} on {referred} = {self.concept}"
        return TaggedRows(rows, concepts.key, concepts.name)

    def key_in(self, table: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The columns that tell the rows of a table apart, and the same as expressions over the
        items: the table is that of the items, or the one that they belong to."""
        if self.parent and self.parent[0] == table != self.item_table:
            return ("id",), (f"i.{quote_identifier(self.parent[1])}",)
        return self.key, tuple(f"i.{quote_identifier(column)}" for column in self.key)


@dataclass(frozen=True)
class Mapping:
    """The tables that recall reads in one database, as far as they exist.

    ``tables`` names them as they are spelled in the database. ``is_indexed`` tells that the recall
    index is there and can be used. ``full_text`` are the tables that are read to search the words
    of items, ``vectors`` those for their meaning, in lower case; empty: there is none.
    ``all_kinds`` are those of a knowledge database, which may be asked for whether or not there
    are tables for them.
    """

    tables: tuple[str, ...] = ()
    concepts: Concepts | None = None
    sources: tuple[Source, ...] = ()
    has_projects: bool = False
    has_project_links: bool = False
    is_indexed: bool = False
    full_text: tuple[str, ...] = ()
    vectors: tuple[str, ...] = ()
    all_kinds: tuple[tuple[str, str], ...] = ()

    @property
    def has_concepts(self) -> bool:
        """Whether there is anything that a text could name."""
        return self.concepts is not None

    @property
    def is_knowledge(self) -> bool:
        """Whether this is the built-in mapping, for which there may be a recall index."""
        return bool(self.all_kinds)

    @property
    def is_index(self) -> bool:
        """Whether this is the built-in mapping of an index."""
        return any(source.passages is not None for source in self.sources)

    @property
    def kinds(self) -> dict[str, str]:
        """Every ``source_type`` with what a person calls it, in the order of the sources."""
        return dict(self.all_kinds) or {k: label for s in self.sources for k, label in s.kinds}

    @property
    def names_projects(self) -> bool:
        """Whether items can be narrowed to a project."""
        return self.has_projects or any(source.project_is_name for source in self.sources)

    def source_of(self, source_type: str) -> Source:
        """The source whose items are of a type. Raises `KeyError`."""
        for source in self.sources:
            if source_type in dict(source.kinds):
                return source
        raise KeyError(source_type)

    def sources_of(self, table: str) -> list[Source]:
        """The sources whose items are rows of a table, or belong to a row of it."""
        name = lowered(table)
        return [
            source
            for source in self.sources
            if source.item_table == name or (source.parent and source.parent[0] == name)
        ]

    def spelled(self, table: str) -> str:
        """A table of the mapping as the database spells it; Datasette finds it by no other name."""
        return next((name for name in self.tables if lowered(name) == lowered(table)), table)

    def visible_to(self, tables: Container[str] | None) -> Mapping:
        """What is left for a reader who may see only these tables (None: all of them)."""
        if tables is None:
            return self
        visible = {lowered(name) for name in self.tables if name in tables}
        projects = self.has_projects and "projects" in visible
        sees_names = self.concepts is not None and visible.issuperset(self.concepts.tables)
        return replace(
            self,
            tables=tuple(name for name in self.tables if name in tables),
            concepts=self.concepts if sees_names else None,
            sources=tuple(_seen(s, visible) for s in self.sources if visible.issuperset(s.tables)),
            has_projects=projects,
            full_text=self.full_text if visible.issuperset(self.full_text) else (),
            vectors=self.vectors if visible.issuperset(self.vectors) else (),
            has_project_links=projects and self.has_project_links and "project_concepts" in visible,
        )


def _seen(source: Source, visible: set[str]) -> Source:
    """A source without what it says of tables that are not to be seen."""
    if source.relations is not None and source.relations not in visible:
        source = replace(source, relations=None)
    if source.project_table is not None and source.project_table not in visible:
        source = replace(source, project_id="null", project_is_name=False, project_table=None)
    return source
