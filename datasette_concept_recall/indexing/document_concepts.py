"""Which concepts the chunks of a document carry."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import islice

from ..matching import ConceptMatcher
from .links import Named, mentioned
from .models import storable

MOST_NAMES = 1_000
"""So many names, the first ones, a document may bring of itself; a list of words is no tagging."""


def first_names(named: Sequence[Named]) -> list[Named]:
    """The places of the first names that a document brings."""
    names = set(islice(dict.fromkeys(each.name for each in named), MOST_NAMES))
    return [each for each in named if each.name in names]


def concepts_of(
    text: str,
    spans: Sequence[tuple[int, int]],
    matcher: ConceptMatcher,
    named: Sequence[Named],
    tags: Sequence[str] = (),
) -> dict[str, list[int]]:
    """The concepts of a text with the positions of the chunks that carry them.

    Chunk n is ``text[slice(*spans[n])]``, ``named`` is what it names on purpose. ``tags`` are of
    the document as a whole: the chunks that mention one carry it, where none does the first. A name
    that was written in a new way is the known concept that it matches.
    """
    found: dict[str, list[tuple[int, int]]] = dict(mentioned(text, matcher))
    tagged = [storable(tag) for tag in tags]
    there = mentioned(text, ConceptMatcher(tagged), at_least=1) if tagged else {}
    for tag in tagged:
        places = there.get(tag, [(0, 0)])
        found.setdefault(_known_spelling(tag, matcher), []).extend(places)
    for each in named:
        name = _known_spelling(each.name, matcher)
        found.setdefault(name, []).append((each.start, each.end))
    return positions_of(found, spans)


def positions_of(
    found: Mapping[str, Sequence[tuple[int, int]]], spans: Sequence[tuple[int, int]]
) -> dict[str, list[int]]:
    """Of names with the places where they stand in a text the positions of the chunks there.

    What a chunk repeats of the one before is that one's.
    """
    starts, before = [], 0
    for start, end in spans:
        starts.append(max(start, before))
        before = max(before, end)
    return {
        name: sorted({max(0, bisect_right(starts, start) - 1) for start, _ in places})
        for name, places in found.items()
    }


def _known_spelling(name: str, matcher: ConceptMatcher) -> str:
    """The first known spelling of a name, and the name itself where there is none."""
    known = matcher.resolve(name)
    return name if not known or name in known else known[0]
