"""The headers of a mail as people read them, whatever bytes they are.

Charsets that lie and headers that no standard allows are normal, so they are decoded here and not
by the strict parser of `email`.
"""

from __future__ import annotations

import base64
import codecs
import quopri
import re
from datetime import datetime, timezone
from email.message import Message
from email.utils import parsedate_to_datetime

_HEADER_BYTES = 20_000  # of one header, which is decoded up to here
_ADDRESS_BYTES = 300_000  # of all headers of one name, whose addresses are counted up to here

_LATIN = {"ascii", "iso8859-1", "cp1252"}  # declared for texts in any charset
_NO_CHARSETS = {"unicode-escape", "raw-unicode-escape", "idna", "punycode", "undefined"}

UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
"""What no text of a mail has: control characters, and bytes that are no text."""

_NOT_ESCAPED_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")

_BETWEEN_WORDS = re.compile(r"\?=\s+=\?")
_WORD = re.compile(r"=\?([^?\s]{1,60})\?([bBqQ])\?([^?]*)\?=")
_WORDS = re.compile(rf"(?:{_WORD.pattern})+")
# A name is quoted up to a limit, else each of many open quotes would be followed to the end.
_ADDRESS = re.compile(
    rb'(?:=\?[^?\s]{1,60}\?[bBqQ]\?[^?]*\?=|"(?:\\.|[^"\\]){0,200}"|<[^<>]*>|[^,;"<=]+|["<=])+',
    re.DOTALL,
)


def header_text(value: bytes, limit: int = 1_000) -> str:
    """The value of a header for people: decoded, on one line, at most ``limit`` characters."""
    text = decoded(value[:_HEADER_BYTES])
    if "=?" in text:
        text = _WORDS.sub(_without_encoding, _BETWEEN_WORDS.sub("?==?", text))
    text = UNPRINTABLE.sub("", " ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def header_date(value: bytes) -> datetime | None:
    """The instant a ``Date`` header means, in UTC, or None for what is no date since 1970."""
    try:
        date = parsedate_to_datetime(value[:100].decode("latin-1"))
        if date.tzinfo is None:
            date = date.replace(tzinfo=timezone.utc)
        date = date.astimezone(timezone.utc)
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
    return date if date.year >= 1970 else None


def header_values(message: Message, name: str) -> list[bytes]:
    """The values of all headers of a name, as sent."""
    return [raw_bytes(str(value)) for each, value in message.raw_items() if each.lower() == name]


def raw_bytes(value: str) -> bytes:
    """The bytes that `email` has smuggled into a text as surrogates, and UTF-8 for the rest."""
    return _NOT_ESCAPED_BYTES.sub("?", value).encode("utf-8", "surrogateescape")


def addresses(values: list[bytes]) -> list[bytes]:
    """The addresses of headers, split where neither quotes nor angle brackets are open."""
    found = _ADDRESS.findall(b", ".join(values)[:_ADDRESS_BYTES])
    return [each for each in found if each.strip()]


def decoded(data: bytes, charset: str = "") -> str:
    """Bytes as text, in the charset that was declared unless they plainly are in another."""
    declared = _codec(charset)
    for codec in ("utf-8", declared) if declared in _LATIN else (declared, "utf-8"):
        try:
            if codec not in _LATIN:
                return data.decode(codec or "utf-8")
        except (UnicodeError, LookupError):
            continue
    is_latin = declared in _LATIN or (declared in ("", "utf-8") and _is_latin(data))
    return data.decode("cp1252" if is_latin else declared or "utf-8", "replace")


def _without_encoding(words: re.Match[str]) -> str:
    """Adjacent encoded words as text; a character may be spread over two of one charset."""
    pieces: list[tuple[str, bytes]] = []
    for charset, encoding, data in _WORD.findall(words[0]):
        raw = _unencoded(encoding, data.encode("ascii", "ignore"))
        name = charset.partition("*")[0].lower()
        if pieces and pieces[-1][0] == name:
            raw = pieces.pop()[1] + raw
        pieces.append((name, raw))
    return "".join(decoded(raw, charset) for charset, raw in pieces)


def _unencoded(encoding: str, data: bytes) -> bytes:
    if encoding in "qQ":
        return quopri.decodestring(data, header=True)
    try:
        return base64.b64decode(data + b"===")
    except ValueError:
        return data


def _codec(charset: str) -> str:
    """What Python calls a charset, or an empty string for what is none."""
    try:
        found = codecs.lookup(charset).name.replace("_", "-")
        b"".decode(found)
    except (LookupError, ValueError):
        return ""
    return "" if found in _NO_CHARSETS else found


def _is_latin(data: bytes) -> bool:
    """Whether bytes that are not UTF-8 have less of it than of other characters above 127."""
    text = data.decode("utf-8", "replace")
    above = len(text) - len(text.encode("ascii", "ignore"))
    return text.count("\ufffd") * 2 > above
