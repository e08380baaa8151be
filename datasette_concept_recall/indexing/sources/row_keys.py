"""What tells the rows of a database apart, as bytes and as an address.

Values come as they are stored, so texts may be no UTF-8: their other bytes are surrogates.
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

Key = tuple[Any, ...]
"""The values of a primary key, or a rowid."""

_PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-")


class Rowid(NamedTuple):
    """In place of a primary key that is NULL in part, which may be that of several rows."""

    number: int


def encoded_key(table: str, key: Key) -> bytes:
    """The table and the values of a key as JSON. It is stored, so its form is pinned by tests."""
    values = [table, *map(_as_json, key)]
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def decoded_key(key: bytes) -> list[Any]:
    """The table and the values of a key, as `encoded_key` made it."""
    return [_from_json(value) if isinstance(value, dict) else value for value in json.loads(key)]


def in_address(text: str) -> str:
    """As Datasette writes a name or a value into the address of a page."""
    return "".join(
        chr(byte) if byte in _PLAIN else "+" if byte == 0x20 else f"~{byte:02X}"
        for byte in shown(text).encode()
    )


def lossless(value: bytes) -> str:
    """A stored text, its bytes that are no UTF-8 as surrogates."""
    return value.decode("utf-8", "surrogateescape")


def as_bytes(text: str) -> bytes:
    """A text as it is stored."""
    return text.encode("utf-8", "surrogateescape")


def shown(text: str) -> str:
    """A text for people, its bytes that are no UTF-8 as question marks."""
    return as_bytes(text).decode("utf-8", "replace")


def _as_json(value: Any) -> Any:
    """A value of a key as JSON: bytes, and texts that are not UTF-8, in hex."""
    if isinstance(value, Rowid):
        return {"$rowid": value.number}
    if isinstance(value, bytes):
        return {"$hex": value.hex()}
    if isinstance(value, str) and shown(value) != value:
        return {"$text": as_bytes(value).hex()}
    return value


def _from_json(value: dict[str, Any]) -> object:
    if "$rowid" in value:
        return Rowid(value["$rowid"])
    if "$hex" in value:
        return bytes.fromhex(value["$hex"])
    return lossless(bytes.fromhex(value["$text"]))
