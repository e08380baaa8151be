"""HTML to Markdown: what a reader of the page sees, without its machinery and what it hides."""

from __future__ import annotations

import re
from typing import Any

from .decoding import decode
from .failures import Unusable, missing
from .html_tags import tidied
from .libraries import reading
from .models import Extracted, Segment

_WHAT = "an HTML page"
_LONGEST = 10_000_000
_MOST_TAGS = 500_000
"""Beyond either, the tree of the page would need gigabytes and minutes."""

_DEEPEST = 150
"""How deep elements nest that become Markdown: each level takes some of Python's stack."""

_DEEPEST_REPAIRED = 2000
"""How deep elements nest that are ended where HTML ends them: the time goes with the square."""

_ENDED_BY = {
    "p": ("p",),
    "li": ("li",),
    "dt": ("dt", "dd"),
    "dd": ("dt", "dd"),
    "td": ("td", "th"),
    "th": ("td", "th"),
    "tr": ("td", "th", "tr"),
}
"""Elements, and those that end where they begin; the parser leaves one in the other."""

_UNSEEN = (
    "title noscript template iframe object embed applet canvas svg img picture "
    "video audio source map input select option button textarea"
)
_HIDING = re.compile(
    r"display\s*:\s*none|visibility\s*:\s*(?:hidden|collapse)|mso-hide\s*:\s*all", re.IGNORECASE
)
_LIVE_LINK = re.compile(r"(?:data|javascript|vbscript):", re.IGNORECASE)
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([\w-]+)""", re.IGNORECASE)
_GAP = re.compile(r"[ \t]{100,}")
_TABLE_PARTS = ["caption", "thead", "tbody", "tfoot", "tr", "td", "th", "colgroup"]


def read_html(data: bytes) -> Extracted:
    """An HTML page as Markdown, in one segment; its title is that of its head."""
    declared = _DECLARED.search(data[:2048])
    soup = _parsed(decode(data, declared[1].decode("ascii") if declared else None))
    with reading(_WHAT):
        title = " ".join(soup.title.get_text().split()) if soup.title else ""
        text = _markdown(soup)
    return Extracted("html", "markdown", iter([Segment(f"{text}\n")]), title or None)


def html_to_markdown(html: str) -> str:
    """The Markdown of a page or a fragment of HTML, ``""`` where nothing of it is to be seen.

    Scripts, styles, images, hidden elements and links that run something are left out; a table
    that only arranges the page is dissolved. Raises `Unusable`: ``missing_extra``, ``too_large``
    or ``invalid``.
    """
    soup = _parsed(html)
    with reading(_WHAT):
        return _markdown(soup)


def _parsed(html: str) -> Any:
    """The page as a tree of Beautiful Soup."""
    try:
        import markdownify  # noqa: F401  # what is missing is told before anything is read
        from bs4 import BeautifulSoup
    except ImportError as error:
        raise missing("html", "HTML pages") from error
    if len(html) > _LONGEST or html.count("<") > _MOST_TAGS:
        raise Unusable("too_large", "The HTML page is too large")
    with reading(_WHAT):
        # Without the end of a line Beautiful Soup warns of what looks like the name of a file.
        return BeautifulSoup(tidied(html) + "\n", "html.parser")


def _markdown(soup: Any) -> str:
    from markdownify import MarkdownConverter

    if _depth(soup) <= _DEEPEST_REPAIRED:
        _end_elements(soup)
    _remove_unseen(soup)
    if _depth(soup) > _DEEPEST:
        return soup.get_text("\n", strip=True)
    _dissolve_layout(soup)
    converter = MarkdownConverter(
        heading_style="atx",
        bullets="-",
        table_infer_header=True,
        # A name such as snake_case is searched as it is written.
        escape_asterisks=False,
        escape_underscores=False,
    )
    lines = (line.rstrip() for line in converter.convert_soup(soup).split("\n"))
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip()


def _end_elements(soup: Any) -> None:
    for element in soup.find_all(list(_ENDED_BY)):
        while (parent := element.parent) is not None and parent.name in _ENDED_BY[element.name]:
            parent.insert_after(element, *list(element.next_siblings))


def _remove_unseen(soup: Any) -> None:
    unseen = _UNSEEN.split()
    for element in soup.find_all(lambda tag: tag.name in unseen or _is_hidden(tag)):
        if not element.decomposed:
            element.decompose()
    for link in soup.find_all("a", href=True):
        # Browsers skip white space and control characters in the name of a scheme.
        if _LIVE_LINK.match(re.sub(r"[\0- ]", "", str(link["href"]))):
            link.unwrap()
    # The time that markdownify takes for a gap goes with the square of its width.
    for string in soup.find_all(string=_GAP):
        string.replace_with(_GAP.sub(" ", string))


def _is_hidden(tag: Any) -> bool:
    style = re.sub(r"/\*.*?(?:\*/|\Z)", "", str(tag.get("style") or ""), flags=re.DOTALL)
    return (
        tag.has_attr("hidden")
        or str(tag.get("aria-hidden")).strip().lower() == "true"
        or _HIDING.search(style) is not None
    )


def _depth(soup: Any) -> int:
    depths = {id(soup): 0}
    for element in soup.find_all(True):
        depths[id(element)] = depths[id(element.parent)] + 1
    return max(depths.values())


def _dissolve_layout(soup: Any) -> None:
    """Make blocks of tables that hold tables, have one cell a row, or say that they arrange."""
    layout = {id(table) for table in soup.find_all("table") if _is_layout(table)}
    for part in soup.find_all(_TABLE_PARTS):
        table = part.find_parent("table")
        if table is None or id(table) in layout:
            part.name = "div"
    for table in soup.find_all("table"):
        if id(table) in layout:
            table.name = "div"


def _is_layout(table: Any) -> bool:
    return (
        table.get("role") in ("presentation", "none")
        or table.find("table") is not None
        or all(len(row.find_all(["td", "th"])) < 2 for row in table.find_all("tr"))
    )
