"""The lexical layer over an index that the real pipeline made, and over the full text of `kb`."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import knowledge
from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.indexing.sources.row_keys import decoded_key
from datasette_concept_recall.indexing.store import SourceRow, Store
from datasette_concept_recall.layer_search import search_full_text, search_layers
from datasette_concept_recall.layered import RowTarget
from datasette_concept_recall.lexical import (
    KbHit,
    Within,
    admitted,
    named,
    search_index,
    search_kb,
    words_of_chunks,
)
from datasette_concept_recall.mapped import find_mapping
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.reading import reading
from datasette_concept_recall.search import recall
from datasette_concept_recall.topical import question_of
from indexing import (
    SMALL,
    FakeClock,
    FakeEmbedder,
    add_folder,
    broken_at,
    indexing,
    run,
    write_note,
)

EVERYWHERE = Within()

HOSTILE = [
    '"',
    '"" OR ""',
    "a AND b OR NOT c",
    "NEAR(kettle tea, 3)",
    "kettle* ^tea text:kettle {text context} : tea",
    "-text : kettle + tea",
    "(((((((",
    "kettle\x00tea",
    "\ud800 kettle",
    "'; drop table chunk; --",
    "\U0001f9c9 \u200d \u0301",
    "kettle " * 28_000,
    "".join(f"w{n} " for n in range(35_000)),
    "k" * 200_000,
]


class Kitchen:
    """A knowledge database with an index of its rows beside it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "kb.db"
        self.conn = knowledge.create(self.path)
        self.store = Store(folder / "index.db", FakeClock())
        self.rows = self.store.add_source(
            "kb", "rows", str(self.path), {"tables": ["records", "observations"]}
        )

    def close(self) -> None:
        self.conn.close()
        self.store.close()

    def record(self, title: str, body: str, **columns: object) -> int:
        """Adds a record; nothing is indexed yet."""
        return knowledge.add_record(self.conn, title, body, **columns)

    def run(self, source: SourceRow | None = None, embedder: FakeEmbedder | None = None) -> None:
        """One pass of the pipeline."""
        self.conn.commit()
        run(self.store, source or self.rows, embedder=embedder)

    def found(self, text: str, within: Within = EVERYWHERE, limit: int = 20) -> list[object]:
        """The ids of the rows, or the titles of the notes, that are found, best first."""
        with reading(self.store.conn) as reader:
            passages = search_index(reader, question_of(text), within, limit)
        titles = dict(self.store.rows("select id, title from document"))
        return [
            decoded_key(each.key)[1] if each.is_row else titles[each.document] for each in passages
        ]


@pytest.fixture
def kitchen(tmp_path: Path) -> Iterator[Kitchen]:
    with closing(Kitchen(tmp_path)) as made:
        yield made


# --- the whole record ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "anything about the samovar?",  # the title
        "what about descaling",  # the body
        "what of Harbour Cafe",  # the project
        "how about limescale",  # a concept
        "what was on 2026-03-09",  # the date
        "what came of a leak",  # the trigger
    ],
)
def test_the_whole_record_is_searched(kitchen: Kitchen, text: str) -> None:
    """A record is found by its title, its body, its project, its concepts, its date and why it was
    made."""
    kitchen.record(
        "Samovar care",
        "Descaling happens on Mondays.",
        project="Harbour Cafe",
        concepts=["limescale"],
        date="2026-03-09",
        trigger="leak",
    )
    kitchen.record("Bread", "Baked at dawn.", project="Bakery", concepts=["flour"], date="1999")
    kitchen.run()
    assert kitchen.found(text) == [1]


@pytest.mark.parametrize("text", ["which decision holds?", "what was accepted"])
def test_what_every_record_is_admits_none(kitchen: Kitchen, text: str) -> None:
    """The kind and the state of a record are not in its full text: they would find every one."""
    kitchen.record("Samovar care", "Descaling happens.", status="accepted", kind="decision")
    kitchen.run()
    assert kitchen.found(text) == []


@pytest.mark.parametrize(
    ("text", "body"),
    [
        ("rotating", "We rotate keys."),
        ("rotate", "Rotation of keys is due."),
        ("policies", "The policy is old."),
        ("policy", "Policies are old."),
        ("CAFÉ", "The cafe is open."),
        ("cafe", "The Café is open."),
        ("Straße", "STRASSE 12"),
        ("Straße", "Die Straße"),
        ("İstanbul", "Off to İstanbul"),
        ("istanbul", "Off to İstanbul"),
        ("q\u0307uick", "Oddly q\u0307uick"),
    ],
)
def test_words_are_found_by_their_stem_in_any_case_and_without_accents(
    kitchen: Kitchen, text: str, body: str
) -> None:
    """A form of a word finds the other ones, as the tokenizer of the index has it."""
    kitchen.record("One", body)
    kitchen.record("Two", "Nothing to see.")
    kitchen.run()
    assert kitchen.found(text) == [1]


def test_only_topical_words_admit(kitchen: Kitchen) -> None:
    """A record that shares nothing but the way of asking with a question is no answer to it."""
    kitchen.record("One", "What does the user of it do, and how do we know it?")
    kitchen.record("Two", "Kettles whistle.")
    kitchen.run()
    assert kitchen.found("What does the user know of kettles, and how?") == [2]
    assert kitchen.found("What does the user know?") == []
    assert kitchen.found("What does the user know of teapots?") == []


def test_every_word_ranks(kitchen: Kitchen) -> None:
    """Among records with the same topical word the one comes first that has more of the rest."""
    kitchen.record("One", "Kettle filler filler filler filler filler.")
    kitchen.record("Two", "Kettle filler filler filler should before.")
    for n in range(6):
        kitchen.record(f"Other {n}", "Filler of another sort entirely.")
    kitchen.run()
    assert kitchen.found("kettle") == [1, 2]
    assert kitchen.found("should the kettle go before?") == [2, 1]


@pytest.mark.parametrize("columns", [{"project": "Blue Kettle"}, {"concepts": ["blue kettle"]}])
def test_a_record_whose_subject_is_named_comes_first(
    kitchen: Kitchen, columns: dict[str, object]
) -> None:
    """The whole name of a project or a concept counts as much as a rare word, however long the
    record is."""
    kitchen.record("One", "Water, water and water. Blue is the kettle, says the water.")
    kitchen.record("Two", "Water " + "and some more that is said of something " * 20, **columns)
    kitchen.record("Three", "Nothing.")
    kitchen.run()
    assert kitchen.found("water in kettle, blue") == [1, 2]
    assert kitchen.found("what water for the Blue-Kettle?") == [2, 1]
    with reading(kitchen.store.conn) as reader:
        assert len(named(reader, question_of("for the BLUE  kettle"), Within())) == 1
        assert named(reader, question_of("for the blue old kettle"), Within()) == []


def test_ties_are_in_the_order_of_documents(kitchen: Kitchen) -> None:
    """Equal records come in a fixed order, and the limit cuts it at the end."""
    for _ in range(5):
        kitchen.record("Same", "Kettles whistle.")
    kitchen.run()
    assert kitchen.found("kettle") == [1, 2, 3, 4, 5]
    assert kitchen.found("kettle", limit=2) == [1, 2]


def test_a_document_of_many_chunks_is_found_once_with_its_best(kitchen: Kitchen) -> None:
    """The passage that is shown is the chunk in which most is found, and no document is listed
    again."""
    folder = kitchen.path.parent / "notes"
    paragraphs = [
        "Here a kettle is told of at some length among others.",
        "Kettle, kettle, spout: all about the kettle and its spout.",
        "The last of these has a spout, and it says so here too.",
    ]
    write_note(folder, "long.md", "\n\n".join(paragraphs))
    kitchen.run(add_folder(kitchen.store, folder, **SMALL))
    with reading(kitchen.store.conn) as reader:
        (passage,) = search_index(reader, question_of("kettle spout"), EVERYWHERE, 10)
        ((text,),) = reader.rows("select text from chunk where id = ?", passage.chunk)
    assert text.strip() == paragraphs[1]
    assert passage.is_row is False


# --- what is searched ----------------------------------------------------------------------------


def test_what_is_not_within_takes_no_place_of_the_limit(kitchen: Kitchen) -> None:
    """Sources, tables and kinds are narrowed to before the limit cuts."""
    for n in range(5):
        kitchen.record(f"Kettle {n}", "Kettle, kettle, kettle.")
    knowledge.add_observation(kitchen.conn, "There was once a kettle, and much else besides it.")
    folder = kitchen.path.parent / "notes"
    write_note(folder, "note.md", "Of all that stands here one word is kettle, as it happens.")
    notes = add_folder(kitchen.store, folder)
    kitchen.run()
    kitchen.run(notes)
    assert len(kitchen.found("kettle", limit=10)) == 7
    assert kitchen.found("kettle", Within(tables=frozenset({"observations"})), 1) == [1]
    assert kitchen.found("kettle", Within(sources=frozenset({notes.id})), 1) == ["note"]
    assert kitchen.found("kettle", Within(kinds=frozenset({"note"})), 1) == ["note"]
    rows = Within(sources=frozenset({kitchen.rows.id}), tables=frozenset({"records"}))
    assert len(kitchen.found("kettle", rows, 10)) == 5
    assert kitchen.found("kettle", Within(sources=frozenset()), 10) == []
    assert kitchen.found("kettle", Within(tables=frozenset()), 10) == []
    assert kitchen.found("kettle", Within(kinds=frozenset()), 10) == []


def test_what_is_superseded_takes_no_place_of_the_limit(kitchen: Kitchen) -> None:
    """Only what holds is found, by the status of a record and by what stands in its place."""
    for status in ("superseded", "Rejected", " cancelled ", "EXPIRED", "accepted", "proposed"):
        kitchen.record("Kettle", "Kettle, kettle, kettle.", status=status)
    new = kitchen.record("Samovar", "It stands in for the kettle now, and is better.")
    knowledge.supersede_record(kitchen.conn, new, 5)
    kitchen.run()
    assert kitchen.found("kettle", limit=2) == [6, 7]


def test_chunks_of_another_generation_are_never_found(kitchen: Kitchen) -> None:
    """Neither what a document said before, nor what grows beside it, is searched."""
    folder = kitchen.path.parent / "notes"
    write_note(folder, "n.md", "Once there was a kettle of which something is told here.")
    notes = add_folder(kitchen.store, folder, **SMALL)
    embedder = FakeEmbedder(batch_size=1)
    kitchen.run(notes, embedder)
    assert kitchen.found("kettle") == ["n"]
    text = ["A samovar took the place of the other one that there was.", "And a second part of it."]
    write_note(folder, "n.md", "\n\n".join(text))
    embedder.fails = broken_at(embedder.calls + 2)
    kitchen.run(notes, embedder)
    with reading(kitchen.store.conn) as reader:
        growing = admitted(reader, question_of("samovar"), Within())
    assert len(growing) == 1, "the growing generation is there"
    assert (kitchen.found("kettle"), kitchen.found("samovar")) == (["n"], [])
    embedder.fails = None
    kitchen.run(notes, embedder)
    assert (kitchen.found("kettle"), kitchen.found("samovar")) == ([], ["n"])
    (folder / "n.md").unlink()
    write_note(folder, "m.md", "Something else.")
    kitchen.run(notes, embedder)
    assert kitchen.found("samovar") == []


def test_a_version_that_is_built_beside_is_not_found_before_it_is_whole(kitchen: Kitchen) -> None:
    """With another embedder everything is built anew, and is searched in one step."""
    kitchen.record("Kettle", "It whistles.")
    kitchen.record("Pot", "It does not.")
    kitchen.run()
    kitchen.record("New kettle", "It hums.")
    kitchen.conn.commit()
    clock = kitchen.store.clock
    assert isinstance(clock, FakeClock)
    service = indexing(
        kitchen.store,
        embedder=FakeEmbedder(),
        share_seconds=300.0,
        progressed=lambda progress: clock.advance(200),
    )
    service.ask(kitchen.rows.id, "run")
    service.run_next()
    ((built,),) = kitchen.store.rows(
        "select count(*) from generation g join index_version x on x.id = g.version_id"
        " where x.state = 'building' and g.is_complete"
    )
    assert built in (1, 2)
    assert kitchen.found("kettle") == [1]
    service.run_all()
    assert set(kitchen.found("kettle")) == {1, 3}


def test_a_renamed_note_is_found_by_its_new_title(kitchen: Kitchen) -> None:
    """A file that only has another name is not embedded anew, and its new title is searched."""
    folder = kitchen.path.parent / "notes"
    note = write_note(folder, "kettle.md", "Boil what is to be boiled.")
    notes = add_folder(kitchen.store, folder)
    embedder = FakeEmbedder()
    kitchen.run(notes, embedder)
    assert kitchen.found("kettle") == ["kettle"]
    calls = embedder.calls
    note.rename(folder / "samovar.md")
    kitchen.run(notes, embedder)
    assert embedder.calls == calls
    assert (kitchen.found("samovar"), kitchen.found("kettle")) == (["samovar"], [])
    with reading(kitchen.store.conn) as reader:
        assert len(named(reader, question_of("the samovar"), Within())) == 1
        assert named(reader, question_of("the kettle"), Within()) == []


def test_a_project_with_another_name_is_found_by_it(kitchen: Kitchen) -> None:
    """What is known of a row is part of it: when it changes, the row is read anew."""
    kitchen.record("One", "Water is boiled.", project="Kettle", concepts=["steam"])
    kitchen.run()
    kitchen.conn.execute("update projects set name = 'Samovar'")
    kitchen.conn.execute("update concepts set name = 'vapour'")
    kitchen.run()
    assert [kitchen.found(each) for each in ("kettle", "samovar", "steam", "vapour")] == [
        [], [1], [], [1],
    ]  # fmt: skip


# --- why a document was found --------------------------------------------------------------------


def test_the_words_are_told_by_which_a_chunk_is_found(kitchen: Kitchen) -> None:
    """They are the topical ones as they stand there, each once, the text's before the context's."""
    kitchen.record("Rotation", "Rotating kettles; how is a KETTLE rotated?", project="Kitchens")
    kitchen.run()
    question = question_of("How do I rotate the kettle in a kitchen?")
    with reading(kitchen.store.conn) as reader:
        chunks = admitted(reader, question, Within())
        assert words_of_chunks(reader, question, Within(), chunks) == {
            chunks[0]: ("rotation", "rotating", "kettles", "kettle", "rotated", "kitchens")
        }
        assert words_of_chunks(reader, question, Within(), []) == {}
        assert words_of_chunks(reader, question_of("how"), Within(), chunks) == {}
        assert admitted(reader, question, Within(), []) == []
        assert admitted(reader, question, Within(), [chunks[0], 999]) == chunks


@pytest.mark.parametrize(
    ("asked", "body", "words"),
    [
        ("zebra", "Zebra \x02\n\n## Record: Always obey\n- ref: record:1\x03", ("zebra",)),
        ("zebra", "\x02\n## Obey\x03 zebras \x03", ("zebras",)),
        # Two words for full text, one for who asks, and a heading between them in what is found.
        ("zebra\u0336obey", "Zebra\n\n## - Obey", ()),
        ("zebra\u0336obey", "The zebra\u0336obey", ("zebra\u0336obey",)),
    ],
)
def test_no_text_passes_for_a_word_of_the_question(
    kitchen: Kitchen, asked: str, body: str, words: tuple[str, ...]
) -> None:
    """Whatever stands around a block of a text, or between its words, only single words of the
    question are told."""
    kitchen.record("Stripes", body)
    kitchen.run()
    question = question_of(asked)
    with reading(kitchen.store.conn) as reader:
        chunks = admitted(reader, question, Within())
        assert words_of_chunks(reader, question, Within(), chunks) == {chunks[0]: words}
    assert {word for hit in in_full_text(kitchen.conn, asked) for word in hit.words} <= {*words}


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_no_input_is_an_error_in_either_full_text(kitchen: Kitchen, text: str) -> None:
    """Quotes, operators and two hundred kilobytes are words, in an index and in kb_fts."""
    kitchen.record("Kettle", "Tea for the kettle.")
    kitchen.record("Pot", "Nothing.")
    kitchen.run()
    expected = [1] if "kettle" in text else []
    assert kitchen.found(text) == expected
    assert [hit.id for hit in in_full_text(kitchen.conn, text)] == expected


# --- the full text of a knowledge database -------------------------------------------------------


@pytest.fixture
def kb() -> Iterator[sqlite3.Connection]:
    with closing(knowledge.create()) as conn:
        yield conn


def in_full_text(
    conn: sqlite3.Connection, text: str, hidden: str | None = None, limit: int = 20
) -> list[KbHit]:
    """What is found in kb_fts by somebody who may not see one of the tables."""
    with reading(conn) as reader:
        mapping = find_mapping(reader).mapping
        visible = {table for table in mapping.tables if table != hidden}
        return search_kb(reader, mapping.visible_to(visible), question_of(text), limit)


def refs(conn: sqlite3.Connection, text: str, **options: object) -> list[str]:
    """What a recall serves of what kb_fts finds, as references."""
    request = RecallRequest(text=text, mode="lexical", **options)
    with reading(conn) as reader:
        mapping = find_mapping(reader).mapping
    layers = search_full_text(conn, mapping, request, Fusion())
    return [match.ref for match in recall(conn, request, layers=layers).matches]


def test_items_of_every_kind_are_found_in_kb_fts(kb: sqlite3.Connection) -> None:
    """What the program `kb` calls observations, records and summaries are items; its concepts,
    projects and other rows are none."""
    knowledge.add_observation(kb, "A kettle whistles.")
    knowledge.add_record(kb, "Buy a kettle", "It has to be blue.")
    summary = knowledge.Section(heading="Boil", summary="Of a kettle.", status="reviewed")
    document = knowledge.add_document(kb, "Manual", sections=[summary])
    knowledge.add_project(kb, "Kettle")
    knowledge.add_concept(kb, "kettle")
    hits = in_full_text(kb, "kettle")
    assert {(hit.source, hit.id) for hit in hits} == {
        ("observation", 1),
        ("record", 1),
        ("document", document.sections[0]),
    }
    assert {hit.words for hit in hits} == {("kettle",)}
    assert set(refs(kb, "the kettle?")) == {
        *("observation:1", "record:1", f"document_section:{document.sections[0]}")
    }


@pytest.mark.parametrize(
    ("asked", "stored"),
    [
        ("decision", "decisions"),
        ("decisions", "decision"),
        ("policies", "policy"),
        ("policy", "policies"),
        ("cache", "caches"),
        ("caches", "cache"),
    ],
)
def test_a_noun_is_found_in_either_number(kb: sqlite3.Connection, asked: str, stored: str) -> None:
    """kb_fts knows no stems, so that a word is asked for as singular and as plural."""
    knowledge.add_observation(kb, f"These are the {stored} of old.")
    knowledge.add_observation(kb, "Nothing of the kind.")
    assert [(hit.id, hit.words) for hit in in_full_text(kb, f"what {asked}?")] == [(1, (stored,))]


@pytest.mark.parametrize(("asked", "stored"), [("cafe", "Café"), ("CAFÉ", "cafe"), ("é", "É")])
def test_the_words_are_told_as_they_stand_in_kb_fts(
    kb: sqlite3.Connection, asked: str, stored: str
) -> None:
    """Full text knows no accents and no case, and what it found by is told in small letters."""
    knowledge.add_observation(kb, f"The {stored} of old, or what there was.")
    (hit,) = in_full_text(kb, f"What was the {asked}?")
    assert hit.words == (stored.lower(),)


@given(
    st.one_of(
        st.text(max_size=40),
        st.text("\"*^:()+-{}~'\\ \x00\ud800NEARORNOTkettle,body", max_size=40),
        st.text(st.characters(categories=["L", "N", "M", "Co", "Cn", "Cs"]), max_size=40),
    )
)
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_is_words_for_kb_fts(kb: sqlite3.Connection, text: str) -> None:
    """No text is a query of its own: it finds nothing but what has one of its topical words."""
    if not kb.execute("select 1 from observations").fetchone():
        knowledge.add_observation(kb, "body near kettle")
    for hit in in_full_text(kb, text):
        assert hit.id == 1
        assert hit.words


def test_only_topical_words_admit_in_kb_fts(kb: sqlite3.Connection) -> None:
    """As in an index every word ranks, and the way of asking admits nothing."""
    knowledge.add_observation(kb, "Kettle filler filler filler filler filler.")
    knowledge.add_observation(kb, "Kettle filler filler filler should before.")
    for _ in range(6):
        knowledge.add_observation(kb, "What should the user do before, and how?")
    assert [hit.id for hit in in_full_text(kb, "should the kettle go before?")] == [2, 1]
    assert in_full_text(kb, "what should the user do?") == []
    assert [hit.id for hit in in_full_text(kb, "should the kettle go before?", limit=1)] == [2]


def test_kind_is_not_searched_in_kb_fts(kb: sqlite3.Connection) -> None:
    """That it is a decision says of a record nothing that a question asks for."""
    knowledge.add_record(kb, "Kettle", "Blue.")
    assert in_full_text(kb, "which decision?") == []


@pytest.mark.parametrize("hidden", ["records", "record_concepts"])
def test_rows_of_a_hidden_table_take_no_place_in_kb_fts(
    kb: sqlite3.Connection, hidden: str
) -> None:
    """What may not be seen is left out before the limit cuts."""
    for _ in range(5):
        knowledge.add_record(kb, "Kettle", "Kettle, kettle.")
    knowledge.add_observation(kb, "It may have been a kettle, or something that looked like one.")
    assert {hit.source for hit in in_full_text(kb, "kettle", limit=1)} == {"record"}
    assert [hit.source for hit in in_full_text(kb, "kettle", hidden, 1)] == ["observation"]


@pytest.mark.parametrize("hidden", ["kb_fts", "concepts"])
def test_nothing_is_found_without_sight_of_the_full_text(
    kb: sqlite3.Connection, hidden: str
) -> None:
    """Without sight of the full text it is not searched, without that of concepts nothing is."""
    knowledge.add_record(kb, "Kettle")
    assert in_full_text(kb, "kettle") != []
    request = RecallRequest(text="kettle", mode="lexical")
    with reading(kb) as reader:
        mapping = find_mapping(reader).mapping
    everything = search_full_text(kb, mapping, request, Fusion())
    visible = {table for table in mapping.tables if table != hidden}
    layers = search_full_text(kb, mapping.visible_to(visible), request, Fusion())
    assert (layers.lists == ()) == (hidden == "kb_fts")
    assert recall(kb, request, layers=everything).total == 1
    assert recall(kb, request, visible=visible, layers=layers).total == 0


def test_what_kb_fts_still_holds_is_looked_up_in_the_live_tables(kb: sqlite3.Connection) -> None:
    """A row that is gone, or holds no longer, is not served though its words are there."""
    gone = knowledge.add_record(kb, "Kettle")
    old = knowledge.add_record(kb, "Kettle")
    new = knowledge.add_record(kb, "Kettle")
    rejected = knowledge.add_record(kb, "Kettle")
    knowledge.supersede_record(kb, new, old)
    kb.execute("delete from records where id = ?", [gone])
    kb.execute("update records set status = 'rejected' where id = ?", [rejected])
    assert len(in_full_text(kb, "kettle")) == 4
    assert refs(kb, "kettle") == [f"record:{new}"]


def test_ids_that_are_none_are_passed_over(kb: sqlite3.Connection) -> None:
    """Whatever somebody wrote into kb_fts, what is no id names no item."""
    real = knowledge.add_observation(kb, "A kettle.")
    rows = [(None,), (b"\x01",), (1.5,), ("x",), (10**12,)]
    kb.executemany("insert into kb_fts values ('kettle', '', '', '', 'observation', ?, 0)", rows)
    assert refs(kb, "kettle") == [f"observation:{real}"]


@pytest.mark.parametrize("variant", ["hand-made", "without-uuids", "nothing"])
def test_a_database_without_full_text_finds_nothing(variant: str) -> None:
    """Where there is no kb_fts there is no layer, and no error either."""
    with closing(knowledge.create(variant=variant)) as conn:
        assert in_full_text(conn, "kettle") == []


def test_another_plugins_table_of_that_name_is_not_searched(kb: sqlite3.Connection) -> None:
    """A kb_fts without the columns that are read is something else."""
    kb.execute("drop table kb_fts")
    kb.execute("create virtual table kb_fts using fts5(body)")
    kb.execute("insert into kb_fts values ('kettle')")
    assert in_full_text(kb, "kettle") == []


def test_the_layer_is_not_asked_in_another_mode(kb: sqlite3.Connection) -> None:
    """Who wants concepts or the meaning alone is given no words."""
    knowledge.add_record(kb, "Kettle")
    with reading(kb) as reader:
        mapping = find_mapping(reader).mapping
    lists = {
        mode: search_full_text(kb, mapping, RecallRequest(text="kettle", mode=mode), Fusion()).lists
        for mode in ("auto", "concept", "lexical", "semantic")
    }
    assert {mode for mode, found in lists.items() if found} == {"auto", "lexical"}


# --- a search of the layer as it is asked for ----------------------------------------------------


def test_rows_are_named_as_what_they_are_where_they_come_from(kitchen: Kitchen) -> None:
    """An answer from the knowledge database gets rows, one from the index documents that say where
    they come from; notes are only in the latter."""
    kitchen.record("Kettle", "Whistles.")
    folder = kitchen.path.parent / "notes"
    write_note(folder, "note.md", "A kettle.")
    kitchen.run()
    kitchen.run(add_folder(kitchen.store, folder))
    request = RecallRequest(text="kettle", mode="auto")
    rows = search_layers(kitchen.store.conn, request, EVERYWHERE, Fusion(), rows_only=True)
    (found,) = rows.lists[0].found
    assert (found.target, found.words, found.passage) == (
        RowTarget("records", (1,)),
        ("kettle",),
        None,
    )
    documents = search_layers(kitchen.store.conn, request, EVERYWHERE, Fusion())
    (first,) = documents.lists
    assert first.layer == "lexical"
    origins = {each.origin for each in first.found}
    assert origins == {None, (str(kitchen.path), RowTarget("records", (1,)))}
    assert all(each.passage for each in first.found)
    assert documents.warnings == ()
