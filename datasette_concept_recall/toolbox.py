"""What the tools for programs and models have in common.

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
from .asking import Scope
from .errors import BadParameter, RecallError
from .models import ConceptMatch
from .parameters import checked_text
from .presenting import badges, found_by

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .compat import Actor

TEXT = {"type": "string"}
"""The JSON schema of a text."""

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


def text(given: Given, name: str) -> str:
    """A text; a number is taken for one. Raises `BadParameter` and `TextTooLong`."""
    value = given.get(name, "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise BadParameter(f"{name} is not a text")
    return checked_text(str(value))


def texts(given: Given, name: str) -> tuple[str, ...]:
    """A list of texts; a single one is taken for a list of one."""
    values = given.get(name, ())
    several = values if isinstance(values, list | tuple) else [values]
    found = (text({name: value}, name) for value in several)
    return tuple(dict.fromkeys(each for each in found if each.strip()))


def number(given: Given, name: str, default: int | None, largest: int) -> int | None:
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


# --- what they answer ----------------------------------------------------------------------------


def about(match: ConceptMatch, database: str | None) -> dict[str, Any]:
    """What tells an item apart and whether it still holds, without its text."""
    status = [words for _, words in badges(match)] or [match.status or ""]
    return some(
        ref=ref_of(match.ref, database),
        kind=match.kind,
        title=match.title,
        project=match.project,
        place=match.place,
        date=match.created_at.date().isoformat() if match.created_at else None,
        status=", ".join(status),
        superseded_by=[ref_of(ref, database) for ref in match.superseded_by],
        concepts=list(match.concepts),
        found_by=found_by(match),
    )


def ref_of(ref: str, database: str | None) -> str:
    return ref if database is None else f"{database}/{ref}"


def some(**values: Any) -> dict[str, Any]:
    """The values that say something."""
    return {name: value for name, value in values.items() if value not in (None, "", [], {})}
