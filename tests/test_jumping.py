"""The menu to jump of Datasette 1.0: Recall and concepts among what may be jumped to."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote_plus, unquote_plus

import pytest
from datasette.app import Datasette
from datasette.utils import tilde_decode

import foreign
import hostile
import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes
from datasette_concept_recall import jumping
from served import PRIVATE

pytestmark = [
    pytest.mark.skipif(not IS_1_0, reason="0.65 has no menu to jump"),
    pytest.mark.asyncio,
]

RECALL = {
    "name": "Recall",
    "type": "menu",
    "description": "Find what is tagged with the concepts that a text names",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        for name in ("tea", "green tea", "Tea", "steam", "toast", "C++", "a/b", "100%"):
            knowledge.add_concept(conn, name)
        conn.commit()
    return file


async def jump(datasette: Datasette, typed: str, **more: Any) -> dict[str, Any]:
    response = await datasette.client.get(f"/-/jump.json?q={quote_plus(typed)}", **more)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


async def concepts(datasette: Datasette, typed: str, **more: Any) -> dict[str, str]:
    """The addresses of the concepts that are offered, by name."""
    matches = (await jump(datasette, typed, **more))["matches"]
    return {m["name"]: m["url"] for m in matches if m["type"] == "concept"}


async def test_concepts_are_found_by_what_is_typed(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The exact name first, then those that begin so, then the shorter; case variants are one."""
    before = file_bytes(path)
    datasette = make_datasette(path)
    assert await concepts(datasette, "tea") == {
        "Tea": "/k/-/concepts/Tea",
        "steam": "/k/-/concepts/steam",
        "green tea": "/k/-/concepts/green+tea",
    }
    assert list(await concepts(datasette, "TEA")) == ["Tea", "steam", "green tea"]
    assert list(await concepts(datasette, "gr te")) == ["green tea"]
    assert await concepts(datasette, "c++") == {"C++": "/k/-/concepts/C~2B~2B"}
    assert await concepts(datasette, "a/b") == {"a/b": "/k/-/concepts/a~2Fb"}
    assert await concepts(datasette, "nothing of the kind") == {}
    match = (await jump(datasette, "steam"))["matches"][0]
    assert match["description"] == "Concept in k"
    assert file_bytes(path) == before


async def test_recall_is_an_item_and_concepts_wait_until_something_is_typed(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Without a word there is Recall, of the only database or of all, and no concept."""
    datasette = make_datasette(path)
    matches = (await jump(datasette, " "))["matches"]
    assert {**RECALL, "url": "/k/-/recall"} in matches
    assert [m for m in matches if m["type"] == "concept"] == []
    assert {**RECALL, "url": "/k/-/recall"} in (await jump(datasette, "recall"))["matches"]

    other = foreign.json_array(tmp_path / "other.db")
    both = make_datasette(path, other)
    assert {**RECALL, "url": "/-/recall"} in (await jump(both, ""))["matches"]
    found = (await jump(both, "a"))["matches"]
    told = {(m["name"], m["description"]) for m in found if m["type"] == "concept"}
    assert ("toast", "Concept in k") in told
    assert ("jam", "Concept in other") in told


async def test_there_are_no_more_than_a_hundred_items(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Of very many concepts the first hundred are offered, and it is said that there are more."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        for number in range(300):
            knowledge.add_concept(conn, f"ingredient {number}")
        conn.commit()
    answer = await jump(make_datasette(file), "ingredient")
    assert len(answer["matches"]) == 100
    assert answer["truncated"]


async def test_any_name_is_offered_and_leads_to_its_concept(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Whatever characters a name holds, its address is that name, and the answer stays readable."""
    file = hostile.build(tmp_path / "hostile.db")
    datasette = make_datasette(file)
    missed = []
    for name in hostile.NAMES:
        typed = name.split("\0")[0].strip()[:100]
        prefix = "/hostile/-/concepts/"
        urls = (await concepts(datasette, typed)).values()
        assert {url[: len(prefix)] for url in urls} <= {prefix}
        if name not in {tilde_decode(url.removeprefix(prefix)) for url in urls}:
            missed.append(name)
    assert set(missed) <= {name for name in hostile.NAMES if len(name) > 3_000}


async def test_addresses_have_the_base_url(path: Path, make_datasette: MakeDatasette) -> None:
    """Behind a prefix every item begins with it, once."""
    datasette = make_datasette(path, settings={"base_url": "/pre/fix/"})
    assert await concepts(datasette, "toast") == {"toast": "/pre/fix/k/-/concepts/toast"}
    assert {**RECALL, "url": "/pre/fix/k/-/recall"} in (await jump(datasette, "recall"))["matches"]


@pytest.mark.parametrize(
    "config",
    [
        {"databases": {"k": {"tables": {"concepts": PRIVATE}}}},
        {"databases": {"k": PRIVATE}},
        PRIVATE,
    ],
)
async def test_private_concepts_are_offered_only_to_those_who_may_see_them(
    path: Path, make_datasette: MakeDatasette, config: dict[str, Any]
) -> None:
    """Anonymous is offered neither concepts nor Recall, root both."""
    datasette = make_datasette(path, config=config)
    for typed in ("tea", "recall", ""):
        matches = (await jump(datasette, typed))["matches"]
        assert [m for m in matches if m["type"] == "concept" or m["name"] == "Recall"] == []
    cookies = actor_cookie(datasette, "root")
    assert "Tea" in await concepts(datasette, "tea", cookies=cookies)


async def test_an_array_that_may_not_be_read_offers_no_names(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Names that stand in a private table are not offered."""
    file = foreign.json_array(tmp_path / "x.db")
    assert "jam" in await concepts(make_datasette(file), "jam")
    config = {"databases": {"x": {"tables": {"meals": PRIVATE}}}}
    assert await concepts(make_datasette(file, config=config), "jam") == {}


async def test_a_database_that_fails_or_is_slow_costs_only_its_own_concepts(
    path: Path,
    tmp_path: Path,
    make_datasette: MakeDatasette,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The menu goes on with what the others have, and the log says what went wrong."""
    other = foreign.json_array(tmp_path / "other.db")
    names_with = jumping.names_with
    sql = "with recursive n(i) as (select 1 union all select i + 1 from n) select max(i) from n"

    def slow(conn: sqlite3.Connection, *more: Any) -> list[str]:
        if "meals" in str(more[0]):
            conn.execute(sql).fetchall()
        return names_with(conn, *more)

    def fails(conn: sqlite3.Connection, *more: Any) -> list[str]:
        if "meals" in str(more[0]):
            raise sqlite3.DatabaseError("malformed")
        return names_with(conn, *more)

    datasette = make_datasette(path, other, settings={"sql_time_limit_ms": 200})
    for broken, logged in ((slow, "TookTooLong"), (fails, "malformed")):
        monkeypatch.setattr(jumping, "names_with", broken)
        found = await concepts(datasette, "a")
        assert "toast" in found
        assert "jam" not in found
        assert logged in capsys.readouterr().err


async def test_long_and_blank_names_have_a_label_that_can_be_read(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A label is one line of at most 120 characters, whatever the name is."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        knowledge.add_concept(conn, "x" * 500)
        knowledge.add_concept(conn, "x\n y")
        conn.commit()
    found = await concepts(make_datasette(file), "x")
    assert {name: unquote_plus(url) for name, url in found.items()} == {
        "x" * 119 + "…": "/k/-/concepts/" + "x" * 500,
        "x y": "/k/-/concepts/x~0A y",
    }
