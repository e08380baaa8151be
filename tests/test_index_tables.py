"""The tables of the recall index stay out of sight: they tell of items of whatever tables."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

import knowledge
from conftest import IS_1_0, MakeDatasette, actor_cookie
from datasette_concept_recall.index_schema import TABLES
from datasette_concept_recall.optimizing import optimize


@pytest.fixture
def optimized(tmp_path: Path) -> Path:
    """A small database with the index."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path)) as conn:
        knowledge.add_observation(conn, "About RAG", concepts=["RAG"])
        knowledge.add_record(conn, "Use RAG", concepts=["RAG"])
        conn.commit()
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        optimize(conn)
    return path


@pytest.mark.asyncio
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("end", ["", ".json", ".csv"])
async def test_no_page_shows_a_table_of_the_index(
    optimized: Path, make_datasette: MakeDatasette, table: str, end: str
) -> None:
    """Neither a visitor nor root is shown the rows of a table of the index."""
    datasette = make_datasette(optimized)
    if IS_1_0:
        datasette.root_enabled = True
    for cookies in ({}, actor_cookie(datasette, "root")):
        for name in (table, table.upper()):
            response = await datasette.client.get(f"/kb/{name}{end}", cookies=cookies)
            assert response.status_code in (403, 404)  # not found: in other letters
            assert response.status_code == 403 or name != table


@pytest.mark.asyncio
async def test_the_tables_of_the_index_are_not_listed(
    optimized: Path, make_datasette: MakeDatasette
) -> None:
    """The page of the database looks as it did before."""
    datasette = make_datasette(optimized)
    page = await datasette.client.get("/kb")
    assert "observations" in page.text
    assert "/kb/_concept_recall_" not in page.text


@pytest.mark.asyncio
async def test_a_private_table_is_neither_shown_nor_counted_with_the_index(
    optimized: Path, make_datasette: MakeDatasette
) -> None:
    """The index answers only from the tables that the actor may view."""
    config = {"databases": {"kb": {"tables": {"observations": {"allow": {"id": "root"}}}}}}
    datasette = make_datasette(optimized, config=config)
    anonymous = (await datasette.client.get("/kb/-/recall.json?q=RAG")).json()
    assert [row["ref"] for row in anonymous["rows"]] == ["record:1"]
    assert (anonymous["total"], anonymous["concepts"][0]["total"]) == (1, 1)
    cookies = actor_cookie(datasette, "root")
    root = (await datasette.client.get("/kb/-/recall.json?q=RAG", cookies=cookies)).json()
    assert root["total"] == 2
