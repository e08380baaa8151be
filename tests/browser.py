"""A real Datasette and a real Chromium for tests: found, started, watched and stopped again.

Playwright's synchronous interface occupies the event loop of its thread as long as it is open, so
it is opened per module: modules that use it hold no asynchronous tests.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Dialog, Page, Route

COMMANDS = ("chromium", "chromium-browser", "google-chrome")
MISSING = (
    "no Chromium: install Debian's package chromium, or set CHROMIUM to the path of a Chromium"
    " or Chrome; and pip install playwright"
)
START_SECONDS = 60
PATIENCE = 15_000
"""Milliseconds after which something is not going to appear on a page."""
WIDTHS = {"wide": 1200, "phone": 400}
WINDOWS = ["wide", "wide without script", "phone", "phone without script"]
"""The names of `windows`; widths are in CSS pixels."""

_ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_address = re.compile(r"running on (http://\S+)").search


def find_chromium() -> str | None:
    """The browser to use: what CHROMIUM says, or the first of the usual names on the path."""
    named = os.environ.get("CHROMIUM")
    return next(filter(None, map(shutil.which, [named] if named else COMMANDS)), None)


def require(chromium: str | None) -> str:
    """The browser; without one the test is skipped, or fails where REQUIRE_BROWSER=1."""
    if chromium:
        return chromium
    if os.environ.get("REQUIRE_BROWSER") == "1":
        pytest.fail(MISSING, pytrace=False)
    pytest.skip(MISSING)


@contextmanager
def chromium() -> Iterator[Browser]:
    """A headless Chromium, closed at the end."""
    path = require(find_chromium())
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        require(None)
        raise
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=_ARGUMENTS)
        yield browser
        browser.close()


@contextmanager
def served(
    folder: Path, *databases: Path, options: Sequence[str] = (), only_plugin: str | None = None
) -> Iterator[str]:
    """The address of ``python -m datasette`` with these databases; it logs into the folder."""
    log = folder / "datasette.log"
    files = map(str, databases)
    command = [sys.executable, "-m", "datasette", "serve", *files, "--port", "0", *options]
    kept = {key: value for key, value in os.environ.items() if not key.startswith("DATASETTE_")}
    if only_plugin:
        kept["DATASETTE_LOAD_PLUGINS"] = only_plugin
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder, env=kept)
    try:
        yield wait_for_address(process, log)
    finally:
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_address(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where a Datasette that writes into this log answers; a failure when it ends before."""
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline and process.poll() is None:
        found = _address(log.read_text())
        if found:
            return found[1]
        time.sleep(0.05)
    pytest.fail(f"Datasette did not start:\n{log.read_text()}", pytrace=False)


@dataclass
class Visit:
    """A page of the browser, and everything that should not have happened on it."""

    page: Page
    address: str
    problems: list[str] = field(default_factory=list)

    def recall(self, database: str, **parameters: str | list[str]) -> Page:
        """Opens the Recall page of a database (its name as it stands in addresses)."""
        query = urlencode(parameters, doseq=True)
        self.page.goto(f"{self.address}/{database}/-/recall" + (f"?{query}" if query else ""))
        return self.page

    def watch(self) -> None:
        """Notes dialogs, errors, and requests to anywhere else, which are not made."""
        self.page.on("dialog", self._dialog)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.route("**/*", self._request)

    def _dialog(self, dialog: Dialog) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _console(self, message: ConsoleMessage) -> None:
        # Chromium reports the status of an error page there; that is what was asked for.
        if message.type == "error" and "responded with a status of 4" not in message.text:
            self.problems.append(f"console: {message.text}")

    def _request(self, route: Route) -> None:
        if route.request.url.startswith((self.address, "data:")):
            route.continue_()
        else:
            self.problems.append(f"request: {route.request.url[:200]}")
            route.abort()


@contextmanager
def windows(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """Wide and narrow, with and without JavaScript; opening one takes longer than most visits."""
    opened = {
        f"{name}{'' if scripts else ' without script'}": browser.new_context(
            viewport={"width": width, "height": 800}, java_script_enabled=scripts
        )
        for name, width in WIDTHS.items()
        for scripts in (True, False)
    }
    for context in opened.values():
        context.set_default_timeout(PATIENCE)
    yield opened
    for context in opened.values():
        context.close()


@contextmanager
def visit(context: BrowserContext, address: str) -> Iterator[Visit]:
    """A visitor with a page of its own; the visit ends well when nothing untoward happened."""
    page = context.new_page()
    try:
        made = Visit(page, address.rstrip("/"))
        made.watch()
        yield made
        assert made.problems == []
    finally:
        page.close()


# --- what to ask a page, as JavaScript for `Page.evaluate` ---------------------------------------

WIDER_THAN_THE_WINDOW = """() => [...document.querySelectorAll('.content *')]
    .filter(e => e.getBoundingClientRect().right > innerWidth + 0.5)
    .map(e => e.outerHTML.slice(0, 100))"""
TAGS_OF_HEADINGS = "[...document.querySelectorAll('h1, h2, h3, h4, h5, h6')].map(h => h.tagName)"
FIELDS_WITHOUT_A_LABEL = """() => [...document.querySelectorAll(
        '.content :is(input, textarea, select):not([type=hidden], [type=submit])')]
    .filter(e => ![...e.labels].some(label => label.textContent.trim()))
    .map(e => e.outerHTML.slice(0, 100))"""
CONTROLS_WITHOUT_A_NAME = """() => [...document.querySelectorAll(
        '.content :is(a, button, summary)')]
    .filter(e => !(e.getAttribute('aria-label') || e.textContent).trim())
    .map(e => e.outerHTML.slice(0, 100))"""
PALE_TEXT = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const over = (top, below) => {
        const alpha = top.length > 3 ? top[3] : 1;
        return [0, 1, 2].map(i => top[i] * alpha + below[i] * (1 - alpha));
    };
    const background = e => {
        const below = e.parentElement ? background(e.parentElement) : [255, 255, 255];
        return over(numbers(getComputedStyle(e).backgroundColor), below);
    };
    const luminance = colour => colour
        .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const own = e => e.matches('input[type=submit], textarea')
        || [...e.childNodes].some(n => n.nodeType === 3 && n.data.trim());
    return [...document.querySelectorAll('.content *')].filter(own).filter(e => {
        const below = background(e);
        const pair = [below, over(numbers(getComputedStyle(e).color), below)].map(luminance);
        return (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05) < 4.5;
    }).map(e => e.outerHTML.slice(0, 100));
}"""
FOCUSABLE = (
    ".content :is(a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex])"
)
STOP = f"""() => {{
    const e = document.activeElement, style = getComputedStyle(e), box = e.getBoundingClientRect();
    return e.closest('.content') && {{
        element: e.outerHTML.slice(0, 100),
        place: [...document.querySelectorAll('{FOCUSABLE}')].indexOf(e),
        outlined: style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2,
        in_sight: box.width > 0 && box.bottom > 0 && box.top < innerHeight
            && box.right > 0 && box.left < innerWidth,
    }};
}}"""
SHOWN_IN_ANOTHER_ORDER = """() => [...document.querySelectorAll('.content *')]
    .filter(e => e.tabIndex > 0 || getComputedStyle(e).order !== '0'
        || getComputedStyle(e).flexDirection.endsWith('-reverse'))
    .map(e => e.outerHTML.slice(0, 100))"""
