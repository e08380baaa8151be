"""The tools for programs and language models, whoever offers them: `TOOLS`."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from . import asking
from .asking import Scope, Sight
from .budgeting import LARGEST_BUDGET
from .concept_tools import LIST_CONCEPTS, SHOW_CONCEPT
from .errors import BadParameter
from .excerpts import plain
from .items import read_item
from .models import MODES, ConceptMatch
from .parameters import Parameters, checked_mode
from .presenting import Answer, concepts_json, item_path, warnings_of
from .toolbox import TEXT, Given, Tool, ToolFailed, about, number, ref_of, some, text, texts

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

MOST_ITEMS = 100
"""The largest limit of `recall`."""

MOST_TEXT = 40_000
"""So many characters of an item's text are given at most."""


async def _recall(datasette: Datasette, actor: Actor, scope: Scope, given: Given) -> dict[str, Any]:
    parameters = Parameters(
        text=text(given, "text"),
        names=texts(given, "concepts"),
        project=text(given, "project") or None,
        size=number(given, "limit", 5, MOST_ITEMS) or 5,
        budget=number(given, "budget", None, LARGEST_BUDGET),
        mode=checked_mode(text(given, "mode")),
    )
    if not parameters.asks:
        raise BadParameter("Give a text, or concepts, or both")
    answer = await asking.ask(datasette, actor, scope, parameters)
    result = answer.result
    return {
        "concepts": concepts_json(result),
        **_items_or_context(answer),
        "total": result.total,
        **some(
            did_you_mean=[miss.concept for miss in result.near_misses],
            warnings=[*warnings_of(result), *_advice(answer)],
        ),
    }


def _items_or_context(answer: Answer) -> dict[str, Any]:
    context = answer.result.context
    if context is None:
        items = [
            {**about(each.match, each.database), **some(excerpt=plain(each.excerpt))}
            for each in answer.shown
        ]
        return {"items": items}
    skipped = [ref_of(item.match.ref, item.database) for item in context.skipped]
    return {"context": context.text, "tokens": context.tokens, **some(skipped=skipped)}


def _advice(answer: Answer) -> list[str]:
    """What to try next when nothing was found."""
    if not answer.result.concepts and answer.parameters.text and not answer.shown:
        return [
            "The text names no known concept, and nothing was found by its words or meaning."
            " list_concepts finds the names of concepts."
        ]
    return []


# --- get_item ------------------------------------------------------------------------------------


async def _get_item(
    datasette: Datasette, actor: Actor, scope: Scope, given: Given
) -> dict[str, Any]:
    ref = text(given, "ref").strip()

    def read(conn: sqlite3.Connection, sight: Sight) -> tuple[bool, ConceptMatch] | None:
        """The item, and whether the reference names its database."""
        prefix = f"{sight.database}/"
        if ref.startswith(prefix):
            match = read_item(conn, sight.visible, ref[len(prefix) :])
            if match is not None:
                return True, match
        match = read_item(conn, sight.visible, ref)
        return None if match is None else (False, match)

    answers, warnings = await asking.read_each(datasette, actor, scope, read)
    found = [(sight, *answer) for sight, answer in answers if answer is not None]
    named = [(sight, match) for sight, is_named, match in found if is_named]
    candidates = named or [(sight, match) for sight, _, match in found]
    if not candidates:
        example = "record:12" if scope.database is not None else "library/record:12"
        message = f"There is no item {ref!r} that you may see. A ref looks like {example}."
        raise ToolFailed(" ".join([message, *warnings]))
    if len(candidates) > 1:
        refs = ", ".join(ref_of(match.ref, sight.database) for sight, match in candidates)
        raise ToolFailed(f"Several databases have an item {ref!r}. It is one of: {refs}.")
    ((sight, match),) = candidates
    database = None if scope.database is not None else sight.database
    body = match.body
    return {
        **about(match, database),
        "page": item_path(datasette, sight.database, sight.visible, match),
        "text": body[:MOST_TEXT],
        **some(text_is_cut_from=len(body) if len(body) > MOST_TEXT else None),
    }


# --- as models see them --------------------------------------------------------------------------

RECALL = Tool(
    "recall",
    "Recall what has been noted, decided or written about the subjects of a question. Use it before"
    " answering anything that this collection may know of. Concepts (tags, topics) are found in"
    " the text as whole words, and everything tagged with one of them is returned, items with most"
    " of the concepts first, then the latest; when that is little, items with words of the question"
    " or a similar meaning follow, and say so as found_by. Without a budget you get short excerpts"
    " with a ref"
    " for get_item; with a budget you get one Markdown context that can be read or quoted as it is."
    " Items may be superseded or rejected: their status says so."
    ' Example: {"text": "What was decided about the GIL?", "budget": 800}',
    {
        "text": {
            **TEXT,
            "description": "A question, a sentence or a page of text: every concept it names by its"
            " name counts. The more specific words it has, the better the ranking.",
        },
        "concepts": {
            "type": "array",
            "items": TEXT,
            "description": "Names of concepts to look for besides those in the text, in any letter"
            " case, as list_concepts gives them.",
        },
        "project": {**TEXT, "description": "Only items of the project with exactly this name."},
        "mode": {
            "type": "string",
            "enum": list(MODES),
            "default": "auto",
            "description": "auto, or only what is found by concept, by words (lexical) or by"
            " meaning (semantic).",
        },
        "limit": {
            "type": "integer",
            "minimum": 1,
            "maximum": MOST_ITEMS,
            "default": 5,
            "description": "At most so many items.",
        },
        "budget": {
            "type": "integer",
            "minimum": 1,
            "maximum": LARGEST_BUDGET,
            "description": "The most tokens (of four bytes) that the answer's context may have."
            " Each item is given whole if it fits, else as an excerpt; what does not fit is listed"
            " as skipped.",
        },
    },
    _recall,
)

GET_ITEM = Tool(
    "get_item",
    "Read one item in full: its text, concepts, project, date and status. Use it for an item of"
    " which recall or show_concept gave an excerpt or only the ref."
    ' Example: {"ref": "record:12"}',
    {
        "ref": {
            **TEXT,
            "description": "The ref of the item, as another tool gave it. Where there are several"
            " databases it begins with the name of one and a slash: library/record:12.",
        }
    },
    _get_item,
    ("ref",),
)

TOOLS = (RECALL, LIST_CONCEPTS, SHOW_CONCEPT, GET_ITEM)
