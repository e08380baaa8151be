"""The built-in mapping: knowledge databases, as the program ``kb`` and its companions write them.

Files of every age are met, so a table or a column is used when it is there and stands as NULL when
it is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .mapping import FULL_TEXT, Concepts, Mapping, Source
from .reading import Reader, quote_identifier
from .schema import Columns, columns_of_tables

_ITEM, _PARENT = "i", "p"

KINDS = (
    ("observation", "Observation"),
    ("record", "Record"),
    ("document_gist", "Document"),
    ("document_section", "Section"),
)
"""Every ``source_type`` of a knowledge database, with what a person calls it."""

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
    FULL_TEXT,
)

_SEARCHED = ("body", "source_type", "source_id")


def read_knowledge(reader: Reader) -> Mapping:
    """Looks at the schema of a database; one without any of the tables has an empty mapping."""
    tables, columns = columns_of_tables(reader, _KNOWLEDGE_TABLES)
    concepts = _concepts(columns)
    sources = (_observations(columns), _records(columns), _documents(columns))
    has_projects = _has(columns, "projects", "id", "name")
    return Mapping(
        tables=tables,
        concepts=concepts,
        sources=tuple(source for source in sources if source and concepts),
        has_projects=has_projects,
        has_project_links=has_projects
        and _has(columns, "project_concepts", "project_id", "concept_id"),
        full_text=(FULL_TEXT,) if _has(columns, FULL_TEXT, *_SEARCHED) else (),
        all_kinds=KINDS,
    )


def _concepts(columns: Columns) -> Concepts | None:
    if not _has(columns, "concepts", "id", "name"):
        return None
    concept = _column(columns, "concepts", "c")
    return Concepts(
        table="concepts",
        tables=("concepts",),
        rows="concepts c",
        key="c.id",
        name="c.name",
        description=concept("description"),
        identifier_type=concept("identifier_type"),
        identifier_value=concept("identifier_value"),
    )


def _has(columns: Columns, table: str, *names: str) -> bool:
    return columns.get(table, frozenset()).issuperset(names)


def _existing(
    columns: Columns, **wanted: tuple[str, ...]
) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """Of the wanted columns of each table, those that are there."""
    return tuple(
        (table, tuple(name for name in names if _has(columns, table, name)))
        for table, names in wanted.items()
    )


def _relations(columns: Columns, table: str) -> str | None:
    return table if _has(columns, table, "from_id", "to_id", "relationship") else None


def _column(columns: Columns, table: str, alias: str) -> Callable[[str], str]:
    def expression(name: str) -> str:
        return f"{alias}.{quote_identifier(name)}" if _has(columns, table, name) else "null"

    return expression


_Parts = dict[str, Any]
"""Attributes of a `Source`."""


def _linked(columns: Columns, table: str, link: str, link_item: str) -> _Parts | None:
    """What all sources have in common: items by id, and a table of links; None without them."""
    if not _has(columns, table, "id") or not _has(columns, link, link_item, "concept_id"):
        return None
    return {
        "tables": (table, link),
        "rows": f"{table} i",
        "item_table": table,
        "key": ("id",),
        "id": "i.id",
        "own_id": "id",
        "link": link,
        "link_table": link,
        "on": f"l.{link_item} = i.id",
        "concept": "l.concept_id",
        "link_item": link_item,
        "link_concept": "concept_id",
    }


def _observations(columns: Columns) -> Source | None:
    parts = _linked(columns, "observations", "observation_concepts", "observation_id")
    if parts is None:
        return None
    item = _column(columns, "observations", _ITEM)
    return Source(
        name="observation",
        order=0,
        kinds=KINDS[0:1],
        **parts,
        source_type="'observation'",
        project_id=item("project_id"),
        created=f"+{item('created_at')}",
        title="''",
        body=item("body"),
        searched=(item("body"),),
        ranked_by=_existing(columns, observations=("id", "project_id", "created_at")),
        relations=_relations(columns, "observation_relations"),
    )


def _records(columns: Columns) -> Source | None:
    parts = _linked(columns, "records", "record_concepts", "record_id")
    if parts is None:
        return None
    item = _column(columns, "records", _ITEM)
    return Source(
        name="record",
        order=1,
        kinds=KINDS[1:2],
        **parts,
        source_type="'record'",
        project_id=item("project_id"),
        created=f"+{item('ingested_at')}",
        title=item("title"),
        body=item("body"),
        status=item("status"),
        searched=(item("title"), item("body")),
        ranked_by=_existing(columns, records=("id", "project_id", "ingested_at")),
        relations=_relations(columns, "record_relations"),
    )


def _documents(columns: Columns) -> Source | None:
    """Sections; one whose document is missing keeps its heading as title."""
    parts = _linked(columns, "document_sections", "document_section_concepts", "section_id")
    has_parents = _has(columns, "documents", "id") and _has(
        columns, "document_sections", "document_id"
    )
    if parts is None or not has_parents:
        return None
    parts |= {
        "tables": ("documents", *parts["tables"]),
        "rows": "document_sections i left join documents p on p.id = i.document_id",
    }
    item = _column(columns, "document_sections", _ITEM)
    document = _column(columns, "documents", _PARENT)
    level, status = item("level"), item("summary_status")
    heading = f"nullif({item('heading')}, '')"
    document_title = f"nullif({document('title')}, '')"
    return Source(
        name="document",
        order=2,
        kinds=KINDS[2:],
        **parts,
        source_type=f"case when {level} = 'gist' then 'document_gist' else 'document_section' end",
        project_id=document("project_id"),
        created=f"+{item('created_at')}",
        title=f"case when {level} = 'gist' then {document_title} else"
        f" coalesce({document_title} || ' / ' || {heading}, {document_title}, {heading}) end",
        body=f"case when {status} = 'reviewed' then {item('summary_body')} else '' end",
        summary_status=f"coalesce({status}, '')",
        summary_stale=f"coalesce({item('summary_stale')}, 0)",
        searched=(item("heading"), item("body"), item("summary_body")),
        ranked_by=_existing(
            columns,
            document_sections=("id", "document_id", "level", "created_at"),
            documents=("id", "project_id"),
        ),
        parent=("documents", "document_id"),
    )
