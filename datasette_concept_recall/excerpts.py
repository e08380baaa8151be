"""Which part of a long text to show, and where in it the names stand."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from .matching import ConceptMatcher
from .models import ConceptMention

_SEARCHED = 50_000
"""So many characters of a body are searched for the names; what comes later is not excerpted."""

_LEAD = 60
"""So many characters are shown before the first mention of an excerpt."""

_white_space = re.compile(r"\s+").sub
_first_space = re.compile(r"\s").search

ELLIPSIS = "…"


class Segment(NamedTuple):
    """A stretch of text and the concepts it names; none for what lies between mentions."""

    text: str
    concepts: tuple[str, ...] = ()


def segments(
    text: str, mentions: Sequence[ConceptMention], start: int = 0, end: int | None = None
) -> list[Segment]:
    """``text[start:end]`` cut at its mentions; those that overlap become one segment.

    ``mentions`` are sorted by start. Those that do not lie wholly in the part are left out.
    """
    end = len(text) if end is None else end
    found: list[Segment] = []
    position = start
    for first, last, concepts in _merged(mentions, start, end):
        if position < first:
            found.append(Segment(text[position:first]))
        found.append(Segment(text[first:last], concepts))
        position = last
    if position < end:
        found.append(Segment(text[position:end]))
    return found


def _merged(
    mentions: Sequence[ConceptMention], start: int, end: int
) -> list[tuple[int, int, tuple[str, ...]]]:
    merged: list[tuple[int, int, tuple[str, ...]]] = []
    for mention in mentions:
        if mention.start < start or mention.end > end:
            continue
        if merged and mention.start < merged[-1][1]:
            first, last, concepts = merged.pop()
            names = dict.fromkeys((*concepts, mention.concept))
            merged.append((first, max(last, mention.end), tuple(names)))
        else:
            merged.append((mention.start, mention.end, (mention.concept,)))
    return merged


def excerpt(body: str, matcher: ConceptMatcher, length: int = 300) -> list[Segment]:
    """About ``length`` characters of a body, where it names most of the matcher's names.

    White space is collapsed. A body that names none is shown from its beginning.
    """
    searched = body[:_SEARCHED]
    mentions = matcher.mentions(searched)
    if len(searched) < len(body):  # a word that is cut off may be another word
        mentions = [m for m in mentions if m.end < len(searched)]
    start = _best_start(mentions, length)
    start = 0 if start <= _LEAD else _next_word(searched, start - _LEAD)
    end = start + length
    if end < len(body):
        end = max(_last_space(body, end), *(m.end for m in mentions if m.start < end), start + 1)
    parts = segments(body, mentions, start, min(end, len(body)))
    shown = [Segment(_white_space(" ", text), concepts) for text, concepts in parts]
    if start > 0:
        shown.insert(0, Segment(ELLIPSIS))
    if end < len(body):
        shown.append(Segment(ELLIPSIS))
    return shown


def _best_start(mentions: Sequence[ConceptMention], length: int) -> int:
    """Where the first stretch of so many characters begins that names the most concepts."""
    best, best_start, first = 0, 0, 0
    inside: dict[str, int] = {}
    for mention in mentions:
        inside[mention.concept] = inside.get(mention.concept, 0) + 1
        while mention.end - mentions[first].start > length - _LEAD and mentions[first] != mention:
            left = mentions[first].concept
            inside[left] -= 1
            if not inside[left]:
                del inside[left]
            first += 1
        if len(inside) > best:
            best, best_start = len(inside), mentions[first].start
    return best_start


def _next_word(text: str, position: int) -> int:
    """The beginning of the next word, or the position itself where none is near."""
    space = _first_space(text, position, position + _LEAD)
    return space.end() if space else position


def _last_space(text: str, end: int) -> int:
    """The last white space of the ``_LEAD`` characters before ``end``, or ``end``."""
    part = text[end - _LEAD : end]
    return end - len(part) + len(part.rsplit(None, 1)[0]) if len(part.split()) > 1 else end


def echo(text: str, mentions: Sequence[ConceptMention], limit: int = 4000) -> list[Segment]:
    """The text with its mentions; of a long one what stands around them, up to ``limit``."""
    if len(text) <= limit:
        return segments(text, mentions)
    shown: list[Segment] = []
    position = used = 0
    for index, mention in enumerate(mentions):
        if mention.end <= position:
            continue
        start, end = max(position, mention.start - _LEAD), min(len(text), mention.end + _LEAD)
        if used + end - start > limit:
            break
        if start > position:
            shown.append(Segment(ELLIPSIS))
        end = max(end, *(m.end for m in _begun(mentions, index, end)))
        shown += segments(text, _begun(mentions, index, end), start, end)
        used, position = used + end - start, end
    if not shown:
        shown, position = [Segment(text[:limit])], limit
    return [*shown, Segment(ELLIPSIS)] if position < len(text) else shown


def _begun(mentions: Sequence[ConceptMention], index: int, end: int) -> Sequence[ConceptMention]:
    """The mentions from ``index`` on that begin before ``end``."""
    stop = index
    while stop < len(mentions) and mentions[stop].start < end:
        stop += 1
    return mentions[index:stop]


def first_line(text: str, length: int = 100) -> str:
    """The first line that says something, cut to about ``length`` characters."""
    line = next((line.strip() for line in text[:10_000].splitlines() if line.strip()), "")
    line = _white_space(" ", line)
    return line if len(line) <= length else line[:length].rsplit(" ", 1)[0] + ELLIPSIS


def plain(parts: Sequence[Segment]) -> str:
    """The text of segments without their marks."""
    return "".join(part.text for part in parts).strip()
