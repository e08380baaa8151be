"""Datasette serves while another process writes: every answer is of a state that was committed."""

from __future__ import annotations

import asyncio
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

import knowledge
from conftest import MakeDatasette

WRITER = """
import itertools, sqlite3, sys, time

path, first, last, pause = sys.argv[1], *map(int, sys.argv[2:])
conn = sqlite3.connect(path, isolation_level=None, timeout=60)
conn.execute("pragma wal_autocheckpoint = 0")
for number in range(first, last):
    name = f"news{number}"
    conn.execute("begin immediate")
    conn.execute("insert into concepts (id, name, uuid) values (?, ?, ?)", (number, name, name))
    conn.execute(
        "insert into observations (id, body, uuid) values (?, ?, ?)", (number, name, name)
    )
    conn.execute("insert into observation_concepts values (?, ?)", (number, number))
    conn.execute("commit")
    time.sleep(pause / 1000)
"""
"""Commits a concept, an observation and the link between them, again and again."""

TASKS, REQUESTS = 8, 25
SEVERAL = 10
"""Tasks go on asking until so much was written."""


@pytest.fixture(params=["wal", "delete"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A database in one of the two usual journal modes, with its first item, number 1."""
    file = tmp_path / "k.db"
    with closing(knowledge.create(file, wal=request.param == "wal")) as conn:
        knowledge.add_observation(conn, "news1", concepts=["news1"])
        conn.commit()
    return file


def write(path: Path, first: int, last: int) -> None:
    """Lets another process add the items of these numbers, and waits for it to end."""
    command = [sys.executable, "-c", WRITER, str(path), str(first), str(last), "0"]
    subprocess.run(command, check=True)


@contextmanager
def writing(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Another process that commits an item every ten milliseconds while the block runs."""
    command = [sys.executable, "-c", WRITER, str(path), "2", "1000000", "10"]
    with subprocess.Popen(command) as process:
        yield process
        process.terminate()


async def ask(datasette: Datasette, text: str) -> Any:
    """The answer of the JSON API, which must be good."""
    response = await datasette.client.get(f"/k/-/recall.json?q={text}&mode=concept&_size=100")
    assert response.status_code == 200, response.text
    return response.json()


@pytest.mark.asyncio
async def test_the_next_request_knows_what_another_process_committed(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """A new concept and its link are found by the page, the JSON, the queries and the functions."""
    datasette = make_datasette(path)
    for number in range(2, 6):
        text = f"news{number}+and+news1"
        assert [row["ref"] for row in (await ask(datasette, text))["rows"]] == ["observation:1"]
        write(path, number, number + 1)
        answer = await ask(datasette, text)
        names = sorted(["news1", f"news{number}"])
        assert [concept["name"] for concept in answer["concepts"]] == names
        assert {row["id"] for row in answer["rows"]} == {1, number}
        page = await datasette.client.get(f"/k/-/recall?q={text}")
        assert f'/k/observations/{number}"' in page.text
        query = f"/k/concept_recall_by_text.json?text={text}&_shape=array"
        found = (await datasette.client.get(query)).json()
        assert {row["id"] for row in found} == {1, number}
        query = f"/k/concept_mentions.json?text={text}&_shape=array"
        found = (await datasette.client.get(query)).json()
        assert [row["name"] for row in found] == names


@pytest.mark.asyncio
async def test_a_renamed_and_a_deleted_concept_are_gone_at_the_next_request(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """What no longer has its name is no longer found by it, and its items by the new one only."""
    datasette = make_datasette(path)
    assert (await ask(datasette, "news1"))["total"] == 1
    for statement, found in (
        ("update concepts set name = 'olds'", {"news1": 0, "olds": 1}),
        ("delete from observation_concepts", {"news1": 0, "olds": 0}),
        ("delete from concepts", {"olds": 0}),
    ):
        with closing(sqlite3.connect(path)) as other:
            other.execute(statement)
            other.commit()
        assert {text: (await ask(datasette, text))["total"] for text in found} == found
    assert (await ask(datasette, "olds"))["concepts"] == []


@pytest.mark.asyncio
async def test_requests_beside_a_writer_neither_fail_nor_are_stale(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """Two hundred requests of eight tasks each find what was committed just before."""
    datasette = make_datasette(path, settings={"num_sql_threads": TASKS})
    await datasette.invoke_startup()

    async def ask_for_the_latest() -> list[int]:
        asked: list[int] = []
        with closing(sqlite3.connect(path, timeout=60)) as conn:
            while len(asked) < REQUESTS or asked[-1] < SEVERAL:
                (latest,) = conn.execute("select max(id) from concepts").fetchone()
                answer = await ask(datasette, f"news{latest},news1")
                assert {concept["name"] for concept in answer["concepts"]} == {
                    "news1",
                    f"news{latest}",
                }
                assert {row["id"] for row in answer["rows"]} == {1, latest}
                asked.append(latest)
        return asked

    with writing(path) as writer:
        asked = await asyncio.gather(*(ask_for_the_latest() for _ in range(TASKS)))
        assert writer.poll() is None
    assert all(numbers == sorted(numbers) for numbers in asked)
