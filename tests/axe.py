"""axe-core in a page of the browser: what stands in the way of people with disabilities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from playwright.sync_api import Page

SEVERE = ("serious", "critical")
"""The upper two of the four degrees in which axe-core says how much something matters."""

# <navigation-search> of Datasette 1.0 has a property that hides the method `matches`, which
# axe-core calls.
_RUN = """async (ours) => {
    [...document.querySelectorAll('*')].forEach(e => delete e.matches);
    const result = await axe.run(document, {resultTypes: ['violations'], elementRef: true});
    return result.violations.flatMap(rule => rule.nodes.map(node => ({
        rule: rule.id,
        impact: node.impact,
        place: node.target.flat(Infinity).join(' '),
        ours: node.element.closest(ours) !== null,
        element: node.html.slice(0, 200),
    })));
}"""


@dataclass(frozen=True)
class Finding:
    """An element that breaks a rule: its selector is `place`, and whether we wrote it is `ours`."""

    rule: str
    impact: str
    place: str
    ours: bool
    element: str


@cache
def source() -> str:
    """The script, of which the package that ships it is only the carrier."""
    return (files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")


def findings(page: Page, ours: str) -> list[Finding]:
    """What axe-core finds in a page as it is now; ours is what stands in that selector.

    Whether the window allows scripts makes no difference to it. The page is of no use afterwards.
    """
    _let_scripts_run(page)
    page.evaluate(source())
    return [Finding(**found) for found in page.evaluate(_RUN, ours)]


def _let_scripts_run(page: Page) -> None:
    """Lifts the ban on scripts of a window from a page that was loaded under it.

    The page stays as it is without JavaScript, but axe-core, which waits for timers, can run.
    """
    session = page.context.new_cdp_session(page)
    # A session that never forbade scripts has nothing to allow: Chromium ignores it.
    for forbidden in (True, False):
        session.send("Emulation.setScriptExecutionDisabled", {"value": forbidden})
    session.detach()
