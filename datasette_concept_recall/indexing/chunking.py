"""Cuts the text of a document into chunks that know where they stand.

It is cut in windows, so that a long document is never held whole. Places are kept here; sizes and
overlaps are matters of `chunk_cutting`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from itertools import groupby
from operator import itemgetter
from typing import NamedTuple

from .chunk_cutting import Cutter, Span
from .chunk_windows import Window
from .models import Chunk, Place, Segment, Size, Strategy, Unit

_WINDOW = 64 * 1024
"""How many characters are looked at together, at least."""


class _Stretch(NamedTuple):
    """What all segments share that a chunk may span."""

    unit: Unit | None
    part: str | None
    turn: int


def cut(segments: Iterable[Segment], strategy: Strategy, size: Size) -> Iterator[Chunk]:
    """The chunks of the document that consists of ``segments``, in reading order.

    Segments are read as chunks are asked for, a window ahead. All that is not blank is in a chunk;
    chunks neither begin nor end with blank space, and start and end of each come after those of
    the one before. The overlap begins with a paragraph, a line or a word if it can, and is shorter
    than asked for where that keeps a chunk within the limit; own text is never less than half of
    it for the sake of overlap. A document that fits into one chunk is one.

    A chunk keeps to one part and one unit, and to numbers that rise; no overlap crosses from one
    stretch of such segments to the next. Its place is that of its own text, without the overlap.

    Raises `ValueError` if a single character counts more than the limit, and `Unusable` if the
    library is not installed.
    """
    cutter = Cutter(strategy, size)
    offset = 0
    for stretch, members in groupby(_stretches(segments), itemgetter(0)):
        read = (segment for _, segment in members)
        offset = yield from _chunks_of_stretch(read, stretch, offset, cutter)


def _stretches(segments: Iterable[Segment]) -> Iterator[tuple[_Stretch, Segment]]:
    """Each segment with the stretch it belongs to; where numbers fall, another begins, as with a
    second attachment of the same name."""
    turn, reached = 0, 0
    for segment in segments:
        number, unit = segment.number, segment.unit
        if number is None:
            unit = None
        elif number < reached:
            turn += 1
        yield _Stretch(unit, segment.part, turn), segment
        if number is not None:
            reached = number + (segment.text.count("\n") if unit == "line" else 0)


def _chunks_of_stretch(
    segments: Iterable[Segment], stretch: _Stretch, offset: int, cutter: Cutter
) -> Generator[Chunk, None, int]:
    """The chunks of a stretch that begins at ``offset`` of the document; returns where it ends."""
    window = Window(segments, stretch.unit, offset, max(_WINDOW, 16 * cutter.size.limit))
    before: Span | None = None
    while not window.at_end:
        window.fill()
        text = window.text
        spans = cutter.spans(window, alone=before is None and window.at_end)
        # What follows may belong to the last one, so it is cut again with what follows.
        held = None if window.at_end or not spans else spans.pop()
        if not spans:
            window.size *= 2
        for own in spans:
            start = own.start if before is None else cutter.start_of_overlap(text, before, own)
            first, last = window.number_at(own.start), window.number_at(own.end - 1)
            yield Chunk(
                text[start : own.end],
                window.offset + start,
                window.offset + own.end,
                Place(stretch.unit, first, last, stretch.part),
            )
            before = Span(start, own.end)
        if held and before:
            kept = before.start
            window.drop(kept, held.start)
            before = Span(0, before.end - kept)
    return window.offset + len(window.text)
