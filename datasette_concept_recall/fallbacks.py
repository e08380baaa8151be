"""Who may search for the meaning of a question in place of the index: the protocol for others.

The engine ranks and fuses. What is asked here finds references, which are looked up in the live
tables like any other before anything is shown.
"""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol

from .liveness import active_sql
from .mapping import Mapping, Source
from .reading import Reader, as_text, quote_identifier, reading
from .recall import read_projects, shown_id
from .rendering import DEFAULT_RENDERING, RecordText, Rendering, embedding_text
from .timestamps import parse_instant


class ActiveRecord(NamedTuple):
    """An item that holds: its reference (``record:12``), the text it is embedded as, and the
    SHA-256 of that text."""

    ref: str
    text: str
    text_hash: bytes


class SemanticFallback(Protocol):
    """Finds items of one database by the meaning of a question.

    ``database`` is the name under which Datasette serves it. What is raised is taken for a failure
    of the fallback: recall answers without it and says so.
    """

    database: str

    def search(self, query: str, limit: int) -> Sequence[str]:
        """References of items, the most relevant first, at most so many."""

    def reconcile(self, active: Iterable[ActiveRecord]) -> None:
        """Brings what is stored in line with all items that hold: adds what is new, embeds anew
        what has another text hash, and drops what is not among them. Doing it again changes
        nothing; an empty store learns its width from its first vector."""


def active_records(
    conn: sqlite3.Connection, mapping: Mapping, rendering: Rendering = DEFAULT_RENDERING
) -> Iterator[ActiveRecord]:
    """All items of a database that hold and say something, of one snapshot. Raises
    `sqlite3.Error`."""
    with reading(conn) as reader:
        projects = read_projects(reader, mapping, None)
        for source in mapping.sources:
            tags = _tags(reader, mapping, source)
            key = ", ".join(f"i.{quote_identifier(column)}" for column in source.key)
            for id_, type_, project, created, title, body, status, *values in reader.each(
                f"select {source.id}, {source.source_type}, {source.project_id}, {source.created},"
                f" {source.title}, {source.body}, {source.status}, {key} from {source.rows}"
                f" where {active_sql(source)} order by {source.id}"
            ):
                instant = parse_instant(created)
                record = RecordText(
                    statement="\n\n".join(filter(None, (as_text(title), as_text(body)))),
                    subject=projects.of(project),
                    kind=dict(source.kinds)[type_],
                    entities=tuple(sorted(tags.get(id_, ()))),
                    qualifier=instant.date().isoformat() if instant else None,
                    temporal_scope=as_text(status),
                )
                text = embedding_text(record, rendering)
                if text.strip():
                    digest = hashlib.sha256(text.encode("utf-8", "replace")).digest()
                    yield ActiveRecord(f"{type_}:{shown_id(values)}", text, digest)


def _tags(reader: Reader, mapping: Mapping, source: Source) -> dict[object, set[str]]:
    if mapping.concepts is None:
        return {}
    found: dict[object, set[str]] = {}
    tagged = source.tagged(mapping.concepts)
    for id_, name in reader.each(
        f"select {source.id}, {tagged.name} from {tagged.rows} where {tagged.name} is not null"
    ):
        found.setdefault(id_, set()).add(as_text(name))
    return found
