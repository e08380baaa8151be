"""What programs and language models may ask for: four tools, whoever offers them to a model.

A tool is given the values that a model chose, looks into every database that the actor may see,
and answers with an object that says nothing twice. Where there are several databases a reference
has the name of its database before it: ``library/record:12``.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from datasette import Forbidden, NotFound

from . import asking
from .asking import Scope, Sight
from .budgeting import LARGEST_BUDGET
from .errors import BadParameter, RecallError
from .excerpts import plain
from .items import read_item
from .models import ConceptMatch
from .parameters import Parameters, checked_text
from .presenting import Answer, badges, concepts_json, item_path, warnings_of

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

MOST_ITEMS = 100
"""The largest limit of `recall`."""

MOST_TEXT = 40_000
"""So many characters of an item's text are given at most."""

Given = Mapping[str, object]


class ToolFailed(RecallError):
    """A tool cannot answer; the message is for the model."""


@dataclass(frozen=True)
class Tool:
    """A tool as it is described to a model, and the function that answers.

    ``parameters`` holds the JSON schema of each parameter.
    """

    name: str
    description: str
    parameters: dict[str, dict[str, Any]]
    answer: Callable[[Datasette, Actor, Scope, Given], Awaitable[dict[str, Any]]]
    required: tuple[str, ...] = field(default=())

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON schema of all parameters as one object."""
        schema: dict[str, Any] = {"type": "object", "properties": self.parameters}
        return {**schema, "required": list(self.required), "additionalProperties": False}

    async def call(self, datasette: Datasette, actor: Actor, given: Given) -> dict[str, Any]:
        """What the tool answers to an actor. Raises `RecallError`, whose message is for the model.

        A value that is None counts as not given.
        """
        for name in given:
            if name not in self.parameters:
                known = ", ".join(self.parameters)
                raise BadParameter(f"{self.name} has no parameter {name}; it has {known}")
        chosen = {name: value for name, value in given.items() if value is not None}
        try:
            scope = await _scope(datasette, actor)
            return await self.answer(datasette, actor, scope, chosen)
        except (Forbidden, NotFound) as error:
            raise ToolFailed(str(error)) from error
        except sqlite3.Error as error:
            raise ToolFailed(f"The database cannot be read: {error}") from error


async def _scope(datasette: Datasette, actor: Actor) -> Scope:
    """What the actor may ask; a single database is asked alone."""
    scope = await asking.scope_of(datasette, actor, None)
    if not scope.sights:
        raise ToolFailed(" ".join(scope.warnings))
    if len(scope.sights) == 1 and not scope.warnings:
        return Scope(scope.sights[0].database, scope.sights)
    return scope


# --- the values that a model chose ---------------------------------------------------------------


def _text(given: Given, name: str) -> str:
    """A text; a number is taken for one. Raises `BadParameter` and `TextTooLong`."""
    value = given.get(name, "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadParameter(f"{name} is not a text")
    return checked_text(str(value))


def _texts(given: Given, name: str) -> tuple[str, ...]:
    """A list of texts; a single one is taken for a list of one."""
    values = given.get(name, ())
    several = values if isinstance(values, list | tuple) else [values]
    texts = (_text({name: value}, name) for value in several)
    return tuple(dict.fromkeys(text for text in texts if text.strip()))


def _number(given: Given, name: str, default: int | None, largest: int) -> int | None:
    """A whole number from 1, also when it is written as a text or with a fraction of zero."""
    value = given.get(name, default)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, str) and re.fullmatch("[0-9]{1,9}", value):
        value = int(value)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= largest:
        raise BadParameter(f"{name} is not a whole number from 1 to {largest}")
    return value


# --- recall --------------------------------------------------------------------------------------


async def _recall(datasette: Datasette, actor: Actor, scope: Scope, given: Given) -> dict[str, Any]:
    parameters = Parameters(
        text=_text(given, "text"),
        names=_texts(given, "concepts"),
        project=_text(given, "project") or None,
        size=_number(given, "limit", 5, MOST_ITEMS) or 5,
        budget=_number(given, "budget", None, LARGEST_BUDGET),
    )
    if not parameters.asks:
        raise BadParameter("Give a text, or concepts, or both")
    answer = await asking.ask(datasette, actor, scope, parameters)
    result = answer.result
    return {
        "concepts": concepts_json(result),
        **_items_or_context(answer),
        "total": result.total,
        **_some(
            did_you_mean=[miss.concept for miss in result.near_misses],
            warnings=[*warnings_of(result), *_advice(answer)],
        ),
    }


def _items_or_context(answer: Answer) -> dict[str, Any]:
    context = answer.result.context
    if context is None:
        items = [
            {**_about(each.match, each.database), **_some(excerpt=plain(each.excerpt))}
            for each in answer.shown
        ]
        return {"items": items}
    skipped = [_ref(item.match.ref, item.database) for item in context.skipped]
    return {"context": context.text, "tokens": context.tokens, **_some(skipped=skipped)}


def _advice(answer: Answer) -> list[str]:
    """What to try next when nothing was found."""
    if not answer.result.concepts and answer.parameters.text:
        return ["The text names no known concept. list_concepts finds their names."]
    return []


def _about(match: ConceptMatch, database: str | None) -> dict[str, Any]:
    """What tells an item apart and whether it still holds, without its text."""
    status = [words for _, words in badges(match)] or [match.status or ""]
    return _some(
        ref=_ref(match.ref, database),
        kind=match.kind,
        title=match.title,
        project=match.project,
        date=match.created_at.date().isoformat() if match.created_at else None,
        status=", ".join(status),
        superseded_by=[_ref(ref, database) for ref in match.superseded_by],
        concepts=list(match.concepts),
    )


def _ref(ref: str, database: str | None) -> str:
    return ref if database is None else f"{database}/{ref}"


def _some(**values: Any) -> dict[str, Any]:
    """The values that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", [])}


# --- get_item ------------------------------------------------------------------------------------


async def _get_item(
    datasette: Datasette, actor: Actor, scope: Scope, given: Given
) -> dict[str, Any]:
    ref = _text(given, "ref").strip()

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
        refs = ", ".join(_ref(match.ref, sight.database) for sight, match in candidates)
        raise ToolFailed(f"Several databases have an item {ref!r}. It is one of: {refs}.")
    ((sight, match),) = candidates
    database = None if scope.database is not None else sight.database
    text = match.body
    return {
        **_about(match, database),
        "page": item_path(datasette, sight.database, sight.visible, match),
        "text": text[:MOST_TEXT],
        **_some(text_is_cut_from=len(text) if len(text) > MOST_TEXT else None),
    }


# --- as models see them --------------------------------------------------------------------------

_TEXT = {"type": "string"}

RECALL = Tool(
    "recall",
    "Recall what has been noted, decided or written about the subjects of a question. Use it before"
    " answering anything that this collection may know of. Concepts (tags, topics) are found in"
    " the text as whole words, and everything tagged with one of them is returned, items with most"
    " of the concepts first, then the latest. Without a budget you get short excerpts with a ref"
    " for get_item; with a budget you get one Markdown context that can be read or quoted as it is."
    " Items may be superseded or rejected: their status says so."
    ' Example: {"text": "What was decided about the GIL?", "budget": 800}',
    {
        "text": {
            **_TEXT,
            "description": "A question, a sentence or a page of text: every concept it names by its"
            " name counts. The more specific words it has, the better the ranking.",
        },
        "concepts": {
            "type": "array",
            "items": _TEXT,
            "description": "Names of concepts to look for besides those in the text, in any letter"
            " case, as list_concepts gives them.",
        },
        "project": {**_TEXT, "description": "Only items of the project with exactly this name."},
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
            **_TEXT,
            "description": "The ref of the item, as another tool gave it. Where there are several"
            " databases it begins with the name of one and a slash: library/record:12.",
        }
    },
    _get_item,
    ("ref",),
)

TOOLS = (RECALL, GET_ITEM)
