"""Filters of table pages: ``?_concept=NAME`` and ``?_recall=TEXT``.

They are conditions of the table's own query, so that facets, sort order, CSV, JSON and the heading
of the page come with them.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
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
from .parameters import MAX_TEXT_BYTES
from .reading import Reader, json_list, quote_identifier, reading
from .recall import NOTHING_ASKED, AskedKeys, AskedName, asked_keys, keys_of
from .schema import lowered
from .vocabulary import Knowledge

if TYPE_CHECKING:
    from collections.abc import Mapping as MappingOf

    from datasette.app import Datasette
    from datasette.utils.asgi import Request

CONCEPT, TEXT = "_concept", "_recall"
"""The parameters; of each that is repeated, all must hold."""

TYPE = "_concept_type"
"""Only rows that are tagged as items of this type; of several, one is enough."""

_TYPES = "concept_recall_types"

_LONGEST_DESCRIPTION = 300


class _Condition(NamedTuple):
    """One parameter: in words, and the concepts of which a row must have at least one."""

    words: str
    names: tuple[AskedName, ...]


def table_link(
    datasette: Datasette, database: str, table: str, names: Iterable[str], source_type: str = ""
) -> str:
    """The path of the page of a table with only the rows that have every one of these concepts,
    as items of a type if one is given."""
    types = [(TYPE, source_type)] if source_type else []
    query = urlencode([*((CONCEPT, name) for name in names), *types])
    return f"{datasette.urls.table(database, table)}?{query}"


async def filter_rows(
    datasette: Datasette, request: Request, database: str, table: str
) -> FilterArguments:
    """What ``_concept``, ``_recall`` and ``_concept_type`` add to the query of a table.

    Raises `Forbidden` for an actor who may not see what the rows are tagged with, and
    `DatasetteError` for a table whose rows are never tagged, for a type of which they never are,
    and when what is given is too long or took too long to look up.
    """
    names, texts = request.args.getlist(CONCEPT), request.args.getlist(TEXT)
    types = list(dict.fromkeys(request.args.getlist(TYPE)))
    if not names and not texts:
        return FilterArguments([])
    sight = await asking.look(datasette, request.actor, database)
    _check_table(sight, table)
    kinds = _checked_kinds(sight.visible.sources_of(table), types)
    size = sum(len(given.encode("utf-8", "replace")) for given in (*names, *texts))
    if size > MAX_TEXT_BYTES:
        raise DatasetteError(f"The text is longer than {MAX_TEXT_BYTES:,} bytes", status=413)
    vocabulary = vocabulary_for(datasette, database)

    def filtered(conn: sqlite3.Connection, sight: asking.Sight) -> FilterArguments:
        _check_table(sight, table)
        with reading(conn) as reader:
            knowledge = vocabulary.knowledge(reader)
            conditions = _conditions(knowledge.matcher, names, texts)
            keys = [_keys(reader, sight.visible, knowledge, each.names) for each in conditions]
        sources = sight.visible.sources_of(table)
        return _as_arguments(sources, lowered(table), conditions, keys, kinds)

    try:  # matching takes time that follows the text, besides what the database may take
        return (await asking.read(datasette, request.actor, sight, filtered, size // 1000))[1]
    except RecallError as error:
        raise DatasetteError(str(error), status=400) from error


def _check_table(sight: asking.Sight, table: str) -> None:
    """Raises `DatasetteError` or `Forbidden` unless rows of a table have tags that may be seen."""
    if not sight.mapping.sources_of(table):
        raise DatasetteError(f"The rows of {table} cannot be filtered by concept", status=400)
    if not sight.visible.sources_of(table):
        raise Forbidden(f"You do not have permission to see what the rows of {table} are about")


def _checked_kinds(sources: Iterable[Source], types: Iterable[str]) -> dict[str, str]:
    """The types that are asked for, with what a person calls them. Raises `DatasetteError`."""
    kinds = {kind: label for source in sources for kind, label in source.kinds}
    for unknown in [name for name in types if name not in kinds]:
        message = f"{TYPE} is {unknown!r}, not one of {', '.join(kinds)}"
        raise DatasetteError(message, status=400)
    return {name: kinds[name] for name in types}


def _conditions(
    matcher: ConceptMatcher, names: Iterable[str], texts: Iterable[str]
) -> list[_Condition]:
    """One condition for each parameter; of those that ask for the same concepts only the first."""
    found: dict[object, _Condition] = {}
    for name in names:
        resolved = _resolved(matcher, [name])
        found.setdefault(resolved or name, _Condition(_of_name(name, resolved), resolved))
    for text in texts:
        resolved = _resolved(matcher, matcher.names(text))
        found.setdefault(resolved or (TEXT, text), _Condition(_of_text(text, resolved), resolved))
    return list(found.values())


def _resolved(matcher: ConceptMatcher, names: Iterable[str]) -> tuple[AskedName, ...]:
    found = dict.fromkeys(spellings for name in names if (spellings := matcher.resolve(name)))
    return tuple(AskedName(spellings[0], spellings) for spellings in found)


def _keys(
    reader: Reader, mapping: Mapping, knowledge: Knowledge, names: Sequence[AskedName]
) -> AskedKeys:
    if not names or mapping.concepts is None:
        return NOTHING_ASKED
    return asked_keys(reader, mapping.concepts, names, knowledge.names_are_plain)


def _of_name(name: str, found: Sequence[AskedName]) -> str:
    if not found:
        return f'tagged with "{_cut(name)}", which is no concept'
    return f'tagged with "{_cut(found[0].name)}"'


def _of_text(text: str, found: Sequence[AskedName]) -> str:
    if not found:
        return f'tagged with a concept in "{_cut(text)}", which names none'
    return "tagged with " + _cut(" or ".join(f'"{asked.name}"' for asked in found))


def _cut(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _LONGEST_DESCRIPTION else words[:_LONGEST_DESCRIPTION] + "…"


def _as_arguments(
    sources: Sequence[Source],
    table: str,
    conditions: Sequence[_Condition],
    keys: Sequence[AskedKeys],
    kinds: MappingOf[str, str],
) -> FilterArguments:
    clauses: list[str] = []
    params: dict[str, object] = {_TYPES: json_list(kinds)} if kinds else {}
    words = [condition.words for condition in conditions]
    if kinds:
        words.append("tagged as " + " or ".join(kinds.values()))
    for number, asked in enumerate(keys):
        either = []
        for source in sources:
            wanted = keys_of(source, asked)
            name = f"concept_recall_{number}{'_names' if source.links_by_name else ''}"
            if wanted:
                params[name] = json_list(wanted)
                either.append(_condition_sql(source, table, name, bool(kinds)))
        clauses.append(f"({' or '.join(either) or '0'})")
    return FilterArguments(clauses, params, words)


def _condition_sql(source: Source, table: str, parameter: str, of_types: bool) -> str:
    """Whether a row of a table, under its own name, has one of the concepts of a parameter."""
    row, item = _row_and_item(source, table)
    asked = f"{source.concept} in (select value from json_each(:{parameter}))"
    if of_types:
        asked += f" and {source.source_type} in (select value from json_each(:{_TYPES}))"
    return f"{row} in (select {item} from {source.links} where {asked})"


def _row_and_item(source: Source, table: str) -> tuple[str, str]:
    """What tells the rows of a table apart, and the same of the items among the links.

    Rows with a number are told apart by it; of other keys there is an index.
    """
    if source.item_table == table and not source.id_is_text:
        return source.own_id, source.id
    columns, values = source.key_in(table)
    return f"({', '.join(map(quote_identifier, columns))})", ", ".join(values)
