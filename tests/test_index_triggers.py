"""The triggers notice every change, and let through every statement that was possible before."""

from __future__ import annotations

import sqlite3

import pytest

import knowledge
import writers
from datasette_concept_recall import recall_index
from pairs import ALL, Pair, content, is_used, small

UNIQUE = [
    "observations (body)",
    "observations (body collate nocase)",
    "observations (kind, lower(body) desc)",
    "observations (upper(body) || ',)' collate nocase, kind asc)",
    "observations (/* a, ( b */ substr(body, 1, 1), -- and so on (\n kind)",
    "observations (body) where kind <> 'no (such)'",
    "observations (kind, ifnull(project_id, -1))",
    'observations ("kind", [body], `source_doi`)',
    "observations (coalesce(body, 'it''s'))",
    "observations ((1)) where id = 1",
    "observations (created_at)",
    "observation_concepts (concept_id)",
]


@pytest.mark.parametrize("columns", UNIQUE)
@pytest.mark.parametrize("keys", ["on", "off"])
def test_rows_replaced_by_another_key_are_followed(columns: str, keys: str) -> None:
    """Whatever makes rows unique, those that a REPLACE deletes without a trigger are noticed."""
    plain = knowledge.create()
    plain.execute(f"create unique index more on {columns}")
    plain.isolation_level = None
    plain.execute(f"pragma foreign_keys = {keys}")
    for number, body in enumerate(["Apple", "Bread", "Cake"]):
        project = None if number else "Lunch"
        columns_ = {"kind": body, "source_doi": body, "created_at": f"2026-01-0{number + 1}"}
        knowledge.add_observation(
            plain, body, concepts=[writers.NAMES[number]], project=project, **columns_
        )
    with Pair(plain) as pair, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_index, "_FEW", 0)
        pair.indexed.execute(f"pragma foreign_keys = {keys}")
        copied = "select body, kind, source_doi, created_at, project_id, uuid || 'x'"
        columns_of = "(body, kind, source_doi, created_at, project_id, uuid)"
        for sql in (
            f"insert or replace into observations {columns_of} {copied} from observations limit 1",
            "update or replace observations set (body, kind, source_doi, created_at, project_id)"
            " = (select body, kind, source_doi, created_at, project_id from observations"
            " where id = 3) where id = 2",
            "update or replace observations set body = 'APPLE', kind = 'apple'",
            "insert or replace into observation_concepts values (3, 1)",
            "update or replace observation_concepts set concept_id = 2",
        ):
            pair.take((sql, ()))
            pair.compare(ALL)
        assert content(pair.indexed) == content(pair.plain)


def parts(conn: sqlite3.Connection, kind: str) -> list[str]:
    """The names of what `optimize` added of one kind."""
    sql = "select name from sqlite_master where type = ? and name glob '_concept_recall_*'"
    return [name for (name,) in conn.execute(sql, (kind,))]


def test_without_one_of_its_triggers_the_index_is_not_used() -> None:
    """Whichever trigger is missing or another one, recall goes without the index, and is right."""
    with small() as pair:
        triggers = parts(pair.indexed, "trigger")
        assert len(triggers) == 3 * 10 + 5
        for name in triggers:
            pair.indexed.execute("begin")
            ((sql,),) = pair.indexed.execute(
                "select sql from sqlite_master where name = ?", (name,)
            ).fetchall()
            pair.indexed.execute(f"drop trigger {name}")
            assert not is_used(pair.indexed)
            pair.indexed.execute(sql.replace("end", "select 1; end"))
            assert not is_used(pair.indexed)
            pair.indexed.execute("rollback")
        assert is_used(pair.indexed)


@pytest.mark.parametrize("table", [*writers.LINKS, *writers.ITEMS])
def test_a_table_can_be_made_anew(table: str) -> None:
    """Every table can be rebuilt as SQLite recommends; the index is not used until renewed."""
    with small() as pair:
        for sql in writers.rebuilds(pair.plain, table):
            pair.take((sql, ()))
            pair.take(("insert into documents (id, title, path) values (null, 't', 'p')", ()))
            pair.compare(ALL)
        assert not is_used(pair.indexed)
        pair.take((f"delete from {table}", ()))
        pair.compare_all()
        pair.optimize()
        assert is_used(pair.indexed)
        pair.compare_all()


@pytest.mark.parametrize("table", [*writers.LINKS, *writers.ITEMS, "concepts", "projects"])
def test_a_table_can_be_dropped(table: str) -> None:
    """Without one of its tables a database answers, and is written, as if it had no index."""
    with small() as pair:
        pair.take((f"drop table {table}", ()))
        pair.compare(ALL)
        pair.take(("insert into documents (id, title, path) values (null, 't', 'p')", ()))
        pair.take(("insert into observation_concepts values (1, 3)", ()))
        pair.take(("delete from document_sections where id < 3", ()))
        pair.compare(ALL)
        pair.take((f"create table {table} as select * from sources", ()))
        pair.compare(ALL)


@pytest.mark.parametrize(
    "sql",
    [
        "alter table observations drop column created_at",
        "alter table records drop column session",
        "alter table documents drop column author",
        "alter table observations rename column created_at to made_at",
        "alter table record_concepts rename to tagged_records",
        "alter table records rename column project_id to owner",
        "create unique index once on documents (path)",
        "create index often on records (project_id)",
    ],
)
def test_a_schema_can_change(sql: str) -> None:
    """What could be altered before can be altered after, and the answers follow."""
    with small() as pair:
        pair.take((sql, ()))
        for table in writers.ITEMS:
            pair.take((f"update {table} set uuid = id + 100", ()))
        pair.take(
            ("insert or replace into documents (title, path) select 't', path from documents", ())
        )
        pair.take(("delete from records where id = 2", ()))
        pair.compare(ALL)
        pair.optimize()
        assert is_used(pair.indexed)
        pair.compare(ALL)


def test_a_default_that_replaces_null_is_followed() -> None:
    """REPLACE puts a default in the place of NULL, which then replaces another row unnoticed."""
    with small() as pair, pytest.MonkeyPatch.context() as patch:
        patch.setattr(recall_index, "_FEW", 0)
        pair.take(("update observations set uuid = '' where id = 1", ()))
        pair.optimize()
        for sql in (
            "update or replace observations set uuid = null where id = 2",
            "insert or replace into observations (body, uuid) values ('new', null)",
        ):
            pair.take((sql, ()))
            pair.compare(ALL)


def test_a_table_made_anew_with_its_triggers_ends_the_use_of_the_index() -> None:
    """Triggers made again with the table have not seen what was done to it."""
    with small() as pair:
        saved = "select sql from sqlite_master where tbl_name = 'observation_concepts'"
        saved += " and sql is not null and type in ('trigger', 'index')"
        statements = [sql for (sql,) in pair.indexed.execute(saved).fetchall()]
        for conn in (pair.plain, pair.indexed):
            conn.execute("create table new_links (observation_id integer, concept_id integer)")
            conn.execute("insert into new_links select * from observation_concepts limit 1")
            conn.execute("drop table observation_concepts")
            conn.execute("alter table new_links rename to observation_concepts")
        for sql in statements:
            pair.indexed.execute(sql)
        assert not is_used(pair.indexed)
        pair.compare_all()
        pair.optimize()
        assert is_used(pair.indexed)
        pair.compare_all()


def test_an_index_that_is_wrong_all_the_same_is_not_believed() -> None:
    """When an item it lists has no row, the tables are asked instead."""
    with small() as pair:
        triggers = [
            (name, sql)
            for name, sql in pair.indexed.execute(
                "select name, sql from sqlite_master where type = 'trigger'"
            ).fetchall()
        ]
        for name, _ in triggers:
            pair.indexed.execute(f"drop trigger {name}")
        for conn in (pair.plain, pair.indexed):
            conn.execute("delete from observations where id in (select id from observations)")
            conn.execute("delete from observation_concepts")
        for _, sql in triggers:
            pair.indexed.execute(sql)
        assert is_used(pair.indexed)
        pair.compare(ALL)
