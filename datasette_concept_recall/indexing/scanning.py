"""Finds what one stretch of text is to lose: where it may be, and what is really found there.

Findings are decided upon from the last to the first, so that what is left when they are replaced
holds nothing new.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from itertools import accumulate

from . import injection_patterns as patterns
from .disguises import FOLD, disguised, folded, unshuffled
from .encodings import decoded, encoded_runs
from .injection_hits import AHEAD, BACK, MARKED, MARKER, Hit, Span, everywhere, near, word_end

_LEAD = 512
"""Characters after those that are decided upon in which something may give a finding away."""

_PIECE, _OVERLAP = 1_024, 512
"""Characters of an encoded run that are decoded at a time, and of the next that are decoded too."""

_LONG_WORD = 16
"""Letters that no word has whose letters are put in order."""

_NESTED = 2
"""So often is a text decoded that was itself encoded."""


def findings(text: str, decisive: int, nested: int = _NESTED) -> list[Span]:
    """What of a text is to be taken out, in order and without overlaps.

    Empty if nothing begins in the first ``decisive`` characters; ``nested`` is how often what is
    encoded in the text is decoded.
    """
    view = _View(text)
    if not _anything(view, min(len(text), decisive + _LEAD), nested):
        return []
    encoded = [view.encoded(*run) for run in _encoded(text, len(text), nested)]
    triggers = view.triggers(len(text))  # which puts words of the view in order
    return _resolved(view, [*encoded, *everywhere(view.text, triggers)])


def _anything(view: _View, end: int, nested: int) -> bool:
    """Whether there is a finding in the text up to ``end``: the only test for most texts."""
    if any(_encoded(view.original, end, nested)):
        return True
    triggers = view.triggers(end)
    return any(_found_at(view, hit, []) for hit in near(view.text, triggers))


class _View:
    """A text in the form that rules are written for, and the way back to the text."""

    def __init__(self, text: str) -> None:
        self.original = text
        self.before = folded(text).replace(MARKER, MARKED)
        self.text = self.before.replace("%20", "___")  # as long, and no part of a word
        self._ends: list[int] | None = None

    def triggers(self, end: int) -> list[re.Match[str]]:
        """What gives findings away in the text up to ``end``; words near it are put in order."""
        if not self.original.isascii():
            end = len(self.text) - len(folded(self.original[end:]))
        triggers = list(patterns.TRIGGER.finditer(self.text, 0, end))
        for trigger in triggers:
            self._unshuffle(trigger)
        return triggers

    def _unshuffle(self, trigger: re.Match[str]) -> None:
        """Puts the letters of words near a trigger in order, if it may be part of an override."""
        if trigger[0] in patterns.VERB_STEMS:
            start, end = trigger.start() - 12, trigger.end() + 160
        elif (
            trigger[0] not in patterns.CLEAN_STEMS
            and trigger[0][0] in "pf"
            and trigger[0].isalpha()
        ):
            start, end = trigger.start() - BACK, trigger.end() + AHEAD
        else:
            return
        # To the whole words, of which a part is no word, except for words too long to be known.
        view = self.text
        start = max(0, start)
        lowest = max(0, start - _LONG_WORD)
        while start > lowest and view[start - 1].isalnum():
            start -= 1
        end = word_end(view[: end + _LONG_WORD], end)
        self.text = view[:start] + unshuffled(view[start:end]) + view[end:]

    def finding(self, span: Span) -> Span:
        """The span of the view as one of the text; evasive, if it was read otherwise than spelt."""
        start, end, family = span
        shuffled = self.text[start:end] != self.before[start:end]
        if not self.original.isascii():
            start, end = (
                bisect_right(self._shown(), start),
                bisect_right(self._shown(), end - 1) + 1,
            )
        evasive = shuffled or disguised(self.original[start:end])
        return Span(start, end, "evasion" if evasive and family != "encoding" else family)

    def encoded(self, start: int, end: int) -> Span:
        """A run of the text as a finding in the view, up to the end of a word."""
        if not self.original.isascii():
            start, end = (self._shown()[at - 1] if at else 0 for at in (start, end))
        return Span(start, word_end(self.text, end), "encoding")

    def _shown(self) -> list[int]:
        if self._ends is None:
            self._ends = list(accumulate(len(FOLD[c]) for c in self.original))
        return self._ends


def _encoded(text: str, before: int, nested: int) -> Iterator[tuple[int, int]]:
    """The stretches of encoded runs that say something which is found when it is decoded, of runs
    that begin ``before`` an offset; none if nothing is to be decoded any more."""
    for start, end in encoded_runs(text, before) if nested else ():
        for piece in range(start, end, _PIECE):
            beyond = min(end, piece + _PIECE + _OVERLAP)
            if any(findings(said, len(said), nested - 1) for said in decoded(text[piece:beyond])):
                yield piece, beyond


def _resolved(view: _View, hits: list[Span | Hit]) -> list[Span]:
    """All findings, decided upon from the last to the first.

    So each hit is tried on what will really follow it, and the result holds nothing new.
    """
    removed: list[Span] = []
    for hit in sorted(hits, key=lambda hit: hit.start, reverse=True):
        found = [hit] if isinstance(hit, Span) else _found_at(view, hit, removed)
        for span in reversed(found):
            _add(removed, span)
    return [view.finding(span) for span in reversed(removed)]


def _add(removed: list[Span], span: Span) -> None:
    """Adds a span to others, of which the first comes last; absorbs those that it touches."""
    start, end, family = span
    before = []
    while removed and removed[-1].start < end:
        other = removed.pop()
        if other.end <= start:
            before.append(other)
        else:
            start, end = min(start, other.start), max(end, other.end)
    removed.append(Span(start, end, family))
    removed.extend(reversed(before))


def _found_at(view: _View, hit: Hit, removed: list[Span]) -> list[Span]:
    """What is found at a hit, with what is removed behind it already replaced, in the view."""
    if not removed:
        found = hit.find(view.text[hit.start : hit.start + hit.reach])
        return [Span(hit.start + start, hit.start + end, family) for start, end, family in found]
    ahead = _Ahead(view.text, hit, removed)
    return [
        Span(ahead.start_of(start), ahead.end_of(end), family)
        for start, end, family in hit.find(ahead.text)
    ]


class _Ahead:
    """What follows a hit when the findings in it are replaced."""

    def __init__(self, text: str, hit: Hit, removed: list[Span]) -> None:
        self._pieces: list[tuple[int, int, int]] = []
        self._starts: list[int] = []
        parts: list[str] = []
        length, at = 0, hit.start
        for span in reversed(removed):
            if span.start < at:
                continue
            if length + span.start - at >= hit.reach:
                break
            blank = MARKED + "\n" * text.count("\n", span.start, span.end)
            for part, start, end in (
                (text[at : span.start], at, at),
                (blank, span.start, span.end),
            ):
                self._note(length, start, end)
                parts.append(part)
                length += len(part)
            at = span.end
        self._note(length, at, at)
        parts.append(text[at : at + max(0, hit.reach - length)])
        self.text = "".join(parts)

    def _note(self, here: int, start: int, end: int) -> None:
        self._starts.append(here)
        self._pieces.append((here, start, end))

    def start_of(self, offset: int) -> int:
        here, start, end = self._pieces[bisect_right(self._starts, offset) - 1]
        return start if end > start else start + offset - here

    def end_of(self, offset: int) -> int:
        here, start, end = self._pieces[bisect_left(self._starts, offset) - 1]
        return end if end > start else start + offset - here
