"""Markdown and plain text, source code included: one segment, whose lines are counted."""

from __future__ import annotations

import re

from .decoding import decode
from .failures import Unusable
from .models import Extracted, Segment, Strategy

_FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\n(.*?)^(?:\1|\.\.\.)[ \t]*$\n?", re.S | re.M)
_TITLE = re.compile(r"^title[ \t]*[:=][ \t]*(.+)$", re.I | re.M)
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_ATX = re.compile(r" {0,3}#{1,6}[ \t]+(.*)")
_UNDERLINE = re.compile(r" {0,3}(=+|-+)[ \t]*")
_NO_PARAGRAPH = re.compile(r"\s*(?:[-*+>|#]|\d+[.)]|$)")


def read_markdown(data: bytes) -> Extracted:
    """A Markdown file; its title is that of its front matter, else its first heading."""
    text = _text(data)
    return _whole(text, "markdown", "markdown", _front_title(text) or _first_heading(text))


def read_text(data: bytes) -> Extracted:
    """A file of plain text; it has no title."""
    return plain(_text(data))


def plain(text: str) -> Extracted:
    """A text without any structure but its lines."""
    return _whole(text, "text", "plain", None)


def _text(data: bytes) -> str:
    if data.startswith(b"%PDF-"):
        raise Unusable("not_text", "The content of the file is a PDF, which its name does not say")
    return decode(data)


def _whole(text: str, format_name: str, strategy: Strategy, title: str | None) -> Extracted:
    ended = text if text.endswith("\n") else f"{text}\n"
    return Extracted(format_name, strategy, iter([Segment(ended, "line", 1)]), title)


def _front_title(text: str) -> str | None:
    front = _FRONT_MATTER.match(text)
    found = front and _TITLE.search(front[2])
    title = found[1].strip() if found else ""
    if title[:1] in ("'", '"') and title[-1] == title[0]:
        title = title[1:-1].strip()
    # A value that is written below its key is left to the first heading.
    return title if title.strip("|>+-") else None


def _first_heading(text: str) -> str | None:
    front = _FRONT_MATTER.match(text)
    fence, before = "", ""
    for line in text[front.end() if front else 0 :].split("\n"):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1].startswith(fence):
                fence = ""
            continue
        if mark:
            fence, before = mark[1], ""
            continue
        heading = _ATX.fullmatch(line)
        if heading and (title := _without_closing(heading[1].strip())):
            return title
        if _UNDERLINE.fullmatch(line) and not _NO_PARAGRAPH.match(before):
            return before.strip()
        before = line
    return None


def _without_closing(heading: str) -> str:
    """A heading without the number signs that may close it: ``C#`` keeps its own."""
    shorter = heading.rstrip("#")
    return heading if shorter.rstrip() == shorter != "" else shorter.rstrip()
