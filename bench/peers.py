"""The programs that people use instead, each made to give the same answer as ours.

Each gets folded names and folds the text as we do, finds overlapping mentions where it can,
decides by our rule whether a mention stands alone, and returns the stored names in code-point
order. The rule is asked once for each pair of neighbours and then looked up, so that it costs a
peer as little as it can.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from importlib import import_module
from sys import maxunicode
from typing import Any, Protocol

from datasette_concept_recall import ConceptMatcher
from datasette_concept_recall.boundaries import (
    glued_after,
    glued_before,
    is_no_space,
    is_word,
)
from datasette_concept_recall.folding import canonical_name
from datasette_concept_recall.matching import can_match


class Matcher(Protocol):
    """A vocabulary that says which of its names a text mentions."""

    def names(self, text: str) -> list[str]: ...


class _Pairs(dict[str, bool]):
    """Whether the two characters of a pair are glued; a single one, at an end, is not."""

    def __init__(self, glued: Callable[[str, str], bool]) -> None:
        super().__init__()
        self._glued = glued

    def __missing__(self, pair: str) -> bool:
        answer = self[pair] = len(pair) == 2 and self._glued(*pair)
        return answer


GLUED_BEFORE, GLUED_AFTER = _Pairs(glued_before), _Pairs(glued_after)


def stands_alone(folded: str, start: int, end: int) -> bool:
    # At the start of the text the first slice is [-1:1]: empty, or all of a text of one character.
    before, after = folded[start - 1 : start + 1], folded[end - 1 : end + 1]
    return not GLUED_BEFORE[before] and not GLUED_AFTER[after]


class _Spellings:
    """The folded names, each once, and the stored spellings of each."""

    def __init__(self, names: Iterable[str]) -> None:
        stored: dict[str, str | tuple[str, ...]] = {}
        for name in names:
            if can_match(name):
                canonical = canonical_name(name)
                known = stored.get(canonical, ())
                more = (known,) if isinstance(known, str) else known
                stored[canonical] = (*more, name) if more else name
        self.canonical = list(stored)
        self._stored = stored

    def sorted(self, canonical: Iterable[str]) -> list[str]:
        found: list[str] = []
        for name in canonical:
            stored = self._stored[name]
            found += [stored] if isinstance(stored, str) else stored
        return sorted(found)


class RustMatcher:
    """ahocorasick_rs: an Aho-Corasick automaton in Rust."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings = _Spellings(names)
        self._find = self.bare(self._spellings.canonical).find_matches_as_indexes

    @staticmethod
    def bare(canonical: Sequence[str]) -> Any:
        return import_module("ahocorasick_rs").AhoCorasick(canonical)

    def names(self, text: str) -> list[str]:
        folded, found = canonical_name(text), set()
        for position, start, end in self._find(folded, overlapping=True):
            if position not in found and stands_alone(folded, start, end):
                found.add(position)
        canonical = self._spellings.canonical
        return self._spellings.sorted(canonical[position] for position in found)


class CMatcher:
    """pyahocorasick: an Aho-Corasick automaton in C."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings = _Spellings(names)
        self._iter = self.bare(self._spellings.canonical).iter

    @staticmethod
    def bare(canonical: Sequence[str]) -> Any:
        automaton = import_module("ahocorasick").Automaton()
        for name in canonical:
            automaton.add_word(name, name)
        automaton.make_automaton()
        return automaton

    def names(self, text: str) -> list[str]:
        folded, found = canonical_name(text), set()
        for last, name in self._iter(folded):
            if name not in found and stands_alone(folded, last + 1 - len(name), last + 1):
                found.add(name)
        return self._spellings.sorted(found)


@cache
def _word_characters() -> set[str]:
    """The characters that glue to what is beside them; flashtext knows no finer rule."""
    every = map(chr, range(maxunicode + 1))
    return {c for c in every if is_word(c) and not is_no_space(c)}


class FlashMatcher:
    """flashtext: a trie of characters in pure Python.

    It looks for names at word boundaries only, takes the longest at each place, and goes on after
    it; the boundary rule is its own, told which characters are those of words.
    """

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings = _Spellings(names)
        self._extract = self.bare(self._spellings.canonical).extract_keywords

    @staticmethod
    def bare(canonical: Sequence[str]) -> Any:
        processor = import_module("flashtext").KeywordProcessor(case_sensitive=True)
        processor.set_non_word_boundaries(_word_characters())
        for name in canonical:
            processor.add_keyword(name)
        return processor

    def names(self, text: str) -> list[str]:
        return self._spellings.sorted(set(self._extract(canonical_name(text))))


class RegexMatcher:
    """One regular expression for each name, the obvious way."""

    def __init__(self, names: Iterable[str], deadline: float | None = None) -> None:
        self._spellings = _Spellings(names)
        self._deadline = deadline
        self._expressions = []
        for name in self._spellings.canonical:
            self._expressions.append((name, re.compile(re.escape(name))))
            self._check()

    def _check(self) -> None:
        if self._deadline is not None and time.process_time() > self._deadline:
            raise TimeoutError

    def names(self, text: str) -> list[str]:
        folded, found = canonical_name(text), []
        for name, expression in self._expressions:
            self._check()
            mentions = expression.finditer(folded)
            if any(stands_alone(folded, *mention.span()) for mention in mentions):
                found.append(name)
        return self._spellings.sorted(found)


OURS, RUST, C, FLASH = "ours", "ahocorasick_rs", "pyahocorasick", "flashtext"
MATCHERS: dict[str, Callable[[Iterable[str]], Matcher]] = {
    OURS: ConceptMatcher,
    RUST: RustMatcher,
    C: CMatcher,
    FLASH: FlashMatcher,
}
BARE = {RUST: RustMatcher.bare, C: CMatcher.bare, FLASH: FlashMatcher.bare}
_MODULES = {RUST: "ahocorasick_rs", C: "ahocorasick", FLASH: "flashtext"}


def available() -> list[str]:
    """The matchers that are installed here, ours first."""
    found = [OURS]
    for label, module in _MODULES.items():
        try:
            import_module(module)
        except ImportError:
            continue
        found.append(label)
    return found
