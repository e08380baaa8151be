"""The tools that show which concepts there are, and what one of them is.

Concepts of several databases are one when their names are, but for letter case.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from . import asking
from .asking import Scope, Sight
from .concept_detail import ConceptDetail, show_concept
from .concepts import ConceptEntry, list_concepts
from .errors import UnknownConcept
from .excerpts import first_line
from .folding import canonical_name
from .instances import vocabulary_for
from .merging import merge
from .models import ConceptMatch, RecallRequest
from .presenting import kinds_of
from .toolbox import TEXT, Given, Tool, ToolFailed, about, some, text

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

MOST_CONCEPTS = 100
"""So many concepts are listed at most."""

MOST_NEIGHBOURS = 20
"""So many concepts that go with one are named."""

NEWEST = 5
"""So many of the newest items of a concept are shown."""


async def _list(datasette: Datasette, actor: Actor, scope: Scope, given: Given) -> dict[str, Any]:
    search = text(given, "search").strip()

    def read(conn: sqlite3.Connection, sight: Sight) -> tuple[ConceptEntry, ...]:
        vocabulary = vocabulary_for(datasette, sight.database)
        return list_concepts(
            conn, search=search, vocabulary=vocabulary, visible=sight.visible.tables
        ).entries

    found, warnings = await asking.read_each(datasette, actor, scope, read)
    concepts = _merged(entry for _, entries in found for entry in entries)
    shown = concepts[:MOST_CONCEPTS]
    if len(shown) < len(concepts):
        warnings.append(
            f"These are the {len(shown)} most used. Give a search, or a longer one, to see others."
        )
    return {
        "concepts": [
            {"name": c.name, "total": c.total, **some(description=first_line(c.description, 120))}
            for c in shown
        ],
        "total": len(concepts),
        **some(warnings=warnings),
    }


@dataclass
class _Listed:
    """A concept of several databases, under the name that the first of them gives it."""

    name: str
    description: str = ""
    total: int = 0


def _merged(entries: Iterable[ConceptEntry]) -> list[_Listed]:
    """Each concept once, those with most items first, then by name."""
    found: dict[str, _Listed] = {}
    for entry in entries:
        listed = found.setdefault(canonical_name(entry.name), _Listed(entry.name))
        listed.total += entry.total
        listed.description = listed.description or entry.description
    ordered = sorted(found.items(), key=lambda each: (-each[1].total, each[0]))
    return [listed for _, listed in ordered]


async def _show(datasette: Datasette, actor: Actor, scope: Scope, given: Given) -> dict[str, Any]:
    name = text(given, "name")

    def read(conn: sqlite3.Connection, sight: Sight) -> ConceptDetail | None:
        vocabulary = vocabulary_for(datasette, sight.database)
        visible = sight.visible.tables
        try:
            return show_concept(conn, name, newest=NEWEST, vocabulary=vocabulary, visible=visible)
        except UnknownConcept:
            return None  # perhaps another database has it

    answers, warnings = await asking.read_each(datasette, actor, scope, read)
    found = [(sight, detail) for sight, detail in answers if detail is not None]
    if not found:
        message = f"There is no concept named {first_line(name)!r}; list_concepts finds names."
        raise ToolFailed(" ".join([message, *warnings]))
    details = [detail for _, detail in found]
    spellings = dict.fromkeys(s for detail in details for s in detail.entry.spellings)
    first, *others = spellings
    return {
        "name": first,
        **some(
            also_spelled=others,
            description=next((d.entry.description for d in details if d.entry.description), ""),
            identifiers=[
                {"type": kind, "value": value}
                for kind, value in dict.fromkeys(i for d in details for i in d.identifiers)
            ],
        ),
        "total": sum(detail.entry.total for detail in details),
        **some(
            kinds=_kinds(found),
            latest=_latest(details),
            often_with=_neighbours(details),
            newest=_newest(scope, found),
            warnings=warnings,
        ),
    }


def _kinds(found: Sequence[tuple[Sight, ConceptDetail]]) -> dict[str, int]:
    """How many items there are of each kind, by what a person calls it."""
    labels = kinds_of(sight.visible for sight, _ in found)
    counts: Counter[str] = Counter()
    for _, detail in found:
        counts.update(detail.entry.kinds)
    return {labels.get(kind, kind): count for kind, count in counts.items()}


def _latest(details: Iterable[ConceptDetail]) -> str | None:
    instants: list[datetime] = [d.entry.latest for d in details if d.entry.latest is not None]
    return max(instants).date().isoformat() if instants else None


def _neighbours(details: Iterable[ConceptDetail]) -> list[dict[str, Any]]:
    """The concepts tagged together with one, and on how many items, most first."""
    names: dict[str, str] = {}
    shared: Counter[str] = Counter()
    for detail in details:
        for name, items in detail.neighbours:
            names.setdefault(canonical_name(name), name)
            shared[canonical_name(name)] += items
    ordered = sorted(shared.items(), key=lambda each: (-each[1], each[0]))
    return [{"name": names[name], "items": items} for name, items in ordered[:MOST_NEIGHBOURS]]


def _newest(scope: Scope, found: Iterable[tuple[Sight, ConceptDetail]]) -> list[dict[str, Any]]:
    results = {sight.database: detail.newest for sight, detail in found}
    merged = merge(results, RecallRequest(limit=NEWEST), {})
    several = scope.database is None
    return [
        about(_in_a_line(match), origin.database if several else None)
        for match, origin in zip(merged.result.matches, merged.origins, strict=True)
    ]


def _in_a_line(match: ConceptMatch) -> ConceptMatch:
    """The item named by its title, or by the beginning of its text; what it carries is known."""
    return replace(match, title=match.title or first_line(match.body), concepts=())


LIST_CONCEPTS = Tool(
    "list_concepts",
    "List the concepts (tags, topics) of this collection, those with most items first. Use it to"
    " learn what the collection is about, or under which name it keeps a subject, when recall"
    ' finds no concept in your text. Example: {"search": "chunk"}',
    {
        "search": {
            **TEXT,
            "description": "Only concepts whose name contains this, in any letter case. A part of a"
            " word finds more than a whole one.",
        }
    },
    _list,
)

SHOW_CONCEPT = Tool(
    "show_concept",
    "Show one concept: its description, how many items of each kind are tagged with it, the"
    " concepts it often goes with, and its newest items with their refs. Use it to explore a"
    ' subject before or instead of a question. Example: {"name": "chunking"}',
    {
        "name": {
            **TEXT,
            "description": "The name, in any letter case, as list_concepts or recall gives it.",
        }
    },
    _show,
    ("name",),
)
