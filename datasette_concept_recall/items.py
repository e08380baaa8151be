"""One item by its reference, whatever it is tagged with."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from typing import Any

from . import recall as stages
from .folding import canonical_name
from .mapping import Mapping, Source
from .models import Candidate, ConceptMatch, RankKey
from .pieces import joined
from .reading import Reader, as_text, quote_identifier, reading
from .references import conditions, readings
from .related import tags_sql
from .timestamps import age_of


def read_item(conn: sqlite3.Connection, mapping: Mapping, ref: str) -> ConceptMatch | None:
    """The item of a reference such as ``record:12``, with all concepts in code-point order.

    ``mapping`` is what may be seen. None when there is no such item in it. Raises `sqlite3.Error`.
    """
    with reading(conn) as reader:
        for source, id_ in readings(mapping, ref):
            for condition, values in conditions(source, id_):
                found = _candidate(reader, source, condition, values)
                match = found and _filled(reader, mapping, source, *found)
                if match and str(match.id) == id_:  # SQLite takes '01' for 1
                    return match
    return None


def _candidate(
    reader: Reader, source: Source, condition: str, values: list[object]
) -> tuple[Candidate, tuple[Any, ...]] | None:
    key = ", ".join(f"i.{quote_identifier(column)}" for column in source.key)
    rows = reader.rows(
        f"select {source.id}, {source.created}, {source.project_id}, {source.source_type}, {key}"
        f" from {source.rows} where {condition} limit 1",
        *values,
    )
    for id_, created, project_id, source_type, *row_key in rows:
        place = RankKey(0, age_of(created), source.order, id_)
        return Candidate(place, source_type, project_id, 0), tuple(row_key)
    return None


def _filled(
    reader: Reader,
    mapping: Mapping,
    source: Source,
    candidate: Candidate,
    row_key: tuple[Any, ...],
) -> ConceptMatch:
    names: dict[str, str] = {}
    if mapping.concepts is not None:
        rows = reader.rows(tags_sql(source, mapping.concepts, source.item_table), *row_key)
        for name in sorted({as_text(name) for _, name in rows}):
            names.setdefault(canonical_name(name), name)
    asked = [stages.AskedName(name, (name,)) for canonical, name in names.items() if canonical]
    carried = candidate._replace(carried=(1 << len(asked)) - 1)
    projects = stages.read_projects(reader, mapping, None)
    (match,) = stages.fill(reader, mapping, [carried], asked, projects)
    if source.pieces is None:
        return match
    text, _ = joined(reader.rows(source.pieces, candidate.key.id))
    return replace(match, body=text)
