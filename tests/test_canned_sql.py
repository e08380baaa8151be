"""The SQL of the canned queries, run on plain connections: it answers as the page does."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import datetime, timedelta, timezone
from typing import Any

import pytest

import knowledge
from datasette_concept_recall import canned_sql, sql_functions
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.search import recall
from datasette_concept_recall.timestamps import parse_instant
from datasette_concept_recall.vocabulary import Vocabulary

CONCEPTS = [
    *("RAG", "rag", "Rag", "chunking", "chunking strategy", "C++", "世界", "Straße", "STRASSE"),
    *("a, b", "line\nbreak", '"quoted"', '["x"]', '{"a": 1}', "it's", "100%", " padded ", "5"),
    *("caf\u00e9", "cafe\u0301", "...", "x" * 400),
]
TIMES = [
    *("2026-09-29 23:00:00", "2026-09-29T23:00:00Z", "2026-09-29T01:00:00Z", "2026-09-29"),
    *("2026-09-29T23:00:00.5Z", "2026-09-29 23:00:00.25", "2026-09-29T23:00:00.123456789+00:00"),
    *("2026-09-30T01:00:00+02:00", "2026-09-29T22:59:59.999999-00:00", "2026-09-29 23:00"),
    *("2026-09-29T23:00Z", "2023-02-29", "2026-09-29T24:00:00", "0000-01-01", "junk", ""),
    *("2026-09-29 23:00:00 ", "2026-09-29T23:00:00z", "2026-09-29T23:00:00.", "1 minute ago.5"),
    *(None, 1790722800, 2026.5, b"2026-09-29"),
]


def random_knowledge(seed: int, variant: str = "today") -> sqlite3.Connection:
    """A database of one of the variants, filled by chance, with the SQL functions."""
    conn, choose = knowledge.create(variant=variant), random.Random(seed)
    for name in CONCEPTS:
        knowledge.add_concept(conn, name)
    for number in range(choose.randint(0, 40)):
        add_random_item(conn, choose, number)
    for table in ("observation_concepts", "record_concepts"):
        knowledge.link(conn, table, 9_999, ["RAG"])
        knowledge.link(conn, table, 1, [9_999])
    sql_functions.register(conn, Vocabulary())
    return conn


def add_random_item(conn: sqlite3.Connection, choose: random.Random, number: int) -> None:
    """An observation, a record or a document with a section, as far as there are tables."""
    concepts = choose.sample(CONCEPTS, choose.randint(0, 4))
    project = choose.choice([None, "Search", "Kitchen"])
    time = choose.choice(TIMES)
    status = choose.choice(["reviewed", "unsummarized"])
    kind = choose.choice(["observations", "records", "documents"])
    if kind == "records" and knowledge.table_exists(conn, "records"):
        knowledge.add_record(
            conn, f"Title {number}", concepts=concepts, project=project, ingested_at=time
        )
    elif kind == "documents" and knowledge.table_exists(conn, "documents"):
        section = knowledge.Section(
            choose.choice(["", "Part"]), summary="RAG", status=status, concepts=concepts
        )
        gist = knowledge.Section(summary="x" * 400, concepts=concepts[:1], created_at=time)
        knowledge.add_document(conn, "Handbook", gist=gist, sections=[section], project=project)
    else:
        knowledge.add_observation(
            conn, f"Body {number}", concepts=concepts, project=project, created_at=time
        )


def canned(conn: sqlite3.Connection, name: str, **parameters: object) -> list[dict[str, Any]]:
    """The rows of a canned query run on a connection, its parameters as Datasette binds them."""
    mapping = Vocabulary().mapping(conn)
    (query,) = (q for q in canned_sql.canned_queries(mapping) if q.name == name)
    cursor = conn.execute(query.sql, dict.fromkeys(query.parameters, "") | parameters)
    columns = [column[0] for column in cursor.description]
    return [dict(zip(columns, row, strict=True)) for row in cursor.fetchall()]


def recalled(conn: sqlite3.Connection, **asked: Any) -> list[dict[str, Any]]:
    """What the page shows, in the columns of the canned queries."""
    return [
        {
            "match_count": match.match_count,
            "source_type": match.source_type,
            "id": match.id,
            "project": match.project,
            "title": match.title,
            "excerpt": match.body[:300],
            "concepts": list(match.concepts),
            "status": match.status if match.summary_status is None else match.summary_status,
        }
        for match in recall(conn, RecallRequest(**asked)).matches
    ]


def comparable(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of a canned query with JSON as lists and without the time as it is stored."""
    kept = [{k: v for k, v in row.items() if k != "created_at"} for row in rows]
    return [
        row | {"concepts": json.loads(row["concepts"]), "title": row["title"] or ""} for row in kept
    ]


@pytest.mark.parametrize("variant", [v for v in knowledge.VARIANTS if v != "nothing"])
@pytest.mark.parametrize("seed", range(6))
def test_recall_by_text_answers_as_the_page_does(variant: str, seed: int) -> None:
    """Whatever the age of the file: the same items in the same order, with the same concepts."""
    choose = random.Random(seed)
    with closing(random_knowledge(seed, variant)) as conn:
        for limit in ("", "0", "3"):
            text = " / ".join(choose.sample(CONCEPTS, 8))
            rows = canned(conn, "concept_recall_by_text", text=text, limit=limit)
            assert comparable(rows) == recalled(conn, text=text, limit=int(limit or 20))


@pytest.mark.parametrize("seed", range(20))
def test_recall_by_names_answers_as_the_page_does(seed: int) -> None:
    """The same order, whichever way the names are written, in whatever case they are asked for."""
    choose = random.Random(seed)
    with closing(random_knowledge(seed)) as conn:
        for separator in (None, "\n", ","):
            asked = [*choose.sample(CONCEPTS, 6), "unknown", "rAg", "PADDED", "cAFé"]
            special = {None: set(), "\n": {"\n"}, ",": {"\n", ","}}[separator]
            asked = [name for name in asked if special.isdisjoint(name)]
            names = json.dumps(asked) if separator is None else separator.join(asked)
            rows = canned(conn, "concept_recall_by_names", names=names, limit="0")
            expected = recalled(conn, names=tuple(asked))
            assert [places(row) for row in rows] == [places(row) for row in expected]


def places(row: dict[str, Any]) -> tuple[object, ...]:
    """What makes the rank of a row, and which it is; spellings of a name may differ."""
    return row["match_count"], row["source_type"], row["id"], row["project"]


@pytest.mark.parametrize(
    ("names", "found"),
    [
        ("RAG", {"RAG"}),
        ("  rag  ", {"RAG"}),
        ("RAG,C++", {"RAG", "C++"}),
        ("RAG\nC++\n", {"RAG", "C++"}),
        ("RAG\r\nC++\r\n\r\n", {"RAG", "C++"}),
        ("a, b", set()),
        ("a, b\n", {"a, b"}),
        ('["a, b", "RAG"]', {"a, b", "RAG"}),
        (' ["line\\nbreak"] ', {"line\nbreak"}),
        ("line\nbreak", set()),
        ('["[\\"x\\"]"]', {'["x"]'}),
        ('["{\\"a\\": 1}", 5, null, true, ["RAG"], {"RAG": 1}]', {'{"a": 1}', "5"}),
        ('{"a": 1}', {'{"a": 1}'}),
        ('"quoted"', {'"quoted"'}),
        ("5", {"5"}),
        ("it's", {"it's"}),
        ("100%", {"100%"}),
        ("%", set()),
        ("...", {"..."}),
        (",,\n,", set()),
        ("[]", set()),
        ("[", set()),
        ('["RAG"', set()),
        ("null", set()),
        ("", set()),
        (" ", set()),
    ],
)
def test_the_names_of_concepts_may_be_written_in_three_ways(names: str, found: set[str]) -> None:
    """One per line, or separated by commas, or a JSON array, which can hold every name."""
    with closing(knowledge.create()) as conn:
        for name in ("RAG", "C++", "a, b", "line\nbreak", '["x"]', '{"a": 1}', '"quoted"', "5"):
            knowledge.add_observation(conn, "", concepts=[name])
        knowledge.add_observation(conn, "", concepts=["it's"])
        knowledge.add_observation(conn, "", concepts=["100%"])
        knowledge.add_observation(conn, "", concepts=["..."])
        sql_functions.register(conn, Vocabulary())
        rows = canned(conn, "concept_recall_by_names", names=names)
    assert {name for row in rows for name in json.loads(row["concepts"])} == found


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        *(("", 20), ("0", 30), ("-1", 20), ("-99", 20), ("3", 3), (" 3 ", 3), ("30", 30)),
        *(("3.7", 3), ("99999999999999999999", 30), ("junk", 20), ("' or 1", 20), (None, 20)),
    ],
)
def test_a_limit_is_never_an_error(limit: str | None, count: int) -> None:
    """All rows when it is 0, twenty when it is no positive number."""
    with closing(knowledge.create()) as conn:
        for number in range(30):
            knowledge.add_observation(conn, f"Body {number}", concepts=["RAG"])
        sql_functions.register(conn, Vocabulary())
        for name, asked in (
            ("concept_recall_by_text", {"text": "RAG"}),
            ("concept_recall_by_names", {"names": "RAG"}),
        ):
            assert len(canned(conn, name, **asked, limit=limit)) == count


def spellings_of_time() -> Iterator[object]:
    """Readable times, and what chance makes of their parts."""
    yield from TIMES
    choose = random.Random(0)
    parts = ["2026-09-29", "0001-01-01", "9999-12-31", "2023-02-29", "2024-02-29", "2026-13-01"]
    clocks = ["10:20", "23:59:59", "24:00:00", "23:60", "23:59:60", "1:02", "00:00:00"]
    zones = ["", "Z", "z", "+01:00", "-23:59", "+24:00", "+14:60", "+0100", " Z", "\0", "é"]
    fractions = ["", "", ".", ".5", ".1234567", ".5a", "5"]
    for _ in range(3000):
        pieces = (parts, " T", clocks, fractions, zones)
        kept = [choose.choice(piece) for piece in pieces]
        yield "".join(kept[: choose.randint(1, 5)])


def test_times_are_read_as_python_reads_them() -> None:
    """SQLite understands more spellings than are times here; the queries take the same ones."""
    epoch = datetime(1970, 1, 1, tzinfo=timezone.utc)
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("create table dated (created_at)")
        conn.executemany("insert into dated values (?)", ((time,) for time in spellings_of_time()))
        sql = f"with {canned_sql._timed('dated')} select created_at, instant, fraction from timed"
        for time, seconds, fraction in conn.execute(sql):
            instant = parse_instant(time)
            if instant is None:
                assert (time, seconds, fraction) == (time, None, None)
            else:
                micros = seconds * 1_000_000 + int(fraction)
                assert epoch + timedelta(microseconds=micros) == instant, time


def test_a_word_is_searched_in_everything_that_can_be_tagged() -> None:
    """Titles, bodies, headings and summaries are read, also where the text is no valid UTF-8."""
    with closing(knowledge.create()) as conn:
        knowledge.add_concept(conn, "storage")
        knowledge.add_observation(conn, b"\xff RAG, rag")
        knowledge.add_observation(conn, "storage", concepts=["storage"])
        knowledge.add_record(conn, "A RAG title", b"\xff", ingested_at="2026-09-29T01:00:00Z")
        knowledge.add_record(conn, "Title", "x " * 200 + "RAG", ingested_at="2026-09-29 23:00:00")
        sections = [
            knowledge.Section("RAG heading", created_at=None),
            knowledge.Section(body="RAG RAG RAG"),
            knowledge.Section(summary="of RAG", created_at=None),
        ]
        knowledge.add_document(conn, "Handbook", sections=sections)
        sql_functions.register(conn, Vocabulary())
        conn.text_factory = lambda value: value.decode("utf-8", "replace")
        rows = canned(conn, "concept_word_search", word=" rag ")
    assert [(row["mentions"], row["source_type"], row["id"]) for row in rows] == [
        (3, "document_section", 3),
        (2, "observation", 1),
        (1, "record", 2),
        (1, "record", 1),
        (1, "document_section", 2),
        (1, "document_section", 4),
    ]
    assert all("RAG" in row["excerpt"] for row in rows)


def test_mentions_are_counted_for_each_stored_spelling() -> None:
    """The most often named concept first, then by name."""
    with closing(random_knowledge(0)) as conn:
        rows = canned(conn, "concept_mentions", text="rag C++ RAG; chunking strategy")
    assert [(row["name"], row["mentions"]) for row in rows] == [
        *(("RAG", 2), ("Rag", 2), ("rag", 2)),
        *(("C++", 1), ("chunking", 1), ("chunking strategy", 1)),
    ]


def test_a_database_of_concepts_and_nothing_else_has_its_queries() -> None:
    """Without anything to tag, the queries name concepts and find no items."""
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.execute("create table concepts (id integer primary key, name text)")
        conn.execute("insert into concepts (name) values ('RAG')")
        sql_functions.register(conn, Vocabulary())
        found = {
            name: canned(conn, name, text="RAG", names="RAG", word="RAG")
            for name in canned_sql.NAMES
        }
    assert [name for name, rows in found.items() if rows] == ["concept_mentions"]
