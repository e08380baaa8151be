"""Runs of digits in a text that may encode another text, and what they may say."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator

_DIGITS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-")
# The digits beyond letters and numbers are rare where plain text is encoded, but not in paths.
_MAYBE_ENCODED = re.compile("[A-Z0-9][A-Za-z0-9]{19}")
_SHAPE = bytes(97 if c < 128 and chr(c).isalnum() else 32 for c in range(256))
_LONG = b"a" * 20
"""What is in the shape of a text where the expression above finds anything."""

_ENCODED = re.compile(
    "[A-Za-z0-9+/_-]{20,}={0,2}"
    r"(?:\r?\n[ \t>]{0,8}[A-Za-z0-9+/_-]{4,76}={0,2}(?=[ \t]{0,8}(?:\r?\n|\Z))){0,32}"
)
"""A run of what base64 or hexadecimal digits are written with, in a text as it is."""

_HEX = "[0-9A-Fa-f]{2}"
_ESCAPED = {
    prefix: re.compile(f"{re.escape(prefix)}{_HEX}(?:[ ,]{{0,2}}{re.escape(prefix)}{_HEX}){{7,}}")
    for prefix in ("\\x", "0x", "%")
}
"""Runs of hexadecimal digits each pair of which is marked as such, by the mark."""

_PAIRED = re.compile(f"(?<![0-9A-Za-z]){_HEX}(?:[ :\n]{_HEX}){{11,}}(?![0-9A-Za-z])")
_PAIRS = bytes(
    97 if chr(c) in "0123456789ABCDEFabcdef" else 32 if chr(c) in " :\n" else 120
    for c in range(256)
)
_MANY = b" ".join([b"aa"] * 12)
"""Runs of pairs of hexadecimal digits, and what is in the shape of a text that holds one."""

_READABLE = bytes([9, 10, 13, *range(32, 127)])
_digits = re.compile("[^A-Za-z0-9+/]+").sub
_escaped = re.compile(r"(?:\\x|%|0x)([0-9A-Fa-f]{2})").findall
_is_hexadecimal = re.compile("[0-9A-Fa-f]+").fullmatch


def encoded_runs(text: str, before: int) -> Iterator[tuple[int, int]]:
    """The stretches of a text that may be encoded; of runs of digits those that begin ``before``
    an offset."""
    data = text.encode("ascii", "replace")
    at = 0 if _LONG in data.translate(_SHAPE) else before
    while maybe := _MAYBE_ENCODED.search(text, at, before):
        start = maybe.start()
        while start > at and text[start - 1] in _DIGITS:
            start -= 1
        run = _ENCODED.match(text, start)
        at = run.end() if run else maybe.end()
        yield start, at
    for prefix, run_of in _ESCAPED.items():
        if prefix in text:
            for escapes in run_of.finditer(text):
                yield escapes.span()
    if _MANY in data.translate(_PAIRS):
        yield from (pairs.span() for pairs in _PAIRED.finditer(text))


def decoded(run: str) -> Iterator[str]:
    """What a run may say, wherever in it the first digit stands."""
    if escaped := "".join(_escaped(run)):
        yield from _readable(bytes.fromhex(escaped))
    digits = _digits("", run.replace("-", "+").replace("_", "/"))
    for first in range(4 if len(digits) >= 32 else 1):
        length = (len(digits) - first) // 4 * 4
        quads = digits[first : first + length]
        rest = digits[first + length :]
        if len(rest) > 1:
            quads += rest + "=" * (4 - len(rest))
        yield from _readable(binascii.a2b_base64(quads))
    if _is_hexadecimal(digits):
        for first in range(2):
            length = (len(digits) - first) // 2 * 2
            yield from _readable(bytes.fromhex(digits[first : first + length]))


def _readable(data: bytes) -> Iterator[str]:
    data = data.replace(b"\0", b"")
    if len(data) >= 8 and len(data.translate(None, _READABLE)) * 4 <= len(data):
        yield data.decode("utf-8", "replace")
