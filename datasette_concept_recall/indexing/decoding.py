"""Bytes to text: which encoding a file is in, and whether it is text at all."""

from __future__ import annotations

import codecs
import re

from .failures import Unusable

_MARKED = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark begins alike
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_TRUSTED = re.compile(
    r"(windows|cp|iso|latin|koi8|mac|shift|sjis|x-sjis|euc|gb|big5|tis)[\w-]*", re.IGNORECASE
)
"""Names of character sets that are believed; Python has codecs that are none, as ``rot13``."""

_ASCII = bytes(range(128))
_CONTROLS = bytes(code for code in range(1, 32) if chr(code) not in "\t\n\v\f\r\x1b")
_REPLACED = "\ufffd"
_UNWANTED = re.compile("[\0\ud800-\udfff]")
_LINE_END = re.compile("\r\n?")


def decode(data: bytes, declared: str | None = None) -> str:
    """The text in the bytes of a file, with ``\\n`` at the ends of its lines.

    A mark at the beginning tells the encoding, else it is UTF-8, else the one that the file
    declares, else Windows-1252. Raises `Unusable` with ``not_text`` where none of them fits.
    """
    encoding = next((name for mark, name in _MARKED if data.startswith(mark)), None)
    text = data.decode(encoding, "replace") if encoding else _utf8_or_older(data, declared)
    if text is None or not _is_text(text):
        raise Unusable("not_text", "The content of the file is not text")
    return clean(text)


def clean(text: str) -> str:
    """The text with ``\\n`` at the ends of lines, without what SQLite or UTF-8 cannot hold."""
    if "\r" in text:
        text = _LINE_END.sub("\n", text)
    return text.replace("\0", "") if text.isascii() else _UNWANTED.sub("", text)


def _is_text(text: str) -> bool:
    written = text.encode("utf-8", "replace")
    controls = len(written) - len(written.translate(None, _CONTROLS))
    damage = text.count(_REPLACED)
    return "\0" not in text and damage * 2 <= len(text) and controls * 20 <= len(text)


def _utf8_or_older(data: bytes, declared: str | None) -> str | None:
    text = data.decode("utf-8", "replace")
    damage = text.count(_REPLACED)
    if not damage or data.count(_REPLACED.encode()) == damage:
        return text
    if declared and _TRUSTED.fullmatch(declared):
        try:
            return data.decode(declared)
        except (LookupError, UnicodeError):
            pass
    # Text of an older encoding hardly ever holds a valid sequence of UTF-8; a log that was cut off
    # or a file to which two programs wrote holds many.
    if sum(character > "\x7f" for character in text) > 2 * damage:
        return text
    return _windows_1252(data)


def _windows_1252(data: bytes) -> str | None:
    # In the languages of this encoding most letters are ASCII; in other encodings few bytes are.
    if len(data.translate(None, _ASCII)) * 3 > len(data):
        return None
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return None
