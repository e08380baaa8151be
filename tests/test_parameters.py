"""What a request asks for: query strings, forms and JSON bodies to checked parameters."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

import pytest
from datasette.utils.asgi import Request
from hypothesis import given, settings
from hypothesis import strategies as st

from datasette_concept_recall.errors import BadParameter, TextTooLong
from datasette_concept_recall.models import SOURCE_TYPES, RankKey
from datasette_concept_recall.parameters import (
    DEFAULT_SIZE,
    MAX_TEXT_BYTES,
    Parameters,
    decode_token,
    encode_token,
    read_parameters,
)

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"

texts = st.text(st.characters(exclude_categories=["Cs"]))


class Body:
    """The body of a request, received in chunks; ``asked`` counts how many were asked for."""

    def __init__(self, *chunks: bytes, breaks_off: bool = False) -> None:
        self._chunks = list(chunks)
        self._breaks_off = breaks_off
        self.asked = 0

    async def receive(self) -> dict[str, Any]:
        """The next message of the protocol."""
        self.asked += 1
        if not self._chunks:
            return {"type": "http.disconnect"}
        chunk = self._chunks.pop(0)
        more = bool(self._chunks) or self._breaks_off
        return {"type": "http.request", "body": chunk, "more_body": more}


async def get(query: str | bytes, max_size: int = 1000) -> Parameters:
    """The parameters of a GET request."""
    raw = query.encode() if isinstance(query, str) else query
    scope = {"type": "http", "method": "GET", "query_string": raw, "headers": []}
    return await read_parameters(Request(scope, Body().receive), max_size)


async def post(body: Body | bytes, content_type: str = FORM, query: bytes = b"") -> Parameters:
    """The parameters of a POST request."""
    headers = [(b"content-type", content_type.encode())] if content_type else []
    scope = {"type": "http", "method": "POST", "query_string": query, "headers": headers}
    received = body if isinstance(body, Body) else Body(body)
    return await read_parameters(Request(scope, received.receive), 1000)


@pytest.mark.asyncio
async def test_nothing_given_asks_for_nothing() -> None:
    """Without parameters there is nothing to look for, and everything has its default."""
    parameters = await get("")
    assert parameters == Parameters(size=DEFAULT_SIZE, shape="objects")
    assert not parameters.asks


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("q=a+b", Parameters(text="a b")),
        ("q=a&q=&q=b", Parameters(text="a\nb")),
        ("q=%E6%8A%80%E6%9C%AF", Parameters(text="技术")),
        ("q=a%3Db%26c=d", Parameters(text="a=b&c=d")),
        ("q=100%25&&", Parameters(text="100%")),
        ("q=a;concept=b", Parameters(text="a;concept=b")),
        ("q", Parameters()),
        ("concept=b&concept=a&concept=b&concept=+&concept=", Parameters(names=("b", "a"))),
        ("project=x&project=y", Parameters(project="y")),
        ("project=", Parameters()),
        ("type=record&type=observation&type=record", Parameters(types=("record", "observation"))),
        ("type=", Parameters()),
        ("_shape=array&_nl=on", Parameters(shape="array", newlines=True)),
        ("_shape=objects&_nl=TRUE", Parameters(newlines=True)),
        ("_nl=off&_shape=", Parameters()),
        ("unheard=of&%71=x", Parameters(text="x")),
    ],
)
async def test_query_strings_are_read_as_browsers_write_them(
    query: str, expected: Parameters
) -> None:
    """Repeatable parameters add up, of the others the last one counts, unknown ones do not."""
    assert await get(query) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "text"),
    [
        (b"q=%zz+%4", "%zz %4"),
        (b"q=%", "%"),
        (b"q=a%ff%fe", "a\ufffd\ufffd"),
        (b"q=%ED%A0%80x", "\ufffd\ufffd\ufffdx"),
        ("q=é技".encode(), "é技"),
        (b"q=caf\xe9", "caf\ufffd"),
        (b"q=a%00b", "a\x00b"),
    ],
)
async def test_bad_encodings_become_replacement_characters(query: bytes, text: str) -> None:
    """What is no percent escape stays as it is, and what is no UTF-8 is replaced."""
    assert (await get(query)).text == text


@pytest.mark.asyncio
@pytest.mark.parametrize(("size", "expected"), [("1", 1), ("1000", 1000), ("max", 1000), ("", 20)])
async def test_size_reaches_up_to_the_maximum(size: str, expected: int) -> None:
    """A size is a number from 1 to the largest allowed one, or the word max."""
    assert (await get(f"_size={size}")).size == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "size", ["0", "-1", "1001", "abc", "1.5", "1e2", " 1", "²", "٣", "MAX", "9" * 5000]
)
async def test_any_other_size_is_refused(size: str) -> None:
    """What is over the maximum is an error and not a smaller answer, as in Datasette."""
    with pytest.raises(BadParameter, match="_size is not max or a whole number from 1 to 1000"):
        await get(f"_size={quote(size)}")


@pytest.mark.asyncio
async def test_the_default_size_never_exceeds_the_maximum() -> None:
    """An instance that returns few rows at most gives no more of them by default."""
    assert (await get("", max_size=5)).size == 5


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("type=gist", "type is 'gist', not one of observation, record, document_gist"),
        ("type=Record", "type is 'Record'"),
        ("_shape=arrays", "_shape is not one of objects, array"),
        ("_shape=Array", "_shape is not one of objects, array"),
    ],
)
async def test_unknown_values_are_refused_by_name(query: str, message: str) -> None:
    """A value outside a closed list is an error that names the parameter."""
    with pytest.raises(BadParameter, match=message):
        (await get(query)).request(SOURCE_TYPES)


rank_keys = st.builds(
    RankKey,
    st.integers(-9999, -1),
    st.integers(-(10**18), 1),
    st.integers(0, 3),
    st.integers(-(2**63), 2**63 - 1),
)


@given(rank_keys)
def test_a_token_is_the_place_it_was_made_from(key: RankKey) -> None:
    """Every place in the order can be written as a token and read back."""
    assert decode_token(encode_token(key)) == key


@pytest.mark.parametrize(
    "token",
    ["x", "1.2.3", "1.2.3.4.5", "-1.2.3.4", "1.2.3.4\n", "1.2.3.٤", "1.2.3." + "4" * 30, "1..2.3"],
)
def test_other_values_are_no_token(token: str) -> None:
    """What no page gave is refused, however close it looks."""
    with pytest.raises(BadParameter, match="_next is not a token that an earlier page gave"):
        decode_token(token)


@pytest.mark.asyncio
async def test_a_bad_token_is_refused_when_the_request_is_made() -> None:
    """Parameters with a bad token cannot become a request to the pipeline."""
    parameters = await get("q=x&_next=nonsense")
    with pytest.raises(BadParameter, match="_next"):
        parameters.request(SOURCE_TYPES)


all_parameters = st.builds(
    Parameters,
    text=texts,
    names=st.lists(texts.filter(str.strip), unique=True, max_size=4).map(tuple),
    project=st.none() | texts.filter(bool),
    types=st.lists(st.sampled_from(SOURCE_TYPES), unique=True).map(tuple),
    size=st.integers(1, 1000),
    next=st.none() | st.just("1.2.3.4"),
    shape=st.sampled_from(["objects", "array"]),
    newlines=st.booleans(),
)


@pytest.mark.asyncio
@given(all_parameters)
@settings(deadline=None)
async def test_a_link_brings_back_the_parameters_it_was_made_of(parameters: Parameters) -> None:
    """Reading the query string of any parameters gives the same parameters."""
    assert await get(parameters.query_string()) == parameters


@pytest.mark.asyncio
@given(texts, texts)
@settings(deadline=None)
async def test_a_form_is_read_as_the_standard_library_reads_it(text: str, name: str) -> None:
    """Bodies of forms mean what they mean elsewhere, with any characters in them."""
    encoded = urlencode({"q": text, "concept": name})
    assert parse_qsl(encoded, keep_blank_values=True) == [("q", text), ("concept", name)]
    parameters = await post(encoded.encode())
    assert parameters.text == text
    assert parameters.names == ((name,) if name.strip() else ())


@pytest.mark.asyncio
@pytest.mark.parametrize("content_type", [FORM, f"{FORM}; charset=UTF-8", FORM.upper(), ""])
async def test_a_form_may_say_its_type_in_several_ways(content_type: str) -> None:
    """Letter case and a charset do not matter, and a body without a type is a form."""
    assert (await post("q=技".encode(), content_type)).text == "技"


@pytest.mark.asyncio
@pytest.mark.parametrize("content_type", ["multipart/form-data; boundary=x", "text/plain", "x"])
async def test_other_kinds_of_body_are_refused(content_type: str) -> None:
    """A body that would be misread as nothing at all is an error that names its type."""
    with pytest.raises(BadParameter, match="neither a URL-encoded form nor application/json"):
        await post(b"q=RAG", content_type)
    assert (await post(b"", content_type, b"q=RAG")).text == "RAG"


@pytest.mark.asyncio
async def test_parameters_of_url_and_body_count_together() -> None:
    """What the address says is asked for beside what the body says, and the body comes last."""
    parameters = await post(b"q=b&concept=y&_size=3", query=b"q=a&concept=x&_size=2&project=p")
    assert parameters == Parameters(text="a\nb", names=("x", "y"), project="p", size=3)


@pytest.mark.asyncio
async def test_a_body_may_arrive_in_pieces() -> None:
    """Chunks are put together, wherever the characters of a text are cut."""
    encoded = b"q=" + "技术 RAG".encode()
    assert (await post(Body(*[encoded[i : i + 1] for i in range(len(encoded))]))).text == "技术 RAG"


@pytest.mark.asyncio
async def test_a_body_that_breaks_off_is_read_as_far_as_it_came() -> None:
    """A client that goes away is not waited for."""
    assert (await post(Body(b"q=abc", breaks_off=True))).text == "abc"


@pytest.mark.asyncio
@pytest.mark.parametrize("character", ["x", "é", "技", "🦉", "\n", "&"])
async def test_a_text_may_have_exactly_one_mebibyte(character: str) -> None:
    """Texts are measured in bytes of UTF-8, however long the form or the JSON around them is."""
    longest = character * (MAX_TEXT_BYTES // len(character.encode()))
    assert (await post(urlencode({"q": longest}).encode())).text == longest
    assert (await post(json.dumps({"q": longest}).encode(), JSON)).text == longest
    with pytest.raises(TextTooLong, match="longer than 1,048,576 bytes"):
        await post(urlencode({"q": longest + character}).encode())


@pytest.mark.asyncio
async def test_an_endless_body_is_not_read_to_its_end() -> None:
    """Reading stops once the body is longer than any text allowed can make it."""
    body = Body(*[b"%20" * 100_000] * 1000)
    with pytest.raises(TextTooLong):
        await post(body)
    assert body.asked < 30


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("given_json", "expected"),
    [
        ({"q": "RAG 技术"}, Parameters(text="RAG 技术")),
        ({"q": ["a", "b"], "concept": ["x", "x", "y"]}, Parameters(text="a\nb", names=("x", "y"))),
        ({"concept": "x", "type": ["record"]}, Parameters(names=("x",), types=("record",))),
        ({"q": "a", "_size": 7, "project": None}, Parameters(text="a", size=7)),
        ({"q": None, "concept": [None, "x"], "_next": None}, Parameters(names=("x",))),
        ({"concept": [2024]}, Parameters(names=("2024",))),
        ({"_shape": "array", "_nl": 1}, Parameters(shape="array", newlines=True)),
        ({}, Parameters()),
    ],
)
async def test_json_bodies_hold_texts_numbers_and_lists(
    given_json: dict[str, Any], expected: Parameters
) -> None:
    """An object gives the same parameters as a form; null is as if nothing was given."""
    assert await post(json.dumps(given_json).encode(), JSON) == expected


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body is not JSON"),
        (b"{", "The body is not JSON"),
        (b"q=RAG", "The body is not JSON"),
        (b'{"q": "\xff"}', "The body is not JSON"),
        (b'{"q": ' + b"[" * 100_000, "The body is not JSON"),
        (b'{"_size": ' + b"9" * 5000 + b"}", "not JSON|_size is not max"),
        (b"[]", "The body is not a JSON object"),
        (b'"RAG"', "The body is not a JSON object"),
        (b"null", "The body is not a JSON object"),
        (b'{"q": {"a": 1}}', "q is neither a text nor a whole number nor a list of them"),
        (b'{"q": [["a"]]}', "q is neither a text"),
        (b'{"q": true}', "q is neither a text"),
        (b'{"_size": 1.5}', "_size is neither a text"),
        (b'{"_size": NaN}', "_size is neither a text"),
        (b'{"\\ud800": false}', r"\? is neither a text"),
    ],
)
async def test_other_json_is_refused(body: bytes, message: str) -> None:
    """A body that cannot be meant is an error that says what is wrong with it."""
    with pytest.raises(BadParameter, match=message):
        await post(body, JSON)


@pytest.mark.asyncio
async def test_lone_surrogates_of_json_are_replaced() -> None:
    """Half a character, which JSON can hold, is no text: it becomes a question mark."""
    parameters = await post(rb'{"q": "a \ud800 \ud83e\udd89", "concept": ["\udfff"]}', JSON)
    assert parameters.text == "a ? 🦉"
    assert parameters.names == ("?",)
