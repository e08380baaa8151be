"""What recall reads in an index database, as the indexing pipeline writes it.

Its documents are items like any other, of one kind for each way in which they came in. Their text
is in chunks, so a match shows the chunk that carries most of what is asked.
"""

from __future__ import annotations

from dataclasses import replace

from .config import NONE, ConceptsConfig, DatabaseConfig, SourceConfig
from .mapping import Mapping, Source
from .reading import Reader

APPLICATION_ID = 0x63_72_69_78
"""In the header of the file: "crix". It tells an index from any other database."""

KINDS = (("note", "Note"), ("file", "File"), ("mail", "Mail"), ("row", "Row"))
"""What documents are, with what a person calls it."""

CONFIG = DatabaseConfig(
    ConceptsConfig("concept", name="name", description=NONE),
    {
        "document": SourceConfig(
            "document",
            link="document_concept",
            item_key=("document_id",),
            concept_key="concept_id",
            title="title",
            body=NONE,
            created="created_at",
            project="source_id",
        )
    },
)

_KNOWS_RECORDS = 2
"""The version of the tables from which on whole records are in the full text."""

_READ = ("document", "document_concept", "chunk", "chunk_concept")
_HOLDS = "case when json_valid(i.record) then json_extract(i.record, '$.temporal_scope') end"
_STATUS = (
    f"case when not i.is_active and coalesce({_HOLDS}, 'accepted') = 'accepted'"
    f" then 'superseded' else {_HOLDS} end"
)

_FULL_TEXT = ("source", "document", "document_name", "chunk", "chunk_fts")
_VECTORS = (*_FULL_TEXT, "generation", "index_version", "vector", "setting")
_LAYERS = {*_FULL_TEXT, *_VECTORS}

_FIRST_CHUNK = (
    "(select x.text from chunk x where x.generation_id = i.live_generation"
    " order by x.position limit 1)"
)

_OVERLAP = (
    "coalesce((select max(b.end_offset) from chunk b where b.generation_id = c.generation_id"
    " and b.position < c.position), 0)"
)

_PASSAGES = (
    "select x.item, c.id, c.place, substr(c.text, 1 + max(0, "
    + _OVERLAP
    + " - c.start_offset)) from (select d.id as item, (select c.id from chunk c"
    " left join chunk_concept l on l.chunk_id = c.id"
    " and l.concept_id in (select id from concept where name in (select value from json_each(?2)))"
    " where c.generation_id = d.live_generation group by c.id"
    " order by count(l.concept_id) desc, c.position limit 1) as best from document d"
    " where d.id in (select value from json_each(?1))) x join chunk c on c.id = x.best"
)


_PASSAGE = (
    "select d.id, c.id, c.place, substr(c.text, 1 + max(0, " + _OVERLAP + " - c.start_offset))"
    " from chunk c join document d on d.live_generation = c.generation_id"
    " where c.id in (select value from json_each(?))"
)

_PIECES = (
    "select c.text, c.start_offset, c.end_offset from document d join chunk c"
    " on c.generation_id = d.live_generation where d.id = ? order by c.position"
)

_CARRIED = (
    "(select * from concept x where exists"
    " (select 1 from document_concept y where y.concept_id = x.id)) c"
)
"""The concepts of what is searched; those that only a growing generation carries are not yet."""


def is_index(reader: Reader) -> bool:
    """Whether a database is an index, of whatever version."""
    return reader.rows("pragma application_id") == [(APPLICATION_ID,)]


def with_passages(mapping: Mapping, reader: Reader) -> Mapping:
    """The mapping of `CONFIG` with what is special to an index. In one that an earlier version
    wrote, and nobody brought up to date, only concepts are found."""
    knows_records = reader.rows("pragma user_version")[0][0] >= _KNOWS_RECORDS
    concepts = mapping.concepts and replace(
        mapping.concepts,
        tables=(*mapping.concepts.tables, "document_concept"),
        rows=_CARRIED,
    )
    return replace(
        mapping,
        concepts=concepts,
        tables=tuple(sorted({*mapping.tables, *_READ, *(_LAYERS if knows_records else ())})),
        sources=tuple(_of_index(source, knows_records) for source in mapping.sources),
        full_text=_FULL_TEXT if knows_records else (),
        vectors=_VECTORS if knows_records else (),
    )


def _of_index(source: Source, knows_records: bool) -> Source:
    return replace(
        source,
        kinds=KINDS,
        source_type="i.kind",
        tables=tuple(dict.fromkeys((*source.tables, *_READ))),
        body=_FIRST_CHUNK,
        searched=(source.title, _FIRST_CHUNK),
        passages=_PASSAGES,
        pieces=_PIECES,
        passage=_PASSAGE,
        active="i.is_active" if knows_records else "",
        status=_STATUS if knows_records else source.status,
    )
