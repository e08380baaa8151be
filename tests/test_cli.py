"""The command line: what `match`, `recall` and `demo` print, and one line for every mistake."""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import pytest
from click.testing import CliRunner, Result
from datasette.cli import cli

import knowledge
from conftest import file_bytes
from served import build

as_somebody = pytest.mark.skipif(
    getattr(os, "geteuid", lambda: 0)() == 0, reason="root may read and write everything"
)

QUESTION = "How does RAG work in C++?"


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The database of `served.build`."""
    return build(tmp_path_factory.mktemp("knowledge") / "knowledge.db")


def run(*arguments: object, stdin: str | bytes = "") -> Result:
    """Runs `datasette concept-recall` with these arguments."""
    words = ["concept-recall", *map(str, arguments)]
    return CliRunner().invoke(cli, words, input=stdin, catch_exceptions=False)


def good(*arguments: object, stdin: str | bytes = "") -> str:
    """The output of a run that ends well."""
    result = run(*arguments, stdin=stdin)
    assert result.exit_code == 0, result.output
    return result.stdout


def bad(*arguments: object) -> str:
    """The one line of a run that ends badly."""
    result = run(*arguments)
    assert result.exit_code in (1, 2), result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith("Error: ")
    return line.removeprefix("Error: ")


def test_match_prints_the_concepts_of_a_text(path: Path) -> None:
    """One name a line, in code-point order, each once, whatever the arguments are cut into."""
    assert good("match", path, "rag, RAG", "and C++") == "C++\nRAG\n"
    assert good("match", path, "-", stdin="from\nstandard input: C++\n") == "C++\n"
    assert good("match", path, "RAG", "-", stdin=b"\xff C++ \x00") == "C++\nRAG\n"
    assert good("match", path, "--", "-RAG") == "RAG\n"


@pytest.mark.parametrize("text", ["nothing of it", "", "storage"])
def test_match_says_when_nothing_is_named(path: Path, text: str) -> None:
    """This is no failure: the output is empty, and a sentence stands on standard error."""
    result = run("match", path, text)
    assert result.exit_code == 0
    assert result.stdout == ""
    assert result.stderr == "No concept of this database is named.\n"


def test_recall_prints_ranked_items(path: Path) -> None:
    """The concepts with their totals, then each item with what must not be overlooked."""
    output = good("recall", path, QUESTION, "--limit", 3)
    assert output.splitlines() == [
        "Concepts: C++ (3), RAG (25)",
        "",
        "1. Handbook / Other",
        "   Section · document_section:3 · Search · 2026-02-03 · unsummarized, not reviewed",
        "   Concepts: C++, RAG",
        "",
        "2. Use RAG",
        "   Record · record:1 · 2026-01-15 · superseded",
        "   Concepts: C++, RAG",
        "   Long ago",
        "",
        "3. Handbook",
        "   Document · document_gist:1 · Search · 2026-01-15",
        "   Concepts: C++, RAG",
        "   RAG in C++",
        "",
        "3 of 25 items; --limit 0 shows all.",
    ]


def test_the_number_of_items_is_ten_or_what_is_asked_for(path: Path) -> None:
    """Ten by default, all with 0, and a huge limit is as good as none."""
    for limit, number in [((), 10), (("--limit", 0), 25), (("--limit", 10**30), 25)]:
        lines = good("recall", path, "RAG", *limit).splitlines()
        assert sum(line[:1].isdigit() and ". " in line[:4] for line in lines) == number
        assert lines[-1].endswith("--limit 0 shows all.") == (number == 10)


def test_concepts_and_a_project_can_be_given(path: Path) -> None:
    """`--concept` adds to the text or stands alone, and `--project` narrows."""
    assert good("recall", path, "--concept", "c++", "--concept", "Nope").startswith(
        "Concepts: C++ (3)\n"
    )
    both = good("recall", path, "in RAG", "--concept", "C++", "--project", "Search", "--limit", 0)
    assert both.startswith("Concepts: RAG (25), C++ (3)\n")
    assert good("recall", path, "RAG", "--project", "") == good("recall", path, "RAG")
    assert "record:1" not in both


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing of it"], "No concept of this database is named."),
        (["--concept", "Nope"], "No concept of this database is named."),
        (["--concept", "unused"], "Concepts: unused (0)\nNothing is tagged with them."),
        (["RAG", "--project", "Compilers"], "Concepts: RAG (25)\nNothing is tagged with them."),
    ],
)
def test_recall_says_when_nothing_is_found(path: Path, arguments: list[str], said: str) -> None:
    """Nothing found is an answer like any other."""
    assert good("recall", path, *arguments) == said + "\n"


def test_recall_as_json_has_the_keys_of_the_api(path: Path) -> None:
    """The same names as over HTTP, but for what only a server has; text is not escaped."""
    answer = json.loads(good("recall", path, QUESTION, "--json", "--limit", 1))
    assert list(answer) == [
        *("ok", "concepts", "near_misses", "rows", "projects", "mode", "total", "truncated"),
        "warnings",
    ]
    assert answer["concepts"] == [
        {"name": "C++", "mentions": 1, "total": 3},
        {"name": "RAG", "mentions": 1, "total": 25},
    ]
    (row,) = answer["rows"]
    assert list(row) == [
        *("rank", "ref", "source_type", "id", "project_id", "project", "title", "place"),
        *("excerpt", "body"),
        *(
            "match_count",
            "layers",
            "concepts",
            "created_at",
            "summary_status",
            "summary_stale",
            "status",
        ),
        "superseded_by",
    ]
    assert (answer["total"], answer["truncated"], answer["projects"]) == (25, True, ["Compilers"])
    nothing = json.loads(good("recall", path, "nothing of it", "--json"))
    assert (nothing["ok"], nothing["rows"], nothing["total"]) == (True, [], 0)


def test_control_characters_never_reach_the_terminal(tmp_path: Path) -> None:
    """Escape sequences and line breaks of a database are printed as spaces."""
    file = tmp_path / "knowledge.db"
    evil = "evil\x1b[2J\x07\r\nname\x9b"
    with closing(knowledge.create(file)) as conn:
        knowledge.add_observation(conn, evil, concepts=[evil], project=evil)
        knowledge.add_record(conn, evil, evil, concepts=[evil], status=evil)
        conn.commit()
    printed = good("match", file, evil) + good("recall", file, "--concept", evil)
    assert "evil [2J name" in printed
    assert not set(printed) & set("\x1b\x07\r\x9b")
    assert good("match", file, evil).count("\n") == 1


@pytest.mark.parametrize("variant", knowledge.VARIANTS)
def test_files_of_any_age_are_answered(tmp_path: Path, variant: str) -> None:
    """Every schema there ever was, and a file of zero bytes, is normal input."""
    file = tmp_path / "old.db"
    knowledge.create(file, variant).close()
    assert good("match", file, "RAG") == ""
    assert good("recall", file, "RAG").endswith("No concept of this database is named.\n")


def test_a_big_text_comes_by_standard_input(path: Path) -> None:
    """There is no limit to what is piped in."""
    assert good("match", path, "-", stdin="filler 技术 " * 200_000 + "RAG") == "RAG\n"


def _text(folder: Path) -> Path:
    file = folder / "notes.txt"
    file.write_text("This is no database, but it is long enough to be looked at. " * 20)
    return file


def _broken(folder: Path) -> Path:
    file = build(folder / "broken.db")
    content = file.read_bytes()
    file.write_bytes(content[:100] + b"\xff" * (len(content) - 100))
    return file


def _locked(folder: Path) -> Path:
    file = build(folder / "locked.db")
    conn = sqlite3.connect(file, isolation_level=None)
    conn.execute("begin exclusive")
    _open.append(conn)
    return file


_open: list[sqlite3.Connection] = []


@pytest.mark.parametrize("command", ["match", "recall"])
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda folder: folder / "no such.db", "There is no file {file}"),
        (lambda folder: folder, "{file} is a folder, not a database"),
        (_text, "{file} cannot be read: file is not a database"),
        (_broken, "{file} cannot be read: database disk image is malformed"),
        (_locked, "{file} cannot be read: database is locked"),
    ],
)
def test_a_file_that_cannot_be_read_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    make: Callable[[Path], Path],
    message: str,
) -> None:
    """The line names the file and the reason; nothing is made up from what is half there."""
    file = make(tmp_path)
    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0))
    try:
        assert bad(command, file, "RAG") == message.format(file=file)
    finally:
        while _open:
            _open.pop().close()
    assert not (tmp_path / "no such.db").exists()


def test_a_folder_that_may_not_be_entered_is_one_line(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of the operating system is said in its words."""

    def refuse(self: Path, **_: Any) -> NoReturn:
        raise PermissionError(13, "Permission denied", str(self))

    monkeypatch.setattr(Path, "exists", refuse)
    assert bad("match", path, "RAG") == f"[Errno 13] Permission denied: '{path}'"


@as_somebody
def test_a_file_that_may_not_be_read_is_one_line(tmp_path: Path) -> None:
    """A file without read permission is named."""
    file = build(tmp_path / "secret.db")
    file.chmod(0)
    assert bad("match", file, "RAG") == f"{file} cannot be read: unable to open database file"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["match"], "Missing argument 'TEXT...'."),
        (["recall"], "Give a TEXT, - for standard input, or --concept."),
        (["recall", "RAG", "--limit", "-1"], "--limit is 0 or more."),
        (["recall", "RAG", "--limit", "many"], "'many' is not a valid integer."),
        (["recall", "RAG", "--project", "No\nsuch"], r"There is no project named 'No\nsuch'"),
        (["recall", "RAG", "--index", "nowhere.db"], "'nowhere.db' does not exist."),
        (["recall", "RAG", "--index", "nowhere.db", "--limit", "1"], "does not exist."),
        (["recall", "RAG", "--index", "."], "File '.' is a directory."),
        (["recall", "RAG", "--frobnicate"], "No such option"),
        (["forget", "RAG"], "No such command 'forget'."),
    ],
)
def test_a_bad_command_line_is_one_line(path: Path, arguments: list[str], message: str) -> None:
    """What is wrong is said in a sentence, with the command whose --help says more."""
    command, *rest = arguments
    line = bad(command, path, *rest)
    assert message in line
    assert line.endswith("--help says more)") or "project" in line


def test_a_file_in_wal_mode_is_read_where_nothing_can_be_written(tmp_path: Path) -> None:
    """Where the index of a log cannot be made, a file that was closed well is read as it is."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file, wal=True)) as conn:
        knowledge.add_concept(conn, "RAG")
        conn.commit()
    index = file.with_name(file.name + "-shm")
    index.mkdir()  # as good as a folder that cannot be written, and root cannot write it either
    assert good("match", file, "RAG") == "RAG\n"


@as_somebody
def test_a_log_where_nothing_can_be_written_is_not_overlooked(tmp_path: Path) -> None:
    """A file whose newest changes cannot be read is refused: without them it would be stale."""
    folder = tmp_path / "read only"
    folder.mkdir()
    with closing(knowledge.create(tmp_path / "knowledge.db", wal=True)) as conn:
        knowledge.add_concept(conn, "RAG")
        conn.commit()
        for ending in ("", "-wal"):
            name = f"knowledge.db{ending}"
            (folder / name).write_bytes((tmp_path / name).read_bytes())
    folder.chmod(0o555)
    file = folder / "knowledge.db"
    try:
        assert bad("match", file, "RAG") == f"{file} cannot be read: unable to open database file"
    finally:
        folder.chmod(0o755)


def test_a_file_that_is_being_written_is_read_as_committed(tmp_path: Path) -> None:
    """What another process committed to the log is seen, and what it did not commit is not."""
    file = tmp_path / "knowledge.db"
    with closing(knowledge.create(file, wal=True)) as conn:
        knowledge.add_concept(conn, "committed")
        conn.commit()
        knowledge.add_concept(conn, "pending")
        assert good("match", file, "committed or pending") == "committed\n"


def test_asking_writes_nothing(tmp_path: Path) -> None:
    """The bytes of the file are the same after every command, and no file is left beside it."""
    file = build(tmp_path / "knowledge.db")
    before = file_bytes(file)
    good("match", file, "a new concept")
    good("recall", file, "RAG", "--concept", "new", "--json")
    assert file_bytes(file) == before
    assert list(tmp_path.iterdir()) == [file]


@pytest.mark.parametrize("name", ["demo.db", "my demo.db", "数据.db", "a?b#c%d.db"])
def test_the_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    """A path is a path, whatever it would mean in a URI."""
    assert good("match", build(tmp_path / name), "RAG") == "RAG\n"


def test_demo_writes_a_database_to_recall_from(tmp_path: Path) -> None:
    """What it says to browse is a knowledge database, and a second time it is made again."""
    file = tmp_path / "demo.db"
    for _ in range(2):
        lines = good("demo", file, "--no-serve").splitlines()
        assert lines[0].startswith(f"Wrote {file}: ")
        assert lines[1] == f"To browse it: datasette {file}"
    assert "word boundaries" in good("match", file, "What are word boundaries?")


@pytest.mark.parametrize(
    ("name", "host", "address", "database"),
    [
        ("demo.db", "127.0.0.1", "http://127.0.0.1:8123", "demo"),
        ("my demo.db", "::1", "http://[::1]:8123", "my+demo"),
        ("50% a.b.db", "localhost", "http://localhost:8123", "50~25+a~2Eb"),
    ],
)
def test_demo_serves_what_it_wrote_and_says_where(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    name: str,
    host: str,
    address: str,
    database: str,
) -> None:
    """The address leads to a recall that shows results; the exit code is the server's."""
    commands: list[list[str]] = []

    def call(command: list[str]) -> int:
        commands.append(command)
        return 7

    monkeypatch.setattr(subprocess, "call", call)
    monkeypatch.setattr("datasette_concept_recall.cli._check_address", lambda *_: None)
    file = tmp_path / name
    result = run("demo", file, "--host", host, "--port", 8123)
    assert result.exit_code == 7
    url = result.stdout.splitlines()[-1].removeprefix("Try: ")
    assert url.startswith(f"{address}/{database}/-/recall?q=")
    serve = [sys.executable, "-m", "datasette", "serve", str(file)]
    assert commands == [[*serve, "--host", host, "--port", "8123"]]
    (question,) = parse_qs(urlsplit(url).query)["q"]
    assert good("match", file, question)


def test_demo_looks_whether_it_can_serve_before_it_writes(tmp_path: Path) -> None:
    """A port that is taken, or a host that is none of this machine, ends it with one line."""
    file = tmp_path / "demo.db"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert bad("demo", file, "--port", port) == (
            f"Cannot serve on 127.0.0.1, port {port}: the port is taken (--port chooses another)"
        )
    # An address for documentation (RFC 5737).
    message = bad("demo", file, "--host", "192.0.2.1")
    assert message.startswith("Cannot serve on 192.0.2.1, port 8001: ")
    assert list(tmp_path.iterdir()) == []


def test_demo_refuses_in_one_line(tmp_path: Path) -> None:
    """A foreign file is left as it is, and a place that is none is named."""
    foreign = build(tmp_path / "precious.db")
    before = foreign.read_bytes()
    assert "is not a demo database" in bad("demo", foreign, "--no-serve")
    assert foreign.read_bytes() == before
    assert "There is no folder" in bad("demo", tmp_path / "no" / "demo.db")
    assert "is a folder" in bad("demo", tmp_path)
    assert "0 is not in the range" in bad("demo", tmp_path / "x.db", "--port", 0)


def test_a_real_process_ends_with_one_line_and_no_traceback(path: Path, tmp_path: Path) -> None:
    """A mistake has an exit code and a line, and a closed pipe has no line at all."""
    command = [sys.executable, "-m", "datasette", "concept-recall"]
    missing = [*command, "match", str(tmp_path / "no.db"), "x"]
    ended = subprocess.run(missing, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (1, "")
    assert ended.stderr == f"Error: There is no file {tmp_path / 'no.db'}\n"
    everything = [*command, "recall", str(path), "RAG", "--limit", "0", "--json"]
    with subprocess.Popen(everything, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
