"""Promises about the demo database, its builder, and the decision records it is made of."""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
import tempfile
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml

import knowledge
from datasette_concept_recall import RecallError, demo, match_concept_names, recall_by_text
from datasette_concept_recall.decision_records import (
    DecisionRecord,
    RecordMalformed,
    RecordsMissing,
    parse_record,
    read_decisions,
    wikilinks,
)
from datasette_concept_recall.demo import APPLICATION_ID, DemoRefused, build_demo

DECISIONS = Path(__file__).parents[1] / "docs" / "decisions"
RECORDS = read_decisions(DECISIONS)
EACH_RECORD = pytest.mark.parametrize("record", RECORDS, ids=lambda record: record.id)
SECTIONS = ["Context", "Decision", "Rejected alternatives", "Consequences"]

TEMPLATE = """---
id: "0007"
title: "Toast: which side first"
date: 2026-11-30
status: accepted
kind: decision
supersedes: []
tags: [toast, "C#", jam]
---

Butter goes on [[toast]] first.
"""


def record_text(record_id: str = "0007", **replaced: str) -> str:
    """A record in the right form, except for the lines of the keys given."""
    text = TEMPLATE.replace('"0007"', f'"{record_id}"')
    for key, value in replaced.items():
        text = re.sub(f"(?m)^{key}: .*$", f"{key}: {value}", text)
    return text


def write_records(folder: Path, **texts: str) -> Path:
    """A folder of records; the keywords are file names without the suffix, `-` written `_`."""
    folder.mkdir()
    for name, text in texts.items():
        (folder / f"{name[1:].replace('_', '-')}.md").write_text(text, encoding="utf-8")
    return folder


def rows(path: Path, sql: str, *parameters: object) -> list[tuple[object, ...]]:
    with closing(knowledge.open_read_only(path)) as conn:
        return conn.execute(sql, parameters).fetchall()


def all_rows(path: Path) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, also of those inside the full-text table."""
    tables = [str(name) for (name,) in rows(path, "select name from sqlite_master where rootpage")]
    tables = [name for name in tables if not name.startswith(("idx_", "sqlite_autoindex"))]
    return {name: rows(path, f"select * from {name}") for name in tables}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A demo database of the project's own records; tests only read it."""
    path = tmp_path_factory.mktemp("demo") / "demo.db"
    build_demo(path)
    return path


@pytest.fixture
def connection(database: Path) -> Iterator[sqlite3.Connection]:
    with closing(knowledge.open_read_only(database)) as conn:
        yield conn


# --- the project's decision records --------------------------------------------------------------


def test_there_are_at_least_twelve_records_with_ids_of_their_own() -> None:
    """The project keeps twelve decision records or more, and no two share an id."""
    assert len(RECORDS) >= 12
    assert len({record.id for record in RECORDS}) == len(RECORDS)


@EACH_RECORD
def test_the_file_of_a_record_is_named_after_its_id(record: DecisionRecord) -> None:
    """A record is called NNNN-title.md, in lower case, with hyphens for blanks."""
    assert re.fullmatch(rf"{record.id}(-[a-z0-9]+)+\.md", record.file)


@EACH_RECORD
def test_a_record_has_the_four_sections_in_order(record: DecisionRecord) -> None:
    """Every record says context, decision, rejected alternatives and consequences."""
    assert re.findall(r"(?m)^#+ (.*)$", record.body) == SECTIONS


@EACH_RECORD
def test_a_record_has_tags_and_wikilinks(record: DecisionRecord) -> None:
    """Every record names concepts both in its front matter and in its text."""
    assert record.tags
    assert wikilinks(record.body)


def test_a_concept_is_spelt_in_one_way() -> None:
    """The spelling of a concept is the same wherever the records use it."""
    spellings = {name for each in RECORDS for name in each.concepts}
    assert len(spellings) == len({name.lower() for name in spellings})


def test_superseded_records_are_those_that_another_one_supersedes() -> None:
    """A record has the status superseded exactly when a later record names it."""
    named = {old: record.id for record in RECORDS for old in record.supersedes}
    assert set(named) == {record.id for record in RECORDS if record.status == "superseded"}
    assert all(old < new for old, new in named.items())


def test_the_records_show_decisions_of_every_fate() -> None:
    """Accepted, superseded, proposed and rejected decisions are all on record."""
    statuses = Counter(record.status for record in RECORDS)
    assert statuses.keys() == {"accepted", "superseded", "proposed", "rejected"}


@EACH_RECORD
def test_a_yaml_reader_understands_the_front_matter_as_we_do(record: DecisionRecord) -> None:
    """Our small parser and a real YAML parser agree about every key of every record."""
    front_matter = (DECISIONS / record.file).read_text(encoding="utf-8").split("---\n")[1]
    read = yaml.safe_load(front_matter)
    keys = ("id", "title", "status", "kind")
    assert [read.pop(key) for key in keys] == [getattr(record, key) for key in keys]
    assert read.pop("date").isoformat() == record.date
    assert read == {"supersedes": [*record.supersedes], "tags": [*record.tags]}


def test_the_package_holds_the_records_of_the_documentation(database: Path) -> None:
    """The demo is built from docs/decisions, file for file, without being told where they are."""
    stored = rows(database, "select path, checksum from records order by id")
    expected = [
        (f"docs/decisions/{path.name}", hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(DECISIONS.glob("*.md"))
    ]
    assert stored == expected


# --- reading a record ----------------------------------------------------------------------------


def test_a_record_is_read_with_all_its_parts() -> None:
    """Scalars, quoted or bare, inline lists and the body arrive as they were written."""
    record = parse_record("0007-toast.md", record_text(supersedes='["0003", "0004"]').encode())
    assert (record.id, record.title, record.date) == (
        "0007",
        "Toast: which side first",
        "2026-11-30",
    )
    assert (record.status, record.kind) == ("accepted", "decision")
    assert record.supersedes == ("0003", "0004")
    assert record.tags == ("toast", "C#", "jam")
    assert record.body == "Butter goes on [[toast]] first."


def test_line_ends_of_windows_change_nothing_but_the_checksum() -> None:
    """A file checked out with carriage returns is the same record."""
    plain = parse_record("0007-toast.md", record_text().encode())
    other = parse_record("0007-toast.md", record_text().replace("\n", "\r\n").encode())
    assert (other.tags, other.body, other.lines) == (plain.tags, plain.body, plain.lines)


@pytest.mark.parametrize(
    ("line", "change"),
    [
        (1, ("---\nid", "id")),
        (1, ("---\n\nButter", "\nButter")),
        (2, ('"0007"', "7")),
        (2, ('"0007"', '"0008"')),
        (3, ('title: "Toast: which side first"', "title: Toast: which side first")),
        (3, ('"Toast: which side first"', '" "')),
        (3, ('"Toast: which side first"', '"Toast"" first"')),
        (4, ("2026-11-30", "2026-11-31")),
        (4, ("2026-11-30", "30.11.2026")),
        (5, ("accepted", "done")),
        (6, ("kind: decision", "sort: decision")),
        (6, ("kind: decision", "kind:decision")),
        (6, ("kind: decision", "status: accepted")),
        (6, ("kind: decision", "")),
        (7, ("supersedes: []", "supersedes: none")),
        (7, ("supersedes: []", 'supersedes: ["3"]')),
        (8, ('[toast, "C#", jam]', "[toast, C#, jam]")),
        (8, ('[toast, "C#", jam]', '[toast, "C#", jam, ]')),
        (8, ('[toast, "C#", jam]', '[toast, "C#", jam')),
        (8, ('[toast, "C#", jam]', '[toast, "C#" jam]')),
        (8, ('[toast, "C#", jam]', "toast")),
        (8, ('tags: [toast, "C#", jam]\n', "")),
        (9, ("Butter goes on [[toast]] first.", " ")),
        (11, ("Butter", "B\udcffutter")),
    ],
)
def test_a_malformed_record_is_refused_by_file_and_line(line: int, change: tuple[str, str]) -> None:
    """Whatever is wrong with a record, the message says in which file and on which line."""
    text = record_text()
    assert change[0] in text
    with pytest.raises(RecordMalformed, match=rf"^0007-toast\.md, line {line}: .") as caught:
        parse_record("0007-toast.md", text.replace(*change, 1).encode(errors="surrogateescape"))
    assert isinstance(caught.value, RecallError)
    assert (caught.value.file, caught.value.line) == ("0007-toast.md", line)


def test_two_records_with_one_id_are_refused(tmp_path: Path) -> None:
    """The second of two files with the same id is the one complained about."""
    folder = write_records(
        tmp_path / "decisions", _0007_jam=record_text(), _0007_toast=record_text()
    )
    with pytest.raises(RecordMalformed, match=r"^0007-toast\.md, line 2: 0007-jam\.md has"):
        read_decisions(folder)


@pytest.mark.parametrize("target", ["0007", "0009"])
def test_a_record_can_supersede_only_another_that_exists(tmp_path: Path, target: str) -> None:
    """Superseding a missing record, or itself, is an error on the line that says so."""
    text = record_text(supersedes=f'["{target}"]')
    folder = write_records(tmp_path / "decisions", _0007_toast=text)
    with pytest.raises(RecordMalformed, match=rf"^0007-toast\.md, line 7: .* {target}"):
        read_decisions(folder)


def test_a_folder_without_records_is_an_error_and_no_empty_demo(tmp_path: Path) -> None:
    """A missing folder and an empty one are named in the message."""
    for folder in (tmp_path / "missing", tmp_path):
        with pytest.raises(RecordsMissing, match=re.escape(str(folder))):
            build_demo(tmp_path / "demo.db", folder)
    assert list(tmp_path.iterdir()) == []


def test_wikilinks_in_code_are_examples() -> None:
    """Names in double brackets count in prose, across line breaks too, and not in code."""
    text = "[[toast]] and `[[code]]`\n```\n[[fence]]\n```\n[[hot\n  jam]] [[ ]] [single] [[a|b]]"
    assert wikilinks(text) == ["toast", "hot jam", "a|b"]


# --- the rows of the demo ------------------------------------------------------------------------


def test_the_demo_has_the_tables_and_columns_of_today(connection: sqlite3.Connection) -> None:
    """Names, types, NOT NULL and defaults are those of a new knowledge database."""

    def columns(conn: sqlite3.Connection) -> dict[str, set[tuple[object, ...]]]:
        sql = "select name from sqlite_master where type in ('table', 'view')"
        names = [name for (name,) in conn.execute(sql)]
        # Without the first value, the position: no reader may depend on it.
        return {n: {r[1:] for r in conn.execute(f"pragma table_info({n})")} for n in names}

    with closing(knowledge.create()) as other:
        assert columns(connection) == columns(other)


def test_the_schema_is_as_loose_as_that_of_real_files(connection: sqlite3.Connection) -> None:
    """user_version is 0, nothing is checked, and no index starts with a concept."""
    assert connection.execute("pragma user_version").fetchone() == (0,)
    sql = "".join(row[0] or "" for row in connection.execute("select sql from sqlite_master"))
    assert not re.search(r"\bCHECK\b", sql, re.IGNORECASE)
    assert not re.search(r"INDEX \w+ ON \w+_concepts", sql)


def test_the_summary_counts_what_is_there(tmp_path: Path) -> None:
    """The returned counts are the row counts, and the path is the one that was given."""
    path = tmp_path / "demo.db"
    summary = build_demo(path)
    counted = {
        name: rows(path, f"select count(*) from {table}")[0][0]
        for name, table in [
            *((name, name) for name in ("projects", "concepts", "observations", "records")),
            ("documents", "documents"),
            ("sections", "document_sections"),
        ]
    }
    assert {name: getattr(summary, name) for name in counted} == counted
    assert summary.path == path
    assert summary.records == len(RECORDS)
    assert summary.observations >= 25


def test_the_same_input_gives_the_same_rows(tmp_path: Path, database: Path) -> None:
    """Two builds agree in every row of every table, identifiers and times included."""
    build_demo(tmp_path / "again.db")
    assert all_rows(tmp_path / "again.db") == all_rows(database)


def test_tags_and_wikilinks_become_the_concepts_of_a_record(connection: sqlite3.Connection) -> None:
    """A record carries exactly the names in its front matter and in its text, each once."""
    for record in RECORDS:
        linked = connection.execute(
            "select c.name from records r join record_concepts l on l.record_id = r.id"
            " join concepts c on c.id = l.concept_id where r.record_id = ?",
            (record.id,),
        ).fetchall()
        assert sorted(name for (name,) in linked) == sorted(set(record.concepts))


def test_a_concept_keeps_the_spelling_it_was_first_written_in(tmp_path: Path) -> None:
    """Later spellings in another case are the same concept; citations of records are none."""
    body = "[[Marmalade]] on [[TOAST]], see [[0007]] and [[DR-0007]], not `[[crumbs]]`"
    first = record_text().replace("[[toast]]", "[[MARMALADE]]")
    second = record_text("0008").replace("Butter goes on [[toast]] first.", body)
    folder = write_records(tmp_path / "decisions", _0007_toast=first, _0008_jam=second)
    build_demo(tmp_path / "demo.db", folder)
    names = [name for (name,) in rows(tmp_path / "demo.db", "select name from concepts")]
    assert {"MARMALADE", "toast"} <= set(names)
    assert not {"Marmalade", "TOAST", "0007", "DR-0007", "crumbs"} & set(names)
    links = "select count(*) from record_concepts l join concepts c on c.id = l.concept_id"
    assert rows(tmp_path / "demo.db", f"{links} where c.name = 'MARMALADE'") == [(2,)]


def test_supersedes_becomes_a_relation_from_the_newer_record(
    connection: sqlite3.Connection,
) -> None:
    """record_relations holds what the front matter says, and nothing else."""
    stored = connection.execute(
        "select n.record_id, o.record_id, relationship from record_relations"
        " join records n on n.id = from_id join records o on o.id = to_id order by 1, 2"
    ).fetchall()
    assert stored == [(r.id, old, "supersedes") for r in RECORDS for old in r.supersedes]
    assert stored


def test_every_concept_is_described_in_one_sentence(connection: sqlite3.Connection) -> None:
    """No concept of the demo is without a description, and none runs on."""
    for name, description in connection.execute("select name, description from concepts"):
        assert re.fullmatch(r"[A-Z][^.]*\.", description), name


def test_no_description_is_left_over(connection: sqlite3.Connection) -> None:
    """A description whose concept was renamed or dropped is noticed."""
    described = demo._load(demo.files(demo._PACKAGE) / "demo_data", "concepts")
    stored = {name for (name,) in connection.execute("select name from concepts")}
    assert set(described) == stored


def test_the_projects_filter_has_something_to_filter(connection: sqlite3.Connection) -> None:
    """Several projects own items and are tagged; one observation belongs to nobody."""
    owners = connection.execute("select distinct project_id from observations").fetchall()
    projects = connection.execute("select id from projects").fetchall()
    assert {*owners} == {*projects, (None,)}
    assert len(projects) >= 2
    tagged = connection.execute("select distinct project_id from project_concepts").fetchall()
    assert {*tagged} == {*projects}


def test_times_occur_in_every_form_that_real_files_hold(connection: sqlite3.Connection) -> None:
    """Observations have both spellings of a time in one column, and one has none at all."""
    times = [time for (time,) in connection.execute("select created_at from observations")]
    assert times.count(None) == 1
    spellings = {re.sub("[0-9]", "9", time) for time in times if time}
    assert {"9999-99-99 99:99:99", "9999-99-99T99:99:99Z"} <= spellings


def test_no_row_has_the_time_of_the_build(database: Path) -> None:
    """No stored time is later than the date of the newest record."""
    newest = f"{max(record.date for record in RECORDS)} 00:00:00"
    for table, values in all_rows(database).items():
        if not table.startswith(("kb_fts", "sqlite_")):
            texts = [str(value).replace("T", " ") for row in values for value in row]
            times = [text for text in texts if re.fullmatch(r"20\d\d-\d\d-\d\d[ \d:Z]*", text)]
            assert all(time[: len(newest)] <= newest for time in times), table


def test_the_document_shows_every_state_of_a_summary(connection: sqlite3.Connection) -> None:
    """There is one gist, most summaries are reviewed, one is a draft and one is stale."""
    sections = connection.execute(
        "select level, seq, summary_status, summary_stale from document_sections order by seq"
    ).fetchall()
    assert [level for level, *_ in sections] == ["gist"] + ["section"] * (len(sections) - 1)
    assert [seq for _, seq, *_ in sections] == list(range(len(sections)))
    states = Counter((status, stale) for *_, status, stale in sections)
    assert states[("drafted", 0)] == states[("reviewed", 1)] == 1
    assert states[("reviewed", 0)] == len(sections) - 2 >= 4


def test_links_and_relations_lead_somewhere(connection: sqlite3.Connection) -> None:
    """The demo is a clean file: no link dangles and the file passes SQLite's checks."""
    assert connection.execute("pragma foreign_key_check").fetchall() == []
    assert connection.execute("pragma integrity_check").fetchall() == [("ok",)]


def test_the_search_table_holds_what_its_program_would_write(
    connection: sqlite3.Connection,
) -> None:
    """kb_fts has a row for each project, concept, observation, record and reviewed summary."""
    counted = dict(connection.execute("select source_type, count(*) from kb_fts group by 1"))
    expected = {
        name: connection.execute(f"select count(*) from {rows}").fetchone()[0]
        for name, rows in [
            ("project", "projects"),
            ("concept", "concepts"),
            ("observation", "observations"),
            ("record", "records"),
            ("document_summary", "document_sections where summary_status = 'reviewed'"),
        ]
    }
    assert counted == expected


def test_the_demo_can_do_without_full_text_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, database: Path
) -> None:
    """Where SQLite has no FTS5 the table is left out and everything else is the same."""

    class WithoutFTS5(sqlite3.Connection):
        def execute(self, sql: str, *args: object) -> sqlite3.Cursor:  # type: ignore[override]
            if "fts5" in sql:
                raise sqlite3.OperationalError("no such module: fts5")
            return super().execute(sql, *args)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path: connect(path, factory=WithoutFTS5))
    build_demo(tmp_path / "demo.db")
    monkeypatch.undo()
    expected = {n: r for n, r in all_rows(database).items() if not n.startswith("kb_fts")}
    assert all_rows(tmp_path / "demo.db") == expected


# --- recall over the demo ------------------------------------------------------------------------


def test_the_suggested_question_names_concepts(connection: sqlite3.Connection) -> None:
    """The question printed with the demo names the three concepts it is about."""
    names = match_concept_names(connection, demo.SUGGESTED_QUESTION)
    assert names == ["matcher", "permissions", "word boundaries"]


def test_the_suggested_question_finds_items_of_every_kind(connection: sqlite3.Connection) -> None:
    """Its answer holds observations, records, a gist and sections, and names projects."""
    result = recall_by_text(connection, demo.SUGGESTED_QUESTION)
    kinds = {match.source_type for match in result.matches}
    assert kinds == {"observation", "record", "document_gist", "document_section"}
    assert len(result.projects) >= 2
    assert max(match.match_count for match in result.matches) == 3
    assert any(match.superseded_by for match in result.matches if match.source_type == "record")


def test_every_badge_of_a_result_can_be_seen_in_the_demo(connection: sqlite3.Connection) -> None:
    """All concepts together bring up superseded, rejected, proposed, unreviewed and stale items."""
    names = [name for (name,) in connection.execute("select name from concepts")]
    matches = recall_by_text(connection, "; ".join(names)).matches
    assert {m.status for m in matches} == {None, "accepted", "proposed", "rejected", "superseded"}
    assert {m.summary_status for m in matches} == {None, "reviewed", "drafted"}
    assert any(m.summary_stale for m in matches)
    assert {m.source_type for m in matches if m.superseded_by} == {"observation", "record"}
    assert (
        len(matches)
        == connection.execute(
            "select (select count(*) from records) + (select count(*) from observations)"
            " + (select count(*) from document_sections)"
        ).fetchone()[0]
    )


# --- where the demo is written -------------------------------------------------------------------


def test_a_demo_is_marked_and_can_be_built_again(tmp_path: Path, database: Path) -> None:
    """The file carries our application id, and an earlier demo in its place is replaced."""
    path = tmp_path / "demo.db"
    build_demo(path, write_records(tmp_path / "decisions", _0007_toast=record_text()))
    assert rows(path, "pragma application_id") == [(APPLICATION_ID,)]
    build_demo(path)
    assert all_rows(path) == all_rows(database)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["decisions", "demo.db"]


def test_the_file_has_the_permissions_of_any_new_file(tmp_path: Path) -> None:
    """Others can read the demo as far as the umask lets them."""
    (tmp_path / "plain").touch()
    build_demo(tmp_path / "demo.db")
    assert (tmp_path / "demo.db").stat().st_mode == (tmp_path / "plain").stat().st_mode


def make_knowledge_database(path: Path) -> None:
    knowledge.create(path).close()


def make_database_of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as conn:
        conn.execute("pragma application_id = 1")
        conn.execute("create table t (x)")


def make_text_with_our_mark(path: Path) -> None:
    path.write_bytes(b"no database".ljust(68) + APPLICATION_ID.to_bytes(4, "big"))


def make_folder(path: Path) -> None:
    path.mkdir()


def make_link_to_a_text(path: Path) -> None:
    (path.parent / "text").write_text("precious")
    path.symlink_to("text")


def make_link_to_itself(path: Path) -> None:
    path.symlink_to(path.name)


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize(
    "make",
    [
        make_knowledge_database,
        make_database_of_another_program,
        make_text_with_our_mark,
        Path.touch,
        make_folder,
        make_link_to_a_text,
        make_link_to_itself,
        make_fifo,
    ],
)
def test_what_the_demo_did_not_make_is_left_alone(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    """A file, folder or link of somebody else is refused in one sentence and not touched."""
    path = tmp_path / "knowledge.db"
    make(path)
    before = snapshot(tmp_path)
    with pytest.raises(DemoRefused) as caught:
        build_demo(path)
    assert snapshot(tmp_path) == before
    assert "knowledge.db" in str(caught.value) or "text" in str(caught.value)
    assert "\n" not in str(caught.value)


def snapshot(folder: Path) -> dict[str, object]:
    """Everything in a folder: name, kind, time of the last change, content of files."""
    return {
        p.name: (p.lstat().st_mode, p.lstat().st_mtime_ns, p.read_bytes() if p.is_file() else None)
        for p in folder.iterdir()
    }


def test_a_dangling_link_gets_its_target(tmp_path: Path) -> None:
    """A link to a place that is free is followed, not replaced."""
    (tmp_path / "link.db").symlink_to("demo.db")
    build_demo(tmp_path / "link.db")
    assert (tmp_path / "link.db").is_symlink()
    assert rows(tmp_path / "demo.db", "pragma application_id") == [(APPLICATION_ID,)]


@pytest.mark.parametrize("suffix", ["-wal", "-journal"])
def test_a_log_beside_the_place_is_no_place_for_a_demo(tmp_path: Path, suffix: str) -> None:
    """Changes that wait beside the file would be applied to the demo, so it is not written."""
    build_demo(tmp_path / "demo.db")
    (tmp_path / f"demo.db{suffix}").write_bytes(b"waiting")
    before = snapshot(tmp_path)
    with pytest.raises(DemoRefused, match=rf"demo\.db{suffix}"):
        build_demo(tmp_path / "demo.db")
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("parent", ["missing", "text"])
def test_a_missing_folder_is_refused(tmp_path: Path, parent: str) -> None:
    """A place in a folder that does not exist, or in a file, is refused and nothing is created."""
    (tmp_path / "text").touch()
    with pytest.raises(DemoRefused, match=f"no folder .*{parent}"):
        build_demo(tmp_path / parent / "demo.db")
    assert [p.name for p in tmp_path.iterdir()] == ["text"]


def test_a_folder_without_the_right_to_write_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sentence names the place and the reason, not the temporary name beside it."""

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", str(tmp_path / ".concept-recall-x"))

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    path = tmp_path / "demo.db"
    with pytest.raises(DemoRefused) as caught:
        build_demo(path)
    assert str(caught.value) == f"The demo cannot be written to {path}: Permission denied"


@pytest.mark.parametrize("step", ["_summary", "replace", "malformed"])
def test_a_failure_leaves_the_earlier_demo_and_no_other_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Whatever fails, before or during the move, the folder is as it was."""

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    place = tmp_path / "place"
    place.mkdir()
    build_demo(place / "demo.db")
    before = snapshot(place)
    text = record_text(status="done" if step == "malformed" else "accepted")
    folder = write_records(tmp_path / "decisions", _0007_toast=text)
    if step != "malformed":
        monkeypatch.setattr(demo if step == "_summary" else Path, step, fail)
    with pytest.raises(RecallError, match=r"No space left|0007-toast\.md, line 5"):
        build_demo(place / "demo.db", folder)
    assert snapshot(place) == before


def test_a_failing_database_is_a_refusal(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of SQLite while writing comes out as one sentence of ours."""

    def fail(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(demo, "_fill", fail)
    with pytest.raises(DemoRefused, match=r"demo\.db: database or disk is full$"):
        build_demo(tmp_path / "demo.db")
    assert list(tmp_path.iterdir()) == []


def test_records_are_read_from_an_archive_too(tmp_path: Path) -> None:
    """A package that is run from a zip file can build its demo."""
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.writestr("decisions/0007-toast.md", record_text())
    with zipfile.ZipFile(tmp_path / "package.zip") as archive:
        summary = build_demo(tmp_path / "demo.db", zipfile.Path(archive, "decisions/"))
    assert summary.records == 1
