"""Takes out of texts what would pass for an instruction to the model that reads them later.

Texts are scanned as a stream: a stretch at a time, together with enough of what follows that a
phrase is whole. An error in here is never caught: no text leaves unfiltered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .injection_hits import MARKER as MARKER
from .injection_hits import Span
from .injection_rules import Family
from .models import Place, Segment
from .scanning import findings

_BATCH = 8 * 1024
"""Characters that are decided upon at a time."""

_HELD_BACK = 4 * 1024
"""Characters after them that are scanned with them, and decided upon with the next ones."""

_WINDOW = _BATCH + _HELD_BACK
_MOST_FINDINGS, _LONGEST_REMOVED = 8, 200


class Finding(NamedTuple):
    """What was taken out: ``removed`` is the beginning of it, up to 200 characters."""

    family: Family
    place: Place
    removed: str


class Report:
    """What was taken out of one document: ``count`` findings, and the first eight of them."""

    def __init__(self) -> None:
        self.count = 0
        self.findings: list[Finding] = []


def sanitise(text: str) -> tuple[str, Report]:
    """The text with every finding replaced, and the report; places are lines of the text."""
    report = Report()
    cleaned = sanitised([Segment(text, "line", 1)], report)
    return "".join(segment.text for segment in cleaned), report


def sanitised(segments: Iterable[Segment], report: Report) -> Iterator[Segment]:
    """The same segments, in order, with every finding replaced, also one that spans several.

    The marker stands in the segment where a finding begins; newlines stay in theirs, so lines and
    pages are counted as before. A segment without findings is handed on as it is. Findings are
    added to ``report``, which is complete when all segments were taken.
    """
    stream = _Stream(report)
    for segment in segments:
        stream.add(segment)
        yield from stream.decided()
    yield from stream.decided(final=True)


class _Stream:
    """Segments of which some text is not decided upon; offsets count from the first segment."""

    def __init__(self, report: Report) -> None:
        self._report = report
        self._waiting: deque[tuple[int, Segment]] = deque()
        self._spans: deque[Span] = deque()
        self._texts: list[str] = []
        self._decided = self._end = 0

    def add(self, segment: Segment) -> None:
        self._waiting.append((self._end, segment))
        self._texts.append(segment.text)
        self._end += len(segment.text)

    def decided(self, final: bool = False) -> Iterator[Segment]:
        """The segments that are now done; all of them, if no other follows."""
        if final or self._end - self._decided >= _WINDOW:
            self._decide("".join(self._texts), final)
        while self._waiting:
            start, segment = self._waiting[0]
            end = start + len(segment.text)
            if end > self._decided:
                break
            self._waiting.popleft()
            yield self._cleaned(segment, start, end)

    def _decide(self, text: str, final: bool) -> None:
        origin, at = self._decided, 0
        while len(text) - at >= (1 if final else _WINDOW):
            window = text[at : at + _WINDOW]
            ready = len(window) if len(window) < _WINDOW else _cut(window)
            for start, end, family in findings(window, ready):
                if start >= ready:
                    break
                self._found(Span(origin + at + start, origin + at + end, family), window[start:end])
                ready = max(ready, end)
            at += ready
        self._texts = [text[at:]]
        self._decided = origin + at

    def _found(self, span: Span, removed: str) -> None:
        self._spans.append(span)
        self._report.count += 1
        if len(self._report.findings) < _MOST_FINDINGS:
            finding = Finding(span.family, self._place(span), removed[:_LONGEST_REMOVED])
            self._report.findings.append(finding)

    def _place(self, span: Span) -> Place:
        touched = [
            (start, segment)
            for start, segment in self._waiting
            if start < span.end and start + len(segment.text) > span.start
        ]
        (start, first), (last_start, last) = touched[0], touched[-1]
        return Place(
            first.unit,
            _number(first, span.start - start),
            _number(last, span.end - 1 - last_start),
            first.part,
        )

    def _cleaned(self, segment: Segment, start: int, end: int) -> Segment:
        parts, at = [], start
        while self._spans and self._spans[0].start < end:
            span = self._spans[0]
            if span.start >= start:
                parts += [segment.text[at - start : span.start - start], MARKER]
                at = span.start
            parts.append("\n" * segment.text.count("\n", at - start, span.end - start))
            at = min(span.end, end)
            if span.end > end:
                break
            self._spans.popleft()
        if at == start and not parts:
            return segment
        return segment._replace(text="".join([*parts, segment.text[at - start :]]))


def _cut(window: str) -> int:
    """Up to where a window is decided upon: if possible, the next begins with a line or a word."""
    for space in "\n ":
        after = window.rfind(space, _BATCH - 512, _BATCH) + 1
        if after:
            return after
    return _BATCH


def _number(segment: Segment, offset: int) -> int | None:
    if segment.unit != "line" or segment.number is None:
        return segment.number
    return segment.number + segment.text.count("\n", 0, offset)
