"""The budget wherever it can be given: in the pipeline, over HTTP, and on the command line."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import count
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import urlsplit

import pytest
from click.testing import CliRunner, Result
from datasette.cli import cli

import knowledge
from conftest import MakeDatasette
from datasette_concept_recall import ConceptMatcher, answering, asking, recall_by_text
from datasette_concept_recall.budgeting import fit, tokens_of
from datasette_concept_recall.models import (
    Candidate,
    Item,
    RankKey,
    RecallRequest,
    RecallResult,
)
from datasette_concept_recall.search import recall
from served import FORM, JSON, PRIVATE, assert_error, build, get

MARKDOWN = "text/markdown; charset=utf-8"
BAD_BUDGETS = ["0", "-1", "100001", "x", "1.5", "1e3", " 5", "٣", "9" * 30]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with 300 items of all sizes, every fifth of which has nothing to say."""
    file = tmp_path_factory.mktemp("large") / "large.db"
    with closing(knowledge.create(file)) as conn:
        for number in range(300):
            text = f"RAG {number} " + "and so on " * (number * number % 150)
            if number % 5 == 0:
                section = knowledge.Section(f"Unseen {number}", summary="draft", concepts=["RAG"])
                knowledge.add_document(conn, f"Draft {number}", sections=[section])
            elif number % 2:
                knowledge.add_observation(conn, text, concepts=["RAG"])
            else:
                knowledge.add_record(conn, f"Record {number}", text, concepts=["RAG"])
        conn.commit()
    return file


@pytest.fixture
def conn(large: Path) -> Iterator[sqlite3.Connection]:
    """A connection to the large database."""
    with closing(knowledge.open_read_only(large)) as conn:
        yield conn


def fitted(result: RecallResult, budget: int, limit: int | None = None) -> Any:
    """What fits of all that a recall without a budget found, taken as one list."""
    items = [
        Item(match, place, rank)
        for match, place, rank in zip(
            result.matches, result.places, count(result.first_rank), strict=False
        )
    ]
    return fit(items, budget, ConceptMatcher(result.concepts), limit)


def is_silent(row: dict[str, Any]) -> bool:
    """Whether a row of the JSON API has nothing to say: it is a document to be reviewed."""
    return not row["body"] and row["source_type"].startswith("document")


# --- the pipeline --------------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [None, 1, 7, 40])
@pytest.mark.parametrize("budget", [1, 30, 150, 700, 5_000, 100_000])
def test_what_fits_is_found_as_if_all_had_been_read(
    conn: sqlite3.Connection, budget: int, limit: int | None
) -> None:
    """Reading items in pieces gives the context that the whole list gives, and its matches."""
    everything = recall_by_text(conn, "RAG")
    result = recall(conn, RecallRequest(text="RAG", budget=budget, limit=limit))
    assert result.context == fitted(everything, budget, limit)
    assert result.context.tokens == tokens_of(result.context.text) <= budget
    assert result.matches == [used.item.match for used in result.context.used]
    assert result.places == [used.item.place for used in result.context.used]
    assert (result.total, result.counts) == (everything.total, everything.counts)


def test_no_more_is_read_than_is_looked_at(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 300 items those behind the context stay unread, but for the rest of one piece."""
    read: list[Candidate] = []
    real = answering.stages.fill

    def counted(reader: Any, mapping: Any, some: Sequence[Candidate], *more: Any) -> Any:
        read.extend(some)
        return real(reader, mapping, some, *more)

    monkeypatch.setattr(answering.stages, "fill", counted)
    result = recall(conn, RecallRequest(text="RAG", budget=100_000, limit=3))
    assert len(result.matches) == 3
    assert len(read) == 20


@pytest.mark.parametrize(("budget", "limit"), [(200, None), (900, None), (100_000, 9)])
def test_going_on_reaches_every_item_once(
    conn: sqlite3.Connection, budget: int, limit: int | None
) -> None:
    """Context after context, each item is used, skipped or silent exactly once, and it ends."""
    everything = recall_by_text(conn, "RAG").matches
    request = RecallRequest(text="RAG", budget=budget, limit=limit)
    seen, ranks, after = [], [], None
    while True:
        result = recall(conn, RecallRequest(**{**vars(request), "after": after}))
        assert result.context is not None
        seen += [item.match for item in result.context.looked_at]
        ranks += [item.rank for item in result.context.looked_at]
        after = result.next_key
        if after is None:
            break
    assert seen == everything
    assert ranks == list(range(1, 301))


def test_one_context_looks_at_a_bounded_number_of_items(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where very many have nothing to say, the answer says from where to go on."""
    monkeypatch.setattr(answering, "_MOST_LOOKED_AT", 7)
    request = RecallRequest(text="RAG", budget=100_000, types=frozenset(["document_section"]))
    result = recall(conn, request)
    assert (result.context, len(result.context.looked_at)) == (result.context, 7)
    assert result.matches == []
    assert result.next_key == result.context.looked_at[-1].place


def test_documents_to_be_reviewed_do_not_use_up_the_limit(conn: sqlite3.Connection) -> None:
    """With a limit of five, five items that say something are in the context."""
    result = recall(conn, RecallRequest(text="RAG", budget=100_000, limit=5))
    assert len(result.matches) == 5
    assert all(match.body for match in result.matches)
    assert result.context.skipped == ()


def test_without_concepts_the_context_is_empty() -> None:
    """A database without a table of concepts is no error either when there is a budget."""
    with closing(sqlite3.connect(":memory:")) as conn:
        context = recall(conn, RecallRequest(text="RAG", budget=10)).context
    assert (context.text, context.tokens, context.looked_at) == ("", 0, ())


# --- the JSON API --------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_a_budget_adds_the_context_to_the_answer(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Keys, rows, ranks and refs belong together; these literals are the API."""
    answer = await get(
        make_datasette(path), "q=RAG+in+C%2B%2B&budget=75&type=record&type=observation"
    )
    assert [key for key in answer if key not in ("near_misses",)] == [
        *("ok", "database", "concepts", "rows", "projects", "mode", "total", "truncated", "next"),
        *("next_url", "context", "tokens", "skipped", "warnings"),
    ]
    assert answer["context"] == (
        "## Record: Use RAG\n"
        "- ref: record:1\n"
        "- date: 2026-01-15\n"
        "- status: superseded by record:2\n"
        "- concepts: C++, RAG\n"
        "\n"
        "> Long ago\n"
        "\n"
        "## Observation\n"
        "- ref: observation:1\n"
        "- date: 2026-01-15\n"
        "- project: Search\n"
        "- concepts: RAG\n"
        "\n"
        "> Note 0 about <b>RAG</b>\n"
    )
    assert answer["tokens"] == tokens_of(answer["context"]) == 60
    assert [(r["rank"], r["ref"], r["in_context"]) for r in answer["rows"]] == [
        (1, "record:1", "whole"),
        (2, "observation:1", "whole"),
    ]
    assert answer["rows"][0]["body"] == "Long ago"
    assert answer["skipped"] == [f"observation:{n}" for n in range(2, 21)] + ["record:2"]
    assert (answer["total"], answer["truncated"], answer["next"]) == (22, False, None)


@pytest.mark.asyncio
async def test_without_a_budget_there_is_no_context(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """An answer says nothing of contexts when none was asked for, also by an empty value."""
    for query in ("q=RAG", "q=RAG&budget="):
        answer = await get(make_datasette(path), query)
        assert not {"context", "tokens", "skipped"} & answer.keys()
        assert len(answer["rows"]) == 20
        assert "in_context" not in answer["rows"][0]


@pytest.mark.asyncio
async def test_a_long_text_is_excerpted_and_says_so(
    large: Path, make_datasette: MakeDatasette
) -> None:
    """A row whose body did not fit is marked as an excerpt, and still has its whole body."""
    answer = await get(make_datasette(large), "q=RAG&budget=600&type=record", "large")
    parts = {row["in_context"] for row in answer["rows"]}
    assert parts == {"whole", "excerpt"}
    for row in answer["rows"]:
        assert (f"> {row['body'].strip()}\n" in answer["context"]) is (row["in_context"] == "whole")


@pytest.mark.asyncio
async def test_a_budget_is_not_cut_by_the_usual_size(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Unless a size is given, as many items as fit are taken, up to what the instance allows."""
    datasette = make_datasette(path)
    answer = await get(datasette, "q=RAG&budget=100000")
    assert (len(answer["rows"]), answer["total"], answer["next"]) == (23, 25, None)
    answer = await get(datasette, "q=RAG&budget=100000&_size=2")
    assert len(answer["rows"]) == 2
    assert answer["truncated"]
    small = make_datasette(path, settings={"max_returned_rows": 4})
    assert len((await get(small, "q=RAG&budget=100000"))["rows"]) == 4


@pytest.mark.asyncio
@pytest.mark.parametrize("extension", ["json", "md"])
async def test_the_next_page_goes_on_with_the_same_budget(
    large: Path, make_datasette: MakeDatasette, extension: str
) -> None:
    """Its address keeps budget and size, no item comes twice, and there is a last page."""
    datasette = make_datasette(large)
    url = f"/large/-/recall.{extension}?q=RAG&budget=700&_size=20"
    contexts = []
    while url:
        response = await datasette.client.get(url)
        contexts.append(response.json()["context"] if extension == "json" else response.text)
        link = response.headers.get("link", "")
        parts = urlsplit(link.partition(">")[0].strip("<"))
        url = f"{parts.path}?{parts.query}" if link else ""
        assert not url or "budget=700&_size=20&_next=" in url
    refs = re.findall(r"^- ref: (.*)$", "\n".join(contexts), re.MULTILINE)
    assert len(contexts) > 2
    assert len(refs) == len(set(refs)) > 20
    assert all(0 < tokens_of(context) <= 700 for context in contexts)


@pytest.mark.asyncio
@pytest.mark.parametrize("budget", BAD_BUDGETS)
async def test_a_budget_that_is_none_is_an_error_400(
    path: Path, make_datasette: MakeDatasette, budget: str
) -> None:
    """Neither none, nor too much, nor something else than a whole number is taken for a budget."""
    datasette = make_datasette(path)
    message = "budget is not a whole number from 1 to 100000"
    asked = {"q": "RAG", "budget": budget}
    assert_error(await datasette.client.post("/knowledge/-/recall.json", data=asked), 400, message)
    response = await datasette.client.post("/knowledge/-/recall.md", data=asked)
    assert (response.status_code, response.text) == (400, message + "\n")


@pytest.mark.asyncio
async def test_the_page_takes_no_budget(path: Path, make_datasette: MakeDatasette) -> None:
    """To the page it is a parameter like any other that it does not know."""
    datasette = make_datasette(path)
    for budget in ("50", "junk"):
        page = await datasette.client.get(f"/knowledge/-/recall?q=RAG&budget={budget}")
        assert page.status_code == 200
        assert page.text.count('class="recall-title"') == 20


# --- Markdown ------------------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_markdown_is_the_context_alone(path: Path, make_datasette: MakeDatasette) -> None:
    """By GET and POST, from a form and from JSON, the text is that of the JSON answer."""
    datasette = make_datasette(path)
    expected = (await get(datasette, "q=RAG&budget=300"))["context"]
    url = "/knowledge/-/recall.md"
    for response in (
        await datasette.client.get(f"{url}?q=RAG&budget=300"),
        await datasette.client.post(url, content="q=RAG&budget=300", headers=FORM),
        await datasette.client.post(
            url, content=json.dumps({"q": "RAG", "budget": 300}), headers=JSON
        ),
    ):
        assert response.status_code == 200
        assert response.headers["content-type"] == MARKDOWN
        assert response.text == expected
    head = await datasette.client.head(f"{url}?q=RAG&budget=300")
    assert (head.status_code, head.headers["content-type"]) == (200, MARKDOWN)


@pytest.mark.asyncio
async def test_markdown_has_a_budget_of_its_own(large: Path, make_datasette: MakeDatasette) -> None:
    """Without one it is 2000 tokens; a text that names no concept has an empty context."""
    datasette = make_datasette(large)
    text = (await datasette.client.get("/large/-/recall.md?q=RAG")).text
    assert text == (await get(datasette, "q=RAG&budget=2000", "large"))["context"]
    assert 1_900 < tokens_of(text) <= 2_000
    nothing = await datasette.client.get("/large/-/recall.md?q=nothing")
    assert (nothing.status_code, nothing.text) == (200, "")


@pytest.mark.asyncio
async def test_errors_of_markdown_are_a_plain_sentence(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """The status is that of the JSON API, and no program takes the message for a context."""
    secret = build(path.with_name("secret.db"))
    datasette = make_datasette(path, secret, config={"databases": {"secret": PRIVATE}})
    for method, url, status, message in [
        ("GET", "/knowledge/-/recall.md?_size=0", 400, "_size is not max or a whole number"),
        ("GET", "/knowledge/-/recall.md?project=Nope", 400, "There is no project named 'Nope'"),
        ("GET", "/secret/-/recall.md?q=RAG", 403, "You do not have permission"),
        ("GET", "/nope/-/recall.md?q=RAG", 404, "Database not found: nope"),
        ("PUT", "/knowledge/-/recall.md", 405, "PUT is not allowed here"),
    ]:
        response = await datasette.client.request(method, url)
        assert response.status_code == status
        assert response.headers["content-type"] == "text/plain; charset=utf-8"
        assert response.text.startswith(message)
        assert response.text.count("\n") == 1
    assert response.headers["allow"] == "GET, HEAD, POST, OPTIONS"
    response = await datasette.client.post("/knowledge/-/recall.md", data={"q": "x" * 1_048_577})
    assert (response.status_code, response.headers["content-type"][:10]) == (413, "text/plain")


@pytest.mark.asyncio
async def test_a_database_that_cannot_be_read_is_no_context(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A failure of SQLite is an error 500 in a sentence too."""

    def broken(*_: object, **__: object) -> NoReturn:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(asking, "recall", broken)
    response = await make_datasette(path).client.get("/knowledge/-/recall.md?q=RAG")
    assert response.status_code == 500
    assert response.text == "The database cannot be read: disk I/O error\n"


@pytest.mark.asyncio
@pytest.mark.parametrize("cors", [True, False])
async def test_markdown_has_the_cors_headers_of_json(
    path: Path, make_datasette: MakeDatasette, cors: bool
) -> None:
    """A script of another site may read it exactly where it may read JSON."""
    datasette = make_datasette(path, cors=cors)
    for method, url in [
        ("GET", "/knowledge/-/recall.md?q=RAG"),
        ("GET", "/knowledge/-/recall.md?_size=0"),
        ("OPTIONS", "/knowledge/-/recall.md"),
    ]:
        response = await datasette.client.request(method, url)
        allowed = response.headers.get("access-control-allow-origin")
        assert allowed == ("*" if cors else None), (method, url)


@pytest.mark.asyncio
async def test_the_page_links_to_its_context(path: Path, make_datasette: MakeDatasette) -> None:
    """Beside the JSON there is the same as Markdown, below the base URL."""
    datasette = make_datasette(path, settings={"base_url": "/base/"})
    page = (await datasette.client.get("/knowledge/-/recall?q=RAG&type=record")).text
    (link,) = re.findall(r'href="(/base/[^"]*recall\.md[^"]*)"', page)
    assert link == "/base/knowledge/-/recall.md?q=RAG&amp;type=record"
    response = await datasette.client.get(link.replace("&amp;", "&").removeprefix("/base"))
    assert response.text.startswith("## Record: ")


# --- several databases ---------------------------------------------------------------------------


@pytest.mark.asyncio
@pytest.mark.parametrize("budget", [40, 200, 700, 3_000, 100_000])
@pytest.mark.parametrize("size", ["max", "5"])
async def test_the_items_of_all_databases_share_one_budget(
    path: Path, large: Path, make_datasette: MakeDatasette, budget: int, size: str
) -> None:
    """The context is that of all their items in one list, each saying where it is from."""
    datasette = make_datasette(path, large)
    everything = (await datasette.client.get("/-/recall.json?q=RAG+C%2B%2B&_size=max")).json()
    query = f"q=RAG+C%2B%2B&budget={budget}&_size={size}"
    answer = (await datasette.client.get(f"/-/recall.json?{query}")).json()
    text = answer["context"]
    assert answer["tokens"] == tokens_of(text) <= budget
    assert (await datasette.client.get(f"/-/recall.md?{query}")).text == text
    places = [(row["database"], row["ref"]) for row in everything["rows"]]
    matches = {}
    for file in (path, large):
        with closing(knowledge.open_read_only(file)) as conn:
            found = recall_by_text(conn, "RAG in C++").matches
            matches |= {(file.stem, match.ref): match for match in found}
    items = [
        Item(matches[place], RankKey(0, 0, 0, rank), rank, place[0])
        for rank, place in enumerate(places, start=1)
    ]
    limit = None if size == "max" else int(size)
    assert text == fit(items, budget, ConceptMatcher(["RAG", "C++"]), limit).text
    order = {place: rank for rank, place in enumerate(places, start=1)}
    rows = [(row["database"], row["ref"]) for row in answer["rows"]]
    skipped = [(item["database"], item["ref"]) for item in answer["skipped"]]
    assert [row["rank"] for row in answer["rows"]] == [order[row] for row in rows]
    assert re.findall(r"^- ref: (.*)\n- database: (.*)$", text, re.M) == [(r, d) for d, r in rows]
    silent = {(row["database"], row["ref"]) for row in everything["rows"] if is_silent(row)}
    looked_at = sorted({*rows, *skipped}, key=order.__getitem__)
    if looked_at:
        before = [place for place in places[: order[looked_at[-1]]] if place not in silent]
        assert looked_at == before, "none is left out"


@pytest.mark.asyncio
@pytest.mark.parametrize("size", ["max", "3"])
async def test_going_on_in_all_databases_reaches_every_item_once(
    path: Path, large: Path, make_datasette: MakeDatasette, size: str
) -> None:
    """Page after page, no item that says something is left out or comes twice."""
    datasette = make_datasette(path, large)
    everything = (await datasette.client.get("/-/recall.json?q=RAG+C%2B%2B&_size=max")).json()
    said = [(row["database"], row["ref"]) for row in everything["rows"] if not is_silent(row)]
    ranks = {(row["database"], row["ref"]): row["rank"] for row in everything["rows"]}
    asked = {"q": "RAG C++", "budget": "3000", "_size": size}
    seen = []
    while True:
        answer = (await datasette.client.post("/-/recall.json", data=asked)).json()
        found = [(row["database"], row["ref"]) for row in answer["rows"]]
        found += [(item["database"], item["ref"]) for item in answer["skipped"]]
        seen += sorted(found, key=said.index)
        for row in answer["rows"]:
            assert row["rank"] == ranks[row["database"], row["ref"]]
        if answer["next"] is None:
            break
        asked["_next"] = answer["next"]
    assert seen == said


@pytest.mark.asyncio
async def test_a_database_without_the_project_adds_nothing(
    path: Path, large: Path, make_datasette: MakeDatasette
) -> None:
    """Narrowed to a project that one database has, the context holds items of that one alone."""
    datasette = make_datasette(path, large)
    answer = (await datasette.client.get("/-/recall.json?q=RAG&project=Search&budget=2000")).json()
    assert {(row["database"], row["project"]) for row in answer["rows"]} == {
        ("knowledge", "Search")
    }
    assert answer["skipped"] == []
    assert "large" not in answer["context"]


# --- the command line ----------------------------------------------------------------------------


def run(*arguments: object) -> Result:
    """Runs `datasette concept-recall recall` with these arguments."""
    words = ["concept-recall", "recall", *map(str, arguments)]
    return CliRunner().invoke(cli, words, catch_exceptions=False)


def test_the_command_prints_the_context_alone(large: Path, conn: sqlite3.Connection) -> None:
    """What is printed can be put into a prompt as it is; ten items are no limit."""
    result = run(large, "RAG", "--budget", 100_000)
    context = fitted(recall_by_text(conn, "RAG"), 100_000)
    assert (result.exit_code, result.stdout, result.stderr) == (0, context.text, "")
    assert len(context.used) == 240
    limited = run(large, "RAG", "--budget", 100_000, "--limit", 3).stdout
    assert limited.count("\n## ") == 2
    assert context.text.startswith(limited)


def test_the_command_gives_the_context_as_json(large: Path) -> None:
    """With `--json` its keys are those of the JSON API."""
    answer = json.loads(run(large, "RAG", "--budget", 300, "--json").stdout)
    assert answer["context"] == run(large, "RAG", "--budget", 300).stdout
    assert answer["tokens"] == tokens_of(answer["context"]) <= 300
    assert {row["in_context"] for row in answer["rows"]} <= {"whole", "excerpt"}
    assert all(":" in ref for ref in answer["skipped"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing"], "No concept of this database is named."),
        (["RAG", "--budget", "1"], "Nothing that is tagged with them fits."),
        (["--concept", "nope"], "There is no concept named nope."),
    ],
)
def test_an_empty_context_is_explained_where_no_prompt_gets_it(
    large: Path, arguments: list[str], message: str
) -> None:
    """Standard output stays empty, and standard error says why."""
    result = run(large, "--budget", 50, *arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert message in result.stderr.splitlines()


@pytest.mark.parametrize("budget", ["0", "-1", "100001", "x"])
def test_the_command_refuses_a_budget_that_is_none(large: Path, budget: str) -> None:
    """One line names the option."""
    result = run(large, "RAG", f"--budget={budget}")
    (line,) = result.stderr.splitlines()
    assert (result.exit_code, result.stdout) == (2, "")
    assert "'--budget'" in line
