"""The page in a real browser: with the keyboard, without scripts, on a telephone, under attack."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import browser
import knowledge
from browser import Visit

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

PHONE = 400
QUESTION = "Is butter good on toast?"
STATUSES = ("accepted", "superseded", "rejected", "proposed", "cancelled", "accepted")

SCRIPT = "<script>alert('concept')</script>"
IMAGE = "<img src=https://elsewhere.example/x onerror=alert('name')>"
QUOTES = "\"'><svg onload=alert('attribute')>"
LONG = "w" * 10_000
HOSTILE = f"{SCRIPT} {QUOTES} {IMAGE} {LONG}"
HOSTILE_NAMES = [SCRIPT, IMAGE, QUOTES, HOSTILE]

# --- what is visited -----------------------------------------------------------------------------


def build_kitchen(path: Path) -> Path:
    """Enough for two pages: every kind of source, every status, many projects, many concepts."""
    with closing(knowledge.create(path)) as conn:
        for n in range(30):
            body = f"Note {n}: butter melts.\nIt is spread on toast in the morning."
            project = f"Breakfast {n % 12}"
            knowledge.add_observation(conn, body, concepts=["butter"], project=project)
        records = [
            knowledge.add_record(
                conn, f"Decide {status}", "We eat toast.", concepts=["toast"], status=status
            )
            for status in STATUSES
        ]
        knowledge.supersede_record(conn, records[0], records[1])
        sections = [knowledge.Section("Crumbs", concepts=["toast"], status="drafted", stale=True)]
        knowledge.add_document(conn, "On toast", sections=sections)
        for n in range(300):
            name = f"ingredient number {n}"
            knowledge.add_observation(conn, f"About {name}.", concepts=[name], project="Pantry")
        knowledge.add_concept(conn, "unused spoon")
        conn.commit()
    return path


def build_hostile(path: Path) -> Path:
    """Markup and endless words wherever a database has text."""
    with closing(knowledge.create(path)) as conn:
        old = knowledge.add_record(
            conn, HOSTILE, HOSTILE, concepts=HOSTILE_NAMES, project=HOSTILE, status=HOSTILE
        )
        new = knowledge.add_record(conn, LONG, concepts=HOSTILE_NAMES, status=LONG)
        knowledge.supersede_record(conn, new, old)
        knowledge.add_observation(conn, HOSTILE, concepts=HOSTILE_NAMES, project=SCRIPT)
        knowledge.add_observation(conn, SCRIPT, concepts=[SCRIPT], created_at=HOSTILE)
        summary = knowledge.Section(SCRIPT, summary=HOSTILE, status="reviewed", concepts=[SCRIPT])
        draft = knowledge.Section(LONG, concepts=[SCRIPT], status=HOSTILE)
        knowledge.add_document(conn, HOSTILE, gist=summary, sections=[draft])
        conn.commit()
    return path


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser.chromium() as running:
        yield running


@pytest.fixture(scope="module")
def address(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    kitchen = build_kitchen(folder / "kitchen.db")
    with browser.served(folder, kitchen, build_hostile(folder / "hostile.db")) as url:
        yield url


@pytest.fixture(scope="module")
def windows(chromium: Browser) -> dict[str, BrowserContext]:
    """Kept open, since opening one takes longer than most visits."""
    wide, phone = {"width": 1200, "height": 800}, {"width": PHONE, "height": 800}
    return {
        "wide": chromium.new_context(viewport=wide),
        "phone": chromium.new_context(viewport=phone),
        "no script": chromium.new_context(viewport=wide, java_script_enabled=False),
    }


@pytest.fixture
def visitor(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["wide"], address) as visit:
        yield visit


@pytest.fixture
def phone(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["phone"], address) as visit:
        yield visit


@pytest.fixture
def without_script(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["no script"], address) as visit:
        yield visit


def long_text(*sentences: str) -> str:
    """200 KB of text, not all of it ASCII, in which these sentences stand as well."""
    return "Größe, 大小, μέγεθος. " * 7_000 + " ".join(sentences)


def every_ingredient() -> str:
    """Names so many concepts that not even their names fit into a link."""
    return ". ".join(f"ingredient number {n}" for n in range(300)) + "."


def ask(page: Page, text: str) -> None:
    """Fills in a text and sends it."""
    page.get_by_role("textbox").fill(text)
    page.get_by_role("button", name="Recall").click()


def titles(page: Page) -> list[str]:
    return page.locator(".recall-items h3").all_inner_texts()


STATES: dict[str, tuple[str, dict[str, Any], str]] = {
    "intro": ("kitchen", {}, ""),
    "results": ("kitchen", {"q": QUESTION, "_size": "60"}, ""),
    "narrowed": ("kitchen", {"q": QUESTION, "type": "record", "concept": "butter"}, ""),
    "narrowed to nothing": ("kitchen", {"q": "butter", "type": "document_gist"}, ""),
    "past the end": ("kitchen", {"q": "butter", "_next": "1.-9223372036854775807.0.0"}, ""),
    "no concept": ("kitchen", {"q": "The weather was mild."}, ""),
    "no such concept": ("kitchen", {"concept": ["nonsense " + LONG[:3_000], "toast"]}, ""),
    "nothing tagged": ("kitchen", {"concept": "unused spoon"}, ""),
    "bad parameter": ("kitchen", {"q": QUESTION, "_size": "100000"}, ""),
    "no such project": ("kitchen", {"q": QUESTION, "project": "x" * 3_000}, ""),
    "long text": ("kitchen", {}, long_text(QUESTION)[-9_000:]),
    "many concepts": ("kitchen", {}, every_ingredient()),
    "many given names": ("kitchen", {"concept": [f"ingredient number {n}" for n in range(90)]}, ""),
    "hostile names": ("hostile", {"concept": HOSTILE_NAMES[:3]}, ""),
    "hostile text": ("hostile", {}, " and ".join(HOSTILE_NAMES)),
}

in_every_state = pytest.mark.parametrize("state", STATES)


def reach(visit: Visit, state: str) -> Page:
    """Brings the page into a state, with everything unfolded that can be."""
    database, parameters, text = STATES[state]
    page = visit.recall(database, **parameters)
    if text:
        ask(page, text)
        page.locator(".recall-items").wait_for()
    page.wait_for_load_state()  # styles included: what is measured is the finished page
    page.evaluate("document.querySelectorAll('.content details').forEach(d => d.open = true)")
    return page


# --- without scripts -----------------------------------------------------------------------------


@pytest.mark.browser
def test_a_question_is_asked_narrowed_and_paged_with_the_keyboard_and_no_script(
    without_script: Visit,
) -> None:
    """Asking, narrowing down, next page and the way back need neither JavaScript nor mouse."""
    page = without_script.recall("kitchen")
    page.get_by_label("A question or any text").focus()
    page.keyboard.type(QUESTION)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="2 concepts found").wait_for()
    assert "q=Is+butter+good+on+toast" in page.url
    assert page.locator(".recall-echo mark").all_inner_texts() == ["butter", "toast"]
    assert page.locator(".recall-chip a").first.inner_text() == "butter"
    first_page = titles(page)

    press_link(page, "Record")
    page.get_by_role("heading", name="6 items").wait_for()
    about = page.locator(".recall-about").all_inner_texts()
    assert {words.split(" · ")[0] for words in about} == {"Record"}
    press_link(page, "No longer only Record")
    page.get_by_role("heading", name="1–20 of").wait_for()

    press_link(page, "Next page")
    page.get_by_role("heading", name="21–").wait_for()
    assert page.locator(".recall-items").get_attribute("start") == "21"
    assert not set(titles(page)) & set(first_page)
    page.go_back()
    assert titles(page) == first_page
    assert page.get_by_role("textbox").input_value() == QUESTION


def press_link(page: Page, name: str) -> None:
    page.get_by_role("link", name=name, exact=True).first.focus()
    page.keyboard.press("Enter")


@pytest.mark.browser
def test_a_long_text_is_answered_at_once_and_goes_on_by_its_concepts(
    without_script: Visit,
) -> None:
    """200 KB of any script are answered in place, and the next page continues with the concepts."""
    text = long_text(QUESTION)
    assert len(text.encode()) > 200_000
    page = without_script.recall("kitchen")
    ask(page, text)
    page.get_by_role("heading", name="2 concepts found").wait_for()
    assert page.url.endswith("/kitchen/-/recall")
    assert page.get_by_role("textbox").input_value() == text
    assert page.locator(".recall-echo mark").all_inner_texts() == ["butter", "toast"]
    first_page = titles(page)

    page.get_by_role("link", name="Next page").click()
    page.get_by_role("heading", name="21–").wait_for()
    assert not set(titles(page)) & set(first_page)
    assert page.get_by_label("concept butter").is_checked()


@pytest.mark.browser
def test_more_concepts_than_a_link_can_hold_are_narrowed_and_paged_by_buttons(
    without_script: Visit,
) -> None:
    """Where no link can say what was asked, buttons send the text again and lose nothing of it."""
    page = without_script.recall("kitchen")
    ask(page, every_ingredient())
    page.get_by_role("heading", name="300 concepts found").wait_for()
    first_page = titles(page)
    page.get_by_role("button", name="Pantry").click()
    page.get_by_label("project Pantry").wait_for()
    assert titles(page) == first_page

    page.get_by_role("button", name="Next page").click()
    page.get_by_role("heading", name="21–40 of 300 items").wait_for()
    assert not set(titles(page)) & set(first_page)
    assert page.get_by_role("textbox").input_value() == every_ingredient()
    assert page.get_by_label("project Pantry").is_checked()


@pytest.mark.browser
def test_what_an_earlier_question_left_behind_is_shown_and_can_be_let_go(
    without_script: Visit,
) -> None:
    """Concepts, kind and project that a new question keeps are ticked boxes, gone when unticked."""
    page = without_script.recall("kitchen", concept="toast", type="record")
    page.get_by_label("kind Record").uncheck()
    ask(page, "butter")
    page.get_by_role("heading", name="2 concepts found").wait_for()
    assert "type=" not in page.url
    assert page.get_by_label("concept toast").is_checked()
    page.get_by_label("concept toast").uncheck()
    page.get_by_role("button", name="Recall").click()
    page.get_by_role("heading", name="1 concept found").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("start", "menu", "link"),
    [
        ("/", ".nav-menu", "Recall in kitchen"),
        ("/kitchen/records", ".nav-menu", "Recall in kitchen"),
        ("/kitchen", ".actions-menu-links", "Recall by concept"),
    ],
)
def test_the_page_is_found_from_datasettes_own_pages(
    visitor: Visit, start: str, menu: str, link: str
) -> None:
    """The menu of every page and the actions of a database lead to Recall."""
    page = visitor.page
    page.goto(visitor.address + start)
    page.locator(f"{menu} summary").click()
    page.locator(f"{menu} a", has_text=link).click()
    assert page.get_by_role("heading", level=1).inner_text() == "Recall in kitchen"


# --- for everybody -------------------------------------------------------------------------------


@pytest.mark.browser
@in_every_state
def test_nothing_is_wider_than_a_telephone(phone: Visit, state: str) -> None:
    """At 400 pixels no state of the page scrolls sideways, whatever the database holds."""
    page = reach(phone, state)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE
    assert page.evaluate(browser.WIDER_THAN_THE_WINDOW) == []


@pytest.mark.browser
@in_every_state
def test_structure_and_names_are_there_for_screen_readers(visitor: Visit, state: str) -> None:
    """In every state headings nest without a gap, and fields, links and buttons have names."""
    page = reach(visitor, state)
    levels = [int(tag[1]) for tag in page.evaluate(browser.TAGS_OF_HEADINGS)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert levels.count(3) == page.locator(".recall-items > li").count()
    assert page.evaluate(browser.FIELDS_WITHOUT_A_LABEL) == []
    assert page.evaluate(browser.CONTROLS_WITHOUT_A_NAME) == []


@pytest.mark.browser
@in_every_state
def test_text_stands_out_from_its_background(visitor: Visit, state: str) -> None:
    """All text of the page has a contrast of at least 4.5 to 1."""
    assert reach(visitor, state).evaluate(browser.PALE_TEXT) == []


@pytest.mark.browser
@pytest.mark.parametrize("state", ["intro", "results", "narrowed", "many concepts"])
def test_the_tab_key_goes_through_the_page_in_order_and_shows_where_it_is(
    visitor: Visit, state: str
) -> None:
    """From the text box Tab reaches the button, then all the rest downwards, each one outlined."""
    page = reach(visitor, state)
    page.get_by_role("textbox").focus()
    stops = []
    for _ in range(60):
        stops.append(page.evaluate(browser.STOP))
        page.keyboard.press("Tab")
        if page.evaluate("!document.activeElement.closest('.content')"):
            break
    assert stops[1]["name"] == "Recall"
    assert [stop["place"] for stop in stops] == sorted({stop["place"] for stop in stops})
    assert all(stop["outlined"] for stop in stops)
    assert len(stops) == min(60, page.locator(browser.FOCUSABLE).count())


@pytest.mark.browser
def test_a_button_that_looks_like_a_link_can_be_read_under_the_pointer(visitor: Visit) -> None:
    """Pointing at the next page does not make its words vanish."""
    page = visitor.recall("kitchen")
    ask(page, every_ingredient())
    page.get_by_role("button", name="Next page").hover()
    assert page.evaluate(browser.PALE_TEXT) == []


# --- whatever the database holds -----------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("state", ["hostile names", "hostile text"])
def test_markup_in_a_database_stays_text(visitor: Visit, state: str) -> None:
    """Scripts in names, titles and texts do not run, load nothing, and are shown as they are."""
    page = reach(visitor, state)
    page.locator(".recall-items > li").first.wait_for()
    assert SCRIPT in page.locator(".recall-chips").first.inner_text()
    assert SCRIPT in " ".join(titles(page))
    assert page.locator(".content :is(script, img, svg)").count() == 0
    page.get_by_role("button", name="Recall").click()
    page.get_by_role("heading", name="concepts found").wait_for()
    assert visitor.problems == []


# --- finding a browser ---------------------------------------------------------------------------


@pytest.fixture
def no_browser(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    monkeypatch.delenv("REQUIRE_BROWSER", raising=False)


@pytest.mark.usefixtures("no_browser")
@pytest.mark.parametrize(
    ("required", "outcome"), [("0", pytest.skip.Exception), ("1", pytest.fail.Exception)]
)
def test_without_a_browser_it_is_said_what_to_install(
    monkeypatch: pytest.MonkeyPatch, required: str, outcome: type[BaseException]
) -> None:
    """A missing Chromium is a visible skip, and a failure where REQUIRE_BROWSER=1."""
    monkeypatch.setenv("REQUIRE_BROWSER", required)
    with pytest.raises(outcome, match="install Debian's package chromium"):
        browser.require(browser.find_chromium())


@pytest.mark.usefixtures("no_browser")
def test_the_browser_can_be_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """CHROMIUM is used before anything on the path."""
    named = tmp_path / "my-browser"
    named.write_text("#!/bin/sh\n")
    named.chmod(0o755)
    (tmp_path / "chromium").write_text("#!/bin/sh\n")
    (tmp_path / "chromium").chmod(0o755)
    assert browser.find_chromium() == str(tmp_path / "chromium")
    monkeypatch.setenv("CHROMIUM", str(named))
    assert browser.find_chromium() == str(named)
