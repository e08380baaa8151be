"""`datasette concept-recall optimize`: what it adds and takes away, refuses, and survives."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from datasette.cli import cli

import knowledge
import writers
from conftest import file_bytes, rows
from datasette_concept_recall import search
from datasette_concept_recall.models import RecallResult
from pairs import ALL, is_used

as_somebody = pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 0)() == 0, reason="root may write everything"
)


@pytest.fixture(params=["delete", "wal"])
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file with something from every source, in each of the two ways of writing."""
    file = tmp_path / "knowledge.db"
    with closing(writers.database(5)) as made, closing(sqlite3.connect(file)) as conn:
        made.backup(conn)
        conn.execute(f"pragma journal_mode = {request.param}")
    return file


def run(*arguments: object) -> str:
    """The output of a run that ends well."""
    result = CliRunner().invoke(cli, ["concept-recall", *map(str, arguments)])
    assert result.exit_code == 0, result.output
    return result.stdout


def refused(*arguments: object) -> str:
    """The one line of a run that ends with exit code 1."""
    result = CliRunner().invoke(cli, ["concept-recall", *map(str, arguments)])
    assert result.exit_code == 1, result.output
    (line,) = result.stderr.splitlines()
    return line.removeprefix("Error: ")


def schema(path: Path) -> list[tuple[object, ...]]:
    """Everything that the schema of a file says, where each table begins included."""
    return rows(path, "select * from sqlite_master")


def answer(path: Path) -> RecallResult:
    """All that there is to recall."""
    with closing(sqlite3.connect(path)) as conn:
        return replace(search.recall(conn, ALL), warnings=[])  # it may have been slow


def uses_index(path: Path) -> bool:
    """Whether the next recall uses the index."""
    with closing(sqlite3.connect(path)) as conn:
        return is_used(conn)


# --- adding and taking away ----------------------------------------------------------------------


def test_it_says_what_it_adds_and_is_idempotent(path: Path) -> None:
    """The first run adds and says how much and how fast, the second finds nothing to do."""
    before = answer(path)
    printed = run("optimize", path)
    assert "Added 45 tables, triggers and indexes" in printed
    assert "The data grew by" in printed
    assert "ms before" in printed
    assert uses_index(path)
    after = path.read_bytes()
    for arguments in ([], ["--dry-run"]):
        printed = run("optimize", path, *arguments)
        assert printed == "Nothing to do: everything is there and up to date.\n"
    assert path.read_bytes() == after
    assert answer(path) == before


def test_what_changed_since_is_brought_up_to_date(path: Path) -> None:
    """A later run takes in what was written since the last, and says how much that is."""
    run("optimize", path)
    with closing(sqlite3.connect(path)) as conn:
        knowledge.add_observation(conn, "new", concepts=["mint"])
        conn.commit()
    before = answer(path)
    assert run("optimize", path, "--dry-run") == "Would bring 1 changed item up to date.\n"
    assert "Brought 1 changed item up to date." in run("optimize", path)
    assert run("optimize", path, "--dry-run").startswith("Nothing to do")
    assert answer(path) == before


def test_remove_takes_everything_away_again(path: Path) -> None:
    """After --remove the schema is as it was, to the page each table begins on."""
    before, found = schema(path), answer(path)
    run("optimize", path)
    added = {name for (name,) in rows(path, "select name from sqlite_master")}
    told = run("optimize", path, "--remove", "--dry-run").splitlines()
    assert len(schema(path)) > len(before)
    removed = run("optimize", path, "--remove").splitlines()
    assert removed == [line.replace("Would remove", "Removed") for line in told]
    assert len(removed) == 1 + len([name for name in added if name.startswith("_concept_recall_")])
    assert schema(path) == before
    assert rows(path, "pragma integrity_check") == [("ok",)]
    assert answer(path) == found
    assert run("optimize", path, "--remove") == "Nothing to remove.\n"


def test_a_dry_run_changes_nothing(path: Path) -> None:
    """--dry-run names what would be added, and leaves every byte of the file."""
    before = file_bytes(path)
    summary, *told = run("optimize", path, "--dry-run").splitlines()
    assert summary == f"Would add {len(told)} tables, triggers and indexes:"
    assert run("optimize", path, "--remove", "--dry-run") == "Nothing to remove.\n"
    assert file_bytes(path) == before
    run("optimize", path)
    added = rows(path, "select name from sqlite_master where name glob '_concept_recall_*'")
    assert sorted(told) == sorted(f"  {name}" for (name,) in added)


def test_a_writer_and_a_reader_go_on_as_before(path: Path) -> None:
    """Programs that have the file open notice the index, and each other, as ever."""
    with (
        closing(sqlite3.connect(path)) as writer,
        closing(knowledge.open_read_only(path)) as reader,
    ):
        vocabulary = search.Vocabulary()
        before = search.recall(reader, ALL, vocabulary=vocabulary)
        run("optimize", path)
        assert search.recall(reader, ALL, vocabulary=vocabulary) == before
        assert vocabulary.mapping(reader).is_indexed
        knowledge.add_observation(writer, "new", concepts=["mint"])
        writer.commit()
        after = search.recall(reader, ALL, vocabulary=vocabulary)
        assert after.total == before.total + 1
        assert after == search.recall(writer, ALL)


# --- refusing ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("sql", "message"),
    [
        (
            "drop table concepts",
            "The index is for knowledge databases only, and this is none; an index of the link"
            " table by concept helps any other (docs/other-databases.md)",
        ),
        (
            "alter table records rename to r; create view records as select * from r",
            "records is a view, and its changes could not be followed",
        ),
        (
            "drop table records; create table records (id text primary key, body)",
            "records.id is not declared INTEGER PRIMARY KEY",
        ),
        (
            "drop table records; create table records (id integer primary key) without rowid",
            "records.id is not declared INTEGER PRIMARY KEY",
        ),
        (
            "drop table records; create virtual table records using fts5 (id, body)",
            "records is a virtual table, and its changes could not be followed",
        ),
        (
            "drop table record_concepts;"
            " create virtual table record_concepts using fts5 (record_id, concept_id)",
            "record_concepts is a virtual table, and its changes could not be followed",
        ),
    ],
)
def test_what_cannot_be_followed_is_refused(path: Path, sql: str, message: str) -> None:
    """One line says why, and nothing is changed."""
    with closing(sqlite3.connect(path)) as conn:
        conn.executescript(sql)
    before = file_bytes(path)
    assert refused("optimize", path) == message
    assert file_bytes(path) == before


def test_a_file_that_is_being_written_is_refused(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another writer is waited for a while; then one line says what to do."""
    monkeypatch.setattr("datasette_concept_recall.opening._PATIENCE_SECONDS", 0.05)
    before = file_bytes(path)
    message = f"{path} is being written by another program; try again when it is done"
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("begin immediate")
        assert refused("optimize", path) == message
        assert refused("optimize", path, "--remove") == message
    assert file_bytes(path) == before


def test_a_reader_that_does_not_end_leaves_the_file_as_it_was(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where readers keep a writer from finishing, all is taken back, with one line."""
    monkeypatch.setattr("datasette_concept_recall.opening._PATIENCE_SECONDS", 0.05)
    before = schema(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as reader:
        reader.execute("begin")
        reader.execute("select * from concepts").fetchone()
        if reader.execute("pragma journal_mode").fetchone() == ("wal",):
            run("optimize", path)
            return
        assert "try again when it is done" in refused("optimize", path)
    assert schema(path) == before
    assert rows(path, "pragma integrity_check") == [("ok",)]


@as_somebody
def test_a_file_that_may_not_be_written_is_refused(path: Path) -> None:
    """A read-only file is named, in one line."""
    path.chmod(0o444)
    assert refused("optimize", path).startswith(f"{path} cannot be changed: ")


@pytest.mark.parametrize("content", [None, b"", b"This is no database, but it is long enough."])
def test_what_is_no_database_is_refused(tmp_path: Path, content: bytes | None) -> None:
    """Files that are missing, empty or something else get one line, and stay as they are."""
    path = tmp_path / "other.db"
    if content is not None:
        path.write_bytes(content)
    assert refused("optimize", path) != ""
    assert (path.read_bytes() if path.exists() else None) == content


def test_a_trigger_that_does_not_compile_is_never_left_behind(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The statements of writers are tried, so that a mistake of ours is not theirs."""
    before = schema(path)
    monkeypatch.setattr("datasette_concept_recall.index_schema._keys", lambda *_: ["no_such = 1"])
    assert "no such column: no_such" in refused("optimize", path)
    assert schema(path) == before


# --- being interrupted ---------------------------------------------------------------------------

KILLED = """
import os, signal, sqlite3, sys
from datasette_concept_recall import optimizing

path, moments = sys.argv[1], int(sys.argv[2])

def optimize(stop):
    # Ends itself at a step of SQLite's, or before a statement; returns how many there were.
    conn, count = sqlite3.connect(path, isolation_level=None), 0
    def step(*_):
        nonlocal count
        count += 1
        if count == stop:
            os.kill(os.getpid(), signal.SIGKILL)
    conn.set_progress_handler(step, 20)
    conn.set_trace_callback(step)
    optimizing.optimize(conn)
    conn.close()
    return count

original = open(path, "rb").read()
def restore():
    for end in ("-wal", "-shm", "-journal"):
        if os.path.exists(path + end):
            os.unlink(path + end)
    open(path, "wb").write(original)

steps, outcomes = optimize(0), set()
for moment in range(moments):
    restore()
    child = os.fork()
    if not child:
        optimize(1 + moment * (steps - 1) // (moments - 1))
        os._exit(0)
    outcomes.add(os.waitpid(child, 0)[1])
    with_index = "select count(*) from sqlite_master where name glob '_concept_recall_*'"
    for mode in ("ro", "rw"):
        conn = sqlite3.connect(f"file:{path}?mode={mode}", uri=True)
        print(moment, mode, *conn.execute("pragma integrity_check").fetchone(),
              *conn.execute(with_index).fetchone())
        conn.close()
print(*outcomes)
"""


def test_killed_at_any_moment_it_leaves_a_whole_file(path: Path) -> None:
    """SIGKILL between any two steps leaves all of the index or nothing, and all can be read."""
    found = answer(path)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, path, "60"], capture_output=True, text=True, check=True
    )
    *lines, outcomes = done.stdout.splitlines()
    assert len(lines) == 120
    states = [line.split(" ", 2)[2] for line in lines]
    assert states == ["ok 0"] * states.count("ok 0") + ["ok 45"] * states.count("ok 45")
    assert states.count("ok 0") > 100
    assert outcomes == str(signal.SIGKILL.value)
    assert answer(path) == found
    run("optimize", path)
    assert answer(path) == found


def test_killed_while_the_file_is_written_it_is_put_right(tmp_path: Path) -> None:
    """SIGKILL in the middle of writing leaves what SQLite puts right at the next writing open."""
    path = tmp_path / "knowledge.db"
    with closing(writers.database(5)) as made, closing(sqlite3.connect(path)) as conn:
        made.backup(conn)
        conn.executemany(
            "insert into observations (id, body, uuid) values (?, 'b', ?)",
            ((id_, f"u{id_}") for id_ in range(100, 9_000)),
        )
        conn.execute("insert or ignore into observation_concepts select id, 1 from observations")
        conn.commit()
    found, original = answer(path), path.read_bytes()
    command = [sys.executable, "-m", "datasette", "concept-recall", "optimize", str(path)]
    for _ in range(2):
        path.write_bytes(original)
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        while process.poll() is None and path.stat().st_size == len(original):
            time.sleep(0)
        process.kill()
        process.wait()
        assert rows(path, "pragma integrity_check") == [("ok",)]
        assert answer(path) == found


def test_a_file_left_in_the_middle_of_a_write_is_put_in_order(tmp_path: Path) -> None:
    """After a writer was killed, readers are told what helps, and `optimize` does it."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path)) as conn:
        knowledge.add_observation(conn, "About RAG", concepts=["RAG"])
        conn.commit()
        conn.execute("pragma journal_mode = delete")
    code = f"""
import os, signal, sqlite3
conn = sqlite3.connect({str(path)!r}, isolation_level=None)
conn.execute("pragma cache_size = 5")
conn.execute("begin")
for number in range(3000):
    conn.execute("insert into observations (body, uuid) values (?, ?)", ("x" * 500, str(number)))
os.kill(os.getpid(), signal.SIGKILL)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    result = CliRunner().invoke(cli, ["concept-recall", "match", str(path), "RAG"])
    assert (result.exit_code, "in the middle of a write" in result.output) == (1, True)
    assert "Added" in run("optimize", path)
    assert rows(path, "select count(*) from observations") == [(1,)]
