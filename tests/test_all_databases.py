"""Recall in all databases at once: one rank over all, and no trace of what may not be seen."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlencode, urlsplit

import pytest
from datasette.app import Datasette
from datasette.database import Database

import foreign
import hostile
import knowledge
from conftest import MakeDatasette, actor_cookie, file_bytes
from datasette_concept_recall import asking
from datasette_concept_recall.asking import NOTHING_TO_ASK
from datasette_concept_recall.models import RecallRequest, RecallResult
from pages import content, parse
from served import FORM, JSON, PRIVATE, assert_error

recall = asking.recall


def notes(path: Path, *bodies: str, project: str | None = None, **spelled: str) -> Path:
    """A database of notes, each tagged with those of the concepts rag and c++ that it names.

    They were written a day after each other; ``spelled`` gives concepts another spelling.
    """
    with closing(knowledge.create(path)) as conn:
        for day, body in enumerate(bodies, start=1):
            concepts = [
                spelled.get(name, name) for name in ("rag", "cpp") if name in body.casefold()
            ]
            created = f"2026-01-{day:02} 12:00:00"
            more = {"project": project} if project else {}
            knowledge.add_observation(conn, body, concepts=concepts, created_at=created, **more)
        conn.commit()
    return path


@pytest.fixture
def two(tmp_path: Path) -> list[Path]:
    """Two databases that spell their concepts differently, and one that has none."""
    knowledge.create(tmp_path / "plain.db", "nothing").close()
    return [
        notes(tmp_path / "beta.db", "b rag 1", "b rag 2", "b rag cpp 3", project="P", rag="RAG"),
        tmp_path / "plain.db",
        notes(tmp_path / "alpha.db", "a rag 1", "a rag cpp 2", "a rag 3", rag="Rag"),
    ]


async def ask(datasette: Datasette, query: str = "q=rag", **more: Any) -> Any:
    """The answer to a GET request, which must be good."""
    response = await datasette.client.get(f"/-/recall.json?{query}", **more)
    assert response.status_code == 200, response.text
    return response.json()


def bodies(answer: Any) -> list[str]:
    """The texts of the rows, in order."""
    return [row["body"] for row in answer["rows"]]


# --- one answer ----------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_rows_of_all_are_in_one_order_of_rank(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Most concepts first, then the latest, then in the order in which databases are served."""
    answer = await ask(make_datasette(*two), "q=rag+and+cpp")
    assert bodies(answer) == [
        "b rag cpp 3",
        "a rag cpp 2",
        "a rag 3",
        "b rag 2",
        "b rag 1",
        "a rag 1",
    ]
    assert [row["database"] for row in answer["rows"]] == [
        *("beta", "alpha", "alpha", "beta", "beta", "alpha")
    ]
    assert [row["rank"] for row in answer["rows"]] == [1, 2, 3, 4, 5, 6]
    assert (answer["total"], answer["truncated"], answer["next"]) == (6, False, None)
    assert (answer["databases"], answer["warnings"]) == (["beta", "alpha"], [])
    assert "database" not in answer


@pytest.mark.asyncio
async def test_concepts_are_compared_by_name(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """RAG of one database and Rag of another are one concept with the items of both."""
    answer = await ask(make_datasette(*two), "q=rag,+RAG+and+more&concept=CPP&concept=nobody")
    assert answer["concepts"] == [
        {"name": "RAG", "mentions": 2, "total": 6},
        {"name": "cpp", "mentions": 0, "total": 2},
    ]
    assert answer["warnings"] == ["There is no concept named nobody."]
    assert [row["concepts"] for row in answer["rows"][:3]] == [
        ["RAG", "cpp"],
        ["Rag", "cpp"],
        ["Rag"],
    ]


@pytest.mark.asyncio
@pytest.mark.parametrize("size", [1, 2, 4])
async def test_paging_goes_through_all_once(
    two: list[Path], make_datasette: MakeDatasette, size: int
) -> None:
    """Following next_url shows each row once, with its rank, also when rows are added meanwhile."""
    datasette = make_datasette(*two)
    whole = await ask(datasette, "q=rag+cpp")
    answer = await ask(datasette, f"q=rag+cpp&_size={size}")
    found = bodies(answer)
    with closing(sqlite3.connect(two[2])) as conn:
        knowledge.add_observation(conn, "new rag", concepts=["Rag"], created_at="2026-01-09")
        conn.commit()
    while answer["next_url"]:
        url = urlsplit(answer["next_url"])
        assert url.path == "/-/recall.json"
        answer = await ask(datasette, url.query)
        found += bodies(answer)
    assert [body for body in found if body != "new rag"] == bodies(whole)


@pytest.mark.asyncio
async def test_kinds_and_projects_narrow_by_name(
    two: list[Path], tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A kind of one database and a project of another narrow all of them; counts stay whole."""
    tagged = foreign.django_many_to_many(tmp_path / "blog.db")
    datasette = make_datasette(*two, tagged)
    query = "q=rag+and+jam"
    assert len((await ask(datasette, query))["rows"]) == 8
    posts = await ask(datasette, f"{query}&type=blog_post")
    assert {row["database"] for row in posts["rows"]} == {"blog"}
    assert [c["total"] for c in posts["concepts"]] == [6, 2]
    of_project = await ask(datasette, f"{query}&project=P")
    assert bodies(of_project) == ["b rag cpp 3", "b rag 2", "b rag 1"]
    assert [c["total"] for c in of_project["concepts"]] == [6, 2]
    response = await datasette.client.get(f"/-/recall.json?{query}&type=shoe")
    assert_error(response, 400, "type is 'shoe', not one of observation,")
    response = await datasette.client.get(f"/-/recall.json?{query}&project=Nope")
    assert_error(response, 400, "There is no project named 'Nope' in any of these databases")


@pytest.mark.asyncio
async def test_one_database_is_answered_as_if_it_were_asked_alone(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """With a single knowledge database both addresses give the same rows, urls included."""
    datasette = make_datasette(two[0], two[1])
    everywhere = await ask(datasette, "q=rag+cpp&_size=2")
    alone = (await datasette.client.get("/beta/-/recall.json?q=rag+cpp&_size=2")).json()
    assert [{**row, "database": "beta"} for row in alone["rows"]] == everywhere["rows"]
    for key in ("concepts", "total", "projects", "truncated", "warnings"):
        assert everywhere[key] == alone[key]


@pytest.mark.asyncio
async def test_the_api_takes_what_that_of_one_database_takes(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """POST with JSON or a form, arrays, line by line, and errors in the same shape."""
    datasette = make_datasette(*two)
    rows = (await ask(datasette))["rows"]
    posted = json.dumps({"q": "rag", "_shape": "array"})
    response = await datasette.client.post("/-/recall.json", content=posted, headers=JSON)
    assert response.json() == rows
    form = urlencode({"q": "rag", "_shape": "array", "_nl": "on"})
    response = await datasette.client.post("/-/recall.json", content=form, headers=FORM)
    assert [json.loads(line) for line in response.text.splitlines()] == rows
    for bad, message in [("_size=0", "_size"), ("_next=1.2.3.4", "_next"), ("_shape=x", "_shape")]:
        assert_error(await datasette.client.get(f"/-/recall.json?q=rag&{bad}"), 400, message)
    assert_error(await datasette.client.delete("/-/recall.json"), 405, "DELETE is not allowed")


# --- the page ------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_the_page_says_of_each_item_where_it_is(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """The databases are named with links, each item bears the name of its own, all links work."""
    datasette = make_datasette(*two)
    response = await datasette.client.get("/-/recall?q=rag+and+cpp&_size=3")
    page = content(response)
    assert page.one("h1").words == "Recall in all databases"
    assert [a["href"] for a in page.one("p", "recall-databases").all("a")] == [
        "/beta/-/recall",
        "/alpha/-/recall",
    ]
    assert [badge.words for badge in page.all("span", "recall-badge-database")] == [
        *("beta", "alpha", "alpha")
    ]
    assert [a["href"] for h3 in page.all("h3") for a in h3.all("a")] == [
        *("/beta/observations/3", "/alpha/observations/2", "/alpha/observations/3")
    ]
    for link in page.links():
        assert (await datasette.client.get(link)).status_code == 200, link
    for words in ("Observation", "P"):
        (link,) = [a["href"] for a in page.all("a") if a.words == words and "?" in a["href"]]
        assert link.startswith("/-/recall?")
    following = content(await datasette.client.get(page.one("a", rel="next")["href"]))
    assert following.one("ol", "recall-items")["start"] == "4"
    assert len(following.all("h3")) == 3


@pytest.mark.asyncio
async def test_a_long_text_is_posted_and_a_short_one_becomes_a_link(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """The form works as that of a single database, without a token on 0.65."""
    datasette = make_datasette(*two)
    short = await datasette.client.post("/-/recall", content="q=rag", headers=FORM)
    assert (short.status_code, short.headers["location"]) == (303, "/-/recall?q=rag")
    long = urlencode({"q": "rag " * 3000})
    assert (
        len(content(await datasette.client.post("/-/recall", content=long, headers=FORM)).all("h3"))
        == 6
    )


@pytest.mark.asyncio
async def test_nothing_found_says_so(two: list[Path], make_datasette: MakeDatasette) -> None:
    """A text without concepts, and no text at all, are pages that say what is meant."""
    datasette = make_datasette(*two)
    page = content(await datasette.client.get("/-/recall?q=nothing"))
    assert (
        "No concept of these databases stands in “nothing”" in page.one("p", "zero-results").words
    )
    page = content(await datasette.client.get("/-/recall"))
    assert page.one("p", "recall-intro").words.startswith("Type a sentence")


@pytest.mark.asyncio
async def test_every_address_is_below_the_base_url(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Page, menu and next_url keep the base URL."""
    datasette = make_datasette(*two, settings={"base_url": "/pre/fix/"})
    response = await datasette.client.get("/-/recall?q=rag&_size=2")
    for link in parse(response.text).links():
        assert link.startswith(("/pre/fix/", "https://")), link
    assert "/pre/fix/-/recall.json?" in (await ask(datasette, "q=rag&_size=2"))["next_url"]


@pytest.mark.asyncio
async def test_a_database_may_be_called_dash(
    two: list[Path], tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """The address of all databases and that of a database named - are told apart."""
    datasette = make_datasette(two[0])
    datasette.add_database(Database(datasette, path=str(two[2])), name="-")
    assert (await ask(datasette))["databases"] == ["beta", "-"]
    answer = (await datasette.client.get("/-/-/recall.json?q=rag")).json()
    assert (answer["database"], answer["total"]) == ("-", 3)
    page = content(await datasette.client.get("/-/recall?q=rag"))
    assert "/-/observations/3" in page.links()


@pytest.mark.asyncio
async def test_the_menu_has_one_link(two: list[Path], make_datasette: MakeDatasette) -> None:
    """To all databases when there are several, to the only one otherwise, to none without any."""
    for served, href in [(two, ["/-/recall"]), (two[:2], ["/beta/-/recall"]), (two[1:2], [])]:
        page = parse((await make_datasette(*served).client.get("/")).text)
        assert [a["href"] for a in page.all("a") if a.words.startswith("Recall")] == href


@pytest.mark.asyncio
async def test_asking_all_writes_nothing(two: list[Path], make_datasette: MakeDatasette) -> None:
    """Every byte of the files stays as it was."""
    before = [file_bytes(path) for path in two]
    datasette = make_datasette(*two)
    for query in ("q=rag", "q=rag&project=P", "concept=new", "_next=x"):
        for form in ("", ".json", ".md"):
            await datasette.client.get(f"/-/recall{form}?{query}")
    assert [file_bytes(path) for path in two] == before


# --- who may see what ----------------------------------------------------------------------------

PRIVATE_WAYS = [
    pytest.param({"databases": {"alpha": PRIVATE}}, id="database"),
    pytest.param({"databases": {"alpha": {"tables": {"concepts": PRIVATE}}}}, id="concepts"),
]
QUERIES = [
    *("", "q=rag+cpp", "q=rag&_size=2", "concept=Rag&concept=nobody", "q=rag&project=P"),
    *("q=rag&project=Nope", "q=rag&type=shoe", "q=rag&_next=616c706861.1.1.0.1", "q=rag&budget=99"),
]


async def everything(datasette: Datasette, **more: Any) -> list[tuple[int, str]]:
    """Status and text of every form of every answer, and of the home page's menu."""
    found = []
    for form in ("", ".json", ".md"):
        for query in QUERIES:
            response = await datasette.client.get(f"/-/recall{form}?{query}", **more)
            text = re.sub(r'<input type="hidden" name="csrftoken".*?>', "", response.text)
            found.append((response.status_code, text))
    menu = parse((await datasette.client.get("/", **more)).text).one("nav").words
    return [*found, (200, menu)]


@pytest.mark.asyncio
@pytest.mark.parametrize("config", PRIVATE_WAYS)
async def test_a_private_database_leaves_no_trace(
    two: list[Path], make_datasette: MakeDatasette, config: dict[str, Any]
) -> None:
    """To the letter it is as if it were not served, and who may see it sees it."""
    datasette = make_datasette(*two, config=config)
    without = await everything(make_datasette(*two[:2]))
    assert await everything(datasette) == without
    seen = await ask(datasette, cookies=actor_cookie(datasette, "root"))
    assert seen["databases"] == ["beta", "alpha"]


@pytest.mark.asyncio
async def test_a_private_table_leaves_no_trace(
    two: list[Path], tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Of a private table of items nothing is shown or counted among the rows of all."""
    config = {"databases": {"beta": {"tables": {"observations": PRIVATE}}}}
    datasette = make_datasette(*two, config=config)
    answer = await ask(datasette, "q=rag")
    assert {row["database"] for row in answer["rows"]} == {"alpha"}
    assert (answer["total"], answer["concepts"][0]["total"]) == (3, 3)
    root = await ask(datasette, "q=rag", cookies=actor_cookie(datasette, "root"))
    assert root["total"] == 6


@pytest.mark.asyncio
async def test_without_a_database_to_ask_the_page_says_so(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """Whether there is none or none that may be seen makes no difference."""
    hidden = {"databases": {"alpha": PRIVATE, "beta": PRIVATE}}
    for datasette in (make_datasette(two[1]), make_datasette(*two, config=hidden)):
        answer = await ask(datasette)
        assert (answer["rows"], answer["databases"]) == ([], [])
        assert answer["warnings"] == [NOTHING_TO_ASK]
        page = content(await datasette.client.get("/-/recall?q=rag"))
        assert page.one("p", "message-warning").words == NOTHING_TO_ASK


@pytest.mark.asyncio
async def test_a_private_instance_is_forbidden(
    two: list[Path], make_datasette: MakeDatasette
) -> None:
    """So that a plugin for signing in can act; who may see it is answered."""
    datasette = make_datasette(*two, config=PRIVATE)
    assert_error(await datasette.client.get("/-/recall.json?q=rag"), 403, "permission")
    assert (await datasette.client.get("/-/recall?q=rag")).status_code == 403
    assert (await ask(datasette, cookies=actor_cookie(datasette, "root")))["total"] == 6


# --- one that is slow or broken ------------------------------------------------------------------


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> dict[str, Exception]:
    """Errors by a word of the path: a recall from such a database ends with one."""
    errors: dict[str, Exception] = {}

    def fail(conn: sqlite3.Connection, request: RecallRequest, **more: Any) -> RecallResult:
        path = conn.execute("select file from pragma_database_list").fetchone()[0]
        for word, error in errors.items():
            if word in path:
                raise error
        return recall(conn, request, **more)

    monkeypatch.setattr(asking, "recall", fail)
    return errors


FAILURES = [
    (
        sqlite3.OperationalError("interrupted"),
        "The database alpha took too long and is left out.",
    ),
    (
        sqlite3.DatabaseError("disk image is malformed"),
        "The database alpha could not be read: disk image is malformed.",
    ),
]


@pytest.mark.asyncio
@pytest.mark.parametrize(("error", "warning"), FAILURES)
async def test_one_that_fails_is_left_out_with_a_warning(
    two: list[Path],
    make_datasette: MakeDatasette,
    failing: dict[str, Exception],
    error: Exception,
    warning: str,
) -> None:
    """The others are answered in full, on the page as well."""
    failing["alpha"] = error
    datasette = make_datasette(*two)
    for query in ("q=rag", "q=rag&budget=500"):
        answer = await ask(datasette, query)
        assert answer["warnings"] == [warning]
        assert answer["databases"] == ["beta"]
        assert bodies(answer) == ["b rag cpp 3", "b rag 2", "b rag 1"]
    page = content(await datasette.client.get("/-/recall?q=rag"))
    assert page.one("p", "message-warning").words == warning
    assert len(page.all("h3")) == 3


@pytest.mark.asyncio
async def test_paging_goes_on_when_one_fails_in_between(
    two: list[Path], make_datasette: MakeDatasette, failing: dict[str, Exception]
) -> None:
    """What was shown of a database before it failed is not shown again when it is back."""
    datasette = make_datasette(*two)
    first = await ask(datasette, "q=rag+cpp&_size=3")
    failing["alpha"] = sqlite3.OperationalError("interrupted")
    second = await ask(datasette, f"q=rag+cpp&_size=1&_next={first['next']}")
    failing.clear()
    third = await ask(datasette, f"q=rag+cpp&_next={second['next']}")
    assert bodies(second) == ["b rag 2"]
    assert bodies(third) == ["b rag 1", "a rag 1"]


@pytest.mark.asyncio
async def test_all_may_fail(
    two: list[Path], make_datasette: MakeDatasette, failing: dict[str, Exception]
) -> None:
    """Then there is nothing but warnings, and no name is called unknown."""
    failing.update({name: sqlite3.OperationalError("interrupted") for name in ("alpha", "beta")})
    datasette = make_datasette(*two)
    answer = await ask(datasette, "concept=rag&project=P")
    assert answer["rows"] == []
    assert len(answer["warnings"]) == 2
    page = content(await datasette.client.get("/-/recall?concept=rag"))
    assert len(page.all("p", "message-warning")) == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("private", [False, True])
async def test_a_file_that_is_spoiled_is_a_warning(
    two: list[Path], tmp_path: Path, make_datasette: MakeDatasette, private: bool
) -> None:
    """A file that can be read no longer is named to those who may see it; the rest goes on."""
    broken = notes(tmp_path / "broken.db", "c rag 1")
    config = {"databases": {"broken": PRIVATE}} if private else None
    datasette = make_datasette(*two, broken, config=config)
    assert (await ask(datasette))["total"] == (6 if private else 7)
    with broken.open("r+b") as file:  # never empty: an empty file is a database, without concepts
        file.write(b"no database " * 1000)
    answer = await ask(datasette)
    assert answer["total"] == 6
    warning = "The database broken could not be read: file is not a database."
    assert answer["warnings"] == ([] if private else [warning])
    response = await datasette.client.get("/-/recall?q=rag")
    assert [p.words for p in content(response).all("p", "message-warning")] == answer["warnings"]
    menu = [a["href"] for a in parse(response.text).all("a") if a.words == "Recall"]
    assert menu == ["/-/recall"]


@pytest.mark.asyncio
async def test_a_bug_is_no_warning(
    two: list[Path], make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what SQLite says is taken for a broken database."""

    def fail(*_: object, **__: object) -> NoReturn:
        raise ZeroDivisionError

    monkeypatch.setattr(asking, "recall", fail)
    response = await make_datasette(*two).client.get("/-/recall.json?q=rag")
    assert response.status_code == 500


# --- hostile names -------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.asyncio
async def test_hostile_names_do_no_harm_among_all_databases(
    two: list[Path], tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Markup stays text on every page, and the page of every row of every answer is there."""
    datasette = make_datasette(*two)
    odd = Database(datasette, path=str(hostile.build(tmp_path / "hostile.db")))
    datasette.add_database(odd, name=f"{hostile.SCRIPT} a/b~%2F")
    urls: set[str] = set()
    for name in hostile.NAMES:
        for query in ({"concept": name}, {"q": name, "_size": 3}, {"q": "w", "project": name}):
            response = await datasette.client.get(f"/-/recall?{urlencode(query)}")
            assert content(response).one("h1").words == "Recall in all databases"
            assert hostile.SCRIPT not in response.text
            answer = await ask(datasette, urlencode(query))
            assert answer["databases"] == ["beta", "alpha", f"{hostile.SCRIPT} a/b~%2F"]
            urls.update(row["url"] for row in answer["rows"])
            if answer["next_url"]:
                urls.add(answer["next_url"])
    assert len(urls) > 300
    for url in sorted(urls)[::7]:
        path = url.removeprefix("http://localhost")
        assert (await datasette.client.get(path)).status_code == 200, url
