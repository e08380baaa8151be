"""Search as you type in a real browser, with a clock that only the test moves."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from browser import Visit
from visits import QUESTION, every_ingredient, long_text

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, Request, Route

pytestmark = pytest.mark.browser

PAUSE, QUIET = 250, 750
"""As in the script, in milliseconds."""

START = datetime(2026, 1, 1, tzinfo=timezone.utc)


class Typist(Visit):
    """A visitor who types, and for whom time passes only when it is said so."""

    def open(self, database: str = "kitchen", **parameters: str | list[str]) -> Page:
        """The Recall page, finished, with its clock stopped and the caret in the text."""
        self.page.clock.install(time=START)
        page = self.recall(database, **parameters)
        page.wait_for_load_state()
        page.clock.pause_at(START + timedelta(hours=1))
        page.evaluate("window.sameDocument = true")
        self.text.focus()
        page.keyboard.press("Control+End")
        self.asked: list[Request] = []
        page.on("request", lambda request: self.asked.append(request))
        return page

    @property
    def text(self) -> Locator:
        return self.page.get_by_role("textbox")

    @property
    def results(self) -> Locator:
        return self.page.locator("#recall-results")

    @property
    def announced(self) -> str:
        return self.page.locator("#recall-status").inner_text()

    def type(self, text: str) -> None:
        """Presses the keys of a text one after the other, in no time."""
        self.page.keyboard.type(text)

    def wait(self, milliseconds: int = PAUSE) -> None:
        """Lets time pass in the page."""
        self.page.clock.run_for(milliseconds)

    def see(self, heading: str) -> None:
        """Waits until no answer is on its way and a heading stands among the results."""
        self.page.locator("#recall-results:not([aria-busy])").wait_for(state="attached")
        self.page.get_by_role("heading", name=heading).wait_for()

    def search(self, text: str, heading: str) -> None:
        """Types a text, waits for its results, and long enough to hear them."""
        self.type(text)
        self.wait()
        self.see(heading)
        self.wait(QUIET)


@pytest.fixture
def typist(chromium: Browser, address: str) -> Iterator[Typist]:
    context = chromium.new_context(viewport={"width": 1200, "height": 800})
    visit = Typist(context.new_page(), address.rstrip("/"))
    visit.watch()
    yield visit
    context.close()
    assert visit.problems == []


def hold(page: Page, matching: Callable[[Request], bool]) -> list[Route]:
    """Keeps back such requests for the page; the routes by which to let them go."""
    held: list[Route] = []

    def handle(route: Route) -> None:
        if matching(route.request):
            held.append(route)
        else:
            route.fallback()

    page.route("**/-/recall*", handle)
    return held


def until(page: Page, condition: Callable[[], bool]) -> None:
    """Waits for what cannot be seen in the page."""
    for _ in range(2000):
        if condition():
            return
        page.wait_for_timeout(5)
    pytest.fail("it did not happen")


# --- results follow ------------------------------------------------------------------------------


def test_results_and_address_follow_the_text_after_a_pause(typist: Typist) -> None:
    """Keys in a row are one question, asked a pause after the last; nothing is loaded anew."""
    page = typist.open()
    typist.type("Is butter go")
    typist.wait(PAUSE - 1)
    typist.type("od on toast?")
    typist.wait(PAUSE - 1)
    assert typist.asked == []
    typist.wait(1)
    typist.see("2 concepts found")
    assert [request.method for request in typist.asked] == ["GET"]
    assert page.url == f"{typist.address}/kitchen/-/recall?q=Is+butter+good+on+toast%3F"
    assert page.title() == "Recall in kitchen: Is butter good on toast?"
    assert page.evaluate("window.sameDocument")


def test_what_is_shown_is_the_page_that_is_there_without_script(
    typist: Typist, chromium: Browser
) -> None:
    """After typing the results are to the letter those of the same address without JavaScript."""
    page = typist.open()
    typist.search(QUESTION, "2 concepts found")
    context = chromium.new_context(java_script_enabled=False)
    plain = context.new_page()
    plain.goto(page.url)
    assert plain.locator("#recall-results").inner_html() == typist.results.inner_html()
    assert plain.get_by_role("textbox").input_value() == QUESTION
    assert plain.title() == page.title()
    context.close()


def test_focus_and_caret_stay_where_they_are(typist: Typist) -> None:
    """Somebody who corrects the middle of a text goes on there when the results have come."""
    page = typist.open(q="butter toast")
    page.keyboard.press("Home")
    typist.type("ingredient number 7 ")
    typist.wait()
    typist.see("3 concepts found")
    typist.type("and ")
    assert typist.text.input_value() == "ingredient number 7 and butter toast"


def test_kept_filters_go_along_and_can_be_let_go(typist: Typist) -> None:
    """Concepts and kinds that are kept hold for the text typed, and results follow their boxes."""
    page = typist.open(concept="toast", type="record")
    typist.type("butter")
    typist.wait()
    typist.see("2 concepts found")
    assert page.url.endswith("?q=butter&concept=toast&type=record")
    page.get_by_label("kind Record").uncheck()
    typist.wait()
    typist.see("1–20 of 37 items")
    assert page.url.endswith("?q=butter&concept=toast")


def test_a_text_that_is_deleted_leaves_the_page_as_it_began(typist: Typist) -> None:
    """Without text there are no results, no parameter and nothing to announce."""
    page = typist.open(q="butter")
    before = page.url.partition("?")[0]
    page.keyboard.press("Control+A")
    page.keyboard.press("Delete")
    typist.wait()
    page.locator(".recall-intro").wait_for()
    assert page.url == before
    typist.wait(QUIET)
    assert typist.announced == ""


def test_nothing_is_asked_when_the_text_is_again_what_is_shown(typist: Typist) -> None:
    """Results stay when the text comes back to what they answer, whatever was on its way."""
    page = typist.open(q="butter")
    held = hold(page, lambda request: "q=butters" in request.url)
    typist.type("s")
    typist.wait()
    until(page, lambda: len(held) == 1)
    page.keyboard.press("Backspace")
    typist.wait()
    assert typist.results.get_attribute("aria-busy") is None
    typist.wait(QUIET)
    assert typist.announced == "30 items, 1 concept"
    assert page.url.endswith("?q=butter")
    assert len(typist.asked) == 1


@pytest.mark.parametrize("can_abort", [True, False])
def test_an_answer_that_comes_too_late_is_dropped(typist: Typist, can_abort: bool) -> None:
    """The results are those of the last text, whichever answer arrives last."""
    page = typist.page
    page.add_init_script(COUNT_PAGES)
    if not can_abort:
        page.add_init_script("AbortController.prototype.abort = () => {}")
    typist.open()
    held = hold(page, lambda request: request.url.endswith("q=butter"))
    typist.type("butter")
    typist.wait()
    until(page, lambda: len(held) == 1)
    assert typist.results.get_attribute("aria-busy") == "true"
    typist.search(" toast", "2 concepts found")
    held[0].continue_()
    if not can_abort:
        until(page, lambda: page.evaluate("window.pages") == 2)
    assert page.locator(".recall-echo mark").all_inner_texts() == ["butter", "toast"]
    assert page.url.endswith("q=butter+toast")
    assert [request.failure for request in typist.asked] == [
        "net::ERR_ABORTED" if can_abort else None,
        None,
    ]


COUNT_PAGES = """window.pages = 0;
const parse = DOMParser.prototype.parseFromString;
DOMParser.prototype.parseFromString = function (...given) {
    window.pages += 1;
    return parse.apply(this, given);
}"""


def test_nothing_is_asked_while_characters_are_composed(typist: Typist) -> None:
    """With an input method, results wait until a word is chosen, even for what came before it."""
    page = typist.open()
    keyboard = page.context.new_cdp_session(page)
    typist.type("butter ")
    for composed in ("t", "to", "とうす"):
        keyboard.send(
            "Input.imeSetComposition", {"text": composed, "selectionStart": 1, "selectionEnd": 1}
        )
        typist.wait(10 * PAUSE)
    assert typist.text.input_value() == "butter とうす"
    assert typist.asked == []
    keyboard.send("Input.insertText", {"text": "toast"})
    typist.wait()
    typist.see("2 concepts found")
    assert len(typist.asked) == 1


# --- what is heard and seen ----------------------------------------------------------------------


def test_a_screen_reader_is_told_once_when_the_keys_rest(typist: Typist) -> None:
    """How much was found is announced some time after the results, and not between the keys."""
    page = typist.open()
    assert page.locator("#recall-status").get_attribute("role") == "status"
    page.evaluate(NOTE_ANNOUNCEMENTS)
    for keys, heading in (("butter", "1 concept found"), (" toast", "2 concepts found")):
        typist.type(keys)
        typist.wait()
        typist.see(heading)
        typist.wait(QUIET - PAUSE)
    assert page.evaluate("window.announced") == []
    typist.wait(QUIET)
    assert typist.announced == "37 items, 2 concepts"
    typist.type(" ")
    assert typist.announced == ""
    typist.search(" ", "2 concepts found")
    assert page.evaluate("window.announced") == 2 * ["37 items, 2 concepts"]
    typist.search("ingredient number 7", "3 concepts found")
    assert typist.announced == "38 items, 3 concepts"


NOTE_ANNOUNCEMENTS = """window.announced = [];
const status = document.getElementById('recall-status');
new MutationObserver(() => status.textContent && window.announced.push(status.textContent))
    .observe(status, {childList: true});"""


@pytest.mark.parametrize(("motion", "seconds"), [("no-preference", "0.3s"), ("reduce", "0s")])
def test_nothing_fades_for_those_who_want_no_motion(
    typist: Typist, motion: str, seconds: str
) -> None:
    """Results that are out of date fade only where the system does not ask for less motion."""
    typist.page.emulate_media(reduced_motion="reduce" if motion == "reduce" else "no-preference")
    page = typist.open(q="butter")
    hold(page, lambda request: True)
    typist.type("s")
    typist.wait()
    duration = "getComputedStyle(document.getElementById('recall-results')).transitionDuration"
    assert page.evaluate(duration) == seconds


def test_who_went_on_to_the_results_is_not_thrown_back_by_new_ones(typist: Typist) -> None:
    """When results are exchanged under the keyboard's focus, it stays at their beginning."""
    page = typist.open(q="butter")
    held = hold(page, lambda request: "q=butter+toast" in request.url)
    typist.type(" toast")
    typist.wait()
    until(page, lambda: len(held) == 1)
    page.locator(".recall-items a").first.focus()
    held[0].continue_()
    typist.see("2 concepts found")
    assert page.evaluate("document.activeElement.id") == "recall-results"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('.recall-chip') !== null")


# --- sending, going back, going on ---------------------------------------------------------------


def test_the_button_needs_no_pause_and_loads_nothing_anew(typist: Typist) -> None:
    """Recall answers at once and in place, says so, and the keyboard stays at the button."""
    page = typist.open()
    typist.type("butter")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    typist.see("1 concept found")
    typist.wait(1)
    assert typist.announced == "30 items, 1 concept"
    assert page.evaluate("window.sameDocument")
    assert page.evaluate("document.activeElement.value") == "Recall"
    typist.wait(10 * PAUSE)
    assert len(typist.asked) == 1
    entries = page.evaluate("history.length")
    page.keyboard.press("Enter")
    until(page, lambda: len(typist.asked) == 2)
    typist.see("1 concept found")
    assert page.evaluate("history.length") == entries


def test_the_button_leads_to_the_first_page_again(typist: Typist) -> None:
    """On a page that follows, the same text sent again is answered from its beginning."""
    typist.recall("kitchen", q="butter")
    following = typist.page.get_by_role("link", name="Next page").get_attribute("href")
    page = typist.open(q="butter", _next=str(following).rpartition("_next=")[2])
    typist.see("21–30 of 30 items")
    page.get_by_role("button", name="Recall", exact=True).click()
    typist.see("1–20 of 30 items")
    assert page.url.endswith("/kitchen/-/recall?q=butter")


def test_a_text_that_was_left_before_it_was_asked_is_asked_later(typist: Typist) -> None:
    """When a browser puts such a text back into the form, results follow it."""
    page = typist.open(q="butter")
    typist.type(" toast")
    page.goto(f"{typist.address}/kitchen")
    page.go_back()
    assert typist.text.input_value() == "butter toast"
    typist.wait()
    typist.see("2 concepts found")


def test_who_types_while_an_earlier_entry_is_fetched_does_not_lose_it(typist: Typist) -> None:
    """What is typed after going back is a new entry, behind the one that was gone back to."""
    page = typist.open(q="butter")
    typist.type(" toast")
    typist.wait()
    typist.see("2 concepts found")
    held = hold(page, lambda request: request.url.endswith("?q=butter"))
    page.go_back()
    until(page, lambda: len(held) == 1)
    typist.search(" ingredient number 7", "3 concepts found")
    page.unroute_all()
    page.go_back()
    typist.see("1 concept found")
    assert page.url.endswith("?q=butter")


def test_back_and_forward_go_through_the_texts_that_somebody_stopped_at(typist: Typist) -> None:
    """Every stop has an entry, with its text, boxes, title and results; passing ones have none."""
    page = typist.open(concept="toast")
    entries = page.evaluate("history.length")
    typist.type("butt")
    typist.wait()
    until(page, lambda: "q=butt&" in page.url)
    typist.search("er", "2 concepts found")
    page.get_by_label("concept toast").uncheck()
    typist.wait()
    typist.see("1 concept found")
    typist.wait(QUIET)
    assert page.evaluate("history.length") == entries + 2

    page.go_back()
    typist.see("2 concepts found")
    assert typist.text.input_value() == "butter"
    assert page.get_by_label("concept toast").is_checked()
    assert page.title() == "Recall in kitchen: butter"
    page.go_back()
    typist.see("1 concept found")
    assert (typist.text.input_value(), page.url.partition("?")[2]) == ("", "concept=toast")
    page.go_forward()
    typist.see("2 concepts found")
    page.go_forward()
    typist.see("1 concept found")
    assert page.url.endswith("?q=butter")
    assert typist.text.input_value() == "butter"
    assert page.locator(".recall-kept input:checked").count() == 0
    assert page.evaluate("window.sameDocument")


def test_who_comes_back_from_an_item_finds_the_results_again(typist: Typist) -> None:
    """Behind a link of the results the way back leads to the text that was typed."""
    page = typist.open()
    typist.search("butter", "1 concept found")
    page.locator(".recall-items a").first.click()
    page.wait_for_url("**/kitchen/observations/*")
    page.go_back()
    typist.see("1 concept found")
    assert typist.text.input_value() == "butter"


def test_a_text_that_no_address_can_hold_is_answered_and_found_again(typist: Typist) -> None:
    """A long text is posted; going back to it, or loading the page again, brings it back."""
    page = typist.open()
    text = long_text(QUESTION)[-9_000:]
    typist.text.fill(text)
    typist.wait(PAUSE + len(text) // 1000)
    typist.see("2 concepts found")
    assert [request.method for request in typist.asked] == ["POST"]
    assert page.url == f"{typist.address}/kitchen/-/recall"
    assert typist.text.input_value() == text
    typist.wait(QUIET)

    typist.text.fill("butter")
    typist.wait()
    typist.see("1 concept found")
    page.go_back()
    typist.see("2 concepts found")
    assert typist.text.input_value() == text
    page.reload()
    typist.see("2 concepts found")
    assert typist.text.input_value() == text


def test_buttons_among_the_results_send_what_they_say(typist: Typist) -> None:
    """Where links would be too long the next page is a button, which works as without script."""
    page = typist.open()
    typist.text.fill(every_ingredient())
    typist.wait(PAUSE + len(every_ingredient()) // 1000)
    typist.see("300 concepts found")
    page.get_by_role("button", name="Next page").click()
    typist.see("21–40 of 300 items")
    assert not page.evaluate("window.sameDocument")


# --- what goes wrong -----------------------------------------------------------------------------


def test_an_error_of_the_page_is_shown_in_place_of_results(typist: Typist) -> None:
    """What is wrong with a text is said where the results were, and gone with the next one."""
    page = typist.open(q="butter")
    typist.text.fill("x" * 1_048_577)
    typist.wait(PAUSE + 1_048)
    page.get_by_role("alert").wait_for()
    assert page.get_by_role("alert").inner_text() == "The text is longer than 1,048,576 bytes"
    typist.text.fill("toast")
    typist.wait()
    typist.see("1 concept found")
    assert page.get_by_role("alert").count() == 0


def test_an_answer_that_is_not_the_page_is_shown_as_an_error(typist: Typist) -> None:
    """Where somebody else answers, that is all that is shown, and the next key asks again."""
    page = typist.open(q="butter")
    page.route(
        "**/-/recall?q=butters",
        lambda route: route.fulfill(status=403, content_type="text/html", body="<h1>Log in</h1>"),
    )
    before = page.url
    typist.type("s")
    typist.wait()
    page.get_by_role("alert").wait_for()
    assert typist.results.inner_text() == "The results could not be loaded (status 403)."
    assert (page.url, page.get_by_role("heading", name="Log in").count()) == (before, 0)
    page.unroute("**/-/recall?q=butters")
    typist.type("s")
    page.keyboard.press("Backspace")
    typist.wait()
    page.locator(".zero-results").wait_for()
    page.keyboard.press("Backspace")
    typist.wait()
    typist.see("1 concept found")


def test_the_script_needs_no_permission_but_to_be_loaded(chromium: Browser, address: str) -> None:
    """It works under a policy that allows scripts of the server alone, and asks nobody else."""
    context = chromium.new_context()
    page = context.new_page()

    def with_policy(route: Route) -> None:
        response = route.fetch()
        policy = "default-src 'self'; style-src 'self' 'unsafe-inline'"
        headers = {**response.headers, "content-security-policy": policy}
        route.fulfill(response=response, headers=headers)

    page.route("**/*", with_policy)
    page.goto(f"{address.rstrip('/')}/kitchen/-/recall")
    page.get_by_role("textbox").fill("butter")
    page.get_by_role("heading", name="1 concept found").wait_for()
    assert page.url.endswith("?q=butter")
    context.close()
