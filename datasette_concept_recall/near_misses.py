"""Names that a text nearly mentions: a slip of the pen, a plural, another tense.

A *run* is a few words of a text that follow each other. It is a near miss of a name of as many
words when few letters differ and everything else is the same; `docs/matching.md` gives the rules.
The edits are counted by rapidfuzz, and where that is not installed nothing is offered.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from threading import Lock
from typing import TypeAlias

from .boundaries import stands_alone
from .folding import Locator, canonical_name
from .models import ConceptMention, NearMiss
from .near_names import LEAST, LONGEST, SHARED, NearNames, figures_of, words_of

_READ = 100_000
"""So many characters of a text are looked at."""

_COMPARISONS = 50_000
"""So often are two strings compared for one text; what comes later in it is not offered."""

_MOST_NEAREST = 5
"""Words that are as near to more names than this do not tell which of them is meant."""

_MOST_NAMES = 200_000
"""Of a vocabulary of more names nothing is offered."""

_SHORT_WORD = 3
"""A word of so many characters has no slip in it, but it may have an ending."""

_LONG_WORD = 6
"""Two edits in one word that do more than end it are for words of so many characters."""

_FAR = 99
"""A distance at which nothing is near."""

_Edits: TypeAlias = "Callable[..., int]"
_Nearest: TypeAlias = "tuple[int, list[str]]"  # a distance, and the names (cores) at it

_NONE: _Nearest = (0, [])

_empty_lines = re.compile(r"\n[^\S\n]*\n").sub


def _edits() -> _Edits | None:
    """Counts the edits between two strings; beyond ``score_cutoff`` they are one more than that.
    None where rapidfuzz is not installed.

    An edit inserts, deletes or replaces a character or swaps two neighbours, and what was swapped
    is not edited again: optimal string alignment.
    """
    try:
        from rapidfuzz.distance import OSA
    except ImportError:
        return None
    return OSA.distance


class NearMisses:
    """Finds the near misses of a vocabulary in a text.

    Its index takes about half a kilobyte of memory and 5 µs a name, so it is made when it is first
    needed, which it never is without rapidfuzz.
    """

    def __init__(self, names: Collection[str]) -> None:
        self._names = names if len(names) <= _MOST_NAMES else ()
        self._lock = Lock()
        self._made: NearNames | None = None

    def _index(self) -> NearNames:
        with self._lock:  # threads that ask at once share one index
            if self._made is None:
                self._made = NearNames(self._names)
            return self._made

    def find(
        self,
        text: str,
        mentions: Sequence[ConceptMention],
        *,
        asked: Iterable[str] = (),
        limit: int = 5,
    ) -> list[NearMiss]:
        """The names that a text nearly mentions, nearest first, then in the order of the text.

        ``mentions`` are all those of the text, sorted by start; ``asked`` are other names that
        need no offer. Each name is offered once. Empty when rapidfuzz is not installed.
        """
        edits = _edits()
        if edits is None or limit < 1:
            return []
        return _best(_Search(self._index(), edits, text, mentions, asked).found(), limit)


def merge_near_misses(
    found: Iterable[Iterable[NearMiss]], mentions: Sequence[ConceptMention], limit: int = 5
) -> list[NearMiss]:
    """The near misses of one text in several vocabularies as those of one.

    ``mentions`` are those of all vocabularies, sorted by start: what names something in one of
    them is no near miss in another.
    """
    mentioned = _Mentioned(mentions)
    offers = [m for misses in found for m in misses if not mentioned.holds(m.start, m.end)]
    least: dict[tuple[int, int], int] = {}
    for miss in offers:
        words = miss.start, miss.end
        least[words] = min(miss.distance, least.get(words, miss.distance))
    return _best((m for m in offers if m.distance == least[m.start, m.end]), limit)


def _best(misses: Iterable[NearMiss], limit: int) -> list[NearMiss]:
    """The nearest of each concept, in order; case variants are one."""
    best: dict[str, NearMiss] = {}
    for miss in misses:
        name = canonical_name(miss.concept)
        known = best.get(name)
        if known is None or _place(miss) < _place(known):
            best[name] = miss
    return sorted(best.values(), key=_place)[:limit]


def _place(miss: NearMiss) -> tuple[int, int, int, str]:
    return miss.distance, miss.start, miss.end, miss.concept


class _Mentioned:
    """The parts of a text that name something, by ``mentions`` sorted by start."""

    def __init__(self, mentions: Sequence[ConceptMention]) -> None:
        self._starts = [mention.start for mention in mentions]
        self._reach = list(accumulate((mention.end for mention in mentions), max))

    def holds(self, start: int, end: int) -> bool:
        """Whether a part of the text lies within one mention."""
        earlier = bisect_right(self._starts, start)
        return earlier > 0 and self._reach[earlier - 1] >= end


class _Search:
    """One text while its runs are looked at."""

    def __init__(
        self,
        names: NearNames,
        edits: _Edits,
        text: str,
        mentions: Sequence[ConceptMention],
        asked: Iterable[str],
    ) -> None:
        self._names, self._edits, self._text = names, edits, text
        # What stands on both sides of an empty line is never one run.
        self._parted = _empty_lines(lambda lines: lines[0][:-1] + "\0", _beginning(text))
        self._canonical = canonical_name(self._parted)
        self._mentioned = _Mentioned(mentions)
        self._named = set(map(canonical_name, {*asked, *(m.concept for m in mentions)}))
        self._left = _COMPARISONS

    @cached_property
    def _locate(self) -> Locator:
        return Locator(self._parted)

    def found(self) -> Iterator[NearMiss]:
        """The near misses of every run; a run that is there several times has as many."""
        canonical, spans = self._canonical, words_of(self._canonical)
        words = [canonical[start:end] for start, end in spans]
        leading = [canonical[start : start + SHARED] for start, _ in spans]
        nearest: dict[str, _Nearest] = {}
        for first, last in self._names.runs(words, leading):
            start, end = spans[first][0], spans[last][1]
            if not LEAST - 1 <= end - start <= LONGEST + 2:
                continue
            run = canonical[start:end]
            if run not in nearest:
                nearest[run] = self._nearest(run, words[first : last + 1])
                if self._left < 0:
                    return
            distance, cores = nearest[run]
            if cores:
                yield from self._offers(start, end, distance, cores)

    def _nearest(self, run: str, words: list[str]) -> _Nearest:
        """The names that are nearest to a run; none for a run that is a name itself."""
        one, two = self._names.near(run, words)
        self._left -= len(one) + len(two)
        if (not one and not two) or run in self._names:
            return _NONE
        near = self._within(1, run, one) + self._within(2, run, two)
        if not near or (len(words) == 1 and self._names.is_form_of_short(run)):
            return _NONE
        least = min(distance for distance, _ in near)
        cores = {name for distance, name in near if distance == least}
        return (least, sorted(cores)) if len(cores) <= _MOST_NEAREST else _NONE

    def _within(self, most: int, run: str, names: list[str]) -> list[tuple[int, str]]:
        """The names that are so near, each after its distance."""
        edits = self._edits
        near = [name for name in names if edits(run, name, score_cutoff=most) <= most]
        measured = ((_distance(edits, run, name), name) for name in near)
        return [(distance, name) for distance, name in measured if distance <= most]

    def _offers(self, start: int, end: int, distance: int, cores: list[str]) -> list[NearMiss]:
        """The names with these cores, if the run at this place may stand for one of them."""
        offers: dict[str, NearMiss] = {}  # by canonical name: case variants are offered as one
        for core in cores:
            for spelling in self._names.spellings(core):
                canonical = canonical_name(spelling)
                before, _, after = canonical.partition(core)
                first, last = start - len(before), end + len(after)
                if canonical in offers or not self._reads(first, before, end, after):
                    continue
                first, last = self._locate.start(first), self._locate.end(last)
                if not self._mentioned.holds(first, last):
                    words = self._text[first:last]
                    offers[canonical] = NearMiss(spelling, words, first, last, distance)
        # A name that needs no offer explains the words all the same.
        return list(offers.values()) if self._named.isdisjoint(offers) else []

    def _reads(self, start: int, before: str, end: int, after: str) -> bool:
        """Whether a run has this before it and after it, and nothing is glued to the whole."""
        text = self._canonical
        return (
            start >= 0
            and text.startswith(before, start)
            and text.startswith(after, end)
            and stands_alone(text, start, end + len(after))
        )


def _beginning(text: str) -> str:
    """As much of a text as is looked at, without a word that is cut off."""
    if len(text) <= _READ:
        return text
    return "".join(text[:_READ].rsplit(None, 1)[:1])


def _distance(edits: _Edits, run: str, name: str) -> int:
    """The edits between words in the same place and between what joins them, added up.

    `_FAR` when there are not as many words, when other things than letters differ, or when two of
    the words are not the same word with a slip or another ending.
    """
    ours, theirs = words_of(run), words_of(name)
    if len(ours) != len(theirs) or figures_of(run) != figures_of(name):
        return _FAR
    total = end = name_end = 0
    for (start, stop), (name_start, name_stop) in zip(ours, theirs, strict=True):
        word, name_word = run[start:stop], name[name_start:name_stop]
        distance = edits(word, name_word)
        if distance and not _is_slip(word, name_word, distance):
            return _FAR
        total += distance + edits(run[end:start], name[name_end:name_start])
        end, name_end = stop, name_stop
    return total


def _is_slip(word: str, name: str, distance: int) -> bool:
    """Whether a word may stand for one of a name; other first letters make other words."""
    if word.startswith(name) or name.startswith(word):
        return True
    if word[0] != name[0] or min(len(word), len(name)) <= _SHORT_WORD:
        return False
    return distance == 1 or len(name) >= _LONG_WORD
