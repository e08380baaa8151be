"""The form in which names and texts are compared, and the way back to the text itself."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import chain, groupby
from unicodedata import category, combining, is_normalized, normalize

_shortened = re.compile(r"\s\s+").finditer  # one space in canonical form, or nothing
_beyond_ascii = re.compile(r"[^\x00-\x7f]+").finditer
_many_marks = re.compile(r"[^\w\s\x00-\x7f]{64,}").sub
_trailing_jamo = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff]").match

_LONG = 20_000
"""Texts of more characters are searched for long runs of marks before they are normalised."""


def fold(text: str) -> str:
    """The form in which names and texts are compared: NFC, full case folding, NFC.

    Canonical caseless matching as in The Unicode Standard, definition D145, with NFC for NFD.
    """
    if text.isascii():
        return text.lower()
    return _nfc(_nfc(text).casefold())


def _nfc(text: str) -> str:
    return normalize("NFC", text if len(text) < _LONG else _many_marks(_in_order, text))


def _in_order(marks: re.Match[str]) -> str:
    """A run of marks decomposed and in canonical order, as normalisation would leave it.

    `unicodedata` moves every mark by itself, which takes quadratic time for a long run.
    """
    ordered = [
        sorted(group, key=combining)  # stable, as the canonical ordering has to be
        for _, group in groupby(_decomposed(marks[0]), key=lambda mark: combining(mark) == 0)
    ]
    return "".join(chain.from_iterable(ordered))


def _decomposed(characters: str) -> Iterator[str]:
    """The characters, each decomposed by itself."""
    return chain.from_iterable(normalize("NFD", character) for character in characters)


def canonical_name(name: str) -> str:
    """The folded name without outer white space, inner runs of white space as one space."""
    return " ".join(fold(name).split())


class Locator:
    """Translates offsets in the canonical form of a text into offsets in the text."""

    def __init__(self, text: str) -> None:
        folded = fold(text)
        ahead = len(folded) - len(folded.lstrip())
        # From each of these canonical offsets on, the folded text is so many characters ahead.
        self._offsets, self._ahead = [0], [ahead]
        for run in _shortened(folded, ahead):
            start, end = run.span()
            ahead += end - start - 1
            self._offsets.append(end - ahead)
            self._ahead.append(ahead)
        self._pieces = None if _keeps_positions(text) else _piece_of_each(text)

    def start(self, offset: int) -> int:
        """Where the character begins that the canonical character at ``offset`` comes from."""
        position = self._in_folded(offset)
        return position if self._pieces is None else self._pieces[position][0]

    def end(self, offset: int) -> int:
        """Where the character ends that the canonical one before ``offset`` comes from."""
        position = self._in_folded(offset - 1)
        return position + 1 if self._pieces is None else self._pieces[position][1]

    def _in_folded(self, offset: int) -> int:
        return offset + self._ahead[bisect_right(self._offsets, offset) - 1]


def _keeps_positions(text: str) -> bool:
    """Whether folding turns every character into exactly one, in its place."""
    if text.isascii():
        return True
    folded = text.casefold()
    return len(folded) == len(text) and is_normalized("NFC", text) and is_normalized("NFC", folded)


def _piece_of_each(text: str) -> list[tuple[int, int]]:
    """For each character of ``fold(text)``, the span of ``text`` it comes from."""
    pieces: list[tuple[int, int]] = []
    done = 0
    for match in _beyond_ascii(text):
        start = max(done, match.start() - 1)  # an accent belongs to the ASCII letter before it
        pieces += [(i, i + 1) for i in range(done, start)]
        for first, last in _segments(text, start, match.end()):
            length = len(fold(text[first:last]))
            if length == last - first:
                pieces += [(i, i + 1) for i in range(first, last)]
            else:
                pieces += [(first, last)] * length
        done = match.end()
    return pieces + [(i, i + 1) for i in range(done, len(text))]


def _segments(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Spans that normalisation never reaches across: a character and what composes with it."""
    for position in range(start + 1, end):
        character = text[position]
        if category(character)[0] == "M" or _trailing_jamo(character):
            if combining(character):
                continue
            before = text[start:position]
            if fold(before + character) != fold(before) + character:
                continue
        yield start, position
        start = position
    if start < end:
        yield start, end
