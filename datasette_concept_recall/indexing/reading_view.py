"""One document of an index as it is read, on a connection that belongs to somebody else.

It is given the tables that may be seen; what would come from another one is None.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Set
from dataclasses import dataclass
from typing import Any

from ..errors import BadParameter
from ..pieces import joined
from ..reading import Reader, reading

PASSAGES_PER_PAGE = 100
LETTERS_PER_PAGE = 200_000
"""About so many at most, since chunks may be large; but there is always a chunk on a page."""

TABLES_OF_DOCUMENT = frozenset({"document", "chunk"})
"""Without these there is nothing of a document to be seen."""
MORE_OF_DOCUMENT = frozenset({"source", "document_concept", "concept", "redaction", "location"})


@dataclass(frozen=True)
class Passage:
    """A chunk as it is read: ``text`` is ``[start:end]`` of the document, ``shown`` what of it is
    shown with it, so that what two chunks have in common is there once."""

    id: int
    place: str
    text: str
    start: int
    end: int
    shown: str


@dataclass(frozen=True)
class DocumentView:
    """A document with one page of its passages, of which there are ``total``.

    ``marked`` is the chunk that was asked for, None when the document has no such chunk.
    ``redactions`` are (family, place, removed), ``locations`` (folder, position, flags).
    """

    id: int
    title: str
    kind: str
    path: str
    created_at: str | None
    indexed_at: str | None
    problem: str | None
    is_gone: bool
    is_unverified: bool
    source: str | None
    concepts: list[str] | None
    redactions: list[tuple[str, str, str]] | None
    locations: list[tuple[str, str, str]] | None
    passages: list[Passage]
    total: int
    page: int
    pages: int
    marked: int | None


_DOCUMENT = (
    "select title, kind, path, created_at, indexed_at, problem, orphaned_in is not null,"
    " is_unverified, source_id, live_generation from document"
    " where id = ? and live_generation is not null"
)


def read_document(
    conn: sqlite3.Connection,
    document_id: int,
    visible: Set[str],
    *,
    chunk: int | None = None,
    page: int | None = None,
    size: int | None = None,
) -> DocumentView | None:
    """A document as it is searched, None when there is none of this number.

    ``page`` counts from 1; without it the page is that of ``chunk``, or the first. Pages are of
    ``size`` chunks, or of as many as can be read well. Raises `BadParameter` for a page that there
    is not, and `sqlite3.Error`.
    """
    with reading(conn) as reader:
        for *described, source_id, generation in reader.rows(_DOCUMENT, document_id):
            ((total,),) = reader.rows(
                "select count(*) from chunk where generation_id = ?", generation
            )
            size = size or _page_size(reader, generation, total)
            before = None if chunk is None else _before(reader, generation, chunk)
            pages = max(1, -(-total // size))
            if page is None:
                page = (before or 0) // size + 1
            if not 1 <= page <= pages:
                raise BadParameter(f"page is not a whole number from 1 to {pages}")
            marked = None if before is None else chunk
            title, kind, path, created_at, indexed_at, problem, is_gone, is_unverified = described
            return DocumentView(
                id=document_id,
                title=title,
                kind=kind,
                path=path,
                created_at=created_at,
                indexed_at=indexed_at,
                problem=problem,
                is_gone=bool(is_gone),
                is_unverified=bool(is_unverified),
                **_around(reader, visible, document_id, source_id, generation),
                passages=_passages(reader, generation, (page - 1) * size, size, marked),
                total=total,
                page=page,
                pages=pages,
                marked=marked,
            )
    return None


def _page_size(reader: Reader, generation: int, total: int) -> int:
    rows = reader.rows(
        "select end_offset from chunk where generation_id = ? order by position desc limit 1",
        generation,
    )
    letters = rows[0][0] if rows else 0
    fitting = LETTERS_PER_PAGE * total // max(letters, 1)
    return max(1, min(PASSAGES_PER_PAGE, fitting))


def _before(reader: Reader, generation: int, chunk: int) -> int | None:
    """How many chunks stand before one, None when it is not of this generation."""
    ((known, before),) = reader.rows(
        "select count(*), (select count(*) from chunk b where b.generation_id = ?1"
        " and b.position < c.position) from chunk c where c.generation_id = ?1 and c.id = ?2",
        generation,
        chunk,
    )
    return before if known else None


def _around(
    reader: Reader, visible: Set[str], document_id: int, source_id: int, generation: int
) -> dict[str, Any]:
    """What other tables have on a document."""

    def rows(tables: Set[str], sql: str, key: int) -> list[tuple[Any, ...]] | None:
        return reader.rows(sql, key) if tables <= visible else None

    source = rows({"source"}, "select name from source where id = ?", source_id)
    concepts = rows(
        {"document_concept", "concept"},
        "select c.name from document_concept l join concept c on c.id = l.concept_id"
        " where l.document_id = ? order by c.name collate nocase, c.name",
        document_id,
    )
    return {
        "source": source[0][0] if source else None,
        "concepts": None if concepts is None else [name for (name,) in concepts],
        "redactions": rows(
            {"redaction"},
            "select family, place, removed from redaction where generation_id = ? order by id",
            generation,
        ),
        "locations": rows(
            {"location"},
            "select folder, position, flags from location where document_id = ?"
            " order by folder, position",
            document_id,
        ),
    }


def _passages(
    reader: Reader, generation: int, first: int, size: int, marked: int | None
) -> list[Passage]:
    """``size`` chunks after ``first`` ones. The one before is read as well, for what is said in
    both of them."""
    skipped = max(first - 1, 0)
    rows = reader.rows(
        "select id, place, text, start_offset, end_offset from chunk where generation_id = ?"
        " order by position limit ? offset ?",
        generation,
        size + first - skipped,
        skipped,
    )
    shown = _shown([row[2:] for row in rows], [row[0] for row in rows], marked)
    found = [
        Passage(id_, place, text, start, end, own)
        for (id_, place, text, start, end), own in zip(rows, shown, strict=True)
    ]
    return found[first - skipped :]


def _shown(pieces: list[tuple[str, int, int]], ids: list[int], marked: int | None) -> list[str]:
    """What is shown of each chunk: what those before it do not say. The marked one is shown
    whole, and those before it end where it begins."""
    text, spans = joined(pieces)
    ends = [end for _, end in spans]
    starts = [0, *ends[:-1]]
    if marked in ids:
        at = ids.index(marked)
        starts[at] = spans[at][0]
        ends[:at] = [min(end, starts[at]) for end in ends[:at]]
        starts[:at] = [min(start, starts[at]) for start in starts[:at]]
    return [_laid_out(text, start, end) for start, end in zip(starts, ends, strict=True)]


def _laid_out(text: str, start: int, end: int) -> str:
    """A piece as it stands on lines of its own: indented only where it begins a line."""
    piece = text[start:end]
    if start and text[start - 1] not in "\r\n":
        piece = piece.lstrip(" \t")
    return piece.strip("\r\n")
