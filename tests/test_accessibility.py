"""Our pages for everybody: no rule of axe-core broken, narrow, with the keyboard, to be read."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

import axe
import browser
from browser import Visit
from conftest import IS_1_0
from visits import PLACES, ask, every_ingredient, everywhere, on_every_page, reach

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser

OF_DATASETTE = set() if IS_1_0 else {("html-has-lang", "html")}
"""The rules that Datasette itself breaks around our content, and where."""


@pytest.fixture
def visitor(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["wide"], address) as visit:
        yield visit


@pytest.fixture
def phone(windows: dict[str, BrowserContext], address: str) -> Iterator[Visit]:
    with browser.visit(windows["phone"], address) as visit:
        yield visit


# --- rules ---------------------------------------------------------------------------------------


@everywhere
@pytest.mark.parametrize("window", browser.WINDOWS)
def test_no_rule_that_matters_is_broken(
    windows: dict[str, BrowserContext], address: str, window: str, name: str
) -> None:
    """axe-core finds nothing serious or critical, wide or narrow, with JavaScript or without."""
    with browser.visit(windows[window], address) as visit:
        found = axe.findings(reach(visit, name), PLACES[name].ours)
    severe = [finding for finding in found if finding.impact in axe.SEVERE]
    assert [finding for finding in severe if finding.ours] == []
    if PLACES[name].ours == ".content":
        assert {(finding.rule, finding.place) for finding in severe} == OF_DATASETTE


BROKEN = """<!doctype html><html lang=en><title>Broken</title><nav><img src="data:,"></nav>
<main class="content"><h1>Broken</h1><input><p style="color: #ccc">pale</p>
<select id=a></select><script>document.title = ''; a.ariaLabel = 'named'</script></main>"""


@pytest.mark.parametrize("window", browser.WINDOWS)
def test_broken_rules_are_found_with_and_without_script(
    windows: dict[str, BrowserContext], window: str
) -> None:
    """What is wrong with a page is found, told apart by place, and as that window shows it."""
    page = windows[window].new_page()
    page.route("**/*", lambda route: route.fulfill(body=BROKEN, content_type="text/html"))
    page.goto("http://broken.example/")
    found = {(finding.rule, finding.ours) for finding in axe.findings(page, ".content")}
    page.close()
    always = {("image-alt", False), ("label", True), ("color-contrast", True)}
    only = ("select-name", True) if "without" in window else ("document-title", False)
    assert found == always | {only}


@on_every_page
def test_nothing_is_wider_than_a_telephone(phone: Visit, name: str) -> None:
    """At 400 pixels no page scrolls sideways, whatever the database holds."""
    page = reach(phone, name)
    assert page.evaluate("document.documentElement.scrollWidth") <= browser.WIDTHS["phone"]
    assert page.evaluate(browser.WIDER_THAN_THE_WINDOW) == []


@on_every_page
def test_structure_and_names_are_there_for_screen_readers(visitor: Visit, name: str) -> None:
    """In every state headings nest without a gap, and fields, links and buttons have names."""
    page = reach(visitor, name)
    levels = [int(tag[1]) for tag in page.evaluate(browser.TAGS_OF_HEADINGS)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))
    assert page.locator(".recall-items > li:not(:has(h3))").count() == 0
    assert page.evaluate(browser.FIELDS_WITHOUT_A_LABEL) == []
    assert page.evaluate(browser.CONTROLS_WITHOUT_A_NAME) == []


@on_every_page
def test_text_stands_out_from_its_background(visitor: Visit, name: str) -> None:
    """All text of the page has a contrast of at least 4.5 to 1."""
    assert reach(visitor, name).evaluate(browser.PALE_TEXT) == []


@on_every_page
def test_the_tab_key_goes_through_a_page_in_order_and_shows_where_it_is(
    visitor: Visit, name: str
) -> None:
    """Tab reaches everything that can be operated, downwards, each one outlined and in sight."""
    page = reach(visitor, name)
    page.locator("header a").first.focus()
    stops: list[dict[str, object]] = []
    while True:
        page.keyboard.press("Tab")
        stop = page.evaluate(browser.STOP)
        if stop:
            stops.append(stop)
        elif stops:
            break
    assert [stop["place"] for stop in stops] == list(range(page.locator(browser.FOCUSABLE).count()))
    assert [stop for stop in stops if not (stop["outlined"] and stop["in_sight"])] == []
    assert page.evaluate(browser.SHOWN_IN_ANOTHER_ORDER) == []


def test_a_button_that_looks_like_a_link_can_be_read_under_the_pointer(visitor: Visit) -> None:
    """Pointing at the next page does not make its words vanish."""
    page = visitor.recall("kitchen")
    ask(page, every_ingredient())
    page.get_by_role("button", name="Next page").hover()
    assert page.evaluate(browser.PALE_TEXT) == []
