"""Names that must do no harm, and a knowledge database made of nothing else.

`walking` follows every link of the pages that show it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from urllib.parse import quote_plus

import knowledge

SCRIPT = "<script>alert(1)</script>"
IMAGE = "<img src=https://elsewhere.example/x onerror=alert(1)>"
QUOTES = "\"'><svg onload=alert(1)>"
LONG = "w" * 10_240
EXPRESSION, VALUE = "{{ 12345 * 67891 }}", "838114395"

MARKUP = (
    SCRIPT,
    IMAGE,
    QUOTES,
    f"</textarea></title></svg>{SCRIPT}",
    "' onmouseover='alert(1)",
    "<!--",
    "]]>",
    "&",
    "&amp;",
    "&lt;b&gt;",
    "javascript:alert(1)",
    f"{SCRIPT} {QUOTES} {IMAGE} {LONG}",
)
_NOTATION = (
    'it\'s "so" ”called”',
    "`code`",
    "]",
    "[[x]]",
    "[[",
    "[a](javascript:alert(1))",
    "a|b",
    EXPRESSION,
    "{% include 'base.html' %}",
    "%s {0} ${x}",
    "'; DROP TABLE concepts; --",
    '" OR 1=1 --',
    "a*",
    "_%",
)
_ADDRESSES = (
    "/",
    "a/b",
    "//elsewhere.example/x",
    "~",
    "~2F",
    "%",
    "%2F",
    "%00",
    ".",
    "..",
    "../../..",
    ".json",
    "a.json",
    "a.csv",
    "?",
    "#",
    "?_size=x&_next=y#z",
    "a+b",
    "+",
    ",",
    ";",
    "\\",
    "-",
    "recall",
    "concepts",
)
_CHARACTERS = (
    "👩‍👩‍👧‍👦",
    "🏳️‍🌈",
    "שלום עולם",
    "\u202eעברית\u202c abc",
    "\u200fعربي\u200f",
    "Z\u0334\u0322a\u0337\u0328l\u0336\u0321g\u0338\u0327o\u0335",
    "\ufeffmark",
    "nul\0byte",
    "NUL",
    "null",
    "\x01\x08\x1b[31m\x7f",
    "line\nbreak",
    "a\r\nSet-Cookie: a=b",
    "tab\tstop",
    " before",
    "after ",
    "0",
    "-1",
    "1e999",
    LONG,
)
NAMES = (*MARKUP, *_NOTATION, *_ADDRESSES, *_CHARACTERS)
"""No two of them are the same concept."""

IDENTIFIERS = ("doi", "orcid", "arxiv", "url", "isbn", "wikidata", SCRIPT)


def build(path: Path) -> Path:
    """A knowledge database in which each name is a concept, project, title, text and status.

    Neighbours in `NAMES` are tagged together, and one item of each kind with all of them.
    """
    with closing(knowledge.create(path)) as conn:
        for number, name in enumerate(NAMES):
            kind = IDENTIFIERS[number % len(IDENTIFIERS)]
            about = {"identifier_type": kind, "identifier_value": name, "description": _text(name)}
            knowledge.add_concept(conn, name, **about)
        for before, name in pairwise((NAMES[-1], *NAMES)):
            _fill(conn, name, name, [name, before])
        _fill(conn, "All", " · ".join(name for name in NAMES if len(name) < 100), list(NAMES))
        conn.commit()
    return path


def _text(name: str) -> str:
    return f"{name} and [[{name}]] and `[[{name}]]`"


def _fill(conn: sqlite3.Connection, title: str, text: str, concepts: list[str]) -> None:
    """An item of each kind, and a record that replaces another one."""
    body = _text(text)
    knowledge.add_observation(conn, body, concepts=concepts, project=title, created_at=title)
    old = knowledge.add_record(conn, title, body, concepts=concepts, project=title, status=title)
    new = knowledge.add_record(conn, title, concepts=concepts, date=title)
    knowledge.supersede_record(conn, new, old)
    gist = knowledge.Section(title, summary=body, status="reviewed", concepts=concepts)
    draft = knowledge.Section(title, body, status=title, stale=True, concepts=concepts)
    knowledge.add_document(conn, title, gist=gist, sections=[draft], project=title, author=title)
    knowledge.link_project(conn, title, concepts[0])


def starts(database: str, names: Sequence[str] = NAMES) -> list[str]:
    """Addresses to start from: what leads to our pages, and each name asked for in every way."""
    recall = f"/{database}/-/recall"
    tables = ("concepts", "records", "observations", "document_sections")
    asked = [f"{key}={quote_plus(name)}" for name in names for key in ("concept", "q", "project")]
    several = " · ".join(name for name in NAMES if len(name) < 20)
    return [
        "/",
        f"/{database}",
        *(f"/{database}/{table}" for table in tables),
        recall,
        f"{recall}?q={quote_plus(several)}",
        *(f"{recall}?{query}" for query in asked),
    ]
