"""Rows of cells as text, and CSV, of which each row is a segment.

A chunk shows some rows out of the middle of a table, where a bare ``40`` says nothing to a reader
and nothing to an embedder. So each value stands beside the name of its column,
``City: Paris; Price: 40``, where the table names its columns, and ``Paris | 40`` where it does not.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from .decoding import decode
from .models import Extracted, Segment
from .texts import plain

_SNIFFED_ROWS = 50
_LONGEST_NAME = 80


def read_csv(data: bytes) -> Extracted:
    """A file of values between commas, semicolons, tabs or bars, whichever fit best."""
    return _read(data, "csv", ",;\t|")


def read_tsv(data: bytes) -> Extracted:
    """A file of values between tabs."""
    return _read(data, "tsv", "\t")


def row_texts(rows: Iterable[Sequence[str]]) -> Iterator[tuple[int, str]]:
    """The number of each row that is not blank, from 1, and its text, which ends with its line.

    The first row of several cells names the columns if it can: each cell differs and holds a
    letter. A row before it, such as the title of the table, is shown as it is.
    """
    names: Sequence[str] | None = None
    for number, row in enumerate(rows, 1):
        cells = [" ".join(cell.split()) for cell in row]
        filled = [cell for cell in cells if cell]
        if not filled:
            continue
        if names is None and len(filled) > 1:
            names = cells if _are_names(filled) else ()
            yield number, " | ".join(filled) + "\n"
        else:
            yield number, _row_text(names or (), cells) + "\n"


def _row_text(names: Sequence[str], cells: Sequence[str]) -> str:
    if not names:
        return " | ".join(filter(None, cells))
    named = zip(cells, [*names, *[""] * len(cells)], strict=False)
    return "; ".join(f"{name}: {cell}" if name else cell for cell, name in named if cell)


def _are_names(cells: Sequence[str]) -> bool:
    return len(set(cells)) == len(cells) and all(
        len(cell) <= _LONGEST_NAME and any(map(str.isalpha, cell)) for cell in cells
    )


def _read(data: bytes, format_name: str, delimiters: str) -> Extracted:
    text = decode(data)
    delimiter = max(delimiters, key=lambda candidate: _fit(text, candidate))
    try:
        for _ in _rows(text, delimiter):
            pass
    except csv.Error:
        return plain(text)
    numbered = row_texts(_rows(text, delimiter))
    segments = (Segment(row, "row", number) for number, row in numbered)
    return Extracted(format_name, "rows", segments)


def _rows(text: str, delimiter: str) -> Iterator[list[str]]:
    return csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)


def _fit(text: str, delimiter: str) -> tuple[int, int]:
    """How many of the first rows the delimiter cuts into equally many cells, and into how many."""
    widths: Counter[int] = Counter()
    try:
        widths.update(len(row) for row in islice(_rows(text, delimiter), _SNIFFED_ROWS))
    except csv.Error:
        return 0, 0
    several = {width: count for width, count in widths.items() if width > 1}
    return max(((count, width) for width, count in several.items()), default=(0, 0))
