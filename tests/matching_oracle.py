"""The rules of matching, written down the slow and obvious way.

This is the definition the fast matcher is compared with. It shares no code with it, looks at one
name at a time, and reads like the rules: cut the text into the smallest pieces that Unicode
normalisation leaves apart, then try the name at every piece from left to right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import NamedTuple

UNSPACED_SCRIPTS = (
    "CJK UNIFIED IDEOGRAPH",
    "CJK COMPATIBILITY IDEOGRAPH",
    "IDEOGRAPHIC",
    "OLD CHINESE",
    "VIETNAMESE ALTERNATE READING MARK",
    "HIRAGANA",
    "HENTAIGANA",
    "KATAKANA",
    "KANA REPEAT",
    "MASU MARK",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
)


class Piece(NamedTuple):
    """A smallest part of the text that normalises on its own, and where it stands."""

    composed: str
    start: int
    end: int


def nfc(text: str) -> str:
    """The composed normal form."""
    return unicodedata.normalize("NFC", text)


def folded(text: str) -> str:
    """What two texts have in common when they differ only in case, composition and white space."""
    plain = unicodedata.normalize("NFD", nfc(text).casefold())
    return re.sub(r"\s+", " ", plain)


def is_word(char: str) -> bool:
    """Whether a character is a letter, a combining mark, a decimal digit or an underscore."""
    category = unicodedata.category(char)
    return category[0] in "LM" or category == "Nd" or char == "_"


def is_unspaced(char: str) -> bool:
    """Whether a character is of a script that puts no spaces between words."""
    name = unicodedata.name(char, "")
    return is_word(char) and any(script in name for script in UNSPACED_SCRIPTS)


def is_hangul(char: str) -> bool:
    """Whether a character is written in Hangul."""
    return is_word(char) and "HANGUL " in unicodedata.name(char, "")


def glued_on_the_left(before: str, first: str) -> bool:
    """Whether `before` makes a mention that begins with `first` a part of a longer word."""
    if not is_word(before) or is_unspaced(before) or is_unspaced(first):
        return False
    return is_hangul(first) if is_hangul(before) else True


def glued_on_the_right(last: str, after: str) -> bool:
    """Whether `after` makes a mention that ends with `last` a part of a longer word."""
    if not is_word(after) or is_unspaced(after) or is_hangul(after):
        return False
    if unicodedata.category(after).startswith("M"):
        return True
    return not is_unspaced(last)


def can_join_what_is_before(char: str) -> bool:
    """Whether normalisation may move this character or melt it into its predecessor."""
    is_jamo_vowel_or_final = "\u1160" <= char <= "\u11ff"
    return unicodedata.category(char).startswith("M") or is_jamo_vowel_or_final


def smallest_parts(cluster: str) -> list[str]:
    """A cluster of base and marks, cut where its parts normalise as they do together."""
    parts = []
    while cluster:
        cut = 1
        while nfc(cluster) != nfc(cluster[:cut]) + nfc(cluster[cut:]):
            cut += 1
        parts.append(cluster[:cut])
        cluster = cluster[cut:]
    return parts


def pieces_of(text: str) -> list[Piece]:
    """The text as pieces, each with its offsets in the original."""
    clusters: list[str] = []
    for char in text:
        if clusters and can_join_what_is_before(char):
            clusters[-1] += char
        else:
            clusters.append(char)
    pieces: list[Piece] = []
    start = 0
    for part in (part for cluster in clusters for part in smallest_parts(cluster)):
        pieces.append(Piece(nfc(part), start, start + len(part)))
        start += len(part)
    return pieces


def end_of_candidate(wanted: str, text: str, pieces: list[Piece], first: int) -> int | None:
    """The index after the last piece of a candidate that begins at `first`, glued or not."""
    if folded(pieces[first].composed)[0] != wanted[0]:
        return None
    for last in range(first, len(pieces)):
        here = folded(text[pieces[first].start : pieces[last].end])
        if here == wanted:
            return last + 1
        if len(here) > len(wanted):
            return None
    return None


def is_glued(pieces: list[Piece], first: int, stop: int) -> bool:
    """Whether a neighbour on either side belongs to the same word as the candidate."""
    left = first > 0 and glued_on_the_left(
        pieces[first - 1].composed[-1], pieces[first].composed[0]
    )
    right = stop < len(pieces) and glued_on_the_right(
        pieces[stop - 1].composed[-1], pieces[stop].composed[0]
    )
    return left or right


def oracle_spans(name: str, text: str, pieces: list[Piece] | None = None) -> list[tuple[int, int]]:
    """Where a text names a concept, as offsets into that text."""
    if not any(char.isalpha() or char.isdecimal() for char in name):
        return []
    wanted = folded(name.strip())
    pieces = pieces_of(text) if pieces is None else pieces
    spans: list[tuple[int, int]] = []
    at = 0
    while at < len(pieces):
        stop = end_of_candidate(wanted, text, pieces, at)
        if stop is None or is_glued(pieces, at, stop):
            at += 1
        else:
            spans.append((pieces[at].start, pieces[stop - 1].end))
            at = stop
    return spans


def oracle_mentions(names: Iterable[str], text: str) -> list[tuple[int, int, str]]:
    """Every mention of every name as (start, end, name), sorted."""
    pieces = pieces_of(text)
    return sorted(
        (start, end, name) for name in set(names) for start, end in oracle_spans(name, text, pieces)
    )


def oracle_names(names: Iterable[str], text: str) -> list[str]:
    """The names a text holds, each once, in code-point order."""
    return sorted({name for _, _, name in oracle_mentions(names, text)})


def oracle_count(word: str, text: str) -> int:
    """How often a text holds one word."""
    return len(oracle_spans(word, text))
