"""How often the page of the sources is asked for again, in a real browser whose clock stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import datasette_concept_recall

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

SCRIPT = Path(datasette_concept_recall.__file__).parent / "static" / "sources.js"
ADDRESS = "http://sources.test/"
SERVER = """() => {
  window.asked = 0;
  window.list = () => `<div id="recall-sources" ${window.mark}>${window.asked}</div>`;
  window.fetch = async () => { window.asked += 1; return { text: async () => window.list() }; };
}"""
"""Answers in the page itself, so that an answer is there as soon as it is asked for."""
HIDE = """(isHidden) => {
  Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


class Sources:
    """A page of sources whose list has a mark, such as ``data-busy``, for as long as it is told."""

    def __init__(self, page: Page) -> None:
        self.page = page
        page.clock.install(time=0)
        page.route(ADDRESS, lambda route: route.fulfill(body="", content_type="text/html"))

    def open(self, mark: str) -> None:
        """Shows the page for the first time, at a moment at which time stands."""
        self.page.goto(ADDRESS)
        self.page.clock.pause_at(60)
        self.page.evaluate(SERVER)
        self.becomes(mark)
        self.page.evaluate("document.body.innerHTML = list()")
        self.page.add_script_tag(content=SCRIPT.read_text("utf-8"))
        self.page.evaluate("dispatchEvent(new Event('pageshow'))")

    def becomes(self, mark: str) -> None:
        """What the list is marked with the next time that it is asked for."""
        self.page.evaluate("(mark) => { window.mark = mark; }", mark)

    def hide(self, is_hidden: bool) -> None:
        """Another tab is looked at, or this one again."""
        self.page.evaluate(HIDE, is_hidden)

    @property
    def asked(self) -> int:
        """How often the page was asked for so far."""
        return int(self.page.evaluate("asked"))

    def asked_in(self, milliseconds: int) -> int:
        """How often the page is asked for while so much time passes; what it shows is the last."""
        before = self.asked
        self.page.clock.run_for(milliseconds)
        assert self.page.locator("#recall-sources").inner_text() == str(self.asked)
        return self.asked - before


@pytest.fixture
def sources(chromium: Browser) -> Iterator[Sources]:
    """A page of its own, closed at the end."""
    page = chromium.new_page()
    yield Sources(page)
    page.close()


@pytest.mark.parametrize(("mark", "pause"), [("data-busy", 2_000), ("data-kept", 5_000)])
def test_what_changes_by_itself_is_asked_for_again_and_again(
    sources: Sources, mark: str, pause: int
) -> None:
    """Often while something runs, and seldom while something could begin to."""
    sources.open(mark)
    for _ in range(3):
        assert sources.asked_in(pause - 1) == 0
        assert sources.asked_in(1) == 1


def test_what_nobody_keeps_fresh_is_left_alone(sources: Sources) -> None:
    """It stays as it is, however long it is looked at."""
    sources.open("")
    assert sources.asked_in(600_000) == 0


def test_the_pace_follows_what_is_seen(sources: Sources) -> None:
    """A run that begins by itself is noticed, and followed quickly until it ends."""
    sources.open("data-kept")
    sources.becomes("data-busy")
    assert sources.asked_in(5_000) == 1
    sources.becomes("data-kept")
    assert sources.asked_in(2_000) == 1
    assert sources.asked_in(4_999) == 0
    assert sources.asked_in(1) == 1


@pytest.mark.parametrize("mark", ["data-busy", "data-kept"])
def test_a_page_in_the_background_asks_for_nothing(sources: Sources, mark: str) -> None:
    """Once it is looked at again it is asked for at once, and then as before."""
    sources.open(mark)
    sources.hide(True)
    assert sources.asked_in(600_000) == 0
    asked = sources.asked
    sources.hide(False)
    assert sources.asked == asked + 1
    assert sources.asked_in(5_000) >= 1
