"""The SQL functions: on which connections they are, what they return, and when they stop."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from datasette.app import Datasette

import knowledge
from conftest import IS_1_0, MakeDatasette, rows
from datasette_concept_recall import matching, sql_functions
from datasette_concept_recall.vocabulary import Vocabulary
from matching_oracle import oracle_count

NAMES = ["42", "C++", 'a "quote"', "jam, bread", "世界", "RAG"]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database with the concepts of `NAMES` and one observation, to be copied."""
    return build(tmp_path_factory.mktemp("built") / "k.db", NAMES)


@pytest.fixture
def path(tmp_path: Path, built: Path) -> Path:
    """A copy of that database which a test may change."""
    return Path(shutil.copy(built, tmp_path / "k.db"))


def build(path: Path, names: list[str]) -> Path:
    """A database with these concepts, and an observation tagged with all of them."""
    with closing(knowledge.create(path, wal=True)) as conn:
        knowledge.add_observation(conn, " / ".join(names), concepts=names)
        conn.commit()
    return path


@pytest.fixture
def conn(path: Path) -> Iterator[sqlite3.Connection]:
    """A plain connection that may write, with the functions."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        sql_functions.register(connection, Vocabulary())
        yield connection


async def run(
    datasette: Datasette, sql: str, database: str = "k", **parameters: object
) -> list[tuple[Any, ...]]:
    """What a query returns on one of Datasette's own reading connections."""
    await datasette.invoke_startup()
    result = await datasette.get_database(database).execute(sql, parameters)
    return [tuple(row) for row in result.rows]


async def sql_page(datasette: Datasette, sql: str, **more: str) -> Any:
    """The response of the page for SQL, as JSON."""
    page = "/k/-/query.json" if IS_1_0 else "/k.json"
    return await datasette.client.get(
        f"{page}?{urlencode({'sql': sql, '_shape': 'array', **more})}"
    )


# --- what they return ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "value"),
    [
        ("word_match('RAG', 'what rag is')", 1),
        ("word_match('RAG', 'storage')", 0),
        ("word_match('', 'text')", 0),
        ("word_match('...', '...')", 0),
        ("word_match('Straße', 'STRASSE')", 1),
        ("word_match(null, 'RAG')", None),
        ("word_match('RAG', null)", None),
        ("word_match(null, null)", None),
        ("word_match('404', 'error 404')", 1),
        ("word_match(404, 'error 404')", 1),
        ("word_match(404, 404)", 1),
        ("word_match(40, 404)", 0),
        ("word_match(1.5, 'some 1.5 litres')", 1),
        ("word_match('-1', -1)", 1),
        ("word_match(x'524147', 'what rag is')", 1),
        ("word_match('RAG', x'ff52414720ff')", 1),
        ("word_match('RAG', x'')", 0),
        ("word_match('caf\ufffd', x'636166ff')", 1),
        ("typeof(word_match('RAG', 'RAG'))", "integer"),
        ("word_count('a a', 'a a a a')", 2),
        ("word_count('RAG', 'storage')", 0),
        ("word_count(null, 'RAG')", None),
        ("word_count('RAG', null)", None),
        ("word_count(7, '7 of 7')", 2),
        ("word_count('RAG', x'ff524147ff52414700')", 2),
        ("match_concept_names(null)", None),
        ("match_concept_names('')", "[]"),
        ("match_concept_names('nothing of it')", "[]"),
        ("match_concept_names(42)", '["42"]'),
        ("match_concept_names(42.5)", '["42"]'),
        ("match_concept_names(x'ff52414720')", '["RAG"]'),
        ("match_concept_names('rag, rag and c++')", '["C++", "RAG"]'),
        ("match_concept_names('新世界観')", '["世界"]'),
        ("match_concept_names('a \"Quote\"')", '["a \\"quote\\""]'),
        ("typeof(match_concept_names('RAG'))", "text"),
    ],
)
def test_what_the_functions_return(conn: sqlite3.Connection, expression: str, value: Any) -> None:
    """NULL for NULL, numbers as their text, bytes as UTF-8 with what is undecodable replaced."""
    assert conn.execute(f"select {expression}").fetchone() == (value,)


def test_text_that_is_no_valid_utf_8_can_be_handed_over_as_a_blob(
    conn: sqlite3.Connection,
) -> None:
    """Broken text is not handed to Python functions, but ``cast(… as blob)`` makes it readable."""
    conn.execute("insert into observations (body, uuid) values (cast(x'ff5241472e' as text), 'x')")
    sql = "select word_count('RAG', cast(body as blob)) from observations order by id"
    assert conn.execute(sql).fetchall() == [(1,), (1,)]


@pytest.mark.asyncio
async def test_the_names_in_a_text_can_be_joined_as_rows(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """``json_each`` turns the array into rows, whatever characters the names hold."""
    sql = """
        select v.value, c.id, word_count(v.value, :text)
        from json_each(match_concept_names(:text)) v join concepts c on c.name = v.value
        order by c.id
    """
    found = await run(make_datasette(path), sql, text=" / ".join([*NAMES, *NAMES]))
    assert found == [(name, number, 2) for number, name in enumerate(NAMES, start=1)]


@pytest.mark.asyncio
async def test_the_sql_page_counts_what_the_oracle_counts(
    peps: Path, make_datasette: MakeDatasette
) -> None:
    """On real records a word is found in just the bodies in which the naive definition finds it."""
    sql = "select count(*) from records where word_match('GIL', body)"
    bodies = [body for (body,) in rows(peps, "select body from records")]
    expected = sum(
        any(oracle_count("GIL", part) for part in around("gil", body)) for body in bodies
    )
    assert await run(make_datasette(peps), sql, "peps") == [(expected,)]
    assert 0 < expected < len(bodies)


def around(word: str, text: str) -> Iterator[str]:
    """The places at which a text could mention a word, so that the oracle has less to read."""
    for found in re.finditer(re.escape(word), text, re.IGNORECASE):
        yield text[max(0, found.start() - 5) : found.end() + 5]


# --- on which connections ------------------------------------------------------------------------


@pytest.mark.asyncio
async def test_every_database_has_the_functions_with_its_own_names(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """No database tells the names of another, and one without concepts has none."""
    paths = [build(tmp_path / "k.db", ["RAG"]), build(tmp_path / "private.db", ["rag", "secret"])]
    with closing(knowledge.create(tmp_path / "empty.db", "nothing")):
        datasette = make_datasette(*paths, tmp_path / "empty.db", memory=True)
    sql = "select match_concept_names('RAG secret'), word_match('RAG', 'rag'), word_count('a', 'a')"
    found = {name: await run(datasette, sql, name) for name in ("k", "private", "empty", "_memory")}
    assert found == {
        "k": [('["RAG"]', 1, 1)],
        "private": [('["rag", "secret"]', 1, 1)],
        "empty": [("[]", 1, 1)],
        "_memory": [("[]", 1, 1)],
    }


@pytest.mark.asyncio
async def test_databases_that_are_attached_keep_their_names_to_themselves(
    path: Path, make_datasette: MakeDatasette
) -> None:
    """``_memory`` with all files attached to it is still a database without concepts."""
    datasette = make_datasette(path, memory=True, crossdb=True)
    sql = "select match_concept_names('RAG'), (select count(*) from k.concepts)"
    assert await run(datasette, sql, "_memory") == [("[]", len(NAMES))]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "statement",
    [
        "create table found as select match_concept_names(body) as names from observations",
        "insert into copies select match_concept_names(body) from observations",
        "update copies set names = match_concept_names(names || ' / C++')",
        "delete from copies where match_concept_names(names) = '[\"RAG\"]'",
    ],
)
async def test_statements_that_write_may_call_the_functions(
    path: Path, make_datasette: MakeDatasette, statement: str
) -> None:
    """On the writing connection the functions neither fail nor leave a transaction open."""
    datasette = make_datasette(path)
    await datasette.invoke_startup()
    database = datasette.get_database("k")
    await database.execute_write("create table copies as select 'RAG' as names")
    await database.execute_write(statement)
    no_transaction = {"transaction": False} if IS_1_0 else {}
    assert not await database.execute_write_fn(lambda conn: conn.in_transaction, **no_transaction)
    table = "found" if statement.startswith("create") else "copies"
    written = rows(path, f"select names from {table} order by rowid")
    everything = json.dumps(sorted(NAMES), ensure_ascii=False)
    assert (
        written
        == {
            "c": [(everything,)],
            "i": [("RAG",), (everything,)],
            "u": [('["C++", "RAG"]',)],
            "d": [],
        }[statement[0]]
    )


def test_a_writing_statement_outside_a_transaction_is_committed_as_ever(
    path: Path, conn: sqlite3.Connection
) -> None:
    """A function that reads the names inside it does not turn autocommit off."""
    conn.execute("update observations set body = match_concept_names(body)")
    assert not conn.in_transaction
    names = json.dumps(sorted(NAMES), ensure_ascii=False)
    assert rows(path, "select body from observations") == [(names,)]


# --- how often they work -------------------------------------------------------------------------


def test_a_word_is_compiled_once_and_not_once_per_row(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What can be known from the word alone is found out at the first of five hundred rows."""
    words: list[str] = []
    can_match = matching.can_match
    monkeypatch.setattr(matching, "can_match", lambda w: words.append(w) or can_match(w))
    sql = f"{FIVE_HUNDRED} select sum(word_match(:word, i || ' compiles once')) from n"
    assert conn.execute(sql, {"word": "Compiles  ONCE"}).fetchone() == (500,)
    assert words == ["Compiles  ONCE"]


FIVE_HUNDRED = "with recursive n(i) as (select 1 union all select i + 1 from n limit 500)"


@pytest.mark.parametrize("function", ["word_match", "word_count"])
def test_constant_arguments_are_looked_at_once_per_query(
    path: Path, monkeypatch: pytest.MonkeyPatch, function: str
) -> None:
    """The functions of a word and a text are declared deterministic, so SQLite calls them once."""
    calls: list[str] = []
    work = getattr(sql_functions, function)
    monkeypatch.setattr(sql_functions, function, lambda w, t: calls.append(w) or work(w, t))
    with closing(sqlite3.connect(path)) as conn:
        sql_functions.register(conn, Vocabulary())
        sql = f"{FIVE_HUNDRED} select sum({function}('RAG', 'what RAG is')) from n"
        assert conn.execute(sql).fetchone() == (500,)
    assert calls == ["RAG"]


def test_only_what_is_always_the_same_may_be_indexed(conn: sqlite3.Connection) -> None:
    """The names in a text change with the concepts, so that function is not deterministic."""
    conn.execute("create index match on observations (word_match('RAG', body))")
    conn.execute("create index counted on observations (word_count('RAG', body))")
    with pytest.raises(sqlite3.OperationalError, match="non-deterministic"):
        conn.execute("create index names on observations (match_concept_names(body))")


# --- the time limit ------------------------------------------------------------------------------

SLOW_CALL = 0.02


def slow_down(monkeypatch: pytest.MonkeyPatch, function: str) -> list[str]:
    """Makes a function take `SLOW_CALL` seconds; the texts it was called with."""
    texts: list[str] = []
    work = getattr(sql_functions, function)

    def slow(*arguments: str, **more: Any) -> Any:
        texts.append(arguments[-1])
        time.sleep(SLOW_CALL)
        return work(*arguments, **more)

    monkeypatch.setattr(sql_functions, function, slow)
    return texts


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("function", "call"),
    [
        ("word_match", "word_match('RAG', i)"),
        ("word_count", "word_count('RAG', i)"),
        ("match_concept_names", "match_concept_names(i)"),
    ],
)
async def test_a_long_query_stops_at_the_time_limit_of_datasette(
    path: Path,
    make_datasette: MakeDatasette,
    monkeypatch: pytest.MonkeyPatch,
    function: str,
    call: str,
) -> None:
    """With calls of 20 ms and a limit of 200 ms no more than eleven rows are evaluated."""
    texts = slow_down(monkeypatch, function)
    datasette = make_datasette(path, settings={"sql_time_limit_ms": 200})
    response = await sql_page(datasette, f"{FIVE_HUNDRED} select {call} as found from n")
    assert response.status_code == 400, response.text
    assert "SQL query took too long" in response.text
    assert 0 < len(texts) <= 200 / (SLOW_CALL * 1000) + 1


@pytest.mark.asyncio
async def test_a_query_that_was_stopped_leaves_nothing_behind(
    path: Path, make_datasette: MakeDatasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection works on, in no transaction, and sees what others commit afterwards."""
    datasette = make_datasette(path, settings={"num_sql_threads": 1})
    await run(datasette, "select 1")
    with monkeypatch.context() as slowly:
        texts = slow_down(slowly, "match_concept_names")
        sql = f"{FIVE_HUNDRED} select match_concept_names(i) from n"
        assert (await sql_page(datasette, sql, _timelimit="1")).status_code == 400
        assert len(texts) < 500
    assert not await datasette.get_database("k").execute_fn(lambda conn: conn.in_transaction)
    with closing(sqlite3.connect(path)) as other:
        knowledge.add_concept(other, "news")
        other.commit()
    assert await run(datasette, "select match_concept_names('RAG news')") == [('["RAG", "news"]',)]


def test_an_interruption_at_any_moment_is_reported_as_one(conn: sqlite3.Connection) -> None:
    """Wherever a limit strikes, also while names are read, the query is interrupted and no more."""
    answers: list[str] = []
    for polls in itertools.chain(range(100), itertools.count(100, 13)):
        answers.append(names_interrupted_after(conn, polls))
        assert not conn.in_transaction
        if answers[-1] != "interrupted":
            break
    assert set(answers) == {"interrupted", '["RAG"]'}
    assert conn.execute("select match_concept_names('RAG')").fetchall() == [('["RAG"]',)]


def names_interrupted_after(conn: sqlite3.Connection, polls: int) -> str:
    """The names found, or the error, with a limit that strikes after so many steps."""
    left = iter(range(polls))
    conn.set_progress_handler(lambda: next(left, None) is None, 1)
    try:
        return str(conn.execute("select match_concept_names('RAG')").fetchone()[0])
    except sqlite3.OperationalError as error:
        return str(error)
    finally:
        conn.set_progress_handler(None, 0)


def test_a_query_without_a_time_limit_is_not_stopped(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Looking after the limit again and again does no harm where there is none."""
    monkeypatch.setattr(sql_functions, "_UNCHECKED_SECONDS", 0)
    sql = f"{FIVE_HUNDRED} select sum(word_match('RAG', i || ' RAG')) from n"
    assert conn.execute(sql).fetchone() == (500,)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_failure_that_is_no_interruption_is_not_taken_for_one(
    conn: sqlite3.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another error of SQLite inside a function fails the query."""

    def fail(*_: object, **__: object) -> None:
        raise sqlite3.OperationalError("disk I/O error")

    monkeypatch.setattr(sql_functions, "match_concept_names", fail)
    with pytest.raises(sqlite3.OperationalError, match="raised exception"):
        conn.execute("select match_concept_names('RAG')").fetchall()
