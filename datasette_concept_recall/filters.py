"""Filters of table pages: ``?_concept=NAME`` and ``?_recall=TEXT``.

They are conditions of the table's own query, so that facets, sort order, CSV, JSON and the heading
of the page come with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlencode

from datasette import Forbidden
from datasette.filters import FilterArguments
from datasette.views.base import DatasetteError

from . import asking
from .errors import RecallError
from .instances import vocabulary_for
from .mapping import Mapping, Source
from .matching import ConceptMatcher
from .reading import json_list, quote_identifier, reading
from .recall import NOTHING_ASKED, AskedKeys, AskedName, asked_keys
from .schema import lowered

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

CONCEPT, TEXT = "_concept", "_recall"
"""The parameters; of each that is repeated, all must hold."""

_LONGEST_DESCRIPTION = 300


class _Condition(NamedTuple):
    """One parameter: in words, and the concepts of which a row must have at least one."""

    words: str
    keys: AskedKeys


def table_link(datasette: Datasette, database: str, table: str, names: Iterable[str]) -> str:
    """The path of the page of a table with only the rows that have every one of these concepts."""
    query = urlencode([(CONCEPT, name) for name in names])
    return f"{datasette.urls.table(database, table)}?{query}"


async def filter_rows(
    datasette: Datasette, request: Request, database: str, table: str
) -> FilterArguments:
    """What ``_concept`` and ``_recall`` of a request add to the query of a table.

    Raises `Forbidden` for an actor who may not see what the rows are tagged with, and
    `DatasetteError` for a table whose rows are never tagged.
    """
    names, texts = request.args.getlist(CONCEPT), request.args.getlist(TEXT)
    if not names and not texts:
        return FilterArguments([])
    sight = await asking.look(datasette, request.actor, database)
    check_table(sight.mapping, sight.visible, table)
    vocabulary = vocabulary_for(datasette, database)

    def conditions(
        conn: sqlite3.Connection, sight: asking.Sight
    ) -> tuple[list[Source], list[_Condition]]:
        check_table(sight.mapping, sight.visible, table)
        with reading(conn) as reader:
            knowledge = vocabulary.knowledge(reader)
            matcher = knowledge.matcher
            asked = [(_of_name(name), _resolved(matcher, [name])) for name in names]
            for text in texts:
                found = _resolved(matcher, matcher.names(text))
                asked.append((_of_text(text, found), found))
            concepts, plain = sight.visible.concepts, knowledge.names_are_plain
            found_conditions = [
                _Condition(
                    words,
                    asked_keys(reader, concepts, each, plain)
                    if each and concepts
                    else NOTHING_ASKED,
                )
                for words, each in asked
            ]
        return sources_of(sight.visible, table), found_conditions

    extra = sum(map(len, texts)) // 1000
    try:
        _, (sources, found) = await asking.read(datasette, request.actor, sight, conditions, extra)
    except RecallError as error:
        raise DatasetteError(str(error), status=400) from error
    return _as_arguments(sources, lowered(table), found)


def sources_of(mapping: Mapping, table: str) -> list[Source]:
    """The sources whose items are rows of a table, or belong to a row of it."""
    name = lowered(table)
    return [
        source
        for source in mapping.sources
        if source.item_table == name or (source.parent and source.parent[0] == name)
    ]


def check_table(mapping: Mapping, visible: Mapping, table: str) -> None:
    """Raises `DatasetteError` or `Forbidden` unless rows of a table have tags that may be seen."""
    if not sources_of(mapping, table):
        raise DatasetteError(f"The rows of {table} are not tagged with concepts", status=400)
    if not sources_of(visible, table):
        raise Forbidden(f"You do not have permission to see what the rows of {table} are about")


def _resolved(matcher: ConceptMatcher, names: Iterable[str]) -> list[AskedName]:
    found = {spellings: spellings[0] for name in names if (spellings := matcher.resolve(name))}
    return [AskedName(name, spellings) for spellings, name in found.items()]


def _of_name(name: str) -> str:
    return f'tagged with "{_cut(name)}"'


def _of_text(text: str, found: list[AskedName]) -> str:
    if not found:
        return f'tagged with a concept in "{_cut(text)}", which names none'
    return "tagged with " + _cut(" or ".join(f'"{asked.name}"' for asked in found))


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST_DESCRIPTION else words[:_LONGEST_DESCRIPTION] + "…"


def _as_arguments(
    sources: list[Source], table: str, conditions: list[_Condition]
) -> FilterArguments:
    clauses, params = [], {}
    for number, condition in enumerate(conditions):
        either = []
        for source in sources:
            keys = condition.keys.by_name if source.links_by_name else condition.keys.by_key
            name = f"concept_recall_{number}{'_names' if source.links_by_name else ''}"
            params[name] = json_list(keys)
            either.append(_condition_sql(source, table, name))
        clauses.append(f"({' or '.join(either)})")
    return FilterArguments(clauses, params, [condition.words for condition in conditions])


def _condition_sql(source: Source, table: str, parameter: str) -> str:
    """Whether a row of a table, under its own name, has one of the concepts of a parameter."""
    asked = f"{source.concept} in (select value from json_each(:{parameter}))"
    if source.item_table != table and source.parent:
        column = f"i.{quote_identifier(source.parent[1])}"
        return f"id in (select {column} from {source.links} where {asked})"
    return f"{source.own_id} in (select {source.id} from {source.links} where {asked})"
