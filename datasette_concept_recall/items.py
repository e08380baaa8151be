"""One item by its reference, whatever it is tagged with."""

from __future__ import annotations

import json
import re
import sqlite3
from dataclasses import replace
from typing import Any

from . import recall as stages
from .folding import canonical_name
from .mapping import Mapping, Source
from .models import Candidate, ConceptMatch, RankKey
from .pieces import joined
from .reading import Reader, as_text, quote_identifier, reading
from .related import tags_sql
from .timestamps import age_of

_is_number = re.compile("-?(?:0|[1-9][0-9]{0,18})").fullmatch

_BIGGEST = 2**63


def read_item(conn: sqlite3.Connection, mapping: Mapping, ref: str) -> ConceptMatch | None:
    """The item of a reference such as ``record:12``, with all concepts in code-point order.

    ``mapping`` is what may be seen. None when there is no such item in it. Raises `sqlite3.Error`.
    """
    with reading(conn) as reader:
        for source, id_ in _readings(mapping, ref):
            for condition, values in _conditions(source, id_):
                found = _candidate(reader, source, condition, values)
                match = found and _filled(reader, mapping, source, *found)
                if match and str(match.id) == id_:  # SQLite takes '01' for 1
                    return match
    return None


def _readings(mapping: Mapping, ref: str) -> list[tuple[Source, str]]:
    """The sources of which a reference may be, with the id that it names then."""
    return [
        (source, ref[len(name) + 1 :])
        for source in mapping.sources
        for name in dict.fromkeys((*dict(source.kinds), source.name))
        if ref.startswith(f"{name}:")
    ]


def _conditions(source: Source, id_: str) -> list[tuple[str, list[object]]]:
    """Under which the row of an id is found, the way in which `stages.fill` writes ids first."""
    columns = [f"i.{quote_identifier(column)}" for column in source.key]
    found: list[tuple[str, list[object]]] = []
    if len(columns) == 1:
        found.append((f"{columns[0]} in (select value from json_each(?))", [_spellings(id_)]))
    try:
        values = json.loads(id_)
    except (ValueError, RecursionError):
        return found
    if not isinstance(values, list) or len(values) != len(columns):
        return found
    if all(isinstance(value, str | int | float) for value in values):
        each = "({0} = ? or typeof({0}) = 'blob' and hex({0}) = ?)"
        condition = " and ".join(each.format(column) for column in columns)
        found.append((condition, [_bound(v) for value in values for v in (value, value)]))
    return found


def _spellings(id_: str) -> str:
    """A JSON array of the values that read like an id: a text and, if it can be, a number."""
    return json.dumps([id_, int(id_)] if _is_number(id_) else [id_])


def _bound(value: str | int | float) -> object:
    """A value that can be bound: whole numbers of more than 64 bits cannot."""
    return str(value) if isinstance(value, int) and not -_BIGGEST <= value < _BIGGEST else value


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
