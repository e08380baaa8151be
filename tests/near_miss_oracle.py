"""The rules of near misses, written down the slow and obvious way.

This is the definition that the index is compared with: every run of words of a text is held against
every name. Of the package it uses the canonical form only; where words begin and end is taken from
the oracle of matching.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from datasette_concept_recall import ConceptMention
from datasette_concept_recall.folding import canonical_name
from matching_oracle import (
    glued_on_the_left,
    glued_on_the_right,
    is_glued,
    is_word,
    pieces_of,
)

Miss = tuple[int, int, int, str]
"""Distance, start, end and concept."""


class Name(NamedTuple):
    """A stored name: what stands before and after its first and last word, and the core between."""

    spelling: str
    before: str
    core: str
    after: str

    @property
    def canonical(self) -> str:
        return self.before + self.core + self.after


def edits(first: str, second: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours, none of them edited twice."""
    table = [[i + j for j in range(len(second) + 1)] for i in range(len(first) + 1)]
    for i in range(1, len(first) + 1):
        for j in range(1, len(second) + 1):
            same = first[i - 1] == second[j - 1]
            table[i][j] = min(
                table[i - 1][j] + 1, table[i][j - 1] + 1, table[i - 1][j - 1] + (not same)
            )
            if i > 1 and j > 1 and first[i - 2 : i] == second[j - 2 : j][::-1]:
                table[i][j] = min(table[i][j], table[i - 2][j - 2] + 1)
    return table[-1][-1]


def words_of(text: str) -> list[tuple[int, int]]:
    """Where the words of a text stand; they end where a mention could end or another begin."""
    words: list[tuple[int, int]] = []
    for piece in pieces_of(text):
        before, here = text[piece.start - 1 : piece.start], piece.composed[0]
        if not is_word(here):
            continue
        joined = (
            words
            and words[-1][1] == piece.start
            and glued_on_the_left(before, here)
            and glued_on_the_right(before, here)
        )
        words[-1:] = [(words[-1][0], piece.end)] if joined else [*words[-1:], piece[1:]]
    return words


def as_name(spelling: str) -> Name | None:
    """A name that may be offered: of six to a hundred characters in up to eight words, no letters.

    Punctuation at the edges does not count.
    """
    canonical = canonical_name(spelling)
    words = words_of(canonical)
    if not words:
        return None
    start, end = words[0][0], words[-1][1]
    eligible = (
        6 <= end - start <= 100 and len(words) <= 8 and any(stop - at > 1 for at, stop in words)
    )
    name = Name(spelling, canonical[:start], canonical[start:end], canonical[end:])
    return name if eligible else None


def figures(run: str) -> str:
    """All of a run but letters, marks, underscores, apostrophes, mere spaces and inner hyphens."""
    left = []
    for position, char in enumerate(run):
        around = run[position - 1 : position] + run[position + 1 : position + 2]
        mere_space = char == " " and run[position - 1 : position] not in (*".!?…", "")
        hyphen = char in "-‐‑" and " " not in around
        letter = is_word(char) and not char.isdecimal()
        if not (letter or char in "'’" or mere_space or hyphen):
            left.append(char)
    return "".join(left)


def is_same_word(word: str, name: str) -> bool:
    """Whether a word is one of a name with another ending, or with a slip behind its first letter.

    A slip is one edit in a word of four letters or more, or two in one of six or more.
    """
    if word.startswith(name) or name.startswith(word):
        return True
    most = 2 if len(name) >= 6 else 1
    return word[0] == name[0] and min(len(word), len(name)) > 3 and edits(word, name) <= most


def distance(run: str, core: str) -> int | None:
    """The edits in words and between them, or None when a run is no near miss of a name."""
    ours, theirs = words_of(run), words_of(core)
    if len(ours) != len(theirs) or figures(run) != figures(core):
        return None
    pairs = [(run[a:b], core[c:d]) for (a, b), (c, d) in zip(ours, theirs, strict=True)]
    if not all(is_same_word(*pair) for pair in pairs):
        return None
    gaps = [
        (run[ours[i][1] : ours[i + 1][0]], core[theirs[i][1] : theirs[i + 1][0]])
        for i in range(len(ours) - 1)
    ]
    total = sum(edits(*pair) for pair in (*pairs, *gaps))
    two_allowed = len(core) > 8 and run[:6] == core[:6]
    return total if 1 <= total <= (2 if two_allowed else 1) else None


def is_form_of_short(word: str, names: Iterable[str]) -> bool:
    """Whether a word is a name too short to be offered, with an English ending."""
    forms = set()
    for name in map(canonical_name, names):
        for short in (name[a:b] for a, b in [_core(name)] if 0 < b - a < 6):
            stems = {short, short.removesuffix("e"), short + short[-1:]}
            endings = ("s", "es", "d", "ed", "er", "ers", "ing")
            forms |= {stem + ending for stem in stems for ending in endings}
    return word in forms


def _core(canonical: str) -> tuple[int, int]:
    words = words_of(canonical)
    return (words[0][0], words[-1][1]) if words else (0, 0)


def oracle_near_misses(
    names: Sequence[str],
    text: str,
    mentions: Sequence[ConceptMention],
    asked: Iterable[str] = (),
) -> list[Miss]:
    """All near misses of a text, each name once, nearest first, then in the order of the text."""
    eligible = [name for name in map(as_name, sorted(set(names))) if name]
    explained = {canonical_name(name) for name in (*asked, *(m.concept for m in mentions))}
    best: dict[str, Miss] = {}
    words = words_of(text)
    for first in range(len(words)):
        for count in range(1, 9):
            if first + count > len(words):
                break
            start, end = words[first][0], words[first + count - 1][1]
            run = canonical_name(text[start:end])
            if (
                re.search(r"\n[^\S\n]*\n", text[start:end])
                or any(run == name.core for name in eligible)
                or (count == 1 and is_form_of_short(run, names))
            ):
                continue
            for miss in misses_of_run(eligible, run, text, (start, end), mentions, explained):
                best[miss[3]] = min(best.get(miss[3], miss), miss)
    return sorted(best.values())


def misses_of_run(
    eligible: Sequence[Name],
    run: str,
    text: str,
    span: tuple[int, int],
    mentions: Sequence[ConceptMention],
    explained: set[str],
) -> list[Miss]:
    """What is offered for one run: the nearest names, unless the text has one of them anyway."""
    near = [(d, name) for name in eligible if (d := distance(run, name.core)) is not None]
    least = min((d for d, _ in near), default=0)
    if len({name.core for d, name in near if d == least}) > 5:
        return []
    offered: dict[str, Miss] = {}
    for found, name in near:
        whole = surrounded(name, run, text, span)
        if found != least or whole is None:
            continue
        start, end = whole
        if not any(m.start <= start and end <= m.end for m in mentions):
            offered.setdefault(name.canonical, (found, start, end, name.spelling))
    return [] if explained & offered.keys() else list(offered.values())


def surrounded(name: Name, run: str, text: str, span: tuple[int, int]) -> tuple[int, int] | None:
    """Where the run stands with what surrounds the words of a name, if that stands alone."""
    pieces = pieces_of(text)
    starts = [i for i, piece in enumerate(pieces) if span[0] - 9 < piece.start <= span[0]]
    ends = [i for i, piece in enumerate(pieces) if span[1] <= piece.end < span[1] + 9]
    for first in starts:
        for last in ends:
            start, end = pieces[first].start, pieces[last].end
            if (
                not text[start].isspace()
                and not text[end - 1].isspace()
                and canonical_name(text[start : span[0]] + "x") == name.before + "x"
                and canonical_name("x" + text[span[1] : end]) == "x" + name.after
                and not is_glued(pieces, first, last + 1)
            ):
                return start, end
    return None
