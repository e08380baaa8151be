"""Asking one database, or every one that the actor may recall from, on behalf of an actor.

The page, the JSON API and the tools ask here: what an actor may see is looked up, what is found is
found in one trip to a thread under Datasette's time limit, and when the tables of a database have
changed meanwhile both are done again.
"""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from traceback import print_exc
from typing import TYPE_CHECKING, TypeVar

from datasette import Forbidden, NotFound

from . import access, compat, layering
from .errors import RecallError, UnknownProject
from .instances import vocabulary_for
from .layered import Layers
from .mapping import Mapping
from .merging import merge, within_budget, without_items
from .models import RecallRequest, RecallResult
from .parameters import Parameters, decode_places, encode_places, encode_token
from .presenting import Answer, Part, ShownMatch, kinds_of, show_matches
from .search import recall

if TYPE_CHECKING:
    from datasette.app import Datasette

T = TypeVar("T")

NOTHING_TO_ASK = "There is no database with concepts that you may see."


class TookTooLong(RecallError):
    """The time limit of Datasette ended the recall."""

    def __init__(self) -> None:
        super().__init__(
            "The recall took too long and was stopped by the time limit (sql_time_limit_ms)."
            " The command `datasette concept-recall optimize` makes large knowledge databases fast"
        )


@dataclass(frozen=True)
class Sight:
    """A database and what of its ``mapping`` an actor may see: ``visible``."""

    database: str
    mapping: Mapping
    visible: Mapping


@dataclass(frozen=True)
class Scope:
    """What an actor may ask: ``database``, or with None every one that may be recalled from.

    ``warnings`` are about databases that should be in it and are not, a sentence each.
    """

    database: str | None
    sights: tuple[Sight, ...]
    warnings: tuple[str, ...] = ()

    @property
    def kinds(self) -> dict[str, str]:
        """Every kind of item that may be asked for, with what a person calls it."""
        return kinds_of(sight.visible for sight in self.sights)


async def look(datasette: Datasette, actor: compat.Actor, database: str) -> Sight:
    """What an actor may see of a database.

    Raises `Forbidden` when it may not recall from it, `NotFound` when it was removed a moment ago,
    and `sqlite3.Error`.
    """
    if not await compat.may_view_database(datasette, actor, database):
        raise _forbidden(database)  # before anything is read that could fail
    _check_is_there(datasette, database)
    return await _judged(
        datasette, actor, database, await access.known_mapping(datasette, database)
    )


def _check_is_there(datasette: Datasette, database: str) -> None:
    if database not in datasette.databases:
        raise NotFound(f"Database not found: {database}")


async def _judged(
    datasette: Datasette, actor: compat.Actor, database: str, mapping: Mapping
) -> Sight:
    visible = await access.visible_mapping(datasette, actor, database, mapping)
    if visible is None:
        raise _forbidden(database)
    return Sight(database, mapping, visible)


def _forbidden(database: str) -> Forbidden:
    return Forbidden(f"You do not have permission to recall from {database}")


async def scope_of(datasette: Datasette, actor: compat.Actor, database: str | None) -> Scope:
    """What an actor may ask of a database or, with None, of all.

    Raises `Forbidden` when that is nothing because of its permissions, and for one database
    `sqlite3.Error`; of several those that cannot be read become warnings, and those that hold no
    concepts, or none that the actor may see, leave no trace.
    """
    if database is not None:
        return Scope(database, (await look(datasette, actor, database),))
    names = access.databases(datasette)
    found = await asyncio.gather(
        *(_or_warning(name, look(datasette, actor, name)) for name in names)
    )
    sights = tuple(s for s in found if isinstance(s, Sight) and s.visible.has_concepts)
    warnings = tuple(w for w in found if isinstance(w, str))
    if not sights and not await compat.may_view_instance(datasette, actor):
        raise Forbidden("You do not have permission to view this instance")
    return Scope(None, sights, warnings if sights or warnings else (NOTHING_TO_ASK,))


def _unreadable(database: str, error: sqlite3.Error) -> str:
    print_exc()  # as Datasette does
    return f"The database {database} could not be read: {error}."


async def read(
    datasette: Datasette,
    actor: compat.Actor,
    sight: Sight,
    reader: Callable[[sqlite3.Connection, Sight], T],
    extra_ms: int = 0,
) -> tuple[Sight, T]:
    """What a function reads from a database, in one trip to a thread, and what it could see.

    The function is given what the actor may see now: when the schema has changed since somebody
    looked, permissions are judged again. ``extra_ms`` is added to Datasette's time limit.
    Raises `TookTooLong`, `Forbidden`, `NotFound`, and whatever the function raises.
    """
    while True:
        found = await _trip(datasette, sight, reader, extra_ms)
        if not isinstance(found, Mapping):
            return sight, found
        sight = await _judged(datasette, actor, sight.database, found)


async def _trip(
    datasette: Datasette,
    sight: Sight,
    reader: Callable[[sqlite3.Connection, Sight], T],
    extra_ms: int,
) -> T | Mapping:
    """What is read; the mapping instead when it is not as it was."""
    vocabulary = vocabulary_for(datasette, sight.database)
    _check_is_there(datasette, sight.database)

    def checked(conn: sqlite3.Connection) -> T | Mapping:
        now = vocabulary.mapping(conn)
        return now if now.tables != sight.mapping.tables else reader(conn, sight)

    try:
        return await access.in_time(datasette, sight.database, checked, extra_ms)
    except sqlite3.OperationalError as error:
        if not access.was_interrupted(error):
            raise
        raise TookTooLong from error


async def read_each(
    datasette: Datasette,
    actor: compat.Actor,
    scope: Scope,
    reader: Callable[[sqlite3.Connection, Sight], T],
) -> tuple[list[tuple[Sight, T]], list[str]]:
    """What `read` gives of every database of a scope, and warnings about those that failed.

    Of a single database a failure is raised.
    """
    if scope.database is not None:
        return [await read(datasette, actor, scope.sights[0], reader)], []
    found = await asyncio.gather(
        *(_or_warning(s.database, read(datasette, actor, s, reader)) for s in scope.sights)
    )
    warnings = [*scope.warnings, *(each for each in found if isinstance(each, str))]
    return [each for each in found if isinstance(each, tuple)], warnings


async def _or_warning(database: str, found: Awaitable[T]) -> T | str | None:
    """What is found in one of several databases, or a warning, or nothing."""
    try:
        return await found
    except TookTooLong:
        return f"The database {database} took too long and is left out."
    except sqlite3.Error as error:
        return _unreadable(database, error)
    except (Forbidden, NotFound):
        return None


async def ask(
    datasette: Datasette,
    actor: compat.Actor,
    scope: Scope,
    parameters: Parameters,
    facets: bool = False,
) -> Answer:
    """What is found in a scope, with ``facets`` the counts by kind and project as well.

    Raises `RecallError` and, for one database, `Forbidden` and `sqlite3.Error`; of several those
    that fail become warnings.
    """
    if scope.database is None:
        return await _ask_all(datasette, actor, scope, parameters, facets)
    request = replace(parameters.request(scope.kinds), facets=facets)
    part, shown = await _ask_one(datasette, actor, scope.sights[0], request)
    token = encode_token(part.result.next_key) if part.result.next_key else None
    return Answer(scope.database, parameters, (part,), part.result, shown, token)


async def _ask_one(
    datasette: Datasette,
    actor: compat.Actor,
    sight: Sight,
    request: RecallRequest,
    asked_too: Sequence[str] = (),
) -> tuple[Part, list[ShownMatch]]:
    """What concepts find and, where that is less than was asked for, what other layers find."""
    vocabulary = vocabulary_for(datasette, sight.database)
    fusion = layering.fusion_of(datasette)
    layers: Layers | None = None

    def find(conn: sqlite3.Connection, sight: Sight) -> tuple[RecallResult, list[ShownMatch]]:
        visible = sight.visible.tables
        result = recall(
            conn, request, vocabulary=vocabulary, visible=visible, layers=layers, fusion=fusion
        )
        return result, show_matches(result)

    # The limit is for the database. Matching takes time that follows the text, at most a second.
    extra = len(request.text) // 1000
    sight, (result, shown) = await read(datasette, actor, sight, find, extra)
    if result.wants_layers:
        asker = layering.Asker(actor, sight.database, sight.visible, request)
        layers = await layering.find_layers(datasette, asker, asked_too)
        if layers.lists or layers.warnings:
            sight, (result, shown) = await read(datasette, actor, sight, find, extra)
    return Part(sight.database, sight.visible, result), shown


async def _ask_all(
    datasette: Datasette, actor: compat.Actor, scope: Scope, parameters: Parameters, facets: bool
) -> Answer:
    after = {} if parameters.next is None else decode_places(parameters.next)
    request = replace(replace(parameters, next=None).request(scope.kinds), facets=facets)
    names = [sight.database for sight in scope.sights]
    answers = await asyncio.gather(
        *(
            _ask_one_of_all(
                datasette, actor, s, replace(request, after=after.get(s.database)), names
            )
            for s in scope.sights
        )
    )
    found = {answer[0].database: answer for answer in answers if isinstance(answer, tuple)}
    if request.project and found and all(part.lacks_project for part, _ in found.values()):
        raise UnknownProject(request.project, "any of these databases")
    results = {name: part.result for name, (part, _) in found.items()}
    merged = merge(results, request, after)
    result, places = merged.result, merged.places
    failed = [answer for answer in answers if isinstance(answer, str)]
    warnings = [*scope.warnings, *failed, *merged.result.warnings]
    if request.budget is None:
        shown = [
            replace(found[database][1][position], rank=rank, database=database)
            for rank, (database, position) in enumerate(merged.origins, result.first_rank)
        ]
    else:  # in a thread, since long texts may have to be searched
        result, places = await asyncio.to_thread(within_budget, result, results, request, after)
        shown = await asyncio.to_thread(show_matches, result)
    return Answer(
        None,
        parameters,
        tuple(part for part, _ in found.values()),
        replace(result, warnings=warnings),
        shown,
        None if places is None else encode_places(places),
    )


async def _ask_one_of_all(
    datasette: Datasette,
    actor: compat.Actor,
    sight: Sight,
    request: RecallRequest,
    asked_too: Sequence[str],
) -> tuple[Part, list[ShownMatch]] | str | None:
    """What is found in one of several databases, or a warning, or nothing."""
    asked = _ask_with_any_project(datasette, actor, sight, request, asked_too)
    return await _or_warning(sight.database, asked)


async def _ask_with_any_project(
    datasette: Datasette,
    actor: compat.Actor,
    sight: Sight,
    request: RecallRequest,
    asked_too: Sequence[str],
) -> tuple[Part, list[ShownMatch]]:
    """What is found; without items where there is no project of the name asked for."""
    try:
        return await _ask_one(datasette, actor, sight, request, asked_too)
    except UnknownProject:
        # What other layers find is narrowed to the project, so here that is nothing.
        facets = request.facets and request.mode in ("auto", "concept")
        wider = replace(
            request, project=None, after=None, limit=1, mode="concept", facets=facets, budget=None
        )
        part, _ = await _ask_one(datasette, actor, sight, wider)
        return replace(part, result=without_items(part.result), lacks_project=True), []
