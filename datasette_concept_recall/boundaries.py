"""Where in a folded text a mention may begin and end: the rules of glue, for all scripts.

A text is cut into *atoms* at every such place: a run of letters and digits of one kind, or a single
other character. Whether a mention may really begin or end at a cut depends on both characters.
"""

from __future__ import annotations

import re
from unicodedata import category

_NO_SPACE = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f\U000116d0-\U000116ff"  # Myanmar
    "\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
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
is_no_space = re.compile(f"[{_NO_SPACE}]").match
_is_hangul = re.compile(f"[{_HANGUL}]").match


_BEYOND_ASCII = "\x80"


def is_word(character: str) -> bool:
    """Letter, decimal digit, underscore or combining mark, of any script."""
    return (
        character.isalpha()
        or character.isdecimal()
        or character == "_"
        or (character > "\x7f" and category(character)[0] == "M")
    )


def glued_before(before: str, first: str) -> bool:
    """Whether ``before`` belongs to the word that the mention's first character begins."""
    if not is_word(before):
        return False
    if before < _BEYOND_ASCII and first < _BEYOND_ASCII:  # the common case, made cheap
        return True
    if is_no_space(before) or is_no_space(first):
        return False
    return not _is_hangul(before) or _is_hangul(first) is not None


def glued_after(last: str, after: str) -> bool:
    """Whether ``after`` belongs to the word that the mention's last character ends."""
    if not is_word(after):
        return False
    if last < _BEYOND_ASCII and after < _BEYOND_ASCII:
        return True
    if is_no_space(after):
        return False
    if category(after)[0] == "M":  # a mark belongs to the character before it, whatever that is
        return True
    return not is_no_space(last) and not _is_hangul(after)


def stands_alone(folded: str, start: int, end: int) -> bool:
    """Whether ``folded[start:end]`` is not glued to what is around it."""
    before = folded[start - 1] if start else " "
    after = folded[end] if end < len(folded) else " "
    # The first comparisons are the common case, made cheap.
    return (before == " " or not glued_before(before, folded[start])) and (
        after == " " or not glued_after(folded[end - 1], after)
    )


def cut(folded: str) -> list[str]:
    """The atoms of a folded text; joined they are the text again."""
    return _ascii_atoms(folded) if folded.isascii() else _atoms(folded)
