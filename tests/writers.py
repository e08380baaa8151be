"""Random knowledge databases, and random statements as programs and people write into them.

Numbers are small and texts few, so that statements meet rows that exist, and each other.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Iterator
from functools import cache
from typing import Any

from hypothesis import strategies as st

import knowledge
from knowledge import Section

NAMES = ["mint", "RAG", "rag", "zoo", "Zoo", "jam"]
PROJECTS = ["Breakfast", "Lunch", "Supper"]
TIMES = (
    "2026-01-15 12:00:00",
    "2026-01-15T12:00:00Z",
    "2026-01-15T14:00:00.5+02:00",
    "2025-12-31",
    "2026-02-30",
    "junk",
    "",
    None,
    7,
)
LINKS = {
    "observation_concepts": "observation_id",
    "record_concepts": "record_id",
    "document_section_concepts": "section_id",
}
ITEMS = ("observations", "records", "document_sections", "documents")
MOST = 6
"""No id is higher in the beginning, nor in any statement."""

Step = tuple[str, tuple[Any, ...]]
"""A statement and its parameters; `OPTIMIZE` stands for renewing the index."""

OPTIMIZE: Step = ("optimize", ())


# --- databases -----------------------------------------------------------------------------------


@cache
def _template(variant: str) -> sqlite3.Connection:
    return knowledge.create(variant=variant)


def database(seed: int, variant: str = "today") -> sqlite3.Connection:
    """A database in memory of so many items, tagged at random, some of it dangling or junk."""
    rng, conn = random.Random(seed), sqlite3.connect(":memory:")
    _template(variant).backup(conn)
    for name in NAMES:
        knowledge.add_concept(conn, name)
    for name in PROJECTS:
        if knowledge.table_exists(conn, "projects"):
            knowledge.add_project(conn, name, concepts=_tags(rng))
    for number in range(MOST):
        _add_items(conn, rng, number)
    for table in LINKS:
        knowledge.link(conn, table, rng.choice([None, 3, 90]), [rng.randint(1, 9)])
    conn.commit()
    conn.isolation_level = None
    return conn


def _tags(rng: random.Random) -> list[str]:
    return rng.sample(NAMES, rng.choice([0, 1, 1, 2, 3, 6]))


def _add_items(conn: sqlite3.Connection, rng: random.Random, number: int) -> None:
    project, time = rng.choice([None, *PROJECTS]), rng.choice(TIMES)
    knowledge.add_observation(
        conn, f"o{number}", concepts=_tags(rng), project=project, created_at=time
    )
    if knowledge.table_exists(conn, "records"):
        knowledge.add_record(
            conn, f"r{number}", concepts=_tags(rng), project=project, ingested_at=rng.choice(TIMES)
        )
    if knowledge.table_exists(conn, "documents") and number % 3 == 0:
        section = Section(f"s{number}", concepts=_tags(rng), created_at=time)
        gist = Section(concepts=_tags(rng), created_at=rng.choice(TIMES))
        knowledge.add_document(conn, f"d{number}", gist=gist, sections=[section], project=project)


# --- statements ----------------------------------------------------------------------------------

_ids = st.integers(1, MOST + 1)
_maybe_ids = st.one_of(_ids, st.none(), st.just(90))
_links = st.sampled_from(sorted(LINKS.items()))
_items = st.sampled_from(ITEMS)
_conflicts = st.sampled_from(["", "or replace ", "or ignore ", "or abort ", "or fail "])
_any_conflicts = st.one_of(_conflicts, st.just("or rollback "), st.just("or replace "))
_times = st.sampled_from(TIMES)
_uuids = _ids.map(lambda serial: f"00000000-0000-7000-8000-{serial:012x}")


def _columns(table: str) -> list[st.SearchStrategy[tuple[str, object]]]:
    """Columns of an item's table that matter to something, with values for them."""
    values: dict[str, st.SearchStrategy[Any]] = {"id": _ids, "rowid": _ids, "uuid": _uuids}
    values["created_at" if table != "records" else "ingested_at"] = _times
    values["project_id"] = _maybe_ids
    values["origin_host"] = st.just("elsewhere")
    if table == "records":
        values |= {"record_id": st.sampled_from(["0001", "0002"])}
    if table == "documents":
        del values["created_at"]
    if table == "document_sections":
        del values["project_id"]
        values |= {"document_id": _maybe_ids, "level": st.sampled_from(["gist", "section", "x"])}
    return [st.tuples(st.just(name), value) for name, value in values.items()]


@st.composite
def _writes_items(draw: st.DrawFn) -> Step:
    table = draw(_items)
    columns = _columns(table)
    kind = draw(st.sampled_from(["insert", "insert", "update", "update", "update", "delete"]))
    if kind == "delete":
        return f"delete from {table} where id = ?", (draw(_ids),)
    conflict = draw(_any_conflicts)
    if kind == "update":
        name, value = draw(st.one_of(columns))
        where = f" where id {draw(st.sampled_from('=<>'))} ?"
        return f"update {conflict}{table} set {name} = ?{where}", (value, draw(_ids))
    given = dict(draw(st.lists(st.one_of(columns), max_size=4)))
    given.pop("rowid", None)
    names = [*_required(table), *(name for name in given if name not in _required(table))]
    values = [given.get(name, "some") for name in names]
    upsert = ""
    if not conflict and "uuid" in given and draw(st.booleans()):
        upsert = f" on conflict (uuid) do update set {names[-1]} = excluded.{names[-1]}"
    marks = ", ".join("?" * len(names))
    return f"insert {conflict}into {table} ({', '.join(names)}) values ({marks}){upsert}", tuple(
        values
    )


def _required(table: str) -> list[str]:
    return {
        "observations": ["body"],
        "records": ["record_id", "path", "title", "date", "body"],
        "documents": ["title", "path"],
        "document_sections": ["level"],
    }[table]


@st.composite
def _writes_links(draw: st.DrawFn) -> Step:
    table, item = draw(_links)
    kind = draw(st.sampled_from(["insert", "several", "rowid", "update", "delete"]))
    conflict = draw(_any_conflicts)
    if kind == "insert":
        return f"insert {conflict}into {table} values (?, ?)", (draw(_maybe_ids), draw(_ids))
    if kind == "several":
        pairs = [draw(_ids) for _ in range(6)]
        return f"insert {conflict}into {table} values (?, ?), (?, ?), (?, ?)", tuple(pairs)
    if kind == "rowid":
        sql = f"insert {conflict}into {table} (rowid, {item}, concept_id) values (?, ?, ?)"
        return sql, (draw(_ids), draw(_ids), draw(_ids))
    column = draw(st.sampled_from([item, "concept_id", "rowid"]))
    other = draw(st.sampled_from([item, "concept_id", "rowid"]))
    if kind == "update":
        sql = f"update {conflict}{table} set {column} = ? where {other} = ?"
        return sql, (draw(_ids), draw(_ids))
    return f"delete from {table} where {column} = ?", (draw(_ids),)


@st.composite
def _writes_names(draw: st.DrawFn) -> Step:
    table, names = draw(st.sampled_from([("concepts", [*NAMES, "new"]), ("projects", PROJECTS)]))
    conflict, name, number = draw(_any_conflicts), draw(st.sampled_from(names)), draw(_ids)
    return draw(
        st.sampled_from(
            [
                (f"insert {conflict}into {table} (name, uuid) values (?, ?)", (name, name)),
                (
                    f"insert {conflict}into {table} (id, name, uuid) values (?, ?, 'u')",
                    (number, name),
                ),
                (f"update {conflict}{table} set name = ? where id = ?", (name, number)),
                (f"update {conflict}{table} set id = ? where name = ?", (number, name)),
                (f"delete from {table} where id = ?", (number,)),
                (f"delete from {table} where name = ?", (name,)),
                ("insert or ignore into project_concepts values (?, ?)", (number, number)),
            ]
        )
    )


_RARE = [
    *(f"delete from {table}" for table in (*LINKS, *ITEMS, "concepts", "projects")),
    "vacuum",
    "alter table observations add column extra text",
    "alter table record_concepts add column weight real default 1",
]
_STATE = ["begin", "begin", "savepoint s", "rollback to s", "commit", "rollback"]
_SETTINGS = [
    f"pragma {name} = {value}" for name in ("foreign_keys", "recursive_triggers") for value in "10"
]


def steps() -> st.SearchStrategy[Step]:
    """One statement, or `OPTIMIZE`; what it does may well be refused by the database."""
    plain = st.sampled_from([*_RARE, *_STATE, *_STATE, *_SETTINGS]).map(lambda sql: (sql, ()))
    writes = [_writes_items(), _writes_items(), _writes_links(), _writes_links(), _writes_names()]
    return st.one_of(*writes, *writes, plain, st.just(OPTIMIZE))


def rebuilds(conn: sqlite3.Connection, table: str) -> Iterator[str]:
    """The statements by which a table is made anew with all its rows, as SQLite recommends."""
    ((sql,),) = conn.execute("select sql from sqlite_master where name = ?", (table,)).fetchall()
    yield sql.replace(table, f"new_{table}", 1)
    yield f"insert into new_{table} select * from {table}"
    yield f"drop table {table}"
    yield f"alter table new_{table} rename to {table}"
