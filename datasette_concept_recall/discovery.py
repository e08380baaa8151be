"""Which tables of an unknown database hold names and rows tagged with them, told by its schema.

A link table has two foreign keys and no text of its own. The concepts are what such tables refer
to and is named like tags, or else what several of them share. Where there is none, columns named
like tags are looked into for JSON arrays.
"""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from .config import NONE, ConceptsConfig, DatabaseConfig, SourceConfig
from .index_schema import PREFIX
from .reading import Reader, quote_identifier
from .schema import Column, ForeignKey, Schema, Table, lowered

_CONCEPT_NAMES = ("concept", "tag", "topic", "keyword", "category")
"""What a table of concepts is called, in the order of preference; plurals too."""

_words = re.compile(r"[A-Z]*[a-z]+|[A-Z]+|[0-9]+").findall

_FRAMEWORK = ("django_", "auth_")
"""Tables of Django itself, which share many link tables and hold no concepts."""

_NAME = ("name", "title", "label", "tag", "concept", "topic", "keyword", "category", "term", "slug")
_DESCRIPTION = ("description", "definition", "about", "note", "notes")
_TITLE = ("title", "name", "headline", "heading", "subject", "label", "caption")
_BODY = (
    *("body", "content", "contents", "text", "description", "abstract", "summary", "notes"),
    *("note", "message", "comment", "markdown", "html"),
)
_CREATED = (
    *("createdat", "created", "createdon", "createddate", "datecreated", "creationdate"),
    *("publishedat", "published", "publishedon", "pubdate", "datepublished", "postedat"),
    *("date", "datetime", "timestamp", "time", "dateadded", "added", "addedat", "updatedat"),
    *("updated", "modified", "modifiedat"),
)


class Found(NamedTuple):
    """What was found, as configuration (None: nothing), and why, a sentence each."""

    config: DatabaseConfig | None
    reasons: tuple[str, ...]


def discover(reader: Reader, schema: Schema) -> Found:
    """Looks for concepts and what is tagged with them."""
    links = list(_link_tables(schema))
    concepts, reason = _concept_table(schema, links)
    if concepts is None:
        return _arrays(reader, schema)
    sources: dict[str, SourceConfig] = {}
    reasons = [reason]
    for link in links:
        to_concepts, to_items = _ends(link, concepts)
        if to_concepts is None or to_items is None:
            continue
        if _is_generic(link, to_items):
            found = list(_generic(reader, schema, link, to_items, reasons))
        else:
            found = [_source(schema, link, to_items)]
        for source in found:
            label = source.table if source.table not in sources else f"{source.table} {link.name}"
            sources[label] = source
            reasons.append(
                f"{source.table} is tagged: {link.name} links it"
                f" ({', '.join(source.item_key or ())}) to {concepts.name}"
                f" ({to_concepts.columns[0]})."
            )
    reasons += _not_looked_into(schema, {concepts.name, *(link.name for link in links)})
    if not sources:
        return Found(None, (*reasons, "No table of tagged items was found."))
    name = name_column(concepts)
    config = ConceptsConfig(concepts.name, name, description_column(concepts, name) or NONE)
    return Found(DatabaseConfig(config, sources), tuple(reasons))


def _not_looked_into(schema: Schema, used: Collection[str]) -> list[str]:
    """What is said of columns that might hold arrays, where there are tables of links."""
    return [
        f"{table.name}.{column.name} is passed over: arrays are looked for only where there are no"
        " link tables."
        for table, column in _columns_like_tags(schema)
        if table.name not in used and not table.is_view and not column.key
    ]


def _columns_like_tags(schema: Schema) -> Iterator[tuple[Table, Column]]:
    """Every column that is named like tags and may hold texts."""
    for table in schema.tables:
        if table.name.startswith(PREFIX) or table.is_virtual:
            continue
        referring = {lowered(c) for key in table.foreign_keys for c in key.columns}
        for column in table.columns:
            if _likeness(column.name) is not None and lowered(column.name) not in referring:
                yield table, column


def _link_tables(schema: Schema) -> Iterator[Table]:
    for table in schema.tables:
        if table.is_view or table.is_virtual or table.name.startswith(PREFIX):
            continue
        targets = {lowered(key.table) for key in table.foreign_keys}
        if len(table.foreign_keys) != 2 or len(targets) != 2 or lowered(table.name) in targets:
            continue
        if all(schema.get(target) for target in targets) and _is_pure(table):
            yield table


def _is_pure(table: Table) -> bool:
    """Whether a table with two foreign keys says nothing itself."""
    referring = {lowered(c) for key in table.foreign_keys for c in key.columns}
    generic = any(_is_generic(table, key) for key in table.foreign_keys)
    return not any(
        column.is_text
        and not column.key
        and lowered(column.name) not in referring
        and not (generic and lowered(column.name) == "object_id")
        for column in table.columns
    )


def _concept_table(schema: Schema, links: Iterable[Table]) -> tuple[Table | None, str]:
    used = Counter(lowered(key.table) for link in links for key in link.foreign_keys)
    tables = [table for name in used if (table := schema.get(name)) and name_column(table)]
    named = [table for table in tables if _likeness(table.name) is not None]
    if named:
        best = min(named, key=lambda t: (-used[lowered(t.name)], _likeness(t.name), t.name))
        return best, f"{best.name} holds the concepts: a link table refers to it, and by its name."
    shared = [
        table
        for table in tables
        if used[lowered(table.name)] > 1 and not table.name.startswith(_FRAMEWORK)
    ]
    if shared:
        best = min(shared, key=lambda t: (-used[lowered(t.name)], t.name))
        number = used[lowered(best.name)]
        return best, f"{best.name} holds the concepts: {number} link tables refer to it."
    return None, ""


def _likeness(name: str) -> int | None:
    """How much a table or column is named like tags, 0 the most; None when it is not."""
    words = _words(name)
    last = words[-1].lower() if words else ""
    singulars = {last, last.removesuffix("s"), re.sub("ies$", "y", last)}
    return next((n for n, like in enumerate(_CONCEPT_NAMES) if like in singulars), None)


def _ends(link: Table, concepts: Table) -> tuple[ForeignKey | None, ForeignKey | None]:
    one, other = link.foreign_keys
    if lowered(other.table) == lowered(concepts.name):
        one, other = other, one
    if lowered(one.table) != lowered(concepts.name) or len(one.columns) != 1:
        return None, None
    return one, other


def _source(schema: Schema, link: Table, to_items: ForeignKey) -> SourceConfig:
    items = schema.get(to_items.table)
    assert items is not None  # `_link_tables` sees to it
    return _described(items, SourceConfig(items.name, link=link.name, item_key=to_items.columns))


def _described(items: Table, source: SourceConfig) -> SourceConfig:
    """With the columns of what is shown of an item."""
    title = title_column(items, source.tags)
    return replace(
        source,
        title=title or NONE,
        body=body_column(items, title, source.tags) or NONE,
        created=created_column(items) or NONE,
    )


def _is_generic(link: Table, to_items: ForeignKey) -> bool:
    """Whether links are to rows of any table, as Django's content types make them."""
    return (
        lowered(to_items.table) == "django_content_type"
        and len(to_items.columns) == 1
        and link.column("object_id") is not None
    )


def _generic(
    reader: Reader, schema: Schema, link: Table, to_type: ForeignKey, reasons: list[str]
) -> Iterator[SourceConfig]:
    column = quote_identifier(to_type.columns[0])
    for id_, app, model in reader.rows(
        "select id, app_label, model from django_content_type where id in"
        f" (select {column} from {quote_identifier(link.name)}) order by id"
    ):
        items = schema.get(f"{app}_{model}")
        if items is None or not isinstance(id_, int):
            reasons.append(f"{link.name} also links {app}.{model}, of which there is no table.")
            continue
        source = SourceConfig(
            items.name,
            link=link.name,
            item_key=("object_id",),
            link_where=f"{column} = {id_}",
        )
        yield _described(items, source)


_SAMPLE = 20
"""So many values of a column are looked at; it holds JSON arrays when at least half of them are."""


def _arrays(reader: Reader, schema: Schema) -> Found:
    sources: dict[str, SourceConfig] = {}
    reasons: list[str] = []
    for table, column in _columns_like_tags(schema):
        why_not = _why_no_arrays(reader, table, column)
        if why_not is None and table.name in sources:
            why_not = f"{table.name} is tagged by {sources[table.name].tags}"
        if why_not is not None:
            reasons.append(f"{table.name}.{column.name} is passed over: {why_not}.")
            continue
        sources[table.name] = _described(table, SourceConfig(table.name, tags=column.name))
        reasons.append(f"{table.name} is tagged: {column.name} holds JSON arrays of names.")
    if not sources:
        return Found(None, ("No link table and no JSON array of tags was found.", *reasons))
    return Found(DatabaseConfig(None, sources), tuple(reasons))


def _why_no_arrays(reader: Reader, table: Table, column: Column) -> str | None:
    """Why a column does not hold JSON arrays of names, None when it does."""
    name = quote_identifier(column.name)
    try:
        values = reader.rows(
            f"select case when json_valid({name}) then json_type({name}) end"
            f" from {quote_identifier(table.name)} where {name} <> '' limit {_SAMPLE}"
        )
    except sqlite3.OperationalError as error:  # a view may need what is not there
        if "interrupted" in str(error):
            raise
        return f"it cannot be read ({error})"
    arrays = values.count(("array",))
    if not values:
        return "it holds nothing"
    if arrays * 2 < len(values):
        return f"{arrays} of {len(values)} values looked at are JSON arrays, fewer than half"
    return None


def name_column(table: Table) -> str | None:
    """The column that holds the names of concepts."""
    return _named(table, _NAME) or _first(table, lambda c: c.is_text)


def description_column(table: Table, name: str | None) -> str | None:
    """The column that describes the concepts."""
    return _named(table, _DESCRIPTION, but=(name,))


def title_column(table: Table, tags: str | None = None) -> str | None:
    """The column that names an item; not that of its tags."""
    return _named(table, _TITLE, but=(tags,))


def body_column(table: Table, title: str | None, tags: str | None = None) -> str | None:
    """The column of an item's text: by its name, or the first text that is neither a key nor the
    title nor tags."""
    referring = {lowered(c) for key in table.foreign_keys for c in key.columns}
    return _named(table, _BODY, but=(title, tags)) or _first(
        table,
        lambda c: (
            "TEXT" in c.declared.upper()
            and not c.key
            and c.name not in (title, tags)
            and _likeness(c.name) is None
            and lowered(c.name) not in referring
            and _squeezed(c.name) not in (*_CREATED, "slug", "url")
        ),
    )


def created_column(table: Table) -> str | None:
    """The column of an item's time: by its name, or the first that is declared as one."""
    return _named(table, _CREATED, numbers=True) or _first(
        table, lambda c: any(word in c.declared.upper() for word in ("DATE", "TIME"))
    )


def _named(
    table: Table,
    names: Iterable[str],
    *,
    but: Collection[str | None] = (),
    numbers: bool = False,
) -> str | None:
    columns = {_squeezed(c.name): c for c in reversed(table.columns) if c.name not in but}
    for name in names:
        column = columns.get(name)
        if column and (numbers or column.is_text or not column.declared):
            return column.name
    return None


def _squeezed(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _first(table: Table, test: Callable[[Column], bool]) -> str | None:
    return next((column.name for column in table.columns if test(column)), None)
