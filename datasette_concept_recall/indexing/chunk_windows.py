"""The window on a document in which it is cut, so that a long one is never held whole."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from .models import Segment, Unit


class Window:
    """The stretch of text that is looked at: ``text`` begins at ``offset`` of the document.

    What comes before ``uncut`` is in chunks already, and kept for the overlap.
    """

    def __init__(
        self, segments: Iterable[Segment], unit: Unit | None, offset: int, size: int
    ) -> None:
        self.text = ""
        self.offset = offset
        self.uncut = 0
        self.size = size
        self.at_end = False
        self._unit = unit
        self._slices = _slices(segments, size)
        self._ahead: deque[tuple[int, int | None]] = deque()
        self._number: int | None = None
        self._numbered = offset

    def fill(self) -> None:
        """Reads on until the uncut text has the size of the window, or all is read."""
        texts, length = [self.text], len(self.text)
        while length - self.uncut < self.size:
            following = next(self._slices, None)
            if following is None:
                self.at_end = True
                break
            text, begins, number = following
            if begins:
                self._ahead.append((self.offset + length, number))
            texts.append(text)
            length += len(text)
        self.text = "".join(texts)

    def drop(self, start: int, uncut: int) -> None:
        """Forgets the text before ``start``; from ``uncut`` on it is cut again."""
        self.text = self.text[start:]
        self.offset += start
        self.uncut = uncut - start

    def starts(self) -> list[int]:
        """Where segments begin that have not been asked a number of, in the text."""
        return [start - self.offset for start, _ in self._ahead]

    def number_at(self, position: int) -> int | None:
        """The number of what stands at a position of the text, None if it has no unit.

        To be asked for in the order of positions, so that lines are counted once.
        """
        position += self.offset
        while self._ahead and self._ahead[0][0] <= position:
            self._numbered, self._number = self._ahead.popleft()
        if self._unit is None or self._number is None:
            return None
        if self._unit == "line":
            self._number += self.text.count(
                "\n", self._numbered - self.offset, position - self.offset
            )
            self._numbered = position
        return self._number


def _slices(segments: Iterable[Segment], length: int) -> Iterator[tuple[str, bool, int | None]]:
    """The text of segments in slices of up to ``length`` characters, whether a segment begins with
    it, and the number of the segment."""
    for segment in segments:
        for start in range(0, len(segment.text), length):
            yield segment.text[start : start + length], start == 0, segment.number
