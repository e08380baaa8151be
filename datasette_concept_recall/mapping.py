"""Which tables of a database hold concepts and what is tagged with them.

A `Mapping` is data: the parts of the SQL that differ between sources. Files of every age are
met, so a table or a column is used when it is there and stands as NULL when it is not.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Container
from dataclasses import dataclass, replace

from .reading import Reader, as_text, quote_identifier

Columns = dict[str, frozenset[str]]
"""Lower-case table name -> the lower-case names of its columns."""

_ITEM, _PARENT = "i", "p"


@dataclass(frozen=True)
class Source:
    """One kind of tagged item, as the parts of the queries that find and fill it.

    ``rows`` is a FROM clause in which ``i`` is the item's table. The other attributes are SQL
    expressions over it, but for ``name``, ``order`` (by which ties of rank are broken), ``tables``
    (all that it reads: an actor needs every one), ``item_table``, ``link`` with its two columns,
    ``searched`` (all text that an item says, several expressions), ``ranked_by`` (the columns of
    each table on which the rank and the narrowing of an item depend), ``parent`` (the table joined
    as ``p`` and the item's column that refers to it, or None) and ``relations`` (the table of which
    item supersedes which, or None). ``created`` has a unary plus: an expression has no
    declared type, by which some connections convert what they read.
    """

    name: str
    order: int
    tables: tuple[str, ...]
    rows: str
    item_table: str
    link: str
    link_item: str
    link_concept: str
    source_type: str
    project_id: str
    created: str
    title: str
    body: str
    summary_status: str
    summary_stale: str
    status: str
    searched: tuple[str, ...]
    ranked_by: dict[str, tuple[str, ...]]
    parent: tuple[str, str] | None = None
    relations: str | None = None


@dataclass(frozen=True)
class Mapping:
    """The tables that recall reads in one database, as far as they exist.

    ``tables`` names them as they are spelled in the database. ``is_indexed`` tells that the recall
    index is there and can be used.
    """

    tables: tuple[str, ...] = ()
    has_concepts: bool = False
    sources: tuple[Source, ...] = ()
    has_projects: bool = False
    has_project_links: bool = False
    is_indexed: bool = False

    def visible_to(self, tables: Container[str] | None) -> Mapping:
        """What is left for a reader who may see only these tables (None: all of them)."""
        if tables is None:
            return self
        visible = {name.lower() for name in self.tables if name in tables}
        sources = [s for s in self.sources if visible.issuperset(s.tables)]
        projects = self.has_projects and "projects" in visible
        return replace(
            self,
            tables=tuple(name for name in self.tables if name in tables),
            has_concepts=self.has_concepts and "concepts" in visible,
            sources=tuple(
                s if s.relations in visible else replace(s, relations=None) for s in sources
            ),
            has_projects=projects,
            has_project_links=projects and self.has_project_links and "project_concepts" in visible,
        )


_KNOWLEDGE_TABLES = (
    "concepts",
    "projects",
    "project_concepts",
    "observations",
    "observation_concepts",
    "observation_relations",
    "records",
    "record_concepts",
    "record_relations",
    "documents",
    "document_sections",
    "document_section_concepts",
)


def read_mapping(reader: Reader) -> Mapping:
    """Looks at the schema of a database; one without any of the tables has an empty mapping."""
    names = reader.rows(
        "select name from sqlite_master where type in ('table', 'view') and lower(name) in"
        f" ({', '.join('?' * len(_KNOWLEDGE_TABLES))}) order by name",
        *_KNOWLEDGE_TABLES,
    )
    columns = {table: _columns_of(reader, table) for (table,) in names}
    tables = tuple(table for table, found in columns.items() if found)
    columns = {table.lower(): columns[table] for table in tables}
    candidates = (_observations(columns), _records(columns), _documents(columns))
    has_concepts = _has(columns, "concepts", "id", "name")
    has_projects = _has(columns, "projects", "id", "name")
    return Mapping(
        tables=tables,
        has_concepts=has_concepts,
        sources=tuple(source for source in candidates if source and has_concepts),
        has_projects=has_projects,
        has_project_links=has_projects
        and _has(columns, "project_concepts", "project_id", "concept_id"),
    )


def _columns_of(reader: Reader, table: str) -> frozenset[str]:
    """The lower-case names of the columns; none for a view of something that is gone."""
    try:
        rows = reader.rows(f"pragma table_info({quote_identifier(table)})")
    except sqlite3.OperationalError as error:
        if "interrupted" in str(error):
            raise
        return frozenset()
    return frozenset(as_text(name).lower() for _, name, *_ in rows)


def _has(columns: Columns, table: str, *names: str) -> bool:
    return columns.get(table, frozenset()).issuperset(names)


def _existing(columns: Columns, **wanted: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Of the wanted columns of each table, those that are there."""
    return {
        table: tuple(name for name in names if _has(columns, table, name))
        for table, names in wanted.items()
    }


def _relations(columns: Columns, table: str) -> str | None:
    return table if _has(columns, table, "from_id", "to_id", "relationship") else None


def _column(columns: Columns, table: str, alias: str) -> Callable[[str], str]:
    def expression(name: str) -> str:
        return f"{alias}.{quote_identifier(name)}" if _has(columns, table, name) else "null"

    return expression


def _observations(columns: Columns) -> Source | None:
    if not (
        _has(columns, "observations", "id")
        and _has(columns, "observation_concepts", "observation_id", "concept_id")
    ):
        return None
    item = _column(columns, "observations", _ITEM)
    return Source(
        name="observation",
        order=0,
        tables=("observations", "observation_concepts"),
        rows="observations i",
        item_table="observations",
        link="observation_concepts",
        link_item="observation_id",
        link_concept="concept_id",
        source_type="'observation'",
        project_id=item("project_id"),
        created=f"+{item('created_at')}",
        title="''",
        body=item("body"),
        summary_status="null",
        summary_stale="null",
        status="null",
        searched=(item("body"),),
        ranked_by=_existing(columns, observations=("id", "project_id", "created_at")),
        relations=_relations(columns, "observation_relations"),
    )


def _records(columns: Columns) -> Source | None:
    if not (
        _has(columns, "records", "id")
        and _has(columns, "record_concepts", "record_id", "concept_id")
    ):
        return None
    item = _column(columns, "records", _ITEM)
    return Source(
        name="record",
        order=1,
        tables=("records", "record_concepts"),
        rows="records i",
        item_table="records",
        link="record_concepts",
        link_item="record_id",
        link_concept="concept_id",
        source_type="'record'",
        project_id=item("project_id"),
        created=f"+{item('ingested_at')}",
        title=item("title"),
        body=item("body"),
        summary_status="null",
        summary_stale="null",
        status=item("status"),
        searched=(item("title"), item("body")),
        ranked_by=_existing(columns, records=("id", "project_id", "ingested_at")),
        relations=_relations(columns, "record_relations"),
    )


def _documents(columns: Columns) -> Source | None:
    """Sections; one whose document is missing keeps its heading as title."""
    if not (
        _has(columns, "documents", "id")
        and _has(columns, "document_sections", "id", "document_id")
        and _has(columns, "document_section_concepts", "section_id", "concept_id")
    ):
        return None
    item = _column(columns, "document_sections", _ITEM)
    document = _column(columns, "documents", _PARENT)
    level, status = item("level"), item("summary_status")
    heading = f"nullif({item('heading')}, '')"
    document_title = f"nullif({document('title')}, '')"
    return Source(
        name="document",
        order=2,
        tables=("documents", "document_sections", "document_section_concepts"),
        rows="document_sections i left join documents p on p.id = i.document_id",
        item_table="document_sections",
        link="document_section_concepts",
        link_item="section_id",
        link_concept="concept_id",
        source_type=f"case when {level} = 'gist' then 'document_gist' else 'document_section' end",
        project_id=document("project_id"),
        created=f"+{item('created_at')}",
        title=f"case when {level} = 'gist' then {document_title} else"
        f" coalesce({document_title} || ' / ' || {heading}, {document_title}, {heading}) end",
        body=f"case when {status} = 'reviewed' then {item('summary_body')} else '' end",
        summary_status=f"coalesce({status}, '')",
        summary_stale=f"coalesce({item('summary_stale')}, 0)",
        status="null",
        searched=(item("heading"), item("body"), item("summary_body")),
        ranked_by=_existing(
            columns,
            document_sections=("id", "document_id", "level", "created_at"),
            documents=("id", "project_id"),
        ),
        parent=("documents", "document_id"),
    )
