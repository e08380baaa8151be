"""What other plugins search with: the items that hold, and references that come back from it."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest

import foreign
import knowledge
from datasette_concept_recall.fallbacks import ActiveRecord, SemanticFallback, active_records
from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.layer_search import references
from datasette_concept_recall.layered import Layers
from datasette_concept_recall.mapped import find_mapping
from datasette_concept_recall.models import RecallRequest, RecallResult
from datasette_concept_recall.reading import reading
from datasette_concept_recall.rendering import RENDERINGS, RecordText, embedding_text
from datasette_concept_recall.search import recall
from indexing import FakeClock, add_folder, run, write_note


@pytest.fixture
def kb() -> Iterator[sqlite3.Connection]:
    with closing(knowledge.create()) as conn:
        yield conn


def active(
    conn: sqlite3.Connection, hidden: Iterable[str] = (), **options: object
) -> list[ActiveRecord]:
    """The active records of a database, as far as they are to be seen."""
    with reading(conn) as reader:
        mapping = find_mapping(reader).mapping
    visible = set(mapping.tables) - set(hidden)
    return list(active_records(conn, mapping.visible_to(visible), **options))


def refs(conn: sqlite3.Connection) -> list[str]:
    return [record.ref for record in active(conn)]


class Words:
    """The plainest fallback: what shares most words with a question, kept by `reconcile`."""

    database = "kb"

    def __init__(self) -> None:
        self.texts: dict[str, ActiveRecord] = {}
        self.embedded: list[str] = []

    def search(self, query: str, limit: int) -> Sequence[str]:
        asked = set(query.lower().split())
        shared = {ref: len(asked & set(r.text.lower().split())) for ref, r in self.texts.items()}
        return sorted(shared, key=lambda ref: (-shared[ref], ref))[:limit]

    def reconcile(self, active: Iterable[ActiveRecord]) -> None:
        now = {record.ref: record for record in active}
        for ref, record in now.items():
            if ref not in self.texts or self.texts[ref].text_hash != record.text_hash:
                self.embedded.append(ref)
        self.texts = now


def answered(conn: sqlite3.Connection, found: Iterable[str], text: str) -> RecallResult:
    """A recall that is answered by what a fallback found."""
    request = RecallRequest(text=text, mode="semantic")
    return recall(conn, request, layers=Layers((references(found, Fusion()),)))


# --- the items that hold -------------------------------------------------------------------------


def test_a_record_is_given_as_the_text_that_is_embedded(kb: sqlite3.Connection) -> None:
    """Its title and body come first, then its project, kind, concepts, date and state."""
    knowledge.add_record(
        kb, "Keys", "Rotate them.", project="Vault", concepts=["keys", "age"],
        ingested_at="2026-03-09 10:00:00",
    )  # fmt: skip
    (record,) = active(kb)
    text = embedding_text(
        RecordText(
            "Keys\n\nRotate them.", "Vault", "Record", entities=("age", "keys"),
            qualifier="2026-03-09", temporal_scope="accepted",
        ),
        "full",
    )  # fmt: skip
    assert record == ("record:1", text, hashlib.sha256(text.encode()).digest())


@pytest.mark.parametrize("rendering", RENDERINGS)
def test_the_rendering_decides_what_is_around_the_statement(
    kb: sqlite3.Connection, rendering: str
) -> None:
    """Every rendering begins with the statement, and only some have more."""
    knowledge.add_observation(kb, "Toast is fine.", project="Breakfast", concepts=["toast"])
    (record,) = active(kb, rendering=rendering)
    statement, *more = record.text.split("\n")
    assert statement == "Toast is fine."
    assert bool(more) == (rendering in ("predicate", "frontmatter", "full"))
    assert record.text_hash == hashlib.sha256(record.text.encode()).digest()


def test_only_what_holds_is_given(kb: sqlite3.Connection) -> None:
    """What was superseded, by its state or by another item that is there, rejected, cancelled or
    expired is left out."""
    for status in ("accepted", "proposed", "Superseded", " REJECTED ", "cancelled", "expired", ""):
        knowledge.add_record(kb, "Kettle", status=status)
    new, old = (knowledge.add_record(kb, title) for title in ("New", "Old"))
    knowledge.supersede_record(kb, new, old)
    kept = knowledge.add_record(kb, "Kept")
    knowledge.supersede_record(kb, 99, kept)  # by one that is not there
    knowledge.supersede_record(kb, kept, kept)  # by itself
    knowledge.supersede_record(kb, new, kept, "extends")
    first, second = (knowledge.add_observation(kb, text) for text in ("One.", "Two."))
    knowledge.supersede_observation(kb, second, first)
    assert refs(kb) == [
        f"observation:{second}", *(f"record:{n}" for n in (1, 2, 7, new, kept)),
    ]  # fmt: skip


def test_items_without_a_text_are_left_out(kb: sqlite3.Connection) -> None:
    """What says nothing has nothing to be found by, whatever project and state are known of it."""
    knowledge.add_record(kb, "", "", project="Vault")
    knowledge.add_record(kb, " \n", "\t")
    knowledge.add_observation(kb, "", project="Vault", concepts=["keys"])
    knowledge.add_record(kb, "", "Only a body.")
    knowledge.add_record(kb, "Only a title")
    assert [record.text.split("\n")[0] for record in active(kb)] == ["Only a body.", "Only a title"]


def test_a_summary_that_nobody_reviewed_is_not_given(kb: sqlite3.Connection) -> None:
    """Of documents that is embedded which recall shows: the title, and a summary once reviewed."""
    sections = [
        knowledge.Section("Draft", summary="Not to be seen.", status="drafted"),
        knowledge.Section("Final", summary="To be seen.", status="reviewed"),
    ]
    knowledge.add_document(kb, "Manual", sections=sections)
    found = [record.text.partition("\nKind")[0] for record in active(kb)]
    assert found == ["Manual", "Manual / Draft", "Manual / Final\n\nTo be seen."]


def test_what_may_not_be_seen_is_not_given(kb: sqlite3.Connection) -> None:
    """A hidden table gives no items, and a hidden one of projects no names."""
    knowledge.add_record(kb, "Keys", project="Vault")
    knowledge.add_observation(kb, "Toast.", project="Vault")
    assert [record.ref for record in active(kb, ["records"])] == ["observation:1"]
    assert all("Vault" not in record.text for record in active(kb, ["projects"]))


def test_another_text_has_another_hash(kb: sqlite3.Connection) -> None:
    """A change of the text, of the concepts or of the project is told by the hash, and nothing
    else is."""
    id_ = knowledge.add_record(kb, "Keys", "Rotate them.", project="Vault", concepts=["keys"])
    hashes = [active(kb)[0].text_hash]
    for change in (
        "update records set body = 'Keep them.'",
        "update concepts set name = 'secrets'",
        "update projects set name = 'Safe'",
        "update records set status = 'proposed'",
    ):
        kb.execute(change)
        hashes.append(active(kb)[0].text_hash)
    assert len(set(hashes)) == 5
    kb.execute("update records set path = 'elsewhere.md', checksum = 'x' where id = ?", [id_])
    assert active(kb)[0].text_hash == hashes[-1]


def test_text_that_cannot_be_decoded_is_given_with_marks_in_its_place(
    kb: sqlite3.Connection,
) -> None:
    """Bytes that are no UTF-8 keep no other item from being given."""
    knowledge.add_observation(kb, b"Toast \xff is fine.")
    knowledge.add_observation(kb, "Jam.")
    assert [record.text.split("\n")[0] for record in active(kb)] == [
        "Toast \ufffd is fine.",
        "Jam.",
    ]


@pytest.mark.parametrize("variant", knowledge.VARIANTS)
def test_every_knowledge_database_can_be_read(variant: str) -> None:
    """Older files give what they have."""
    with closing(knowledge.create(variant=variant)) as conn:
        if knowledge.table_exists(conn, "observations"):
            knowledge.add_observation(conn, "Toast is fine.", concepts=["toast"])
            assert refs(conn) == ["observation:1"]
        else:
            assert refs(conn) == []


def test_all_is_given_of_one_snapshot(tmp_path: Path) -> None:
    """What is committed while somebody reads on is not half in it."""
    path = tmp_path / "kb.db"
    with closing(knowledge.create(path, wal=True)) as writer:
        for n in range(3):
            knowledge.add_record(writer, f"Record {n}")
        writer.commit()
        with closing(knowledge.open_read_only(path)) as conn:
            with reading(conn) as reader:
                mapping = find_mapping(reader).mapping
            records = active_records(conn, mapping)
            found = [next(records).ref]
            writer.execute("update records set status = 'rejected'")
            knowledge.add_record(writer, "Another")
            writer.commit()
            found += [record.ref for record in records]
            assert found == ["record:1", "record:2", "record:3"]
            assert [record.ref for record in active_records(conn, mapping)] == ["record:4"]


def test_documents_of_an_index_are_items_as_well(tmp_path: Path) -> None:
    """A fallback may search an index, of whose documents those are given that hold."""
    for name in ("kettle", "samovar"):
        write_note(tmp_path / "notes", f"{name}.md", f"All about a {name}.")
    with closing(Store(tmp_path / "index.db", FakeClock())) as store:
        run(store, add_folder(store, tmp_path / "notes"))
        records = active(store.conn)
        assert [record.text.split("\n")[:3] for record in records] == [
            ["kettle", "", "All about a kettle."],
            ["samovar", "", "All about a samovar."],
        ]
        found = answered(store.conn, [record.ref for record in records], "which samovar?")
        assert [match.title for match in found.matches] == ["samovar"]
        with store.writing() as conn:
            conn.execute("update document set is_active = 0 where title = 'samovar'")
        assert len(active(store.conn)) == 1
        assert answered(store.conn, [records[1].ref], "which samovar?").matches == []


# --- references that come back -------------------------------------------------------------------

KEYS = """
    create table tag (id integer primary key, name text unique);
    create table page (slug text primary key, title text, body text);
    create table page_tag (page_slug text references page(slug), tag_id integer references tag(id));
    insert into tag values (1, 'bread');
    insert into page values ('a:b/c d', 'One', 'Of bread.'), ('12', 'Two', 'More bread.'),
        ('[1]', 'Three', 'Still bread.'), ('é"''', 'Four', 'Bread.'), ('', 'Five', 'Last bread.');
    insert into page_tag select slug, 1 from page;
"""


def test_every_reference_leads_back_to_its_item(kb: sqlite3.Connection) -> None:
    """What is given to a fallback is what its answers are resolved by, one item each."""
    knowledge.add_record(kb, "One word")
    knowledge.add_observation(kb, "Another word.")
    section = knowledge.Section("Part word")
    knowledge.add_document(kb, "Book word", sections=[section, section])
    given = refs(kb)
    assert len(given) == 5
    assert [match.ref for match in answered(kb, given[::-1], "word").matches] == given[::-1]


def test_references_of_keys_that_are_texts_lead_back(tmp_path: Path) -> None:
    """Whatever stands in a key, also what reads like a number or a list."""
    path = foreign.executed(tmp_path / "pages.db", KEYS)
    with closing(sqlite3.connect(path)) as conn:
        given = refs(conn)
        assert len(given) == 5
        found = answered(conn, given, "the bread")
        assert [match.ref for match in found.matches] == given
        assert {match.title for match in found.matches} == {"One", "Two", "Three", "Four", "Five"}


@pytest.mark.parametrize("shape", foreign.FOUND_WITHOUT_CONFIGURATION)
def test_references_of_other_databases_lead_back(tmp_path: Path, shape: str) -> None:
    """As other programs lay their tables out, with keys of one column or several."""
    path = tmp_path / "foreign.db"
    foreign.FOUND_WITHOUT_CONFIGURATION[shape](path)
    with closing(sqlite3.connect(path)) as conn:
        records = active(conn)
        assert records
        for record in records:
            text = record.text.split("\n")[0]
            (match,) = answered(conn, [record.ref], text).matches
            assert match.ref == record.ref


def test_references_keep_the_order_of_relevance(kb: sqlite3.Connection) -> None:
    """The first that a fallback names is the first that is shown, with its rank and no more."""
    for n in range(1, 5):
        knowledge.add_record(kb, f"Kettle {n}")
    found = answered(kb, ["record:3", "record:1", "record:3", "record:4"], "kettle")
    assert [match.ref for match in found.matches] == ["record:3", "record:1", "record:4"]
    assert [hit for match in found.matches for hit in match.layers] == [
        ("semantic", 1, (), None), ("semantic", 2, (), None), ("semantic", 3, (), None),
    ]  # fmt: skip


def test_what_was_superseded_since_is_dropped(kb: sqlite3.Connection) -> None:
    """A store that is behind serves nothing that holds no longer, and no gap shows it."""
    old, new, other, gone = (knowledge.add_record(kb, f"Kettle {n}") for n in range(4))
    store = Words()
    store.reconcile(active(kb))
    knowledge.supersede_record(kb, new, old)
    kb.execute("delete from records where id = ?", [gone])
    found = answered(kb, store.search("kettle", 10), "kettle")
    assert [match.ref for match in found.matches] == [f"record:{new}", f"record:{other}"]
    assert [match.layers[0].rank for match in found.matches] == [1, 2]
    kb.execute("update records set status = 'expired' where id = ?", [other])
    found = answered(kb, store.search("kettle", 10), "kettle")
    assert [match.ref for match in found.matches] == [f"record:{new}"]


def test_what_does_not_have_a_topical_word_is_dropped(kb: sqlite3.Connection) -> None:
    """A nearest neighbour is always there: without a word of the question it is no answer."""
    knowledge.add_record(kb, "Kettles", "They whistle.")
    knowledge.add_record(kb, "Bread", "What does the user know of it?")
    given = ["record:2", "record:1"]
    assert [m.ref for m in answered(kb, given, "What does a kettle do?").matches] == ["record:1"]
    assert answered(kb, given, "What does the user know?").matches == []
    assert answered(kb, given, "Where is the samovar?").matches == []


def test_unreviewed_text_of_a_document_admits_it_without_being_shown(
    kb: sqlite3.Connection,
) -> None:
    """The topical word may stand in what is searched of a section, though its summary is not
    reviewed."""
    section = knowledge.Section("Part", body="On kettles.", summary="Draft.", status="drafted")
    document = knowledge.add_document(kb, "Manual", sections=[section])
    (match,) = answered(kb, [f"document_section:{document.sections[0]}"], "a kettle").matches
    assert match.body == ""


@pytest.mark.parametrize(
    "ref",
    ["", ":", "record", "record:", "record:x", "records:1", "Record:1", " record:1",
     "record:1;", "concept:1", "project:1", "record:1.5", "record:[1,1]", 'record:{"id":1}',
     "record:null", "record:[null]", "record:" + "9" * 5_000, "\x00", "\ud800:1"],
    ids=range(19),
)  # fmt: skip
def test_a_reference_of_nothing_is_dropped(kb: sqlite3.Connection, ref: str) -> None:
    """What a fallback makes up keeps nothing else from being served."""
    knowledge.add_record(kb, "Kettle")
    knowledge.add_record(kb, "Kettle too")
    found = answered(kb, [ref, "record:2"], "kettle")
    assert [match.ref for match in found.matches] == ["record:2"]


# --- the protocol --------------------------------------------------------------------------------


def test_a_store_is_brought_in_line_with_what_holds(kb: sqlite3.Connection) -> None:
    """By reference and hash a fallback tells what is new, changed and gone, and does nothing the
    second time."""
    one, two = knowledge.add_record(kb, "Kettle"), knowledge.add_record(kb, "Bread")
    store: SemanticFallback = Words()
    assert isinstance(store, Words)
    for _ in range(2):
        store.reconcile(active(kb))
    assert store.embedded == [f"record:{one}", f"record:{two}"]
    kb.execute("update records set body = 'It hums.' where id = ?", [one])
    kb.execute("update records set status = 'rejected' where id = ?", [two])
    new = knowledge.add_record(kb, "Samovar")
    store.reconcile(active(kb))
    assert store.embedded[2:] == [f"record:{one}", f"record:{new}"]
    assert set(store.texts) == {f"record:{one}", f"record:{new}"}
    assert [m.ref for m in answered(kb, store.search("it hums.", 5), "what hums").matches] == [
        f"record:{one}"
    ]
