"""The page in a real browser: asked, narrowed and paged by hand, without scripts, under attack."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import browser
from browser import Visit
from hostile import SCRIPT
from visits import QUESTION, ask, every_ingredient, long_text, reach

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext, Page


@pytest.fixture
def visitor(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["wide"], address) as visit:
        yield visit


@pytest.fixture
def without_script(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["wide without script"], address) as visit:
        yield visit


def titles(page: Page) -> list[str]:
    return page.locator(".recall-items h3").all_inner_texts()


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
    page.get_by_role("button", name="Recall", exact=True).click()
    page.get_by_role("heading", name="1 concept found").wait_for()


@pytest.mark.browser
@pytest.mark.parametrize(
    ("start", "menu", "link", "heading"),
    [
        ("/", ".nav-menu", "Recall", "Recall in all databases"),
        ("/kitchen/projects", ".nav-menu", "Recall", "Recall in all databases"),
        ("/kitchen", ".actions-menu-links", "Recall by concept", "Recall in kitchen"),
        ("/kitchen/records", ".actions-menu-links", "Recall by concept", "Recall in kitchen"),
    ],
)
def test_the_page_is_found_from_datasettes_own_pages(
    visitor: Visit, start: str, menu: str, link: str, heading: str
) -> None:
    """The menu of every page and the actions of a database or table lead to Recall."""
    page = visitor.page
    page.goto(visitor.address + start)
    page.locator(f"{menu} summary").click()
    page.locator(f"{menu} a", has_text=link).click()
    page.get_by_role("heading", name=heading, level=1).wait_for()


# --- whatever the database holds -----------------------------------------------------------------


@pytest.mark.browser
@pytest.mark.parametrize("name", ["hostile names", "hostile markup", "every hostile name"])
def test_markup_in_a_database_stays_text(visitor: Visit, name: str) -> None:
    """Scripts in names, titles and texts do not run, load nothing, and are shown as they are."""
    page = reach(visitor, name)
    page.locator(".recall-items > li").first.wait_for()
    assert SCRIPT in page.locator(".recall-chips").first.inner_text()
    assert SCRIPT in " ".join(titles(page))
    assert page.locator(".content :is(script, img, svg)").count() == 0
    page.get_by_role("button", name="Recall", exact=True).click()
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
