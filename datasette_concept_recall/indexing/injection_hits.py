"""Where in a text something may be found that is to be taken out, and what it then is.

All is for texts in the form of `disguises`, with `MARKED` for what was taken out of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from . import injection_patterns as patterns
from .injection_rules import Family

MARKER = "[removed]"
"""What stands for a finding; newlines of the finding follow it."""

MARKED = "\ue000" * len(MARKER)
"""Private characters in place of a marker: neither word nor mark, as long as the marker."""

BACK, _NEAR, AHEAD, _FAR = 320, 64, 700, 3_000
"""Characters: before what gives a phrase away; of a mark, of a phrase, of an element of markup."""


class Span(NamedTuple):
    """A finding as ``[start:end]`` of a text."""

    start: int
    end: int
    family: Family


Finder = Callable[[str], Iterator[Span]]


class Hit(NamedTuple):
    """Where something may be found in a text, by what, and how far that has to see."""

    start: int
    find: Finder
    reach: int


def near(text: str, triggers: list[re.Match[str]]) -> Iterator[Hit]:
    """Where something may be found, given that all of it is near a trigger."""
    yield from _spaced(text, triggers)
    tried = 0
    for trigger in triggers:
        yield from _marks(text, trigger)
        back = _NEAR if trigger[0] in patterns.VERB_STEMS else BACK
        start = max(tried, trigger.start() - back)
        for beginning in patterns.BEGINNING.finditer(text, start, trigger.end() + 64):
            yield Hit(beginning.start(), _phrase, AHEAD)
            tried = beginning.start() + 1
        tried = max(tried, trigger.start())


def everywhere(text: str, triggers: list[re.Match[str]]) -> Iterator[Hit]:
    """Where something may be found once other findings are gone."""
    yield from _spaced(text, triggers)
    for trigger in triggers:
        yield from _marks(text, trigger)
    for beginning in patterns.BEGINNING.finditer(text):
        yield Hit(beginning.start(), _phrase, AHEAD)


def _marks(text: str, trigger: re.Match[str]) -> Iterator[Hit]:
    start = trigger.start()
    if trigger[0][0] == "#":
        line = text[max(0, start - 8) : start].rstrip(" \t>")
        if line and not line.endswith("\n"):
            return
    if trigger[0][0] in "<[!#":
        encloses = trigger[0][:2] in ("<!", "![") or any(map(str.isspace, trigger[0]))
        yield Hit(start, _mark, _FAR if encloses else _NEAR)


def _spaced(text: str, triggers: list[re.Match[str]]) -> Iterator[Hit]:
    """Runs of single letters, long ones in stretches that a hit sees to the end and beyond."""
    seen = 0
    for trigger in triggers:
        found = trigger[0]
        if not found[0].isalpha() or found[1].isalnum() or trigger.start() < seen:
            continue
        start = max(seen, trigger.start() - 24)
        for run in patterns.SPACED.finditer(text, start, trigger.end() + 400):
            yield Hit(run.start(), _letters, AHEAD)
            seen = min(run.end(), run.start() + 400)


def _phrase(text: str) -> Iterator[Span]:
    for family, rule in patterns.PHRASES[text[:2]]:
        if match := rule.match(text):
            yield Span(0, match.end(), family)
            return


def _mark(text: str) -> Iterator[Span]:
    """A mark of the frame, an image that carries data away, an instruction nobody sees."""
    mark = patterns.MARKS.match(text)
    if mark is None:
        return
    if mark["delimiter"]:
        yield Span(0, mark.end(), "delimiter")
    elif mark["image"]:
        if patterns.CARRIES_DATA.search(mark[0]):
            yield Span(0, mark.end(), "markup")
    else:
        closing = "-->" if mark["comment"] else "</" + mark["tag"]
        end = text.find(closing, mark.end())
        inside = text[mark.end() : end]
        if end > 0 and mark[0] not in inside and _instructs(inside):
            yield Span(0, text.find(">", end) + 1 or end + len(closing), "markup")


def _instructs(unseen: str) -> bool:
    if MARKED in unseen:
        return True
    return bool(patterns.READER.search(unseen) and patterns.DUTY.search(unseen))


def _letters(text: str) -> Iterator[Span]:
    """A phrase that begins in a run of single letters, read without what is between them."""
    run = patterns.SPACED.match(text)
    offsets = [offset for offset, character in enumerate(text) if character.isalnum()]
    for match in patterns.SPACED_PHRASE.finditer("".join(text[offset] for offset in offsets)):
        start, end = offsets[match.start()], offsets[match.end() - 1] + 1
        if run and start < run.end():
            yield Span(start, word_end(text, end), "evasion")


def word_end(text: str, end: int) -> int:
    """Where the word ends that the text before ``end`` ends in, ``end`` itself if that is whole."""
    while text[end : end + 1].isalnum():
        end += 1
    return end
