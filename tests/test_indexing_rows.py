"""The rows of a database as documents: which, told apart how, and what a change of them does."""

from __future__ import annotations

import json
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from datasette.utils import tilde_encode
from hypothesis import given, settings
from hypothesis import strategies as st

import foreign
import knowledge
from datasette_concept_recall.indexing.failures import SourceUnreachable, Unavailable, Unusable
from datasette_concept_recall.indexing.models import Entry
from datasette_concept_recall.indexing.sources import rows
from datasette_concept_recall.indexing.sources.rows import RowSource
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.reading import equals, quote_identifier
from foreign import executed
from indexing import SMALL, FakeClock, run

PROSE = "Bread is baked from flour and water."

POSTS = f"""
    create table post (id integer primary key, title text, body text, mood text,
        created_at text, size integer, picture blob);
    insert into post values
        (1, 'Bread', '{PROSE}', 'warm', '2026-03-01T09:00:00+01:00', 3, x'00ff'),
        (2, null, null, null, 'yesterday', null, null),
        (7, ' Jam
            tarts', 'Short and sweet.', '', '2026-03-02', null, null);
"""


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return executed(tmp_path / "posts.db", POSTS)


def keys(path: Path, tables: dict[str, str] | None = None) -> list[list[Any]]:
    """What tells the documents of a database apart, read as JSON."""
    return [json.loads(entry.key) for entry in RowSource(path, tables).listing().entries]


def tables(path: Path) -> set[str]:
    """The tables of which the rows are documents."""
    return {key[0] for key in keys(path)}


def entry_of(source: RowSource, key: bytes) -> Entry:
    return next(entry for entry in source.listing().entries if entry.key == key)


def text_of(source: RowSource, entry: Entry) -> str:
    return "".join(segment.text for segment in source.read(entry).extract().segments)


def test_a_row_is_listed_with_what_a_reader_looks_for(posts: Path) -> None:
    """An entry says which row it is, what it is called, where it is found and when it was made."""
    source = RowSource(posts)
    bread, empty, jam = source.listing().entries
    assert [entry.key for entry in (bread, empty, jam)] == [
        b'["post",1]',
        b'["post",2]',
        b'["post",7]',
    ]
    assert [entry.title for entry in (bread, empty, jam)] == ["Bread", "post 2", "Jam tarts"]
    assert [entry.path for entry in (bread, empty, jam)] == ["post/1", "post/2", "post/7"]
    times = [entry.created_at for entry in (bread, empty, jam)]
    assert times == ["2026-03-01T08:00:00Z", None, "2026-03-02T00:00:00Z"]
    assert [entry.size for entry in (bread, jam)] == [
        len(text_of(source, entry).encode()) for entry in (bread, jam)
    ]
    assert empty.size == 0


@pytest.mark.parametrize(
    ("stored", "created_at"),
    [
        ("1767225600", "2026-01-01T00:00:00Z"),
        ("1767225600000", "2026-01-01T00:00:00Z"),
        ("1767225600250", "2026-01-01T00:00:00.250000Z"),
        ("1767225600.5", "2026-01-01T00:00:00.500000Z"),
        ("0", "1970-01-01T00:00:00Z"),
        ("-86400", "1969-12-31T00:00:00Z"),
        ("99999999999", "5138-11-16T09:46:39Z"),
        ("100000000000", "1973-03-03T09:46:40Z"),
        ("-100000000000", "1966-10-31T14:13:20Z"),
        ("9223372036854775807", None),
        ("-9223372036854775808", None),
        ("9e999", None),
        ("'1767225600 s'", None),
        ("x'00'", None),
    ],
)
def test_a_number_in_a_column_of_times_is_seconds_or_milliseconds(
    tmp_path: Path, stored: str, created_at: str | None
) -> None:
    """Numbers count from 1970, as milliseconds from 100,000,000,000 on, as recall reads them."""
    path = executed(
        tmp_path / "epochs.db",
        "create table post (id integer primary key, body text, created integer);"
        f"insert into post values (1, '{PROSE}', {stored})",
    )
    (entry,) = RowSource(path).listing().entries
    assert entry.created_at == created_at


def test_a_row_is_read_as_its_title_its_body_and_its_other_texts(posts: Path) -> None:
    """Texts come without numbers, times and bytes, and without columns that are empty or hold a
    word such as a state, which says nothing without its table."""
    source = RowSource(posts)
    bread, empty, jam = source.listing().entries
    opened = source.read(bread)
    extracted = opened.extract()
    assert (opened.kind, opened.tags) == ("row", ())
    assert (extracted.format, extracted.strategy, extracted.title) == ("row", "plain", "Bread")
    (segment,) = extracted.segments
    assert segment.text == f"Bread\n\n{PROSE}"
    assert (segment.unit, segment.number, segment.part) == (None, None, None)
    assert text_of(source, jam) == "Jam tarts\n\nShort and sweet."
    with pytest.raises(Unusable) as failure:
        source.read(empty).extract()
    assert failure.value.code == "no_text"


def test_keys_fingerprints_and_hashes_are_pinned(posts: Path) -> None:
    """These values are stored, so another one makes every row a new document."""
    source = RowSource(posts)
    entry = source.listing().entries[0]
    assert entry.fingerprint == "258d1f58369e126a08c67ae132a440d8d323836fac5714e73350254eaa89580c"
    assert (
        source.read(entry).content_hash
        == "6b969e622609158c1ad6f73cf459a290244f72f8e56968250c06a0d0387d5408"
    )


@pytest.mark.parametrize(
    "edit",
    [
        "title = 'Bread '",
        "body = null",
        "body = ''",
        "mood = cast('warm' as blob)",
        "size = 4",
        "size = 3.5",
        "picture = x'00fe'",
        "created_at = created_at || '.0'",
        "title = body, body = title",
        "mood = null, body = body || 'warm'",
    ],
)
def test_any_edit_of_a_row_changes_it_and_no_other(posts: Path, edit: str) -> None:
    """Whatever column or type changes, the fingerprint and the content do; other rows stay."""
    source = RowSource(posts)
    before = source.listing().entries
    content = source.read(before[0]).content_hash
    executed(posts, f"update post set {edit} where id = 1")
    after = source.listing().entries
    assert [entry.key for entry in after] == [entry.key for entry in before]
    assert after[0].fingerprint != before[0].fingerprint
    assert source.fingerprint(before[0]) == after[0].fingerprint
    assert source.read(before[0]).content_hash != content
    assert after[1:] == before[1:]


@pytest.mark.parametrize(
    "change",
    [
        "vacuum",
        "update post set title = title",
        "create table other (a)",
        "alter table post add column extra text",
        "create index by_body on post (title, body, mood)",
    ],
)
def test_what_is_no_edit_changes_nothing(posts: Path, change: str) -> None:
    """Written again, compacted or given a column without values, a row is what it was."""
    source = RowSource(posts)
    before = source.listing()
    executed(posts, change)
    assert source.listing() == before


def test_a_row_that_is_gone_is_not_found(posts: Path) -> None:
    """A row deleted after the listing is unavailable and has no fingerprint any more."""
    source = RowSource(posts)
    bread, _, jam = source.listing().entries
    executed(posts, "delete from post where id = 1")
    assert source.fingerprint(bread) is None
    with pytest.raises(Unavailable) as failure:
        source.read(bread)
    assert failure.value.code == "not_found"
    assert source.fingerprint(jam) == jam.fingerprint
    executed(posts, "drop table post")
    assert source.fingerprint(jam) is None
    assert source.listing().entries == []


def test_compound_keys_and_tables_without_row_numbers(tmp_path: Path) -> None:
    """A key is all columns of the primary key in its order, or else the number of the row."""
    path = executed(
        tmp_path / "keys.db",
        f"""
        create table pair (b text, note text, a integer, primary key (a, b)) without rowid;
        insert into pair values ('x', '{PROSE}', 1), ('a/b, c', '{PROSE}', 2);
        create table numbered (note text);
        insert into numbered values ('{PROSE}'), ('gone'), ('{PROSE}');
        delete from numbered where rowid = 2;
        create table named (rowid text, note text);
        insert into named values ('z', '{PROSE}');
        create table word (word text primary key collate nocase, note text);
        insert into word values ('Bread', '{PROSE}');
        """,
    )
    source = RowSource(path)
    assert keys(path) == [
        ["named", 1],
        ["numbered", 1],
        ["numbered", 3],
        ["pair", 1, "x"],
        ["pair", 2, "a/b, c"],
        ["word", "Bread"],
    ]
    entries = source.listing().entries
    assert [source.fingerprint(entry) for entry in entries] == [e.fingerprint for e in entries]
    assert entries[4].path == "pair/2,a~2Fb~2C+c"
    assert entries[4].title == "pair 2, a/b, c"
    executed(path, "update word set word = 'bread'")
    assert source.fingerprint(entries[5]) is None


def test_values_of_any_type_tell_rows_apart(tmp_path: Path) -> None:
    """Bytes, numbers, texts that are not UTF-8 and NULL are keys that come back as they were."""
    path = executed(
        tmp_path / "odd.db",
        f"""
        create table odd (k primary key, note text);
        insert into odd values (1, '{PROSE}'), ('1', 'a'), (x'31', 'b'), (1.5, 'c'), (null, 'd'),
            (null, 'e'), (cast(x'ff' as text), 'f'), (cast(x'fe' as text), 'g'), (9e999, 'h'),
            ('', 'i'), ('é', 'j'), ('e' || char(769), 'k'), (9223372036854775807, 'l');
        """,
    )
    source = RowSource(path)
    entries = source.listing().entries
    assert len({entry.key for entry in entries}) == len(entries) == 13
    assert [text_of(source, entry) for entry in entries] == [PROSE, *"abcdefghijkl"]
    parts = [json.loads(entry.key)[1] for entry in entries]
    assert parts[:8] == [
        *(1, "1", {"$hex": "31"}, 1.5, {"$rowid": 5}, {"$rowid": 6}),
        *({"$text": "ff"}, {"$text": "fe"}),
    ]
    assert [entry.key.decode() for entry in entries][10] == '["odd","é"]'


def test_odd_names_and_values_are_read_as_they_are(tmp_path: Path) -> None:
    """Quotes, spaces and signs in names, bytes in texts and bad UTF-8 are ordinary."""
    name = 'a "b" [c]/%é'
    table = quote_identifier(name)
    path = executed(
        tmp_path / "odd.db",
        f"""
        create table {table} ([the "key'] text primary key, [x; --] text, [select] text,
            untyped, [from] text);
        insert into {table} values
            ('?', '{PROSE}', cast(x'6aff6b207a' as text), 'as told', x'00'),
            ('#', null, null, 5, null);
        """,
    )
    source = RowSource(path)
    second, first = sorted(source.listing().entries, key=lambda entry: entry.key)
    assert json.loads(first.key) == [name, "?"]
    assert text_of(source, first) == f"{PROSE}\n\nselect: j\ufffdk z\n\nuntyped: as told"
    assert first.path == f"{tilde_encode(name)}/{tilde_encode('?')}"
    assert second.title == f"{name} #"


@settings(max_examples=8, deadline=None)
@given(st.lists(st.text(max_size=8) | st.integers(-9, 9) | st.binary(max_size=4), unique=True))
def test_every_row_has_a_key_of_its_own_and_is_found_by_it(values: list[Any]) -> None:
    """Any key is listed once, leads to its row, and is part of its address as in Datasette."""
    values = [v for v in values if not isinstance(v, str) or v.isprintable()]
    with tempfile.TemporaryDirectory() as folder:
        path = executed(Path(folder) / "any.db", "create table t (k primary key, note text)")
        with closing(sqlite3.connect(path)) as conn, conn:
            numbered = [(value, f"This is row number {n}") for n, value in enumerate(values)]
            conn.executemany("insert into t values (?, ?)", numbered)
        source = RowSource(path)
        entries = source.listing().entries
        assert len({entry.key for entry in entries}) == len(entries) == len(values)
        for n, (value, entry) in enumerate(zip(values, entries, strict=True)):
            assert text_of(source, entry) == f"This is row number {n}"
            assert entry.path == f"t/{tilde_encode(str(value))}"


def test_tables_of_prose_are_taken_and_others_passed_over(tmp_path: Path) -> None:
    """Links, lists of names, views, tables made by SQLite or by us are no documents."""
    path = executed(
        tmp_path / "mixed.db",
        POSTS,
        f"""
        create table tag (id integer primary key, name text);
        insert into tag values (1, 'bread'), (2, 'sour dough');
        create table post_tag (post_id integer references post(id), tag_id text references tag(id));
        insert into post_tag values (1, 'one two three four five six'), (99, 2);
        create table measure (id integer primary key, value real, at datetime);
        insert into measure values (1, 2.5, 'one two three four five six');
        create table kana (id integer primary key, s text);
        insert into kana values (1, '小麦粉と水からパンを焼きます。');
        create table headline (title text);
        insert into headline values ('{PROSE}');
        create view shown as select * from post;
        create virtual table post_fts using fts5(title, body);
        insert into post_fts values ('Bread', '{PROSE}');
        create virtual table old_fts using fts4(body);
        insert into old_fts values ('{PROSE}');
        create table _concept_recall_item (note text);
        insert into _concept_recall_item values ('{PROSE}');
        create table unused (id integer primary key, note text);
        create table post_fts_notes (note text);
        insert into post_fts_notes values ('{PROSE}');
        analyze;
        """,
    )
    assert tables(path) == {"headline", "kana", "post", "post_fts_notes"}
    assert RowSource(path).listing().problems == ()


def test_an_index_is_not_indexed(tmp_path: Path) -> None:
    """A database with the tables of an index has no documents, and the listing says so."""
    each = ("source", "document", "generation", "chunk")
    scripts = [f"create table {t} (note text); insert into {t} values ('{PROSE}');" for t in each]
    path = executed(tmp_path / "index.db", POSTS, *scripts[1:])
    assert tables(path) == {"document", "generation", "chunk", "post"}
    executed(path, scripts[0])
    listing = RowSource(path).listing()
    assert listing.entries == []
    (problem,) = listing.problems
    assert "is an index itself" in problem


def test_rows_that_nothing_tells_apart_are_a_problem(tmp_path: Path) -> None:
    """A table without any name for its row numbers is passed over with a sentence."""
    path = executed(
        tmp_path / "taken.db",
        POSTS,
        f"""create table taken (rowid text, _rowid_ text, oid text);
        insert into taken values ('{PROSE}', '', '');""",
    )
    assert tables(path) == {"post"}
    assert RowSource(path).listing().problems == ("Nothing tells the rows of taken apart",)
    with pytest.raises(SourceUnreachable, match="Nothing tells the rows of taken apart"):
        RowSource(path, {"taken": ""}).listing()


def test_named_tables_are_read_whatever_they_hold(posts: Path) -> None:
    """Those that were named are taken without prose, with the column of text that was named."""
    executed(posts, "create table tag (id integer primary key, name text, slug text)")
    executed(posts, "insert into tag values (1, 'bread', 'b')")
    assert keys(posts, {"TAG": ""}) == [["tag", 1]]
    source = RowSource(posts, {"post": "mood", "tag": ""})
    assert [e.title for e in source.listing().entries] == ["Bread", "post 2", "Jam tarts", "bread"]
    assert text_of(source, entry_of(source, b'["post",1]')) == "Bread\n\nwarm"
    assert text_of(source, entry_of(source, b'["tag",1]')) == "bread"
    titles = RowSource(posts, {"post": "title"})
    assert text_of(titles, entry_of(titles, b'["post",1]')) == "Bread"


@pytest.mark.parametrize(
    ("named", "problem"),
    [({"post": "", "gone": ""}, "There is no table gone"), ({"post": "x"}, "post has no column x")],
)
def test_a_named_table_that_is_not_there_removes_nothing(
    posts: Path, named: dict[str, str], problem: str
) -> None:
    """What was asked for and is missing makes the source unreachable instead of empty."""
    with pytest.raises(SourceUnreachable, match=problem):
        RowSource(posts, named).listing()


def test_a_table_that_refers_to_rows_that_are_gone_is_read(tmp_path: Path) -> None:
    """Dangling keys are ordinary, and a column that refers is no text."""
    path = executed(
        tmp_path / "dangling.db",
        f"""create table note (id integer primary key, body text,
            author text references nobody(name), post text references gone(id));
        insert into note values (1, '{PROSE}', 'an author', 'x');""",
    )
    source = RowSource(path)
    (entry,) = source.listing().entries
    assert text_of(source, entry) == PROSE


@pytest.mark.parametrize("build", [foreign.django_many_to_many, foreign.taggit, foreign.json_array])
def test_rows_come_with_the_tags_that_they_have(
    tmp_path: Path, build: Callable[[Path], Path]
) -> None:
    """However a database keeps tags, the concepts of a row come with it."""
    source = RowSource(build(tmp_path / "tagged.db"))
    found = {entry.title: source.read(entry).tags for entry in source.listing().entries}
    assert {title: found.get(title) for title, *_ in foreign.ITEMS} == {
        foreign.BOTH: ("bread", "jam"),
        foreign.ONE: ("jam",),
        foreign.NEITHER: ("soup",),
    }


def test_a_tag_belongs_to_the_chunks_that_mention_it(tmp_path: Path) -> None:
    """So that a long row is shown where it speaks of what was asked; a tag that it never mentions
    belongs to its beginning."""
    long = "\n\n".join(["Nothing of it here, at some length."] * 8 + ["Only here: salt."])
    path = tmp_path / "knowledge.db"
    with closing(knowledge.create(path)) as conn, conn:
        knowledge.add_observation(conn, long, concepts=["Salt", "Bread"])
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        source = store.add_source("rows", "rows", str(path), SMALL)
        run(store, source)
        found = store.rows(
            "select k.name, c.position, c.text like '%salt%' from chunk c"
            " join chunk_concept x on x.chunk_id = c.id join concept k on k.id = x.concept_id"
            " order by k.name"
        )
    assert [name for name, *_ in found] == ["Bread", "Salt"]
    assert [(name, at == 0, bool(has)) for name, at, has in found] == [
        ("Bread", True, False), ("Salt", False, True)
    ]  # fmt: skip


def test_tags_that_come_later_are_found(tmp_path: Path) -> None:
    """A column that holds no arrays of names at first may hold them in the next listing."""
    path = foreign.json_array(tmp_path / "tagged.db")
    executed(path, "create table kept as select tags from meals", "update meals set tags = null")
    source = RowSource(path)
    before = source.listing().entries
    assert {source.read(entry).tags for entry in before} == {()}
    executed(path, "update meals set tags = (select tags from kept where kept.rowid = meals.id)")
    after = source.listing().entries
    assert [source.read(entry).tags for entry in after] == [("bread", "jam"), ("jam",), ("soup",)]
    assert [source.fingerprint(entry) for entry in before] == [e.fingerprint for e in after]


def test_a_row_that_is_tagged_anew_has_changed(tmp_path: Path) -> None:
    """Tags are kept in other tables, and still a row with another tag is another content."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path)) as conn:
        knowledge.add_observation(conn, PROSE, concepts=["bread"])
        knowledge.add_observation(conn, PROSE, concepts=[])
        knowledge.add_record(conn, "Flour", PROSE, concepts=["bread", "flour"])
        conn.commit()
    source = RowSource(path)
    before = {entry.key: entry for entry in source.listing().entries}
    one, other = before[b'["observations",1]'], before[b'["observations",2]']
    content = source.read(other).content_hash
    assert source.read(before[b'["records",1]']).tags == ("bread", "flour")
    assert (source.read(one).tags, source.read(other).tags) == (("bread",), ())
    executed(path, "insert into observation_concepts select 2, id from concepts")
    after = {entry.key: entry for entry in source.listing().entries}
    assert {key for key in before if after[key] != before[key]} == {other.key}
    assert source.fingerprint(other) == after[other.key].fingerprint
    assert source.read(other).content_hash != content
    assert source.read(other).tags == ("bread", "flour")


def test_links_to_nothing_are_no_tags(tmp_path: Path) -> None:
    """Links to concepts or rows that are gone, and names that are NULL, are passed over."""
    path = foreign.epochs(tmp_path / "tagged.db")
    executed(
        path,
        """insert into tags values (2, null), (3, x'74'), (4, 5);
        insert into meal_tags values (1, 2), (1, 3), (1, 4), (1, 99), (99, 1), (null, null);
        delete from meal_tags where meal_id = 2;""",
    )
    source = RowSource(path, {"meals": ""})
    first, second, third, *_ = source.listing().entries
    assert source.read(first).tags == ("5", "jam", "t")
    assert (source.read(second).tags, source.read(third).tags) == ((), ("jam",))
    assert [source.fingerprint(e) for e in (first, second)] == [
        first.fingerprint,
        second.fingerprint,
    ]


def missing(path: Path) -> None:
    path.unlink()


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def no_database(path: Path) -> None:
    path.write_bytes(b"This is a text and no database. " * 99)


def emptied(path: Path) -> None:
    path.write_bytes(b"")


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:4096])


@pytest.mark.parametrize("damage", [missing, folder, no_database, emptied, cut])
def test_a_database_that_cannot_be_read_is_unreachable(
    posts: Path, damage: Callable[[Path], None]
) -> None:
    """Nothing is taken for removed when the file itself is gone or damaged."""
    source = RowSource(posts)
    entry = source.listing().entries[0]
    damage(posts)
    for ask in (source.listing, partial(source.read, entry), partial(source.fingerprint, entry)):
        with pytest.raises(SourceUnreachable, match=r"posts\.db"):
            ask()


def test_a_database_that_is_locked_is_unreachable(
    posts: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While another program holds the file for itself, nothing is taken for removed."""
    source = RowSource(posts)
    entry = source.listing().entries[0]
    with closing(sqlite3.connect(posts, isolation_level=None)) as writer:
        writer.execute("begin exclusive")
        monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, timeout=0.01))
        with pytest.raises(SourceUnreachable, match="locked"):
            source.listing()
        with pytest.raises(SourceUnreachable, match="locked"):
            source.read(entry)
        writer.execute("rollback")
    assert source.fingerprint(entry) == entry.fingerprint


def test_a_listing_is_one_snapshot(posts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another program commits while rows are listed is in the next listing only."""
    executed(posts, "pragma journal_mode = wal", "create table z (body text)")
    executed(posts, f"insert into z values ('{PROSE}')")
    before = RowSource(posts).listing()
    source = RowSource(posts)
    made = rows._entry

    def interrupted(*arguments: Any) -> Entry:
        executed(posts, f"insert into z values ('{PROSE}')", "delete from post where id = 7")
        return made(*arguments)

    monkeypatch.setattr(rows, "_entry", interrupted)
    assert source.listing() == before
    monkeypatch.undo()
    assert source.listing() != before


@pytest.mark.parametrize("value", ["NULL", "7", "1.5", "''", "'é'", "x'ff'", "cast(x'c3' as text)"])
def test_a_row_is_found_by_the_values_of_its_key_and_no_other(value: str) -> None:
    """Also by NULL, and by a text that is no UTF-8, whose other bytes Python has as surrogates."""
    others = "select 'x' as v union select cast(x'c3c3' as text) union select 8 union select x'c3'"
    with closing(sqlite3.connect(":memory:")) as conn:
        conn.text_factory = lambda stored: stored.decode("utf-8", "surrogateescape")
        conn.execute(
            f"create table t as select 0 as n, v from ({others}) union all select 1, {value}"
        )
        ((key,),) = conn.execute(f"select {value}")
        condition, bound = equals(["v", "n + 1"], [key, 2])
        assert conn.execute(f"select n from t where {condition}", bound).fetchall() == [(1,)]


def test_reading_leaves_the_file_as_it_is(posts: Path) -> None:
    """Neither the database nor the folder around it is written to."""
    before = posts.read_bytes()
    source = RowSource(posts)
    for entry in source.listing().entries:
        source.read(entry)
    assert posts.read_bytes() == before
    assert [path.name for path in posts.parent.iterdir()] == ["posts.db"]


def test_a_key_of_another_table_or_shape_is_not_found(posts: Path) -> None:
    """Keys that were of a table before it was made anew lead to no row."""
    source = RowSource(posts)
    entry = source.listing().entries[0]
    odd = (b'["post"]', b'["post",1,2]', b'["post","1"]', b'["gone",1]', b'["post",{"$hex":"31"}]')
    for key in odd:
        assert source.fingerprint(replace(entry, key=key)) is None
