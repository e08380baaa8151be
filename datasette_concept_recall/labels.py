"""Names as they can stand in a picture: on one line, printable, and no wider than there is room."""

from __future__ import annotations

import re
from unicodedata import category, east_asian_width

ELLIPSIS = "…"

_JOINER = "\u200d"
_unprintable = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]"
).sub


def one_line(text: str) -> str:
    """The text on one line, with ``\ufffd`` for characters that XML or HTML forbids."""
    return " ".join(_unprintable("\ufffd", text).split())


def shown_name(name: str) -> str:
    """A name that can be read and clicked, even one that is blank."""
    return one_line(name) or "(blank)"


def width_of(text: str) -> float:
    """How wide a text is in a sans serif font, rather more than less, in ems."""
    return sum(map(_width, text))


def short_label(name: str, ems: float) -> str:
    """The name, or of a wider one the beginning with ``…``; at least its first character.

    No mark is cut off from its letter, nor anything from what it is joined to.
    """
    room, end, before = ems - _width(ELLIPSIS), 0, ""
    for position, character in enumerate(name):
        if position and before != _JOINER and not _continues(character) and room >= 0:
            end = position
        room -= _width(character)
        if room < -_width(ELLIPSIS):
            return name[: end or 1].rstrip() + ELLIPSIS
        before = character
    return name


def two_lines(name: str, ems: float) -> list[str]:
    """The name on one line, or on two when it is wider and has a space to be broken at."""
    spaces = [at for at, character in enumerate(name) if character == " "]
    fitting = [at for at in spaces if width_of(name[:at]) <= ems]
    if width_of(name) <= ems or not fitting:
        return [short_label(name, ems)]
    return [name[: fitting[-1]], short_label(name[fitting[-1] + 1 :], ems)]


def _continues(character: str) -> bool:
    """Whether the character changes the one before it and does not begin another."""
    return character == _JOINER or category(character)[0] == "M" or "🏻" <= character <= "🏿"


def _width(character: str) -> float:
    if character in "iljtfr.,:;!|'`()[]{}/\\ -":
        return 0.38
    if character in "mwMW@%" or character == ELLIPSIS:
        return 1.0
    if character == _JOINER or category(character) in ("Mn", "Me", "Cf"):
        return 0.0
    if east_asian_width(character) in "WF" or ord(character) > 0xFFFF:
        return 1.15
    return 0.75 if character.isupper() else 0.61
