"""Which names might be meant by a run of words: those that share a part with it.

A name is kept by its *core*, the canonical name without punctuation at its edges, which begins and
ends with a word. With one edit the first or the second half of a core is still there, or two
characters were swapped where the halves meet; with two edits the leading characters have to be
there. So a run needs to be compared with few names only, however many there are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeAlias
from unicodedata import category

from .boundaries import cut, glued_after, glued_before, is_word
from .folding import canonical_name

LEAST, LONGEST, MOST_WORDS = 6, 100, 8
"""Cores of fewer or more characters or of more words are left out, and those of single characters
as most names in a script without spaces are. Among shorter ones nearly everything is near to
something."""

ONE_EDIT = 8
"""Cores of up to so many characters may differ by one edit, longer ones by two."""

SHARED = 6
"""With two edits, so many leading characters have to be the same."""

_CLASSES = 16

_ENDINGS = ("s", "es", "d", "ed", "er", "ers", "ing")

_Table: TypeAlias = "dict[str, str | list[str]]"

_ascii_words = re.compile(r"\w+", re.ASCII).finditer
# A space behind the end of a sentence is more than a space, a hyphen beside a space is a dash.
_JOINERS = r"['’_]|(?<![.!?…]) |(?<! )[-‐‑](?! )"
_joiners = re.compile(_JOINERS).sub
_ascii_letters = re.compile(f"[a-z]+|{_JOINERS}").sub


def words_of(canonical: str) -> list[tuple[int, int]]:
    """The spans of the words of a canonical text: it is cut where a mention may begin or end."""
    if canonical.isascii():
        return [word.span() for word in _ascii_words(canonical)]
    words: list[tuple[int, int]] = []
    end = 0
    for atom in cut(canonical):
        start, end = end, end + len(atom)
        if atom == " " or not is_word(atom[0]):
            continue
        if words and words[-1][1] == start:
            before = canonical[start - 1]
            if glued_before(before, atom[0]) and glued_after(before, atom[0]):
                start = words.pop()[0]
        words.append((start, end))
    return words


def figures_of(run: str) -> str:
    """What is not written by mistake: where it differs, as in C# and C++, two things are meant.

    That is everything but letters, their marks, and what joins words, in the order of the run.
    """
    if run.replace(" ", "").isalpha():  # the common case, made cheap
        return ""
    if run.isascii():
        return _ascii_letters("", run)
    return "".join(c for c in _joiners("", run) if not c.isalpha() and category(c)[0] != "M")


class NearNames:
    """The names of a vocabulary by their parts."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings: _Table = {}  # by core
        self._short: set[str] = set()  # cores of fewer characters than `LEAST`
        # Which cores of several words there are, by first word, last word, leading characters:
        # a bit for each number of words and class of the letter that the word at the other end
        # begins with. A slip does not touch first letters.
        self._first: dict[str, int] = {}
        self._last: dict[str, int] = {}
        self._leading: dict[str, int] = {}
        self._halves: _Table = {}
        self._long: _Table = {}
        self._lengths = 0  # bit n is set when there are cores of n words
        for name in names:
            self._add(name)
        self.word_counts = [n for n in range(2, MOST_WORDS + 1) if self._lengths >> n & 1]

    def _add(self, name: str) -> None:
        canonical = canonical_name(name)
        words = words_of(canonical)
        if not words:
            return
        core = canonical[words[0][0] : words[-1][1]]
        if len(core) < LEAST:
            self._short.add(core)
        if (
            not LEAST <= len(core) <= LONGEST
            or len(words) > MOST_WORDS
            or all(end - start == 1 for start, end in words)
        ):
            return
        core = name if core == name else core  # one string less to keep
        is_new = core not in self._spellings
        _put(self._spellings, core, name)
        if is_new:
            self._index(core, [canonical[start:end] for start, end in words])

    def _index(self, core: str, words: list[str]) -> None:
        size, count = len(core), len(words)
        rest = _initials(words) + figures_of(core)
        self._lengths |= 1 << count
        first, last = (1 << count * _CLASSES + _class(word) for word in (words[0], words[-1]))
        if count > 1:
            self._first[words[0]] = self._first.get(words[0], 0) | last
            self._last[words[-1]] = self._last.get(words[-1], 0) | first
        for half in (core[: size // 2], core[size // 2 :]):
            _put(self._halves, half + rest, core)
        if size > ONE_EDIT:
            beginning = core[:SHARED]
            self._leading[beginning] = self._leading.get(beginning, 0) | last
            _put(self._long, f"{size} {beginning}{rest}", core)

    def __contains__(self, run: str) -> bool:
        """Whether a run is a core."""
        return run in self._spellings

    def spellings(self, core: str) -> list[str]:
        """The stored names with a core, in code-point order."""
        return sorted(_as_list(self._spellings[core]))

    def runs(self, words: list[str], leading: list[str]) -> list[tuple[int, int]]:
        """The runs that have to be looked at, as positions of a first and of a last word.

        ``words`` are those of a text, and each of ``leading`` is the `SHARED` characters that
        begin with one of them. Shorter runs come first.
        """
        runs = [(i, i) for i, word in enumerate(words) if len(word) >= LEAST - 1]
        first, beginning, last = self._first.get, self._leading.get, self._last.get
        begins = [
            first(word, 0) | beginning(characters, 0)
            for word, characters in zip(words, leading, strict=True)
        ]
        ends = [last(word, 0) for word in words]
        classes = list(map(_class, words))
        for count in self.word_counts:
            bit, more = count * _CLASSES, count - 1
            pairs = zip(begins, classes, ends[more:], classes[more:], strict=False)
            runs += [
                (i, i + more)
                for i, (begin, first_class, end, last_class) in enumerate(pairs)
                if (begin or end) and (begin >> bit + last_class | end >> bit + first_class) & 1
            ]
        return runs

    def near(self, run: str, words: list[str]) -> tuple[list[str], list[str]]:
        """The cores that may be one edit and two edits from a run of these words.

        Among them are many that are not, and some are given twice.
        """
        size, rest, halves = len(run), _initials(words) + figures_of(run), self._halves
        one: list[str] = []
        for part in (
            run[: (size - 1) // 2],
            run[: (size + 1) // 2],
            run[-(size // 2) :],
            run[-(size // 2 + 1) :],
        ):
            if (half := part + rest) in halves:
                one += _as_list(halves[half])
        middle = size // 2
        swapped = run[: middle - 1] + run[middle] + run[middle - 1] + run[middle + 1 :]
        if swapped in self._spellings:
            one.append(swapped)
        beginning = run[:SHARED]
        if beginning not in self._leading:
            return one, []
        keys = (f"{length} {beginning}{rest}" for length in range(size - 2, size + 3))
        return one, [core for key in keys for core in _as_list(self._long.get(key, []))]

    def is_form_of_short(self, word: str) -> bool:
        """Whether a word is a core too short to be kept with one of a few English endings."""
        for ending in _ENDINGS:
            if word.endswith(ending):
                stem = word[: -len(ending)]
                undoubled = stem[:-1] if stem[-1:] == stem[-2:-1] else stem
                if not self._short.isdisjoint((stem, f"{stem}e", undoubled)):
                    return True
        return False


def _initials(words: list[str]) -> str:
    """The letters that words begin with: they are never slips, and say how many words there are."""
    return words[0][0] if len(words) == 1 else "".join([word[0] for word in words])


def _class(word: str) -> int:
    return ord(word[0]) % _CLASSES


def _put(table: _Table, key: str, name: str) -> None:
    """Adds a name to those of a key; a single one stands for itself."""
    known = table.setdefault(key, name)
    if isinstance(known, list):
        known.append(name)
    elif known != name:
        table[key] = [known, name]


def _as_list(names: str | list[str]) -> list[str]:
    return [names] if isinstance(names, str) else names
