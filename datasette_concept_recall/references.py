"""The references of items, such as ``record:12``, and the rows that they may name."""

from __future__ import annotations

import json
import re

from .mapping import Mapping, Source
from .reading import quote_identifier

_is_number = re.compile("-?(?:0|[1-9][0-9]{0,18})").fullmatch

_BIGGEST = 2**63


def readings(mapping: Mapping, ref: str) -> list[tuple[Source, str]]:
    """The sources of which a reference may be, with the id that it names then."""
    return [
        (source, ref[len(name) + 1 :])
        for source in mapping.sources
        for name in dict.fromkeys((*dict(source.kinds), source.name))
        if ref.startswith(f"{name}:")
    ]


def conditions(source: Source, id_: str) -> list[tuple[str, list[object]]]:
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
