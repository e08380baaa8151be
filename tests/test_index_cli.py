"""The commands of the index: what they do, what they print, and one line for every mistake."""

from __future__ import annotations

import json
import mailbox
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from dataclasses import replace
from email.message import EmailMessage
from pathlib import Path

import pytest

import knowledge
from datasette_concept_recall.index_running import view_of
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.indexing.turns import Turn
from datasette_concept_recall.source_page import state_in_words
from indexing import live_texts, orphans, write_note
from test_cli import bad, good
from test_cli import run as invoke


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "notes"
    write_note(folder, "bread.md", "# Bread\n\nAbout [[Sourdough]] and [[Salt]].")
    write_note(folder, "deep/soup.md", "Soup needs [[Salt]].")
    return folder


@pytest.fixture
def index(tmp_path: Path, notes: Path) -> Path:
    path = tmp_path / "index.db"
    good("index", "add", "folder", notes, "--to", path)
    return path


def texts(index: Path) -> list[str]:
    with closing(Store(index)) as store:
        return live_texts(store)


def test_a_folder_is_added_indexed_and_asked(index: Path) -> None:
    """Three commands lead from a folder to what it says about a concept."""
    said = good("index", "run", index)
    assert "notes (folder): up to date" in said
    assert "2 documents are searched" in said
    found = good("recall", index, "how much salt?")
    assert "Concepts: Salt (2)" in found
    assert "lines 1–3" in found
    assert "line 1" in found


def test_patterns_choose_the_files_of_a_folder(tmp_path: Path, notes: Path) -> None:
    """A pattern without a slash is for names, one with a slash for paths."""
    write_note(notes, "drafts/unripe.md", "Unripe.")
    write_note(notes, "table.csv", "a,b\n1,2\n")
    index = tmp_path / "i.db"
    good(
        *("index", "add", "folder", notes, "--to", index, "--name", "n"),
        *("--include", "*.md", "--exclude", "drafts", "--exclude", "deep/*.md"),
    )
    good("index", "run", index)
    assert texts(index) == ["# Bread\n\nAbout [[Sourdough]] and [[Salt]]."]


def test_a_mailbox_and_the_rows_of_a_database_are_added(tmp_path: Path) -> None:
    """Mails and rows are found beside notes, each as its own kind."""
    index = tmp_path / "index.db"
    box = mailbox.mbox(str(tmp_path / "box.mbox"))
    message = EmailMessage()
    message["Subject"], message["From"] = "Buns", "baker@example.org"
    message.set_content("We bake [[Buns]] on Monday.")
    box.add(message)
    box.close()
    database = tmp_path / "k.db"
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("create table recipe (id integer primary key, title text, body text)")
        conn.execute("insert into recipe values (1, 'Buns', 'Knead the [[Buns]] for a while.')")
    good("index", "add", "mailbox", tmp_path / "box.mbox", "--to", index)
    good("index", "add", "rows", database, "--to", index, "--table", "recipe")
    said = good("index", "run", index)
    assert "box (mailbox): up to date" in said
    assert "k (rows): up to date" in said
    found = json.loads(good("recall", index, "buns", "--json"))
    assert {row["source_type"] for row in found["rows"]} == {"mail", "row"}


def test_the_state_is_printed_as_json(index: Path) -> None:
    """What the page of the sources knows is there for scripts."""
    good("index", "run", index)
    state = json.loads(good("index", "status", index, "--json"))
    assert state["ok"] is True
    assert state["is_paused"] is False
    assert state["is_kept"] is False
    (source,) = state["sources"]
    assert (source["name"], source["state"], source["documents"]) == ("notes", "done", 2)
    assert source["last_run"]["indexed"] == 2


@pytest.mark.parametrize(
    ("signature", "note"),
    [
        (None, "without vectors: no embedder"),
        ("2|wordllama||l2|||||0|2000|200|rendering:full",
         "with vectors: embedder wordllama, rendering full"),
    ],
)  # fmt: skip
def test_the_status_says_whether_there_are_vectors(
    index: Path, signature: str | None, note: str
) -> None:
    """And which embedder made them, without the signature that is for programs; before there is
    anything to be searched it says neither."""
    assert "vectors" not in good("index", "status", index)
    good("index", "run", index)
    if signature:
        with closing(sqlite3.connect(index)) as conn, conn:
            conn.execute("update index_version set signature = ?", [signature])
    said = good("index", "status", index)
    assert f"  {note}\n" in said
    assert "2|" not in said


def test_the_status_has_the_words_of_the_page_of_the_sources(index: Path) -> None:
    """For every state, also for one that was left by a program that was killed."""
    with closing(Store(index)) as store:
        (source,) = view_of(store).sources
        ((schema,),) = store.rows("select sql from sqlite_master where name = 'source'")
    states = re.findall(r"^\s+'(\w+)',?\s+--", schema, re.MULTILINE)
    assert len(states) > 5
    for state in states:
        with closing(sqlite3.connect(index)) as conn, conn:
            conn.execute("update source set state = ?", [state])
        words = state_in_words(replace(source, state=state), is_working=False)
        assert words != state or state == "refused"
        assert f"notes (folder): {words}\n" in good("index", "status", index)
    with closing(sqlite3.connect(index)) as conn, conn:
        conn.execute("update source set state = 'running'")
    assert "notes (folder): was interrupted" in good("index", "status", index)
    with Turn(index).taken():
        assert "notes (folder): being indexed" in good("index", "status", index)


def test_of_a_run_only_what_it_did_is_told(index: Path) -> None:
    """What is none is left out, of a run that found nothing new all but what it passed over."""
    said = good("index", "run", index)
    assert re.search(r"last run \S+ got through everything: 2 indexed$", said, re.MULTILINE)
    said = good("index", "run", index)
    assert re.search(r"last run \S+ got through everything: 2 unchanged$", said, re.MULTILINE)


def test_concepts_of_another_database_are_looked_for(
    tmp_path: Path, notes: Path, index: Path
) -> None:
    """A name that a knowledge database knows is found where a note mentions it twice."""
    write_note(notes, "dough.md", "A poolish rests. The poolish smells.")
    database = tmp_path / "k.db"
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.executescript(
            "create table tag (id integer primary key, name text);"
            "create table page (id integer primary key, title text);"
            "create table page_tag (page_id integer references page, tag_id integer references tag)"
        )
        conn.execute("insert into tag values (1, 'Poolish')")
    good("index", "run", index, "--concepts-of", database)
    assert "dough" in good("recall", index, "poolish")


def test_a_document_that_fails_is_tried_again(index: Path, notes: Path) -> None:
    """The run ends with exit code 1 and says what failed; retry succeeds once it can be read."""
    broken = notes / "link.md"
    broken.mkdir()
    inner = broken / "x.pdf"
    inner.write_bytes(b"%PDF-1.4 broken")
    result = invoke("index", "run", index)
    assert result.exit_code == 0
    assert "skipped (invalid): link.md/x.pdf" in result.stdout
    inner.unlink()
    good("index", "retry", index)
    assert len(texts(index)) == 2


def test_what_is_gone_is_approved_by_its_number(tmp_path: Path, notes: Path, index: Path) -> None:
    """A folder that is suddenly empty keeps its documents until somebody says so."""
    good("index", "run", index)
    for path in list(notes.rglob("*.md")):
        path.unlink()
    result = invoke("index", "run", index)
    assert result.exit_code == 1
    assert "It is empty" in result.stdout
    assert bad("index", "approve", index, "notes", 7) == (
        "No removal of 7 documents waits for approval; that of 2 does"
    )
    good("index", "approve", index, "notes", 2)
    good("index", "run", index)
    assert texts(index) == []


def test_an_edit_that_keeps_size_and_time_is_found_by_verify(index: Path, notes: Path) -> None:
    """Contents are compared, not only sizes and times."""
    good("index", "run", index)
    path = notes / "deep" / "soup.md"
    status = path.stat()
    path.write_text("Soup needs [[Lime]].", "utf-8")
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    good("index", "run", index)
    assert "Soup needs [[Salt]]." in texts(index)
    good("index", "verify", index, "--source", "notes")
    assert "Soup needs [[Lime]]." in texts(index)


def test_a_pause_holds_everything_that_would_write(index: Path) -> None:
    """Running, retrying and removing say so, until somebody resumes."""
    assert good("index", "pause", index) == "Paused.\n"
    for command in (["run"], ["retry"], ["verify"]):
        assert "paused" in bad("index", *command, index)
    assert "paused" in bad("index", "remove", index, "notes")
    assert "Paused" in good("index", "status", index)
    good("index", "resume", index)
    good("index", "run", index)
    assert len(texts(index)) == 2


def test_a_source_is_removed_with_all_that_was_indexed_of_it(index: Path, notes: Path) -> None:
    """Nothing of it stays in the index, and everything at its origin."""
    good("index", "run", index)
    good("index", "remove", index, "notes")
    with closing(Store(index)) as store:
        for table in ("source", "document", "generation", "chunk", "concept", "document_concept"):
            assert store.rows(f"select count(*) from {table}") == [(0,)]
    assert (notes / "bread.md").exists()


def test_a_backup_is_a_whole_index_and_never_written_over_a_file(
    tmp_path: Path, index: Path
) -> None:
    """It opens by itself and can be asked; an existing file is left alone."""
    good("index", "run", index)
    copy = tmp_path / "copy.db"
    good("index", "backup", index, copy)
    assert "Salt (2)" in good("recall", copy, "salt")
    assert "exists already" in bad("index", "backup", index, copy)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (["run", "nothing.db"], "There is no index nothing.db"),
        (["status", "nothing.db"], "There is no index nothing.db"),
        (["add", "folder", "nothing", "--to", "i.db"], "There is nothing at nothing"),
        (["add", "folder", "file.txt", "--to", "i.db"], "file.txt is no folder"),
        (["add", "rows", "file.txt", "--to", "i.db"], "file is not a database"),
        (["add", "mailbox", "other.db", "--to", "i.db"], ""),
        (["add", "folder", ".", "--to", "other.db"], "holds something else"),
        (["run", "other.db"], "holds something else"),
        (["run", "file.txt"], "file is not a database"),
        (["run", "i.db", "--share", "1", "--all"], "--share and --all"),
        (["add", "folder", "."], "--to"),
    ],
)
def test_a_mistake_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], error: str
) -> None:
    """No traceback, nothing on standard output, and no file is made or changed."""
    monkeypatch.chdir(tmp_path)
    Path("file.txt").write_text("no database", "utf-8")
    with closing(sqlite3.connect("other.db")) as conn, conn:
        conn.execute("create table t (a)")
    before = {path: path.read_bytes() for path in Path().iterdir()}
    assert error in bad("index", *arguments)
    after = {path: path.read_bytes() for path in Path().iterdir()}
    assert {p: d for p, d in after.items() if not p.name.startswith("i.db")} == before


def test_names_of_sources_are_known_or_an_error(index: Path) -> None:
    """A name that is taken, and one that there is not, are said to be."""
    assert "named 'notes' already" in bad(
        "index", "add", "folder", index.parent / "notes", "--to", index
    )
    assert bad("index", "run", index, "--source", "letters") == (
        "There is no source named 'letters' in this index"
    )
    assert "letters" in bad("index", "remove", index, "letters")


@pytest.fixture
def many(tmp_path: Path) -> Path:
    """An index of so many notes that something can happen while they are read."""
    folder = tmp_path / "many"
    for n in range(3_000):
        write_note(
            folder, f"{n:04}.md", f"# Note {n}\n\nAbout [[Salt]] and [[Bread]]." + " x" * 500
        )
    index = tmp_path / "many.db"
    good("index", "add", "folder", folder, "--to", index)
    return index


def command(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "datasette", "concept-recall", "index", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def when_some_are_done(index: Path) -> None:
    """Returns in the middle of a run."""
    for _ in range(600):
        with closing(sqlite3.connect(index)) as conn:
            ((done,),) = conn.execute("select count(*) from generation").fetchall()
        if done > 50:
            return
        time.sleep(0.05)
    raise AssertionError("nothing was indexed")


@pytest.mark.slow
def test_an_interrupted_run_says_how_to_go_on_and_goes_on(many: Path) -> None:
    """Ctrl-C ends it cleanly; the same command does the rest, and nothing twice."""
    running = command("run", many)
    when_some_are_done(many)
    running.send_signal(signal.SIGINT)
    said, errors = running.communicate(timeout=60)
    assert "the same command goes on from there" in said
    assert "Traceback" not in errors
    with closing(Store(many)) as store:
        ((done,),) = store.rows("select count(*) from generation where is_complete")
        assert 0 < done < 3_000
        good("index", "run", many)
        assert store.rows("select sum(indexed) from run") == [(3_000,)]
        assert len(live_texts(store)) == 3_000


def kept(index: Path) -> subprocess.Popen[str]:
    """A program that keeps an index fresh, as Datasette starts it, when it has begun."""
    running = command("run", index, "--watch", "--parent")
    for _ in range(600):
        if Turn(index, "keeper").is_taken():
            return running
        time.sleep(0.05)
    raise AssertionError("nothing keeps the index")


def end(running: subprocess.Popen[str]) -> None:
    assert running.stdin is not None
    running.stdin.close()  # its parent is gone
    assert running.wait(timeout=30) == 0
    for pipe in (running.stdout, running.stderr):
        assert pipe is not None
        pipe.close()


@pytest.mark.slow
def test_a_run_is_asked_of_what_keeps_the_index_fresh_which_heeds_what_is_remembered_anew(
    index: Path, tmp_path: Path
) -> None:
    """Nobody has to end it for that, and it never undoes what somebody asked for meanwhile."""
    database = tmp_path / "knowledge.db"
    with closing(knowledge.create(database)) as conn, conn:
        knowledge.add_concept(conn, "fold the dough")
    write_note(index.parent / "notes", "fold.md", "Fold the dough, then fold the dough again.")
    running = kept(index)
    try:
        said = good("index", "run", index, "--concepts-of", database)
        assert said.strip() == "Asked for; what keeps this index fresh sees to it."
        for _ in range(600):
            with closing(sqlite3.connect(index)) as conn:
                found = conn.execute(
                    "select name from concept where name = 'fold the dough'"
                ).fetchall()
            if found:
                break
            time.sleep(0.05)
        assert found
    finally:
        end(running)


def test_a_run_that_is_refused_changes_nothing(index: Path, tmp_path: Path) -> None:
    """What it was to remember is not remembered when another program works on the index."""
    with Turn(index).taken():
        refused = bad("index", "run", index, "--rendering", "statement")
    assert "Another program is working on this index" in refused
    with closing(Store(index)) as store:
        assert store.setting("rendering") is None


@pytest.mark.slow
def test_a_backup_and_a_pause_in_the_middle_of_a_run(many: Path, tmp_path: Path) -> None:
    """The copy is whole, and after the pause was said to hold nothing is written any more."""
    running = command("run", many, "--watch", "--parent")
    try:
        when_some_are_done(many)
        assert Turn(many, "keeper").is_taken()
        assert "keeps this index fresh already" in bad("index", "run", many, "--watch")
        copy = tmp_path / "copy.db"
        good("index", "backup", many, copy)
        with closing(Store(copy)) as store:
            assert store.rows("pragma integrity_check") == [("ok",)]
            assert orphans(store) == 0
        good("index", "pause", many)
        with closing(Store(many)) as store:
            before = store.rows("select count(*), max(id) from generation")
            time.sleep(0.5)
            assert store.rows("select count(*), max(id) from generation") == before
            assert before[0][0] < 3_000
        good("index", "resume", many)
        for _ in range(600):
            if len(texts(many)) == 3_000:
                break
            time.sleep(0.1)
        assert len(texts(many)) == 3_000
    finally:
        end(running)


@pytest.mark.slow
def test_what_keeps_an_index_fresh_ends_cleanly_when_it_is_interrupted(index: Path) -> None:
    """By a signal while it waits for the end of its parent, without a word on standard error."""
    running = command("run", index, "--watch", "--parent")
    for _ in range(600):
        if Turn(index, "keeper").is_taken() and texts(index):
            break
        time.sleep(0.05)
    running.send_signal(signal.SIGINT)
    _, errors = running.communicate(timeout=30)
    assert (running.returncode, errors) == (0, "")


def test_a_table_that_is_not_there_and_an_index_are_refused_when_they_are_added(
    index: Path, tmp_path: Path
) -> None:
    """A slip of the pen is noticed at once, and nothing is added."""
    database = tmp_path / "k.db"
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("create table t (a text)")
    assert "There is no table u in" in bad(
        "index", "add", "rows", database, "--to", index, "--table", "u"
    )
    assert "is an index itself" in bad("index", "add", "rows", index, "--to", index)
    assert len(json.loads(good("index", "status", index, "--json"))["sources"]) == 1
