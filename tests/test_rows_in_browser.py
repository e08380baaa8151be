"""The panel on the pages of rows in a real browser: narrow, with the keyboard, under attack."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import browser
from hostile import SCRIPT
from visits import reach

if TYPE_CHECKING:
    from playwright.sync_api import BrowserContext

pytestmark = pytest.mark.browser

WIDER = browser.WIDER_THAN_THE_WINDOW.replace(".content *", ".concept-recall-row *")
PALE = browser.PALE_TEXT.replace("'.content *'", "'.concept-recall-row *'")


@pytest.mark.parametrize("name", ["row", "row with every name"])
@pytest.mark.parametrize("window", browser.WINDOWS)
def test_a_panel_is_no_wider_than_the_window_and_can_be_read(
    windows: dict[str, BrowserContext], address: str, window: str, name: str
) -> None:
    """Whatever names a row has, with and without script, all of it is in sight and dark enough."""
    with browser.visit(windows[window], address) as visit:
        page = reach(visit, name)
        assert page.locator(".concept-recall-row .recall-chip").count() > 0
        assert page.evaluate(WIDER) == []
        assert page.evaluate(PALE) == []


def test_markup_in_names_and_titles_stays_text(
    windows: dict[str, BrowserContext], address: str
) -> None:
    """Nothing in the panel runs or loads anything, and it is shown as it is."""
    with browser.visit(windows["wide"], address) as visit:
        panel = reach(visit, "row with every name").locator(".concept-recall-row")
        assert SCRIPT in panel.inner_text()
        assert panel.locator(":is(script, img, svg)").count() == 0


def test_from_a_row_to_what_is_related_by_the_keyboard(
    windows: dict[str, BrowserContext], address: str
) -> None:
    """Chips and items are reached in order, outlined, and lead on."""
    with browser.visit(windows["wide"], address) as visit:
        page = reach(visit, "row")
        page.locator(".concept-recall-row a").first.focus()
        for _ in range(2):
            page.keyboard.press("Tab")
        stop = page.evaluate(browser.STOP)
        assert stop["outlined"]
        assert stop["in_sight"]
        page.keyboard.press("Enter")
        page.wait_for_url("**/kitchen/records/3")
        assert page.locator(".concept-recall-row .recall-related a").count() == 5
