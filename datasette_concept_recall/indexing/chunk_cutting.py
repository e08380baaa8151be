"""Decides where chunks end and where their overlap begins, within one window on a document.

semantic-text-splitter finds where to cut; what is promised about sizes and overlaps is kept here.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from .chunk_windows import Window
from .failures import missing
from .models import Size, Strategy

_PARAGRAPH = re.compile(r"\n\s*\n\s*")
_LINE = re.compile(r"\n\s*")
_WORD = re.compile(r"\s+|[、。！，：；？]+\s*")
"""Between two words, or, where a script puts no spaces, between two clauses."""


class _Splitter(Protocol):
    """What both splitters of the library offer: the start and the text of each piece."""

    def chunk_indices(self, text: str) -> list[tuple[int, str]]: ...


class Span(NamedTuple):
    """``[start:end]`` of the text of a window."""

    start: int
    end: int


class Cutter:
    """Decides where the own text of chunks ends, and where their overlap begins."""

    def __init__(self, strategy: Strategy, size: Size) -> None:
        self.size = size
        self._rows = strategy == "rows"
        self._measure: Callable[[str], int] = size.count or len
        # What the overlap needs is left free, but never more than half of a chunk.
        self._capacity = max(size.limit - size.overlap, (size.limit + 1) // 2, 1)
        markdown = strategy == "markdown"
        self._splitter = (
            _character_splitter(markdown, self._capacity)
            if size.count is None
            else _splitter(markdown, self._capacity, size.count)
        )

    def spans(self, window: Window, alone: bool) -> list[Span]:
        """The own texts of chunks in the uncut text of a window; ``alone`` if that is all of a
        stretch, so that it may be one chunk."""
        text, start = window.text, window.uncut
        if alone:
            whole = _trimmed(text, start, len(text))
            if self._measure(text[whole.start : whole.end]) <= self.size.limit:
                return [whole] if whole.end > whole.start else []
        cuts = (
            self._packed(text, start, window.starts())
            if self._rows
            else self._split(text, start, len(text))
        )
        return [
            span
            for begin, end in pairwise([*cuts, len(text)])
            for span in self._fitting(text, begin, end)
        ]

    def _split(self, text: str, start: int, end: int) -> list[int]:
        """Where own texts begin between ``start`` and ``end``, the first at ``start``."""
        found = self._splitter.chunk_indices(text[start:end])
        return [start, *(start + index for index, _ in found[1:])]

    def _packed(self, text: str, start: int, starts: list[int]) -> Iterator[int]:
        """Where own texts begin if as many whole rows as fit are put into each.

        What is left of a row that was too large counts as a row.
        """
        ends = [*(row for row in starts if row > start), len(text)]
        row = 0
        while row < len(ends):
            yield start
            fitting = self._rows_that_fit(text, start, ends, row)
            if fitting:
                row += fitting
                start = ends[row - 1]
                continue
            _, *cuts = self._split(text, start, ends[row])
            yield from cuts[:-1]
            if cuts:
                start = cuts[-1]
            else:
                start = ends[row]
                row += 1

    def _rows_that_fit(self, text: str, start: int, ends: list[int], row: int) -> int:
        """How many rows fit together, from ``start``, which is in ``row``, on; one that fits only
        without overlap stays whole."""

        def fits(rows: int) -> bool:
            allowed = self.size.limit if rows == 1 else self._capacity
            return self._measure(text[start : ends[row + rows - 1]].strip()) <= allowed

        most = len(ends) - row
        low, step = 0, 1
        while low + step <= most and fits(low + step):
            low += step
            step *= 2
        high = min(low + step, most + 1)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low

    def _fitting(self, text: str, start: int, end: int) -> Iterator[Span]:
        """What is between two cuts without the blank space around it, halved while it is too large:
        a tokenizer may count more for a piece than for the whole."""
        span = _trimmed(text, start, end)
        if span.start == span.end:
            return
        counted = self._measure(text[span.start : span.end])
        if counted <= self.size.limit:
            yield span
        elif span.end - span.start == 1:
            raise ValueError(
                f"Chunk limit too small: a single character counts {counted}, "
                f"more than the limit of {self.size.limit}"
            )
        else:
            middle = (span.start + span.end) // 2
            yield from self._fitting(text, span.start, middle)
            yield from self._fitting(text, middle, span.end)

    def start_of_overlap(self, text: str, before: Span, own: Span) -> int:
        """Where the chunk with the text ``own`` begins if it repeats the end of ``before``."""
        size, measure = self.size, self._measure
        counted = measure(text[before.end : own.end])
        room = min(size.overlap, size.limit - counted)
        # As many characters as should fit, and fewer until they do.
        length = room * (own.end - before.end) // max(counted, 1)
        while length > 0:
            earliest = max(before.end - length, before.start + 1)
            start = self._boundary(text, earliest, before.end)
            if (
                measure(text[start : before.end]) <= size.overlap
                and measure(text[start : own.end]) <= size.limit
            ):
                return start if start < before.end else own.start
            length = (before.end - start) * 3 // 4
        return own.start

    def _boundary(self, text: str, earliest: int, end: int) -> int:
        """Where to begin to read between ``earliest`` and ``end``: with a paragraph, else a line,
        else a word. Paragraphs and lines must leave half of it, except in a table, where a line
        is a row."""
        latest = end - 1 if self._rows else (earliest + end) // 2
        for pattern, back, last in (
            (_PARAGRAPH, 2, latest),
            (_LINE, 1, latest),
            (_WORD, 1, end - 1),
        ):
            found = pattern.search(text, max(earliest - back, 0), end)
            if found and found.end() <= last:
                return found.end()
        while earliest < end and _continues_character(text, earliest):
            earliest += 1
        return earliest


def _trimmed(text: str, start: int, end: int) -> Span:
    """What is left between two positions without the blank space at both ends."""
    piece = text[start:end]
    inner = piece.lstrip()
    start += len(piece) - len(inner)
    return Span(start, start + len(inner.rstrip()))


def _continues_character(text: str, position: int) -> bool:
    """Whether what stands there is an accent or the like of what a reader sees as one character."""
    joiner = "\N{ZERO WIDTH JOINER}"
    return (
        unicodedata.category(text[position]) in {"Mn", "Mc", "Me", "Sk"}
        or text[position] == joiner
        or text[position - 1] == joiner
    )


@lru_cache(maxsize=16)
def _character_splitter(markdown: bool, capacity: int) -> _Splitter:
    return _splitter(markdown, capacity, None)


def _splitter(markdown: bool, capacity: int, count: Callable[[str], int] | None) -> _Splitter:
    """A splitter of texts into up to ``capacity`` of what ``count`` counts, None: characters."""
    try:
        from semantic_text_splitter import MarkdownSplitter, TextSplitter
    except ImportError as absent:
        raise missing("index", "Documents") from absent
    kind = MarkdownSplitter if markdown else TextSplitter
    return kind(capacity) if count is None else kind.from_callback(count, capacity)
