"""Which names does a text mention: whole words, in any script, in any letter case.

A name is looked for in the *folded* text: NFC, full case folding, NFC again, every run of white
space one space. Folded text is cut into *atoms* at every place where a mention could begin or
end: a run of letters and digits, or a single other character. A mention therefore consists of
whole atoms, and a dictionary from folded names finds it by the few substrings that begin at an
atom and are no longer than the names that begin with this atom. The work follows the text, not
the number of names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sized
from copy import copy
from functools import lru_cache
from itertools import accumulate, compress, islice
from typing import cast

from .automaton import SequenceAutomaton
from .boundaries import cut, stands_alone
from .folding import Locator, canonical_name, fold
from .models import ConceptMention

_SHORT = 8
"""Names of up to so many atoms are looked up in a dictionary, longer ones by an automaton."""

_FEW_NAMES = 8

_LONG_WORD = 1000
"""A word of more characters is not looked for from every place of a text: nearly all of it might
fit at each of them, as in a text of one letter."""


def can_match(name: str) -> bool:
    """Whether a name holds a letter or a decimal digit; others are never found in a text."""
    return any(c.isalpha() or c.isdecimal() for c in name)


def word_match(word: str, text: str) -> bool:
    """Whether the text names the word, by the same rules as a concept."""
    return next(_word_spans(word, text), None) is not None


def word_count(word: str, text: str) -> int:
    """How many times the text names the word; mentions do not overlap."""
    return sum(1 for _ in _word_spans(word, text))


def _word_spans(word: str, text: str) -> Iterator[tuple[int, int]]:
    name = _searchable(word)
    if not name:
        return iter(())
    if len(name) > _LONG_WORD:
        return (
            (start, end) for start, end, _ in ConceptMatcher([name])._scan(canonical_name(text))
        )
    return spans(name, canonical_name(text) if " " in name else fold(text))


def spans(name: str, folded: str) -> Iterator[tuple[int, int]]:
    """The accepted mentions of one canonical name in a canonical text, in order, as offsets."""
    start = folded.find(name)
    while start >= 0:
        end = start + len(name)
        accepted = stands_alone(folded, start, end)
        if accepted:
            yield start, end
        start = folded.find(name, end if accepted else start + 1)


@lru_cache(maxsize=1024)
def _searchable(word: str) -> str:
    """The canonical name of a word, or the empty string for one that never matches."""
    return canonical_name(word) if can_match(word) else ""


class ConceptMatcher:
    """Finds all names of a vocabulary in a text, in one pass over the text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings: dict[str, str | tuple[str, ...]] = {}  # by canonical name
        self._several: set[str] = set()  # canonical names of several spellings
        self._silent: dict[str, str | tuple[str, ...]] = {}  # the same for names never mentioned
        self._starts: dict[str, int] = {}  # first atom -> what names begin with it, see _start
        names = names if isinstance(names, Sized) else list(names)
        # Which atoms follow a first atom: a Bloom filter of one hash, 16 bits a name or more.
        self._pairs = bytearray(max(128, 1 << (2 * len(names)).bit_length()))
        self._long_beginnings: set[str] = set()  # the first _SHORT atoms of longer names
        self._long_names: list[str] = []
        self._add_all(names)

    def extended(self, names: Iterable[str]) -> ConceptMatcher:
        """A matcher of these names besides its own; this one stays as it is.

        Cheaper than building one from all names, when there are few new ones.
        """
        matcher = copy(self)
        matcher._spellings, matcher._silent = self._spellings.copy(), self._silent.copy()
        matcher._several = self._several.copy()
        matcher._starts, matcher._long_names = self._starts.copy(), self._long_names.copy()
        matcher._long_beginnings, matcher._pairs = self._long_beginnings.copy(), self._pairs[:]
        matcher._add_all(names)
        return matcher

    def _add_all(self, names: Iterable[str]) -> None:
        for name in names:
            self._add(name)
        self._automaton = SequenceAutomaton(map(cut, self._long_names))
        # A few names are found faster one after the other, if none might fit nearly everywhere.
        self._one_by_one = len(self._spellings) <= _FEW_NAMES and all(
            len(name) <= _LONG_WORD for name in self._spellings
        )

    def _add(self, name: str) -> None:
        canonical = canonical_name(name)
        canonical = name if canonical == name else canonical  # one string less to keep
        spellings = self._spellings if can_match(name) else self._silent
        known = spellings.get(canonical)
        if known is not None:
            spellings[canonical] = _joined(known, name)
            self._several.add(canonical)
            return
        spellings[canonical] = name
        if spellings is self._silent:
            return
        atoms = cut(canonical)
        first = atoms[0] if len(atoms) > 1 else canonical
        self._starts[first] = _start(atoms, self._starts.get(first, 0))
        if len(atoms) > 1:
            pair = hash(atoms[0]) ^ hash(atoms[1] if atoms[1] != " " else atoms[2]) << 1
            self._pairs[(pair >> 3) % len(self._pairs)] |= 1 << (pair & 7)
        if len(atoms) > _SHORT:
            self._long_beginnings.add("".join(atoms[:_SHORT]))
            self._long_names.append(canonical)

    def __len__(self) -> int:
        """The number of names, case variants counted as one."""
        return len(self._spellings.keys() | self._silent.keys())

    def resolve(self, name: str) -> tuple[str, ...]:
        """The stored spellings that are this name after folding, in code-point order.

        Empty when there is none, and for a name of nothing but white space.
        """
        canonical = canonical_name(name)
        if not canonical:
            return ()
        known, silent = self._spellings.get(canonical, ()), self._silent.get(canonical, ())
        return tuple(sorted({*_as_tuple(known), *_as_tuple(silent)}))

    def variants(self) -> dict[str, str]:
        """Every spelling of a name that has several, with the first of them in code-point order."""
        several = self._several | (self._spellings.keys() & self._silent.keys())
        every = map(self.resolve, several)
        return {spelling: spellings[0] for spellings in every for spelling in spellings}

    def names(self, text: str) -> list[str]:
        """The stored spellings of all names the text mentions, each once, in code-point order."""
        found = {name for _, _, name in self._scan(canonical_name(text), once=True)}
        return sorted(s for name in found for s in _as_tuple(self._spellings[name]))

    def counts(self, text: str) -> dict[str, int]:
        """How often each stored spelling is mentioned; names that are not are absent."""
        found = Counter(name for _, _, name in self._scan(canonical_name(text)))
        return {s: n for name, n in found.items() for s in _as_tuple(self._spellings[name])}

    def mentions(self, text: str, *, at_least: int = 1) -> list[ConceptMention]:
        """Every mention, by start, then end, then concept, of the names that are mentioned so many
        times or more; offsets are into ``text`` itself.

        A mention that begins or ends inside a character that folding splits (``ß``) or joins
        (``e`` and an accent) covers that character whole.
        """
        found = list(self._scan(canonical_name(text))) if self._spellings else []
        if at_least > 1:
            often = Counter(name for _, _, name in found)
            found = [each for each in found if often[each[2]] >= at_least]
        if not found:
            return []
        locate = Locator(text)
        mentions = [
            ConceptMention(spelling, locate.start(start), locate.end(end))
            for start, end, canonical in found
            for spelling in _as_tuple(self._spellings[canonical])
        ]
        return sorted(mentions, key=lambda m: (m.start, m.end, m.concept))

    def _scan(self, folded: str, once: bool = False) -> Iterator[tuple[int, int, str]]:
        """Accepted mentions ``(start, end, canonical name)`` in a canonical text.

        Those of one name are in order. With ``once`` only the first of each name is given.
        """
        if self._one_by_one:
            for name in self._spellings:
                for start, end in islice(spans(name, folded), 1 if once else None):
                    yield start, end, name
            return
        atoms = cut(folded)
        ends = list(accumulate(map(len, atoms)))
        starts = list(map(self._starts.get, atoms))
        atoms += ("", "")
        free: dict[str, int] = {}  # name -> from where on it may be mentioned again
        nowhere = len(folded) + 1
        pairs, size = self._pairs, len(self._pairs)
        long_names = False
        for index in compress(range(len(starts)), starts):
            known, atom, end = cast("int", starts[index]), atoms[index], ends[index]
            start = end - len(atom)
            if known & _ALONE and free.get(atom, 0) <= start and stands_alone(folded, start, end):
                free[atom] = nowhere if once else end
                yield start, end, atom
            if not known & _DEPTH:
                continue
            following = atoms[index + 1]
            if following == " ":
                following = atoms[index + 2]
            pair = hash(atom) ^ hash(following) << 1
            if not pairs[(pair >> 3) % size] >> (pair & 7) & 1:
                continue
            if known & _LONG and not long_names:
                beginning = folded[start : ends[min(index + _SHORT, len(ends)) - 1]]
                long_names = beginning in self._long_beginnings
            for end in ends[index + 1 : index + (known & _DEPTH)]:
                name = folded[start:end]
                if (
                    name in self._spellings
                    and free.get(name, 0) <= start
                    and stands_alone(folded, start, end)
                ):
                    free[name] = nowhere if once else end
                    yield start, end, name
        if long_names:
            for position in self._automaton.occurring(atoms):
                name = self._long_names[position]
                for start, end in islice(spans(name, folded), 1 if once else None):
                    yield start, end, name


# What is known of the names that begin with an atom, packed into one number: the most atoms that a
# short one of several atoms has, whether the atom itself is a name, and whether one is long.
_DEPTH, _ALONE, _LONG = 0b001111, 0b010000, 0b100000


def _start(atoms: list[str], known: int) -> int:
    """What is known of the names with a first atom, now that there is this one too."""
    if len(atoms) == 1:
        return known | _ALONE
    depth = max(known & _DEPTH, min(len(atoms), _SHORT))
    return known & ~_DEPTH | depth | (_LONG if len(atoms) > _SHORT else 0)


def _as_tuple(spellings: str | tuple[str, ...]) -> tuple[str, ...]:
    return (spellings,) if isinstance(spellings, str) else spellings


def _joined(*spellings: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """All spellings, each once, in code-point order; a single one stands for itself."""
    each = sorted({spelling for known in spellings for spelling in _as_tuple(known)})
    return tuple(each) if len(each) > 1 else each[0]
