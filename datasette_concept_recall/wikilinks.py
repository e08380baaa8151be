"""``[[Name]]`` in text: which stretches of it may be links to concepts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_link = re.compile(r"\[\[([^\[\]]+)\]\]").finditer
_backticks = re.compile("`+").finditer
_fence = re.compile(r" {0,3}(?:(`{3,})[^`]*|(~{3,}).*)", re.DOTALL).fullmatch
_line = re.compile(r"[^\n]*\n|[^\n]+").finditer
_blank_line = re.compile(r"(?<=\n)[^\S\n]*\n").finditer


class Piece(NamedTuple):
    """A stretch of a text and the names of which it may be a link, the likeliest first.

    There are no names where it is nothing but text.
    """

    text: str
    names: tuple[str, ...] = ()


def pieces(text: str) -> list[Piece]:
    """The text cut where ``[[…]]`` may be links; together they are the text.

    What is a link is what stands between the brackets: one or more characters but brackets, line
    ends among them but no blank line. To the program ``kb`` there is no more syntax, so that
    ``[[Name|shown]]`` is ``Name|shown``; if there is no such concept it may be ``Name``, as for
    other programs. Within code nothing is a link: between runs of backticks of the same length in
    one paragraph, and in blocks fenced by three or more backticks or tildes, as in CommonMark. This
    takes time that follows the length of the text, whatever is left open in it.
    """
    found: list[Piece] = []
    position = 0
    for start, end in _links(text):
        inside = text[start:end]
        whole = " ".join(inside.split())
        if not whole or any(_blank_line(inside)):
            continue
        before, bar, _ = inside.partition("|")
        name = " ".join(before.split())
        found.append(Piece(text[position:start]))
        found.append(Piece(inside, (whole, name) if bar and name else (whole,)))
        position = end
    if position < len(text):
        found.append(Piece(text[position:]))
    return found


def _links(text: str) -> Iterator[tuple[int, int]]:
    """Where the insides of ``[[…]]`` stand that are not within code."""
    if "[[" not in text:
        return
    for start, end in _prose(text):
        for match in _link(text, start, end):
            yield match.span(1)


def _prose(text: str) -> Iterator[tuple[int, int]]:
    """The stretches of a text that are not code."""
    if "`" not in text and "~~~" not in text:
        yield 0, len(text)
        return
    for first, last in _outside_fences(text):
        for start, end in _paragraphs(text, first, last):
            yield from _outside_spans(text, start, end)


def _outside_fences(text: str) -> Iterator[tuple[int, int]]:
    """The stretches between fenced blocks; one that is never closed goes on to the end."""
    start, opened = 0, ""
    for line in _line(text):
        match = _fence(line[0].rstrip("\r\n"))
        mark = (match[1] or match[2]) if match else ""
        if opened:
            if mark.startswith(opened) and not line[0].strip().strip(mark[0]):
                opened, start = "", line.end()
        elif mark:
            yield start, line.start()
            opened = mark
    if not opened:
        yield start, len(text)


def _paragraphs(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The stretches between blank lines: a code span ends where its paragraph does."""
    for match in _blank_line(text, first, last):
        yield first, match.start()
        first = match.start()
    yield first, last


def _outside_spans(text: str, first: int, last: int) -> Iterator[tuple[int, int]]:
    """The stretches between code spans: a run of backticks up to the next one of its length."""
    runs = [match.span() for match in _backticks(text, first, last)]
    closing: list[int | None] = [None] * len(runs)
    latest: dict[int, int] = {}
    for index in reversed(range(len(runs))):
        start, end = runs[index]
        closing[index] = latest.get(end - start)
        latest[end - start] = index
    index = 0
    while index < len(runs):
        closed = closing[index]
        if closed is None:
            index += 1
            continue
        yield first, runs[index][0]
        first = runs[closed][1]
        index = closed + 1
    yield first, last
