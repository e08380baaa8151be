"""What a request asks for, read from its query string or its body."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from .budgeting import LARGEST_BUDGET
from .errors import NO_TOKEN, BadParameter, TextTooLong
from .models import MODES, Mode, RankKey, RecallRequest

if TYPE_CHECKING:
    from datasette.utils.asgi import Request

MAX_TEXT_BYTES = 1_048_576
"""The longest text, in bytes of UTF-8, that one request may bring."""

DEFAULT_SIZE = 20

# A byte of text takes up to six of a body: %XX in a form, \uXXXX in JSON.
_MAX_BODY_BYTES = 6 * MAX_TEXT_BYTES + 65_536

# The last part is a whole number, or behind a tilde the UTF-8 of a text.
_TOKEN = re.compile(
    r"(\d{1,6})\.(-?\d{1,20})\.(\d{1,4})\.(?:(-?\d{1,20})|~((?:[0-9a-f]{2})*))", re.ASCII
).fullmatch

_escapes = re.compile(rb"(?:%[0-9A-Fa-f]{2})+").sub

_TRUE = {"on", "true", "1"}


@dataclass(frozen=True)
class Parameters:
    """The parameters of the page and of the JSON API, checked.

    ``size`` is 1 or more, ``types`` are in the order given, ``shape`` is ``objects`` or
    ``array``; with ``newlines`` an array is sent one object a line. ``budget`` is in tokens, from
    1 to `LARGEST_BUDGET`. ``mode`` says which layers answer.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    project: str | None = None
    types: tuple[str, ...] = ()
    size: int = DEFAULT_SIZE
    next: str | None = None
    shape: str = "objects"
    newlines: bool = False
    budget: int | None = None
    mode: Mode = "auto"

    @property
    def asks(self) -> bool:
        """Whether there is anything to look for."""
        return bool(self.text.strip() or self.names)

    def request(self, kinds: Iterable[str]) -> RecallRequest:
        """The request for the pipeline of a database with these ``kinds`` of items.

        Raises `BadParameter` for another kind, and for a token that is none.
        """
        known = list(kinds)
        for unknown in [name for name in self.types if name not in known]:
            raise BadParameter(f"type is {unknown!r}, not one of {', '.join(known)}")
        return RecallRequest(
            text=self.text,
            names=self.names,
            project=self.project,
            types=frozenset(self.types),
            limit=self.size,
            after=None if self.next is None else decode_token(self.next),
            budget=self.budget,
            near_misses=self.shape != "array",  # which has the rows alone
            mode=self.mode,
        )

    def query_string(self) -> str:
        """These parameters for a link; what has its default is left out."""
        pairs: list[tuple[str, object]] = [("q", self.text)] if self.text else []
        pairs += [("concept", name) for name in self.names]
        pairs += [("project", self.project)] if self.project is not None else []
        pairs += [("type", source_type) for source_type in self.types]
        pairs += [("mode", self.mode)] if self.mode != "auto" else []
        # With a budget the default is another.
        given = self.size != DEFAULT_SIZE or self.budget is not None
        pairs += [("budget", self.budget)] if self.budget is not None else []
        pairs += [("_size", self.size)] if given else []
        pairs += [("_next", self.next)] if self.next else []
        pairs += [("_shape", self.shape)] if self.shape != "objects" else []
        pairs += [("_nl", "on")] if self.newlines else []
        return urlencode(pairs)


def encode_token(key: RankKey) -> str:
    """The place to go on from, as an opaque value of ``_next``."""
    id_ = f"~{key.id.encode('utf-8').hex()}" if isinstance(key.id, str) else key.id
    return f"{-key.fewness}.{-key.age}.{key.source}.{id_}"


def decode_token(token: str) -> RankKey:
    """The inverse of `encode_token`. Raises `BadParameter`."""
    match = _TOKEN(token)
    if match is None:
        raise BadParameter(NO_TOKEN)
    *place, number, text = match.groups()
    count, age, source = map(int, place)
    id_ = bytes.fromhex(text).decode("utf-8", "replace") if number is None else int(number)
    return RankKey(-count, -age, source, id_)


def encode_places(places: Mapping[str, RankKey]) -> str:
    """The places of several databases from which to go on, as an opaque value of ``_next``."""
    names = (name.encode("utf-8", "replace").hex() for name in places)
    tokens = map(encode_token, places.values())
    return ".".join(f"{name}.{token}" for name, token in zip(names, tokens, strict=True))


def decode_places(token: str) -> dict[str, RankKey]:
    """The inverse of `encode_places`. Raises `BadParameter`."""
    parts = token.split(".")
    if len(parts) % 5:
        raise BadParameter(NO_TOKEN)
    names = [_database_name(name) for name in parts[::5]]
    tokens = [".".join(parts[n + 1 : n + 5]) for n in range(0, len(parts), 5)]
    return dict(zip(names, map(decode_token, tokens), strict=True))


def _database_name(encoded: str) -> str:
    if not re.fullmatch("(?:[0-9a-f]{2})*", encoded):
        raise BadParameter(NO_TOKEN)
    return bytes.fromhex(encoded).decode("utf-8", "replace")


async def read_parameters(request: Request, max_size: int, budget: str | None = None) -> Parameters:
    """The parameters of a GET or POST request; those of a body count beside those of the URL.

    A body is a form or, with ``Content-Type: application/json``, one object whose values are
    texts, numbers or lists of them. ``max_size`` is the largest ``_size``, and that of a request
    with a budget unless it says another. ``budget`` is the value of that parameter when it is not
    given; with None there is no such parameter.
    Raises `BadParameter` and `TextTooLong`.
    """
    given: dict[str, list[str]] = {}
    pairs = _form_pairs(request.scope["query_string"] or b"")
    if request.method == "POST":
        pairs += _body_pairs(await _read_body(request), request.headers.get("content-type", ""))
    for name, value in pairs:
        given.setdefault(name, []).append(value)
    if budget is None:
        given.pop("budget", None)
    elif not _last(given, "budget"):
        given["budget"] = [budget]
    return _checked(given, max_size)


async def _read_body(request: Request) -> bytes:
    chunks, received, more = [], 0, True
    while more:
        message = await request.receive()
        if message["type"] != "http.request":
            break
        chunks.append(message.get("body", b""))
        received += len(chunks[-1])
        if received > _MAX_BODY_BYTES:
            raise TextTooLong(f"The text is longer than {MAX_TEXT_BYTES:,} bytes")
        more = message.get("more_body", False)
    return b"".join(chunks)


def _body_pairs(body: bytes, content_type: str) -> list[tuple[str, str]]:
    kind = content_type.split(";")[0].strip().lower()
    if kind == "application/json":
        return _json_pairs(body)
    if kind in ("", "application/x-www-form-urlencoded") or not body:
        return _form_pairs(body)
    raise BadParameter(f"The body is {kind}, neither a URL-encoded form nor application/json")


def _form_pairs(encoded: bytes) -> list[tuple[str, str]]:
    split = (part.partition(b"=") for part in encoded.split(b"&") if part)
    return [(_unquoted(name), _unquoted(value)) for name, _, value in split]


def _unquoted(encoded: bytes) -> str:
    # By runs of escapes, since `urllib.parse` takes a second for a megabyte that is all escapes.
    return _escapes(_as_bytes, encoded.replace(b"+", b" ")).decode("utf-8", "replace")


def _as_bytes(escapes: re.Match[bytes]) -> bytes:
    return bytes.fromhex(escapes[0].replace(b"%", b"").decode())


def _json_pairs(body: bytes) -> list[tuple[str, str]]:
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadParameter("The body is not JSON") from error
    if not isinstance(given, dict):
        raise BadParameter("The body is not a JSON object")
    pairs = []
    for name, value in given.items():
        for item in value if isinstance(value, list) else [value]:
            if item is None:
                continue
            if isinstance(item, bool) or not isinstance(item, str | int):
                raise BadParameter(
                    f"{_text(name)} is neither a text nor a whole number nor a list of them"
                )
            pairs.append((name, _text(str(item))))
    return pairs


def checked_text(text: str) -> str:
    """The text as it can be looked for. Raises `TextTooLong`."""
    if len(text.encode("utf-8", "replace")) > MAX_TEXT_BYTES:
        raise TextTooLong(f"The text is longer than {MAX_TEXT_BYTES:,} bytes")
    return _text(text)


def _text(value: str) -> str:
    """Without lone surrogates, which JSON can hold but which could be neither shown nor bound."""
    return value.encode("utf-8", "replace").decode("utf-8")


def _checked(given: Mapping[str, list[str]], max_size: int) -> Parameters:
    text = checked_text("\n".join(value for value in given.get("q", []) if value))
    budget = _budget(_last(given, "budget"))
    return Parameters(
        text=text,
        names=_each_once(given.get("concept", [])),
        project=_last(given, "project") or None,
        types=_each_once(given.get("type", [])),
        size=page_size(
            _last(given, "_size"), max_size, DEFAULT_SIZE if budget is None else max_size
        ),
        next=_last(given, "_next") or None,
        shape=_shape(_last(given, "_shape")),
        newlines=_last(given, "_nl").lower() in _TRUE,
        budget=budget,
        mode=checked_mode(_last(given, "mode")),
    )


def checked_mode(value: str) -> Mode:
    """The value of ``mode``, ``auto`` when there is none. Raises `BadParameter`."""
    for mode in MODES:
        if value in (mode, ""):
            return mode
    raise BadParameter(f"mode is {value!r}, not one of {', '.join(MODES)}")


def _last(given: Mapping[str, list[str]], name: str) -> str:
    return given.get(name, [""])[-1]


def _each_once(values: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(value for value in values if value.strip()))


def page_size(value: str, max_size: int, default: int) -> int:
    """The value of ``_size``, the default when there is none. Raises `BadParameter`."""
    if not value:
        return min(default, max_size)
    if value == "max":
        return max_size
    return _whole_number(value, max_size, "_size is not max or")


def _budget(value: str) -> int | None:
    return _whole_number(value, LARGEST_BUDGET, "budget is not") if value else None


def _whole_number(value: str, largest: int, is_not: str) -> int:
    if not re.fullmatch(r"[0-9]{1,9}", value) or not 0 < int(value) <= largest:
        raise BadParameter(f"{is_not} a whole number from 1 to {largest}")
    return int(value)


def _shape(value: str) -> str:
    if value not in ("", "objects", "array"):
        raise BadParameter("_shape is not one of objects, array")
    return value or "objects"
