"""Which names does a text mention: whole words, in any script, in any letter case.

A name is looked for in the *folded* text: NFC, full case folding, NFC again, every run of white
space one space. Folded text is cut into *atoms* at every place where a mention could begin or
end: a run of letters and digits, or a single other character. A mention therefore consists of
whole atoms, and a dictionary from folded names finds it by the few substrings that begin at an
atom and are no longer than the names that begin with this atom. The work follows the text, not
the number of names.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import accumulate
from unicodedata import category

from .folding import Locator, canonical_name, fold
from .models import ConceptMention

_NO_SPACE = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u2e80-\u2fdf\u3005\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    "\U00016fe2\U00016fe3\U00016ff0\U00016ff1\U00020000-\U0003ffff"  # Han
    "\u3041-\u309f\u30a0-\u30ff\u31f0-\u31ff\uff66-\uff9f\U0001aff0-\U0001b16f"  # kana
)
_HANGUL = "\u1100-\u11ff\u3131-\u318e\ua960-\ua97f\uac00-\ud7a3\ud7b0-\ud7ff\uffa0-\uffdc"
# Numbers that are neither decimal digits nor letters (superscripts, fractions, Roman numerals)
# count as word characters for `re` and not for us. Cutting too often is harmless, so these are
# whole blocks, and everything beyond the Basic Multilingual Plane.
_NUMERALS = (
    "\xb2\xb3\xb9\xbc-\xbe\u09f4-\u09f9\u0b72-\u0b77\u0bf0-\u0bf2\u0c78-\u0c7e\u0d58-\u0d5e"
    "\u0d70-\u0d78\u0f2a-\u0f33\u1369-\u137c\u16ee-\u16f0\u17f0-\u17f9\u19da\u2070-\u218f"
    "\u2460-\u24ff\u2776-\u2793\u2cfd\u3192-\u3195\u3220-\u32bf\ua6e6-\ua6ef\ua830-\ua835"
    "\U00010000-\U0010ffff"
)
_atoms = re.compile(f"[^\\W{_NO_SPACE}{_HANGUL}{_NUMERALS}]+|.", re.DOTALL).findall
_ascii_atoms = re.compile(r"\w+|.", re.ASCII | re.DOTALL).findall
_is_no_space = re.compile(f"[{_NO_SPACE}]").match
_is_hangul = re.compile(f"[{_HANGUL}]").match

_SHORT = 8
"""Names of up to so many atoms are looked up whole; longer ones by their first so many."""


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
        return
    folded = canonical_name(text) if " " in name else fold(text)
    start = folded.find(name)
    while start >= 0:
        end = start + len(name)
        accepted = _stands_alone(folded, start, end)
        if accepted:
            yield start, end
        start = folded.find(name, end if accepted else start + 1)


@lru_cache(maxsize=1024)
def _searchable(word: str) -> str:
    """The canonical name of a word, or the empty string for one that never matches."""
    return canonical_name(word) if can_match(word) else ""


def _is_word(character: str) -> bool:
    """Letter, decimal digit, underscore or combining mark, of any script."""
    return (
        character.isalpha()
        or character.isdecimal()
        or character == "_"
        or (character > "\x7f" and category(character)[0] == "M")
    )


def _glued_before(before: str, first: str) -> bool:
    """Whether ``before`` belongs to the word that the mention's first character begins."""
    if not _is_word(before) or _is_no_space(before) or _is_no_space(first):
        return False
    return not _is_hangul(before) or _is_hangul(first) is not None


def _glued_after(last: str, after: str) -> bool:
    """Whether ``after`` belongs to the word that the mention's last character ends."""
    if not _is_word(after) or _is_no_space(after):
        return False
    if category(after)[0] == "M":  # a mark belongs to the character before it, whatever that is
        return True
    return not _is_no_space(last) and not _is_hangul(after)


def _stands_alone(folded: str, start: int, end: int) -> bool:
    return not (start and _glued_before(folded[start - 1], folded[start])) and not (
        end < len(folded) and _glued_after(folded[end - 1], folded[end])
    )


def _cut(folded: str) -> list[str]:
    return _ascii_atoms(folded) if folded.isascii() else _atoms(folded)


class ConceptMatcher:
    """Finds all names of a vocabulary in a text, in one pass over the text."""

    def __init__(self, names: Iterable[str]) -> None:
        self._spellings: dict[str, str | tuple[str, ...]] = {}  # by canonical name
        self._silent: dict[str, str | tuple[str, ...]] = {}  # the same for names never mentioned
        self._depth: dict[str, int] = {}  # first atom -> most atoms of a name that begins with it
        self._long: dict[str, list[str]] = {}  # first _SHORT atoms -> names that are longer
        for name in names:
            self._add(name)

    def _add(self, name: str) -> None:
        canonical = canonical_name(name)
        spellings = self._spellings if can_match(name) else self._silent
        known = spellings.get(canonical)
        if known is not None:
            spellings[canonical] = _joined(known, name)
            return
        spellings[canonical] = name
        if spellings is self._silent:
            return
        atoms = _cut(canonical)
        if len(atoms) > _SHORT:
            self._long.setdefault("".join(atoms[:_SHORT]), []).append(canonical)
        self._depth[atoms[0]] = max(self._depth.get(atoms[0], 0), min(len(atoms), _SHORT))

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

    def names(self, text: str) -> list[str]:
        """The stored spellings of all names the text mentions, each once, in code-point order."""
        return sorted(self.counts(text))

    def counts(self, text: str) -> dict[str, int]:
        """How often each stored spelling is mentioned; names that are not are absent."""
        found = Counter(name for _, _, name in self._scan(canonical_name(text)))
        return {
            spelling: count
            for canonical, count in found.items()
            for spelling in _as_tuple(self._spellings[canonical])
        }

    def mentions(self, text: str) -> list[ConceptMention]:
        """Every mention, by start, then end, then concept; offsets are into ``text`` itself.

        A mention that begins or ends inside a character that folding splits (``ß``) or joins
        (``e`` and an accent) covers that character whole.
        """
        found = list(self._scan(canonical_name(text)))
        if not found:
            return []
        locate = Locator(text)
        mentions = [
            ConceptMention(spelling, locate.start(start), locate.end(end))
            for start, end, canonical in found
            for spelling in _as_tuple(self._spellings[canonical])
        ]
        return sorted(mentions, key=lambda m: (m.start, m.end, m.concept))

    def _scan(self, folded: str) -> Iterator[tuple[int, int, str]]:
        """Accepted mentions ``(start, end, canonical name)`` in a canonical text, by start."""
        atoms = _cut(folded)
        ends = list(accumulate(map(len, atoms)))
        depth = self._depth
        free: dict[str, int] = {}  # name -> end of its last mention
        for index, atom in enumerate(atoms):
            if atom in depth:
                start = ends[index] - len(atom)
                for end, name in self._candidates(folded, start, ends[index : index + depth[atom]]):
                    if free.get(name, 0) <= start and _stands_alone(folded, start, end):
                        free[name] = end
                        yield start, end, name

    def _candidates(self, folded: str, start: int, ends: list[int]) -> Iterator[tuple[int, str]]:
        """Names that are written at ``start`` and end with an atom, glued or not."""
        for end in ends:
            part = folded[start:end]
            if part in self._spellings:
                yield end, part
        if len(ends) == _SHORT:
            for name in self._long.get(part, ()):
                if folded.startswith(name, start):
                    yield start + len(name), name


def _as_tuple(spellings: str | tuple[str, ...]) -> tuple[str, ...]:
    return (spellings,) if isinstance(spellings, str) else spellings


def _joined(*spellings: str | tuple[str, ...]) -> str | tuple[str, ...]:
    """All spellings, each once, in code-point order; a single one stands for itself."""
    each = sorted({spelling for known in spellings for spelling in _as_tuple(known)})
    return tuple(each) if len(each) > 1 else each[0]
