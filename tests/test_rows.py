"""The pages of rows: their concepts, what is related by them, and who may see it."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette
from hypothesis import given, settings
from hypothesis import strategies as st

import foreign
import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes
from datasette_concept_recall import related, rows
from datasette_concept_recall.mapped import read_mapping
from datasette_concept_recall.models import ConceptMatch, RecallRequest, RecallResult
from datasette_concept_recall.reading import reading
from datasette_concept_recall.related import MOST_RELATED, Related, related_to
from pages import Element, parse
from served import PRIVATE

NAMES = ("jam", "toast", "tea", "Tea", "butter")


def related_of(conn: sqlite3.Connection, table: str, where: str) -> Related | None:
    """What belongs to the row of a table for which a condition holds."""
    with reading(conn) as reader:
        mapping = read_mapping(reader)
    cursor = conn.execute(f"select * from {table} where {where}")
    row = sqlite3.Row(cursor, cursor.fetchone())
    return related_to(conn, mapping, table, row)


# --- which items ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class Tagged:
    """An item to be made: of which table, how many days old, tagged with what."""

    table: str
    days: int
    tags: frozenset[str]

    @property
    def concepts(self) -> set[str]:
        """What it is tagged with, as people see it."""
        return {tag.lower() for tag in self.tags}


items = st.lists(
    st.builds(
        Tagged,
        st.sampled_from(["observations", "records"]),
        st.integers(0, 3),
        st.frozensets(st.sampled_from(NAMES), max_size=3),
    ),
    min_size=1,
    max_size=12,
)


def add(conn: sqlite3.Connection, item: Tagged) -> int:
    day = datetime(2026, 1, 1, tzinfo=timezone.utc) - timedelta(days=item.days)
    created = day.strftime("%Y-%m-%d %H:%M:%S")
    if item.table == "records":
        return knowledge.add_record(conn, "R", concepts=item.tags, ingested_at=created)
    return knowledge.add_observation(conn, "O", concepts=item.tags, created_at=created)


@given(items)
@settings(max_examples=60, deadline=None)
def test_related_items_share_most_concepts_and_are_the_most_recent(items: list[Tagged]) -> None:
    """For any items, those of the first are the ones that a plain sort of all others puts first."""
    with closing(knowledge.create()) as conn:
        made = [(item, add(conn, item)) for item in items]
        found = related_of(conn, items[0].table, f"id = {made[0][1]}")
    first = items[0]
    others = [(item, id_) for item, id_ in made[1:] if item.concepts & first.concepts]
    others.sort(
        key=lambda made: (
            -len(made[0].concepts & first.concepts),
            made[0].days,
            made[0].table == "records",
            made[1],
        )
    )
    if not first.tags:
        assert found is None
        return
    assert found is not None
    assert found.result is not None
    assert {name.lower() for name in found.names} == first.concepts
    assert len(found.names) == len(first.concepts)
    expected = [(item.table, id_) for item, id_ in others]
    assert [(m.item_table, m.id) for m in found.result.matches] == expected[:MOST_RELATED]
    assert found.others == len(expected)


def test_a_row_that_is_not_among_the_first_takes_no_place_of_another() -> None:
    """Of many items with the same concepts an old one has five that are related, not four."""
    with closing(knowledge.create()) as conn:
        for number in range(9):
            knowledge.add_observation(conn, f"{number}", concepts=["jam"])
        oldest = knowledge.add_observation(conn, "old", concepts=["jam"], created_at="2020-01-01")
        found = related_of(conn, "observations", f"id = {oldest}")
    assert found is not None
    assert found.result is not None
    assert [match.body for match in found.result.matches] == ["0", "1", "2", "3", "4"]
    assert found.others == 9


def test_a_concept_is_related_to_what_is_tagged_with_it() -> None:
    """The row of a concept has itself as its concept, and the latest items tagged with it."""
    with closing(knowledge.create()) as conn:
        knowledge.add_observation(conn, "About jam", concepts=["jam"])
        found = related_of(conn, "concepts", "name = 'jam'")
        knowledge.add_concept(conn, "unused")
        unused = related_of(conn, "concepts", "name = 'unused'")
    assert found is not None
    assert found.result is not None
    assert (found.names, found.others) == (("jam",), 1)
    assert [match.body for match in found.result.matches] == ["About jam"]
    assert unused is not None
    assert (unused.names, unused.others) == (("unused",), 0)


def test_a_blank_name_is_no_concept_of_a_row() -> None:
    """What recall could not be asked for is not shown either."""
    with closing(knowledge.create()) as conn:
        knowledge.add_observation(conn, "x", concepts=["", " "])
        assert related_of(conn, "observations", "id = 1") is None


# --- on the page ---------------------------------------------------------------------------------


async def panel(datasette: Datasette, address: str, **more: Any) -> Element | None:
    """What a good page of a row says of its concepts."""
    response = await datasette.client.get(address, **more)
    assert response.status_code == 200, response.text
    found = parse(response.text).all("section", "concept-recall-row")
    assert ("concept-recall.css" in response.text) == bool(found)
    return found[0] if found else None


def chips(panel: Element | None) -> list[str]:
    assert panel is not None
    return [chip.words for chip in panel.all("li", "recall-chip")]


def titles(panel: Element | None) -> list[str]:
    assert panel is not None
    return [item.all("a")[0].words for item in panel.one("ul", "recall-related").all("li")]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A record with two concepts, more related items than are shown, and rows without concepts."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file)) as conn:
        knowledge.add_record(conn, "Eat toast", concepts=["toast", "Tea", "tea"])
        for number in range(6):
            knowledge.add_observation(conn, f"Toast {number}", concepts=["toast"])
        old = knowledge.add_record(conn, "Drink tea", concepts=["tea", "toast"], status="proposed")
        new = knowledge.add_record(conn, "Drink <b>", concepts=["tea"], ingested_at="2027-01-01")
        knowledge.supersede_record(conn, new, old)
        knowledge.add_record(conn, "Untagged")
        knowledge.add_record(conn, "Alone", concepts=["alone"])
        knowledge.add_project(conn, "Breakfast")
        conn.commit()
    return file


@pytest.mark.asyncio
async def test_the_page_of_a_row_shows_concepts_and_related_items(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Chips lead to concepts; items come with kind, date, badges and what they share."""
    before = file_bytes(path)
    datasette = make_datasette(path)
    shown = await panel(datasette, "/k/records/1")
    assert chips(shown) == ["Tea", "toast"]
    assert shown is not None
    links = [chip.one("a")["href"] for chip in shown.all("li", "recall-chip")]
    assert links == ["/k/-/concepts/Tea", "/k/-/concepts/toast"]
    tea, drink, *toasts = shown.one("ul", "recall-related").all("li")
    assert tea.words == "Drink tea superseded proposed Record · 2026-01-15 · Tea, toast"
    assert drink.words == "Drink <b> Record · 2027-01-01 · Tea"
    assert [toast.words for toast in toasts] == [
        f"Toast {number} Observation · 2026-01-15 · toast" for number in range(3)
    ]
    (more,) = shown.one("p", "recall-all").all("a")
    assert (more.words, more["href"]) == (
        "All 9 items with one of these concepts",
        "/k/-/recall?concept=Tea&concept=toast",
    )
    for link in shown.links():
        if "/-/concepts/" not in link:
            assert (await datasette.client.get(link)).status_code == 200, link
    assert file_bytes(path) == before


@pytest.mark.asyncio
async def test_a_document_is_tagged_through_its_sections(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """It has the concepts of all of them, and what is related to it is no section of its own."""
    with closing(sqlite3.connect(path)) as conn:
        gist = knowledge.Section(concepts=["toast"], created_at="2028-01-01")
        part = knowledge.Section("Part", concepts=["alone", "toast"], created_at="2028-01-01")
        book = knowledge.add_document(conn, "Book", gist=gist, sections=[part])
        other = knowledge.add_document(conn, "Other", gist=knowledge.Section(concepts=["alone"]))
        bare = knowledge.add_document(conn, "Bare")
        conn.commit()
    datasette = make_datasette(path)
    shown = await panel(datasette, f"/k/documents/{book.document}")
    assert chips(shown) == ["alone", "toast"]
    assert len(titles(shown)) == MOST_RELATED
    assert "Book" not in titles(shown)
    assert "Book / Part" not in titles(shown)
    shown = await panel(datasette, f"/k/documents/{other.document}")
    assert chips(shown) == ["alone"]
    assert titles(shown) == ["Book / Part", "Alone"]
    assert await panel(datasette, f"/k/documents/{bare.document}") is None
    config = {"databases": {"k": {"tables": {"document_sections": PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    assert await panel(datasette, f"/k/documents/{book.document}") is None
    cookies = actor_cookie(datasette, "root")
    shown = await panel(datasette, f"/k/documents/{book.document}", cookies=cookies)
    assert chips(shown) == ["alone", "toast"]


@pytest.mark.asyncio
async def test_a_row_that_nothing_is_related_to_says_so(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Its concepts are shown, and that there is nothing else, without a link to the row itself."""
    shown = await panel(make_datasette(path), "/k/records/5")
    assert chips(shown) == ["alone"]
    assert shown is not None
    assert shown.one("p", "recall-note").words.startswith("Nothing else that you may see")
    assert [link for link in shown.links() if "concepts" not in link] == []


@pytest.mark.asyncio
@pytest.mark.parametrize("address", ["/k/records/4", "/k/projects/1"])
async def test_a_row_without_concepts_looks_as_without_the_plugin(
    path: Path, make_datasette: MakeDatasette, address: str
) -> None:
    """Neither an untagged row of a tagged table nor a row of any other table has a panel."""
    assert await panel(make_datasette(path), address) is None


@pytest.mark.asyncio
async def test_related_items_are_looked_for_once_for_a_page(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Menu, stylesheet and panel share what was found; other rows of a request have their own."""
    asked: list[str] = []

    def counted(*given: Any, **more: Any) -> Related | None:
        asked.append(given[2])
        return related_to(*given, **more)

    monkeypatch.setattr(rows, "related_to", counted)
    datasette = make_datasette(path)
    await panel(datasette, "/k/records/1")
    assert asked == ["records"]
    assert (await datasette.client.get("/k/records/1.json")).status_code == 200
    await panel(datasette, "/k/projects/1")
    assert asked == ["records"]


@pytest.mark.asyncio
@pytest.mark.parametrize("shape", foreign.FOUND_WITHOUT_CONFIGURATION)
async def test_rows_of_any_tagged_database_have_it(
    tmp_path: Path, make_datasette: MakeDatasette, shape: str
) -> None:
    """Keys may be numbers, texts, several columns or none, links a table or an array."""
    file = foreign.FOUND_WITHOUT_CONFIGURATION[shape](tmp_path / "x.db")
    datasette = make_datasette(file)
    found = (await datasette.client.get("/x/-/recall.json?concept=bread&concept=jam")).json()
    urls = {row["title"]: row["url"].removeprefix("http://localhost") for row in found["rows"]}
    shown = await panel(datasette, urls[foreign.BOTH])
    assert chips(shown) == ["bread", "jam"]
    assert titles(shown)[0] == foreign.ONE
    assert foreign.BOTH not in titles(shown)
    assert chips(await panel(datasette, urls[foreign.ONE])) == ["jam"]


@pytest.mark.asyncio
async def test_a_table_without_a_key_is_known_by_its_row_numbers(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Rows that have no primary key are addressed, tagged and shown like all others."""
    file = tmp_path / "x.db"
    with closing(sqlite3.connect(file)) as conn:
        conn.executescript(
            """create table notes (title text, tags text);
            insert into notes values ('a', '["jam"]'), ('b', '["jam", "tea"]'), ('c', '[]');"""
        )
    datasette = make_datasette(file)
    assert titles(await panel(datasette, "/x/notes/1")) == ["b"]
    assert titles(await panel(datasette, "/x/notes/2")) == ["a"]
    assert await panel(datasette, "/x/notes/3") is None


@pytest.mark.asyncio
async def test_links_of_the_panel_have_the_base_url(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Behind a prefix every link of the panel begins with it, once."""
    datasette = make_datasette(path, settings={"base_url": "/pre/fix/"})
    shown = await panel(datasette, "/k/records/1")
    assert shown is not None
    assert len(shown.links()) == 8
    assert {link[: len("/pre/fix/k/")] for link in shown.links()} == {"/pre/fix/k/"}


@pytest.mark.skipif(IS_1_0, reason="1.0 says nothing of the table on the pages of its rows")
@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({"description": "Decisions & <b>more"}, "Decisions &amp; &lt;b&gt;more"),
        ({"description_html": "<i>Decisions</i>"}, "<i>Decisions</i>"),
        ({}, "Data license:"),
    ],
)
async def test_a_description_of_the_table_stays(
    path: Path, make_datasette: MakeDatasette, told: dict[str, str], shown: str
) -> None:
    """What is said of a table is still said, in the same words, above the panel of a row."""
    tables = {"records": {"license": "CC0", **told}}
    datasette = make_datasette(path, metadata={"databases": {"k": {"tables": tables}}})
    page = (await datasette.client.get("/k/records/1")).text
    assert shown in page
    assert "Data license:" in page
    assert page.index("concept-recall-row") > (page.index(shown) if told else 0)


@pytest.mark.asyncio
async def test_many_concepts_are_folded_and_a_link_that_would_be_too_long_is_left_out(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A row with hundreds of concepts shows twelve of them and the rest on demand."""
    file = tmp_path / "k.db"
    names = [f"concept number {number:03}" for number in range(300)] + ["w" * 5_000]
    with closing(knowledge.create(file)) as conn:
        for _ in range(8):
            knowledge.add_observation(conn, "Much", concepts=names)
        conn.commit()
    shown = await panel(make_datasette(file), "/k/observations/1")
    assert shown is not None
    assert len(shown.all("ul", "recall-chips")[0].all("li")) == 12
    assert shown.one("summary").words == "289 more concepts"
    assert shown.all("p", "recall-all") == []
    assert shown.all("li", "recall-chip")[-1].all("a") == []
    last = shown.one("ul", "recall-related").all("li")[0]
    assert last.words.endswith("concept number 004 and 296 more")


# --- who may see it ------------------------------------------------------------------------------

MATRIX = ["observations", "observation_concepts", "projects", "record_relations"]


@pytest.mark.asyncio
@pytest.mark.parametrize("table", MATRIX)
async def test_a_private_table_is_not_told_of(
    path: Path, tmp_path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """To anonymous the panel is that of a database without the table, to root that of the whole."""
    (tmp_path / "without").mkdir()
    without = Path(shutil.copy(path, tmp_path / "without" / "k.db"))
    with closing(sqlite3.connect(without)) as conn:
        conn.execute("drop view project_summary")
        conn.execute(f"drop table {table}")
    config = {"databases": {"k": {"tables": {table: PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    shown = await panel(datasette, "/k/records/1")
    expected = await panel(make_datasette(without), "/k/records/1")
    whole = await panel(make_datasette(path), "/k/records/1")
    root = await panel(datasette, "/k/records/1", cookies=actor_cookie(datasette, "root"))
    assert shown is not None
    assert expected is not None
    assert whole is not None
    assert root is not None
    assert shown.words == expected.words
    assert root.words == whole.words
    assert (shown.words == whole.words) == (table == "projects")


@pytest.mark.asyncio
@pytest.mark.parametrize("table", ["concepts", "record_concepts"])
async def test_without_concepts_or_links_there_is_no_panel(
    path: Path, make_datasette: MakeDatasette, table: str
) -> None:
    """Who may not see that a row is tagged, or with what, sees the row alone."""
    config = {"databases": {"k": {"tables": {table: PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    assert await panel(datasette, "/k/records/1") is None
    cookies = actor_cookie(datasette, "root")
    assert chips(await panel(datasette, "/k/records/1", cookies=cookies)) == ["Tea", "toast"]


@pytest.mark.asyncio
async def test_a_table_that_became_private_is_not_told_of(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A table of links that is new since somebody looked is judged before it is read."""
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("alter table observation_concepts rename to elsewhere")
    config = {"databases": {"k": {"tables": {"observation_concepts": PRIVATE}}}}
    datasette = make_datasette(path, config=config)
    assert titles(await panel(datasette, "/k/records/1")) == ["Drink tea", "Drink <b>"]
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("alter table elsewhere rename to observation_concepts")
    assert titles(await panel(datasette, "/k/records/1")) == ["Drink tea", "Drink <b>"]


# --- what goes wrong -----------------------------------------------------------------------------

ENDLESS = "with recursive n(i) as (select 1 union all select i + 1 from n) select count(*) from n"


def never_ends(conn: sqlite3.Connection, *_: Any, **__: Any) -> RecallResult:
    conn.execute(ENDLESS).fetchall()
    raise AssertionError


@pytest.mark.asyncio
async def test_a_search_that_takes_too_long_costs_only_the_related_items(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time limit ends it; the page comes with the concepts and a sentence about the rest."""
    monkeypatch.setattr(related, "recall", never_ends)
    datasette = make_datasette(path, settings={"sql_time_limit_ms": 200})
    shown = await panel(datasette, "/k/records/1")
    assert chips(shown) == ["Tea", "toast"]
    assert shown is not None
    assert shown.one("p", "recall-note").words == rows.TOO_SLOW
    assert shown.all("ul", "recall-related") == []


@pytest.mark.asyncio
async def test_concepts_that_take_too_long_cost_only_the_panel(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the limit ends even the search for the concepts, a sentence is left."""
    monkeypatch.setattr(rows, "related_to", never_ends)
    datasette = make_datasette(path, settings={"sql_time_limit_ms": 200})
    shown = await panel(datasette, "/k/records/1")
    assert shown is not None
    assert shown.words == rows.TOO_SLOW
    assert shown.links() == []


@pytest.mark.asyncio
async def test_a_database_that_cannot_be_read_costs_only_the_panel(
    path: Path,
    make_datasette: MakeDatasette,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """An error of SQLite goes to the log, and the page says that something is missing."""

    def fails(*_: Any, **__: Any) -> Related:
        raise sqlite3.DatabaseError("disk image is malformed")

    monkeypatch.setattr(rows, "related_to", fails)
    shown = await panel(make_datasette(path), "/k/records/1")
    assert shown is not None
    assert shown.words == rows.UNREADABLE
    assert "disk image is malformed" in capsys.readouterr().err


def test_an_error_that_is_no_time_limit_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only an interruption leaves the concepts alone; anything else is the caller's to handle."""

    def fails(*_: Any, **__: Any) -> RecallResult:
        raise sqlite3.OperationalError("no such table: x")

    monkeypatch.setattr(related, "recall", fails)
    with closing(knowledge.create()) as conn:
        knowledge.add_observation(conn, "x", concepts=["jam"])
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            related_of(conn, "observations", "id = 1")


def test_the_request_is_no_more_than_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Recall is asked for the row and five others, and not to look for near misses."""
    asked: list[RecallRequest] = []

    def noted(conn: sqlite3.Connection, request: RecallRequest, **_: Any) -> RecallResult:
        asked.append(request)
        matches: list[ConceptMatch] = []
        return RecallResult([], matches, [], 0)

    monkeypatch.setattr(related, "recall", noted)
    with closing(knowledge.create()) as conn:
        knowledge.add_observation(conn, "x", concepts=["jam"])
        related_of(conn, "observations", "id = 1")
    assert asked == [RecallRequest(names=("jam",), limit=MOST_RELATED + 1, near_misses=False)]
