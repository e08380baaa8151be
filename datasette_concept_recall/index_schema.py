"""The tables and triggers of the recall index, which `optimize` adds to a knowledge database.

The index holds, for each concept, the set of its items as positions in rank order (see
`recall_index`). It is never updated in place: triggers note every item whose links, time, project
or type change, and a recall reads those from the tables themselves. So the index is true as long
as its triggers are there exactly as written here, which is what a reader checks.

A row that a statement with REPLACE puts another one in the place of is deleted without its
trigger. Such rows are found before, by the unique keys that they share with the new one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

from .mapping import Mapping
from .reading import Reader, quote_identifier

PREFIX = "_concept_recall_"
ITEM, POSTING = f"{PREFIX}item", f"{PREFIX}posting"
CHANGED, STATE = f"{PREFIX}changed", f"{PREFIX}state"

TABLES = (STATE, ITEM, POSTING, CHANGED)

VERSION = 1
"""Changes whenever what is stored means something else; an index of another version is not used."""

PARENT = 10
"""Added to the order of a source, it stands for the rows of its parent table."""

_CREATE_TABLES = {
    STATE: f"create table {STATE} (version integer not null, items integer not null)",
    # One row for each tagged item: position 0 ranks before 1 among items of equal count.
    ITEM: f"create table {ITEM} (position integer primary key, age integer not null,"
    " source integer not null, item integer not null, project_id integer,"
    " source_type text not null)",
    f"{ITEM}_by_id": f"create unique index {ITEM}_by_id on {ITEM} (source, item)",
    # kind: concept, type, project. positions: 4 bytes each, or one bit for every item.
    POSTING: f"create table {POSTING} (kind text not null, id integer not null,"
    " size integer not null, positions blob not null)",
    f"{POSTING}_by_id": f"create unique index {POSTING}_by_id on {POSTING} (kind, id)",
    # source: the order of a source, or of its parent table.
    CHANGED: f"create table {CHANGED} (source integer not null, item integer not null,"
    " primary key (source, item)) without rowid",
}


class Followed(NamedTuple):
    """A table of which changed rows are noted: under which source, by which column, and which
    other columns matter."""

    table: str
    source: int
    item: str
    columns: tuple[str, ...]


def followed_tables(mapping: Mapping) -> Iterator[Followed]:
    """The tables on which the index depends."""
    for source in mapping.sources:
        link = source.link_item, source.link_concept
        yield Followed(source.link, source.order, source.link_item, link)
        ranked_by = dict(source.ranked_by)
        own = ranked_by[source.item_table]
        yield Followed(source.item_table, source.order, "id", own)
        if source.parent:
            table, _ = source.parent
            yield Followed(table, source.order + PARENT, "id", ranked_by[table])


def objects(reader: Reader, mapping: Mapping) -> dict[str, str]:
    """Name -> SQL of everything the index consists of, in the order to create it."""
    found = dict(_CREATE_TABLES)
    for followed in followed_tables(mapping):
        found |= _triggers(reader, followed)
    return found


def plain_indexes(mapping: Mapping) -> dict[str, str]:
    """Name -> SQL of indexes by which SQL of any kind finds the items of a concept or parent."""
    found = {}
    for source in mapping.sources:
        name = f"{PREFIX}{source.link}_by_concept"
        found[name] = f"{source.link} ({source.link_concept}, {source.link_item})"
        if source.parent:
            found[f"{PREFIX}{source.item_table}_by_parent"] = (
                f"{source.item_table} ({source.parent[1]})"
            )
    return {name: f"create index {name} on {columns}" for name, columns in found.items()}


def is_usable(reader: Reader, mapping: Mapping) -> bool:
    """Whether the index is there, of this version, and all its triggers are as they must be.

    A table that was dropped and made again has lost its triggers, and the index its use; so it has
    when they were made again with the table.
    """
    stored = "select name, sql from sqlite_master where name glob ? || '*' and sql is not null"
    # SQLite keeps the statements, but for the case of the first words.
    found = {name: sql.lower() for name, sql in reader.rows(stored, PREFIX)}
    if STATE not in found:
        return False
    wanted = objects(reader, mapping)
    if _rebuilt_since(reader, mapping):
        return False
    if any(found.get(name) != sql.lower() for name, sql in wanted.items()):
        return False
    return reader.rows(f"select version from {STATE}") == [(VERSION,)]


def _rebuilt_since(reader: Reader, mapping: Mapping) -> bool:
    """Whether a table was made anew after the index, be it with all its triggers."""
    tables = {followed.table for followed in followed_tables(mapping)}
    sql = (
        "select lower(name) from sqlite_master where type = 'table'"
        " and rowid > (select rowid from sqlite_master where name = ?)"
    )
    return any(name in tables for (name,) in reader.rows(sql, STATE))


def _triggers(reader: Reader, followed: Followed) -> dict[str, str]:
    """Triggers for every way in which rows of a table change.

    None of the statements has a conflict clause of its own: SQLite would put that of the
    statement which fires the trigger in its place. None reads another table of the knowledge,
    so that each table can be dropped, renamed and made anew as without them.
    """
    updated = (*followed.columns, "rowid", "oid", "_rowid_")
    new, old = (_note(followed, f"{row}.{followed.item}") for row in ("new", "old"))
    events = {
        "insert": ("after insert", [new]),
        "update": ("after update of " + ", ".join(map(quote_identifier, updated)), [old, new]),
        "delete": ("after delete", [old]),
    }
    keys = _keys(reader, followed)
    if keys:
        others = [f"{key} and t.rowid is not old.rowid" for key in keys]
        events["replacing_insert"] = "before insert", [_note(followed, where=k) for k in keys]
        events["replacing_update"] = "before update", [_note(followed, where=k) for k in others]
    found = {}
    for name, (event, actions) in events.items():
        trigger = f"{PREFIX}{followed.table}_{name}"
        body = " ".join(f"{action};" for action in actions)
        found[trigger] = f"create trigger {trigger} {event} on {followed.table} begin {body} end"
    return found


def _note(followed: Followed, item: str | None = None, *, where: str | None = None) -> str:
    """The statement that notes an item, or that of the row of the table with some key."""
    item = item or f"t.{followed.item}"
    rows = f" from {followed.table} t where {where} and" if where else " where"
    return (
        f"insert into {CHANGED} select {followed.source}, {item}{rows} {item} is not null"
        f" and not exists (select 1 from {CHANGED}"
        f" where source = {followed.source} and item = {item})"
    )


def _keys(reader: Reader, followed: Followed) -> list[str]:
    """Conditions for the rows ``t`` that share a unique key with the new row but not its item."""
    table = quote_identifier(followed.table)
    columns: dict[str, str | None] = {  # with what stands for NULL where that is not allowed
        name: default if not_null else None
        for _, name, _, not_null, default, *_ in reader.rows(f"pragma table_xinfo({table})")
    }
    rows = reader.rows(
        "select l.name, l.origin, x.key, x.cid, x.name, x.coll, m.sql from pragma_index_list(?) l"
        " join pragma_index_xinfo(l.name) x left join sqlite_master m"
        " on m.type = 'index' and m.name = l.name where l.\"unique\" order by l.name, x.seqno",
        followed.table,
    )
    keys, has_rowid = [], True
    for _, group in groupby(rows, itemgetter(0)):
        index = list(group)
        if index[0][1] == "pk" and all(row[3] != -1 for row in index):
            has_rowid = False
        parts = [tuple(row[3:6]) for row in index if row[2]]
        same_item = ((name or "").lower() == followed.item for _, name, _ in parts)
        if not any(same_item):
            keys.append(_key(parts, index[0][6], columns))
    # An item's id is its rowid, and needs no look.
    return keys + ["t.rowid = new.rowid"] * (has_rowid and followed.item != "id")


def _key(parts: list[tuple[Any, ...]], sql: str | None, columns: dict[str, str | None]) -> str:
    """The condition of one unique index, which may be on expressions or on some rows only."""
    terms, where = _index_terms(sql) if sql else ([""] * len(parts), "")
    conditions = [f"({where})"] if where else []
    for (cid, name, collation), term in zip(parts, terms, strict=True):
        if cid >= 0:
            left, right = f"t.{quote_identifier(name)}", f"new.{quote_identifier(name)}"
            default = columns.get(name)
            # REPLACE puts the default in the place of NULL, but only after these triggers.
            right = right if default is None else f"coalesce({right}, {default})"
        else:
            used = {token.strip('"`[]').lower() for token in _tokens(term)}
            names = [quote_identifier(name) for name in columns if name.lower() in used]
            renamed = "".join(f", new.{name} as {name}" for name in names)
            left, right = f"({term})", f"(select {term} from (select 0{renamed}))"
        conditions.append(f"{left} collate {quote_identifier(collation)} = {right}")
    return " and ".join(conditions)


_tokens = re.compile(
    r"""'(?:[^']|'')*'|"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^]]*\]|--[^\n]*|/\*.*?\*/|\w+|.""",
    re.DOTALL,
).findall


def _index_terms(sql: str) -> tuple[list[str], str]:
    """The terms of a CREATE INDEX statement, and the condition behind its WHERE."""
    terms, rest, depth, closed = [""], "", 0, False
    for token in _tokens(sql):
        if token[:2] in ("--", "/*"):
            token = " "
        depth += (token == "(") - (token == ")")
        if closed:
            rest += token
        elif depth == 0:
            closed = token == ")"
        elif depth == 1 and token == ",":
            terms.append("")
        elif depth > 1 or token != "(":
            terms[-1] += token
    terms = [re.sub(r"\s+(asc|desc)$", "", t.strip(), flags=re.IGNORECASE) for t in terms]
    return terms, re.sub(r"^\s*where\b", "", rest, flags=re.IGNORECASE).strip()
