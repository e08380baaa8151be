"""The names of a database: finding them in a text, and a cached matcher that is never stale."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import NoReturn

import pytest

import knowledge
from datasette_concept_recall import match_concept_names
from datasette_concept_recall.vocabulary import Vocabulary

WRITER = """
import json, sqlite3, sys

conn = sqlite3.connect(sys.argv[1], isolation_level=None)
conn.execute("PRAGMA wal_autocheckpoint = 0")
for line in sys.stdin:
    sql, parameters = json.loads(line)
    conn.execute(sql, parameters)
    print("done", flush=True)
"""


class OtherProcess:
    """A second process that holds the file open in WAL mode and never checkpoints."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(self, sql: str, *parameters: object) -> None:
        """Run and commit one statement there; returns when it is committed."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(json.dumps([sql, parameters]) + "\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "done\n"

    def add_concept(self, name: str) -> None:
        """Add one concept and commit."""
        self.run("INSERT INTO concepts (name, uuid) VALUES (?, ?)", name, name)

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.communicate()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A database in WAL mode with the concept RAG."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file, wal=True)) as conn:
        knowledge.add_concept(conn, "RAG")
        conn.commit()
    return file


@pytest.fixture
def reader(path: Path) -> Iterator[sqlite3.Connection]:
    """A read-only connection that stays open, as Datasette's do."""
    with closing(knowledge.open_read_only(path)) as conn:
        yield conn


@pytest.fixture
def other_process(path: Path, reader: sqlite3.Connection) -> Iterator[OtherProcess]:
    """A second process with the same file; the reader is open before and after it."""
    process = OtherProcess(path)
    yield process
    process.close()


# --- match_concept_names -------------------------------------------------------------------------


def test_names_come_as_stored_once_each_in_code_point_order() -> None:
    """Each concept in the text is named once, in its stored spelling, capitals before small."""
    with closing(knowledge.create()) as conn:
        for name in ["zebra", "Straße", "RAG", "rag", "Éclair", "unused", " padded  name "]:
            knowledge.add_concept(conn, name)
        text = "rag, STRASSE, Rag; a padded\nname, E\u0301CLAIR, zebra and ZEBRA"
        expected = [" padded  name ", "RAG", "Straße", "rag", "zebra", "Éclair"]
        assert match_concept_names(conn, text) == expected


def test_a_name_that_is_part_of_a_word_is_not_found() -> None:
    """Finding names in a text follows the rules of matching: RAG is not in storage."""
    with closing(knowledge.create()) as conn:
        knowledge.add_concept(conn, "RAG")
        assert match_concept_names(conn, "storage RAGs RAG_x") == []
        assert match_concept_names(conn, "使用RAG技术") == ["RAG"]


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "a\ud800RAG", "x" * 100_000])
def test_any_text_is_normal_input(text: str) -> None:
    """Empty, huge and badly encoded texts are answered, whatever the answer is."""
    with closing(knowledge.create()) as conn:
        knowledge.add_concept(conn, "nothing of the kind")
        assert match_concept_names(conn, text) == []


@pytest.mark.parametrize("variant", sorted(knowledge.VARIANTS))
def test_every_variant_of_the_schema_is_read(variant: str) -> None:
    """Old, new and hand-made files give their names; one without tables gives none."""
    with closing(knowledge.create(variant=variant)) as conn:
        expected = []
        if variant != "nothing":
            knowledge.add_concept(conn, "RAG")
            expected = ["RAG"]
        assert match_concept_names(conn, "about RAG") == expected


def test_a_zero_byte_file_has_no_names(tmp_path: Path) -> None:
    """A file of no bytes is an empty database, on a connection that cannot write too."""
    file = tmp_path / "empty.db"
    file.touch()
    with closing(knowledge.open_read_only(file)) as conn:
        assert match_concept_names(conn, "about RAG") == []
        assert Vocabulary().matcher(conn).names("about RAG") == []
    assert file.read_bytes() == b""


def test_a_concepts_table_of_another_kind_has_no_names() -> None:
    """A table that happens to be called concepts, without names, is no error."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE TABLE concepts (id INTEGER PRIMARY KEY, label TEXT)")
        conn.execute("INSERT INTO concepts (label) VALUES ('RAG')")
        assert match_concept_names(conn, "about RAG") == []


@pytest.mark.parametrize("junk", ["", " ", "...", "_", "²", "a\nb", "\x00", "recall: ...", b"\xff"])
def test_junk_names_do_not_hide_the_others(junk: str | bytes) -> None:
    """Blank, control-character and badly encoded names are passed over; the rest are found."""
    with closing(knowledge.create()) as conn:
        knowledge.add_concept(conn, junk)
        knowledge.add_concept(conn, "RAG")
        assert match_concept_names(conn, "RAG ... _ ² \x00") == ["RAG"]


@pytest.mark.parametrize("name", [None, 7, 7.5, b"RAG", b"\xff"], ids=repr)
def test_a_name_of_any_storage_class_is_normal_input(name: object) -> None:
    """NULL, numbers and blobs where a name should be leave the other names findable."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("CREATE TABLE concepts (id INTEGER PRIMARY KEY, name)")
        conn.executemany("INSERT INTO concepts (name) VALUES (?)", [(name,), ("chunking",)])
        assert "chunking" in match_concept_names(conn, "a chunking thing")
        assert "chunking" in Vocabulary().matcher(conn).names("a chunking thing")


def _dictionary(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> dict[str, object]:
    return {column[0]: value for column, value in zip(cursor.description, row, strict=True)}


def _refuse(cursor: sqlite3.Cursor, row: tuple[object, ...]) -> NoReturn:
    raise AssertionError("a row factory of somebody else was called")


@pytest.mark.parametrize("factory", [None, sqlite3.Row, _dictionary, _refuse])
def test_a_row_factory_of_somebody_else_does_not_matter(
    factory: Callable[..., object] | None,
) -> None:
    """Names are read whatever the connection's row factory, which is left as it was."""
    with closing(knowledge.create()) as conn:
        knowledge.add_concept(conn, "RAG")
        conn.row_factory = factory
        assert match_concept_names(conn, "about RAG") == ["RAG"]
        assert Vocabulary().matcher(conn).names("about RAG") == ["RAG"]
        assert conn.row_factory is factory


# --- the cached matcher --------------------------------------------------------------------------


def test_the_matcher_is_built_when_first_asked_for(reader: sqlite3.Connection) -> None:
    """A new vocabulary has built nothing; the first request builds one matcher."""
    vocabulary = Vocabulary()
    assert vocabulary.builds == 0
    assert vocabulary.matcher(reader).names("RAG and jam") == ["RAG"]
    assert vocabulary.builds == 1


def test_the_matcher_is_kept_while_nothing_changes(path: Path, reader: sqlite3.Connection) -> None:
    """The same object answers again, on this connection and on every other one of the file."""
    vocabulary = Vocabulary()
    first = vocabulary.matcher(reader)
    assert vocabulary.matcher(reader) is first
    for _ in range(3):
        with closing(knowledge.open_read_only(path)) as conn:
            assert vocabulary.matcher(conn) is first
    assert vocabulary.builds == 1


def test_another_process_that_adds_renames_or_deletes_is_seen_at_once(
    path: Path, reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """A change another process committed, not checkpointed, is in the very next answer."""
    vocabulary = Vocabulary()
    text = "RAG, chunking, slicing and jam"
    before = path.read_bytes()
    assert vocabulary.matcher(reader).names(text) == ["RAG"]
    other_process.add_concept("chunking")
    assert vocabulary.matcher(reader).names(text) == ["RAG", "chunking"]
    other_process.run("UPDATE concepts SET name = 'slicing' WHERE name = 'chunking'")
    assert vocabulary.matcher(reader).names(text) == ["RAG", "slicing"]
    other_process.run("DELETE FROM concepts WHERE name = 'RAG'")
    assert vocabulary.matcher(reader).names(text) == ["slicing"]
    other_process.run("INSERT OR REPLACE INTO concepts (id, name, uuid) VALUES (2, 'jam', 'j')")
    assert vocabulary.matcher(reader).names(text) == ["jam"]
    assert path.read_bytes() == before, "the writer was meant not to checkpoint"
    assert vocabulary.builds == 5


def test_match_concept_names_sees_another_process(
    reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """The public function has no memory: it answers from what is committed now."""
    assert match_concept_names(reader, "RAG and jam") == ["RAG"]
    other_process.add_concept("jam")
    assert match_concept_names(reader, "RAG and jam") == ["RAG", "jam"]


def test_a_change_elsewhere_in_the_file_keeps_the_matcher(
    reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """Commits to other tables, by another process, rebuild nothing."""
    vocabulary = Vocabulary()
    first = vocabulary.matcher(reader)
    for number in range(3):
        other_process.run("INSERT INTO observations (body, uuid) VALUES ('RAG', ?)", str(number))
        assert vocabulary.matcher(reader) is first
    assert vocabulary.builds == 1


def test_a_change_that_was_taken_back_leaves_no_trace(
    path: Path, reader: sqlite3.Connection
) -> None:
    """What a writer rolls back is in no answer afterwards, its own or another's."""
    vocabulary = Vocabulary()
    with closing(sqlite3.connect(path)) as writer:
        knowledge.add_concept(writer, "jam")
        assert vocabulary.matcher(reader).names("RAG and jam") == ["RAG"]
        vocabulary.matcher(writer)
        assert vocabulary.matcher(reader).names("RAG and jam") == ["RAG"]
        writer.rollback()
        assert vocabulary.matcher(writer).names("RAG and jam") == ["RAG"]
        assert vocabulary.matcher(reader).names("RAG and jam") == ["RAG"]


def test_a_connection_sees_what_it_wrote_itself(path: Path) -> None:
    """A connection's own commits do not change its data_version; they are seen nevertheless."""
    vocabulary = Vocabulary()
    with closing(sqlite3.connect(path)) as conn:
        assert vocabulary.matcher(conn).names("RAG and jam") == ["RAG"]
        knowledge.add_concept(conn, "jam")
        conn.commit()
        assert vocabulary.matcher(conn).names("RAG and jam") == ["RAG", "jam"]
        conn.execute("UPDATE concepts SET name = 'JAM' WHERE name = 'jam'")
        conn.commit()
        assert vocabulary.matcher(conn).names("RAG and jam") == ["JAM", "RAG"]


def test_a_connection_forgets_what_it_rolled_back_itself(path: Path) -> None:
    """Names that a connection saw in its own transaction are gone when that is rolled back."""
    vocabulary = Vocabulary()
    with closing(sqlite3.connect(path)) as conn:
        assert vocabulary.matcher(conn).names("RAG and jam") == ["RAG"]
        knowledge.add_concept(conn, "jam")
        assert vocabulary.matcher(conn).names("RAG and jam") == ["RAG", "jam"]
        conn.rollback()
        assert vocabulary.matcher(conn).names("RAG and jam") == ["RAG"]


def test_connections_of_one_shared_cache_see_each_other() -> None:
    """A named database in memory, which Datasette shares between threads, is never stale."""
    vocabulary = Vocabulary()
    name = "file:vocabulary-test?mode=memory&cache=shared"
    with (
        closing(sqlite3.connect(name, uri=True)) as writer,
        closing(sqlite3.connect(name, uri=True)) as reader,
    ):
        assert vocabulary.matcher(reader).names("RAG and jam") == []
        knowledge.create_today(writer)
        for expected in (["RAG"], ["RAG", "jam"]):
            knowledge.add_concept(writer, expected[-1])
            writer.commit()
            assert vocabulary.matcher(reader).names("RAG and jam") == expected
        writer.execute("UPDATE concepts SET name = 'JAM' WHERE name = 'jam'")
        writer.commit()
        assert vocabulary.matcher(reader).names("RAG and jam") == ["JAM", "RAG"]


def test_a_table_that_appears_or_goes_is_seen(tmp_path: Path) -> None:
    """A file that was empty at the first request is read when it has a vocabulary, and back."""
    vocabulary = Vocabulary()
    file = tmp_path / "new.db"
    file.touch()
    with closing(knowledge.open_read_only(file)) as reader:
        assert vocabulary.matcher(reader).names("RAG") == []
        with closing(knowledge.create(file)) as writer:
            knowledge.add_concept(writer, "RAG")
            writer.commit()
            assert vocabulary.matcher(reader).names("RAG") == ["RAG"]
            writer.execute("DROP VIEW project_summary")
            writer.execute("DROP TABLE concepts")
            writer.commit()
            assert vocabulary.matcher(reader).names("RAG") == []


def test_an_old_snapshot_never_replaces_a_newer_matcher(
    path: Path, reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """A reader inside a transaction from before a change does not undo it for the others."""
    vocabulary = Vocabulary()
    text = "RAG and jam"
    with closing(knowledge.open_read_only(path)) as old:
        vocabulary.matcher(old)
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM concepts").fetchone()
        other_process.add_concept("jam")
        newer = vocabulary.matcher(reader)
        assert newer.names(text) == ["RAG", "jam"]
        assert "RAG" in vocabulary.matcher(old).names(text)
        assert vocabulary.matcher(reader) is newer
        with closing(knowledge.open_read_only(path)) as fresh:
            assert vocabulary.matcher(fresh).names(text) == ["RAG", "jam"]
        old.rollback()
        assert vocabulary.matcher(old).names(text) == ["RAG", "jam"]


def test_a_first_request_from_an_old_snapshot_is_not_kept_for_others(
    path: Path, reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """When the first matcher comes from an old snapshot, the next reader still sees the change."""
    vocabulary = Vocabulary()
    with closing(knowledge.open_read_only(path)) as old:
        old.execute("BEGIN")
        old.execute("SELECT count(*) FROM concepts").fetchone()
        other_process.add_concept("jam")
        vocabulary.matcher(old)
        assert vocabulary.matcher(reader).names("RAG and jam") == ["RAG", "jam"]


@pytest.fixture
def eager_switching() -> Iterator[None]:
    """Lets threads interrupt each other as often as the interpreter can."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("eager_switching")
def test_threads_share_one_matcher(path: Path) -> None:
    """Eight threads with a connection each, asking at once, get one object that was built once."""
    with closing(sqlite3.connect(path)) as writer:  # enough names for builds to overlap
        names = [(f"concept number {number}", str(number)) for number in range(5000)]
        writer.executemany("INSERT INTO concepts (name, uuid) VALUES (?, ?)", names)
        writer.commit()
    vocabulary = Vocabulary()
    threads = 8
    barrier = threading.Barrier(threads)

    def ask(_: int) -> object:
        with closing(knowledge.open_read_only(path)) as conn:
            barrier.wait()
            return vocabulary.matcher(conn)

    with ThreadPoolExecutor(threads) as pool:
        matchers = list(pool.map(ask, range(threads)))
    assert all(matcher is matchers[0] for matcher in matchers)
    assert vocabulary.builds == 1


def test_no_thread_ever_gets_a_stale_matcher_while_a_process_writes(
    path: Path, reader: sqlite3.Connection, other_process: OtherProcess
) -> None:
    """Whatever was committed before a request began is in the matcher that the request gets."""
    vocabulary = Vocabulary()
    committed = [0]
    finished = threading.Event()

    def ask(_: int) -> int:
        asked = 0
        with closing(knowledge.open_read_only(path)) as conn:
            while not finished.is_set():
                names = [f"c{number}" for number in range(1, committed[0] + 1)]
                assert vocabulary.matcher(conn).names(" ".join(names)) == sorted(names)
                asked += 1
        return asked

    with ThreadPoolExecutor(4) as pool:
        answers = pool.map(ask, range(4))
        try:
            for number in range(1, 61):
                other_process.add_concept(f"c{number}")
                committed[0] = number
        finally:
            finished.set()
        assert all(asked > 0 for asked in answers)


def test_asking_holds_no_lock(tmp_path: Path) -> None:
    """After an answer the connection is in no transaction and nobody has to wait for it."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file)) as writer:
        knowledge.add_concept(writer, "RAG")
        writer.commit()
        with closing(knowledge.open_read_only(file)) as conn:
            Vocabulary().matcher(conn)
            match_concept_names(conn, "RAG")
            assert not conn.in_transaction
            writer.execute("PRAGMA busy_timeout = 0")
            writer.execute("BEGIN EXCLUSIVE")


def test_another_file_in_the_place_of_one_is_noticed(tmp_path: Path) -> None:
    """A vocabulary tells two files apart that have the same number of schema changes."""
    paths = tmp_path / "empty.db", tmp_path / "full.db"
    for path, table in zip(paths, ("other", "concepts"), strict=True):
        with closing(sqlite3.connect(path)) as conn:
            conn.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY, name TEXT)")
            conn.execute(f"INSERT INTO {table} VALUES (1, 'RAG')")
            conn.commit()
    vocabulary = Vocabulary()
    for path, names in zip(paths * 2, ([], ["RAG"]) * 2, strict=True):
        with closing(sqlite3.connect(path)) as conn:
            assert vocabulary.matcher(conn).names("RAG") == names
