"""What an evaluation measures, what it reads, and that it changes nothing of what it is given."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from conftest import SHARED_DATA
from datasette_concept_recall.errors import RecallError
from datasette_concept_recall.evaluating import Configuration, Evaluation, Measured, evaluate
from datasette_concept_recall.evaluation_data import (
    JudgedQuestion,
    Questions,
    Records,
    UnusableData,
    drafted,
    read_questions,
    read_records,
)
from datasette_concept_recall.indexing.sources.records import RecordIndexer, RecordSource
from datasette_concept_recall.indexing.store import SourceRow, Store
from datasette_concept_recall.rendering import RENDERINGS, RecordText
from foreign import executed
from indexing import (
    SMALL,
    FakeClock,
    FakeEmbedder,
    add_folder,
    down,
    indexing,
    live_texts,
    paragraphs,
    write_note,
)
from indexing import run as index
from test_cli import bad, good
from test_cli import run as invoke

NOW = datetime(2026, 11, 30, tzinfo=timezone.utc)

STATEMENTS = {
    "kettle": "The kettle is blue.",
    "red": "The bicycle is red and old.",
    "cellar": "The bicycle stands in the cellar.",
    "roses": "The garden has roses.",
}
RECORDS = Records(
    {ref: RecordText(text) for ref, text in STATEMENTS.items()}, frozenset(STATEMENTS)
)
QUESTIONS = Questions(
    (
        JudgedQuestion("where is the kettle", "kettle", "plain"),
        JudgedQuestion("my red bicycle", "cellar", "hard"),
        JudgedQuestion("what grows in the garden", "roses", "plain"),
        JudgedQuestion("who plays the trumpet", "kettle", "hard"),
        JudgedQuestion("the blood pressure", None),
        JudgedQuestion("the roses of last year", None),
    )
)


class Downwards(FakeEmbedder):
    """An embedder to which every question is about the cellar."""

    def embed_documents(self, texts: Sequence[str]) -> Any:
        super().embed_documents(texts)
        return [[1.0, 1.0 if "cellar" in text else 0.0] for text in texts]

    def embed_query(self, text: str) -> Any:
        return [[0.1, 1.0]]


def measured(found: Evaluation, layer: str) -> Measured:
    (each,) = (each for each in found.measured if each.configuration.layer == layer)
    return each


def test_the_words_are_measured_as_counted_by_hand() -> None:
    """Ranks 1, 2, 1 and none give two first places, three among five and a mean of 2.5 / 4."""
    found = evaluate(RECORDS, QUESTIONS)
    (words,) = found.measured
    assert words.configuration == Configuration("lexical")
    assert (words.scores.top1, words.scores.top5, words.scores.mrr) == (2, 3, 0.625)
    assert (found.records, found.answerable, found.unanswerable) == (4, 4, 2)
    assert words.gain is None


def test_vectors_and_both_together_are_measured_against_the_words() -> None:
    """The vectors put the one target first that the words have second, and a tie is for words."""
    found = evaluate(RECORDS, QUESTIONS, [Downwards()], ["statement"])
    near, both = measured(found, "semantic"), measured(found, "fused")
    assert (near.scores.top1, near.scores.top5, near.scores.mrr) == (3, 3, 0.75)
    assert (both.scores.top1, both.scores.top5, both.scores.mrr) == (2, 3, 0.625)
    assert near.gain
    assert both.gain
    assert (near.gain.mrr.mean, near.gain.top1.mean) == (0.125, 0.25)
    assert near.gain.mrr.low <= 0 <= 0.125 <= near.gain.mrr.high
    assert both.gain.mrr == replace(both.gain.mrr, mean=0, low=0, high=0)


def test_empty_answers_are_counted_by_whether_they_are_right() -> None:
    """One answerable question finds nothing; of two without an answer one is left empty."""
    for each in evaluate(RECORDS, QUESTIONS, [Downwards()], ["full"]).measured:
        assert (each.empty, each.refused) == (1, 1)


def test_tiers_are_measured_apart() -> None:
    """The questions of a tier have scores of their own; those without an answer are in none."""
    (words,) = evaluate(RECORDS, QUESTIONS).measured
    assert {tier: (s.questions, s.top1, s.mrr) for tier, s in words.tiers.items()} == {
        "hard": (2, 0, 0.25),
        "plain": (2, 2, 1.0),
    }
    untiered = Questions(tuple(replace(each, tier="") for each in QUESTIONS.judged))
    assert evaluate(RECORDS, untiered).measured[0].tiers == {}


def test_every_rendering_is_embedded_as_it_is_named() -> None:
    """For each the embedder is given the statement with just what this rendering adds."""
    record = RecordText("It is hot.", subject="Kettle", tags=("kitchen",))
    embedder = FakeEmbedder()
    found = evaluate(
        Records({"1": record}, frozenset("1")),
        Questions((JudgedQuestion("hot", "1"),)),
        [embedder],
        RENDERINGS,
    )
    assert embedder.log == [
        "It is hot.",
        "It is hot.",
        "It is hot.\nAbout: Kettle",
        "It is hot.\nTags: kitchen",
        "It is hot.\nAbout: Kettle\nTags: kitchen",
    ]
    configurations = [each.configuration for each in found.measured]
    assert configurations[1:] == [
        Configuration(layer, "fake:fake", rendering)
        for rendering in RENDERINGS
        for layer in ("semantic", "fused")
    ]


def test_what_holds_no_longer_is_no_candidate() -> None:
    """A record that does not hold is found by no layer, though it is the best match."""
    held = Records(RECORDS.texts, RECORDS.active - {"red"})
    found = evaluate(held, QUESTIONS, [Downwards()], ["statement"])
    assert [each.scores.top1 for each in found.measured] == [3, 3, 3]
    assert found.records == 3


def test_the_cost_of_vectors_is_told_for_each_record() -> None:
    """Two numbers of four bytes are stored of each record, and something is held in memory."""
    words, *others = evaluate(RECORDS, QUESTIONS, [Downwards()], ["statement"]).measured
    assert (words.cost.embed, words.cost.stored, words.cost.in_memory) == (None, None, None)
    for each in others:
        assert each.cost.stored == 8.0
        assert (each.cost.in_memory or 0) > 0
        assert each.cost.embed is not None


def test_every_configuration_embeds_the_questions_itself() -> None:
    """No configuration is told to be cheap since the one before it had embedded the question."""
    asked: list[str] = []

    class Listening(Downwards):
        def embed_query(self, text: str) -> Any:
            asked.append(text)
            return super().embed_query(text)

    evaluate(RECORDS, QUESTIONS, [Listening()], ["full"])
    assert asked == [question.text for question in QUESTIONS.judged] * 2


def test_an_embedder_that_fails_is_an_error_and_nothing_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without vectors there is nothing to measure; the folder of the indexes is gone either way."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    evaluate(RECORDS, QUESTIONS, [Downwards()], ["statement"])
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(RecallError, match="fake:fake, full: "):
        evaluate(RECORDS, QUESTIONS, [FakeEmbedder(fails=down)], ["full"])
    assert list(tmp_path.iterdir()) == []


def test_questions_that_an_embedder_fails_on_are_told_of() -> None:
    """What was answered without vectors is counted in a warning, so the figures are not misread."""

    class Speechless(Downwards):
        def embed_query(self, text: str) -> Any:
            return [[0.0, 0.0]]

    warnings = evaluate(RECORDS, QUESTIONS, [Speechless()], ["full"]).warnings
    assert [warning.partition(":")[0] for warning in warnings] == [
        "semantic, fake",
        "fused, fake",
    ]
    assert all("without the semantic layer" in each for each in warnings)
    assert all(each.endswith("(6 of 6 questions)") for each in warnings)


# --- files of records and questions --------------------------------------------------------------


def lines(path: Path, *values: object) -> Path:
    """A file of one JSON value a line; texts are written as they are."""
    written = (each if isinstance(each, str) else json.dumps(each) for each in values)
    path.write_text("".join(f"{line}\n" for line in written), "utf-8")
    return path


MEMORY = {
    "id": "mem_1",
    "kind": "Preference",
    "predicate": "favourite_drink",
    "status": "Active",
    "subject": {"id": "anna", "display": "Anna", "aliases": ["my sister"]},
    "statement": "Anna drinks tea.",
    "entities": ["anna", "my sister"],
    "tags": ["drink"],
    "aliases": ["her usual"],
    "location": "the office",
    "qualifier": "mornings",
    "temporal_scope": "Persistent",
    "superseded_by": None,
    "expires_at": None,
}


def test_both_shapes_of_records_are_read(tmp_path: Path) -> None:
    """The subject may be an object, whose aliases are entities, or a text; an id may be missing."""
    plain = {"statement": "Tea is hot.", "subject": "Tea", "entities": ["cup"]}
    found = read_records(lines(tmp_path / "r.jsonl", MEMORY, "", plain), NOW)
    assert found.active == {"mem_1", "3"}
    anna = found.texts["mem_1"]
    assert (anna.subject, anna.statement) == ("Anna", "Anna drinks tea.")
    assert set(anna.entities) == {"anna", "my sister"}
    assert (anna.kind, anna.predicate) == ("Preference", "favourite_drink")
    assert (anna.tags, anna.aliases) == (("drink",), ("her usual",))
    assert (anna.location, anna.qualifier) == ("the office", "mornings")
    assert anna.temporal_scope == "Persistent"
    assert found.texts["3"] == RecordText("Tea is hot.", "Tea", entities=("cup",))


@pytest.mark.parametrize(
    "difference",
    [
        {"status": "Superseded"},
        {"status": "Rejected"},
        {"superseded_by": "mem_2"},
        {"expires_at": "2026-11-29T12:00:00Z"},
        {"valid_to": "2026-11-30T00:00:00Z"},
    ],
)
def test_only_what_holds_is_a_candidate(tmp_path: Path, difference: dict[str, str]) -> None:
    """What was superseded, rejected or is over is read, but holds no longer."""
    records = lines(tmp_path / "r.jsonl", {**MEMORY, **difference}, {**MEMORY, "id": "b"})
    assert read_records(records, NOW).active == {"b"}
    with pytest.raises(UnusableData, match=r"line 1: mem_1 is no record that holds$"):
        read_questions(
            [lines(tmp_path / "q.jsonl", {"query": "tea", "target": "mem_1"})],
            read_records(records, NOW),
        )


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "this is no JSON: "),
        ("[" * 100_000, "this is no JSON: "),
        ("[1]", "this is no JSON object"),
        ({"id": "a"}, "there is no statement"),
        ({"statement": " "}, "there is no statement"),
        ({"statement": ["x"]}, "statement is no text"),
        ({"statement": "x", "tags": "x"}, "tags is no list of texts"),
        ({"statement": "x", "entities": [1]}, "entities is no list of texts"),
        ({"statement": "x", "subject": {"display": []}}, "display is no text"),
        ({"statement": "x", "expires_at": "soon"}, "expires_at is no time"),
        ({"statement": "x", "id": "mem_1"}, "there is a record mem_1 already"),
    ],
)
def test_a_broken_record_is_told_by_its_line(tmp_path: Path, line: object, problem: str) -> None:
    """The message names the file, the number of the line and what is wrong with it."""
    path = lines(tmp_path / "r.jsonl", MEMORY, line)
    with pytest.raises(UnusableData) as caught:
        read_records(path, NOW)
    assert str(caught.value).startswith(f"{path}, line 2: {problem}")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "this is no JSON: "),
        ({"query": 0.5, "target": "kettle"}, "query is no text"),
        ({"query": "x", "target": ["kettle"]}, "target is no text"),
        ({"query": "x", "target": "kettle", "tier": {}}, "tier is no text"),
        ({"query": "x", "target": "tub"}, "tub is no record that holds"),
    ],
)
def test_a_broken_question_is_told_by_its_line(tmp_path: Path, line: object, problem: str) -> None:
    """The message names the file, the number of the line and what is wrong with it."""
    path = lines(tmp_path / "q.jsonl", {"query": "x", "target": "red"}, line)
    with pytest.raises(UnusableData) as caught:
        read_questions([path], RECORDS)
    assert str(caught.value).startswith(f"{path}, line 2: {problem}")


def test_unknown_targets_are_counted_and_the_first_is_named(tmp_path: Path) -> None:
    """Whoever took the wrong file sees at once how many of its targets are unknown."""
    path = lines(
        tmp_path / "q.jsonl",
        {"query": "x", "target": "red"},
        {"query": "y", "target": "tub"},
        {"query": "z", "target": "sink"},
    )
    with pytest.raises(UnusableData, match=r"line 2: tub is no .*, the first of 2 such targets"):
        read_questions([path], RECORDS)


def test_files_of_questions_are_read_one_after_the_other(tmp_path: Path) -> None:
    """Without a target, or where none is expected, nothing answers; blank queries are counted."""
    first = lines(tmp_path / "a.jsonl", {"query": "x", "target": "red", "tier": "plain"})
    second = lines(
        tmp_path / "b.jsonl",
        {"query": "y"},
        {"query": "z", "target": "gone", "expect_status": "not_found"},
        {"query": " ", "target": "red", "statement": "The bicycle is red."},
    )
    assert read_questions([first, second], RECORDS) == Questions(
        (
            JudgedQuestion("x", "red", "plain"),
            JudgedQuestion("y", None),
            JudgedQuestion("z", None),
        ),
        blank=1,
    )


def test_empty_files_are_errors(tmp_path: Path) -> None:
    """No records, no questions and a draft that nobody filled in are each told apart."""
    empty = lines(tmp_path / "empty.jsonl")
    draft = lines(tmp_path / "draft.jsonl", {"query": "", "target": "red"})
    with pytest.raises(UnusableData, match="has no record that holds"):
        read_records(empty, NOW)
    with pytest.raises(UnusableData, match=r"There are no questions in .*\.jsonl$"):
        read_questions([empty], RECORDS)
    with pytest.raises(
        UnusableData, match=r"There are no questions in .*: the query is empty on all of 1 lines"
    ):
        read_questions([draft], RECORDS)


def test_halves_of_surrogate_pairs_do_no_harm(tmp_path: Path) -> None:
    """What no database stores is replaced, in names as in texts."""
    path = lines(tmp_path / "r.jsonl", '{"id": "\\ud800", "statement": "tea \\udc00", "tags": []}')
    questions = lines(tmp_path / "q.jsonl", '{"query": "tea \\ud800", "target": "\\ud800"}')
    records = read_records(path, NOW)
    found = evaluate(records, read_questions([questions], records), [Downwards()])
    assert [each.scores.top1 for each in found.measured] == [1, 1, 1]


# --- databases -----------------------------------------------------------------------------------

POSTS = """
    create table posts (id integer primary key, title text, body text);
    insert into posts values
        (1, 'Bread', 'Bread is baked from flour and water.'),
        (7, 'Jam', 'Jam is cooked from fruit and much sugar.');
"""


@pytest.fixture
def posts(tmp_path: Path) -> Path:
    return executed(tmp_path / "posts.db", POSTS)


@pytest.fixture
def index_file(tmp_path: Path, posts: Path) -> Path:
    """An index of the rows of posts, and of a note of several chunks."""
    path = tmp_path / "index.db"
    write_note(tmp_path / "notes", "tour.txt", paragraphs(["Oslo", "Bergen", "Tromsø"]))
    with closing(Store(path, FakeClock())) as store:
        index(store, store.add_source("posts", "rows", str(posts)), embedder=FakeEmbedder())
        index(store, add_folder(store, tmp_path / "notes", **SMALL), embedder=FakeEmbedder())
    return path


def contents(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_the_documents_of_an_index_are_measured_as_wholes(index_file: Path) -> None:
    """A note of three chunks is one record, with its whole text and what is known of it."""
    found = read_records(index_file, NOW)
    (note,) = (found.texts[ref] for ref in found.named("tour.txt"))
    assert note.statement == paragraphs(["Oslo", "Bergen", "Tromsø"]).replace("\n\n", "\n")
    assert note.subject == "tour"
    assert len(found.active) == 3


def test_an_index_stays_as_it_is(index_file: Path, tmp_path: Path) -> None:
    """It is evaluated without a byte of it changed."""
    questions = lines(
        tmp_path / "q.jsonl",
        {"query": "what is bread made of", "target": "post:1"},
        {"query": "sugar", "target": "posts/7"},
        {"query": "Bergen", "target": "tour.txt"},
    )
    before = contents(index_file)
    records = read_records(index_file, NOW)
    found = evaluate(records, read_questions([questions], records), [Downwards()], ["full"])
    assert [each.scores.top1 for each in found.measured] == [3, 3, 3]
    assert contents(index_file) == before


def test_a_row_has_the_name_that_its_database_gives_it(index_file: Path, posts: Path) -> None:
    """By that, by the name of the document and by its path the same record is meant, and the rows
    of a database without an index are called the same."""
    indexed, direct = read_records(index_file, NOW), read_records(posts, NOW)
    (id_,) = (ref for ref in indexed.texts if ref == "post:7")
    assert indexed.named("posts/7") == indexed.named("row:2") == indexed.named(id_) == {"post:7"}
    assert direct.named("posts/7") == direct.named("post:7") == {"post:7"}
    assert direct.texts["post:7"].statement == indexed.texts["post:7"].statement


def test_a_name_of_several_records_has_to_be_another(tmp_path: Path, posts: Path) -> None:
    """Two databases may have a row of the same name: then a question has to say which."""
    path = tmp_path / "both.db"
    other = executed(tmp_path / "other.db", POSTS)
    with closing(Store(path)) as store:
        for each in (posts, other):
            index(store, store.add_source(each.stem, "rows", str(each)))
    records = read_records(path, NOW)
    assert sorted(records.active) == ["row:1", "row:2", "row:3", "row:4"]
    asked = lines(tmp_path / "q.jsonl", {"query": "jam", "target": "post:7"})
    with pytest.raises(UnusableData, match="line 1: post:7 names 2 records: row:2, row:4"):
        read_questions([asked], records)


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    records = [{"id": ref, "statement": text} for ref, text in STATEMENTS.items()]
    questions = [
        {"query": q.text, "target": q.target, "tier": q.tier or None} for q in QUESTIONS.judged
    ]
    return lines(tmp_path / "r.jsonl", *records), lines(tmp_path / "q.jsonl", *questions)


def test_a_draft_is_filled_in_and_evaluated(tmp_path: Path, index_file: Path) -> None:
    """What --sample prints is a file of questions once somebody has written some queries."""
    drawn = [json.loads(line) for line in good("evaluate", index_file, "--sample", 9).splitlines()]
    assert {line["target"] for line in drawn} == {"post:1", "post:7", "note:3"}
    assert all(line["query"] == "" for line in drawn)
    assert {line["statement"][:12] for line in drawn} == {
        "Bread Bread ",
        "Jam Jam is c",
        "Oslo is told",
    }
    assert all(len(line["statement"]) <= 200 for line in drawn)
    drawn[0]["query"] = drawn[0]["statement"]
    draft = lines(tmp_path / "draft.jsonl", *drawn)
    found = json.loads(good("evaluate", index_file, draft, "--embedder", "", "--json"))
    assert (found["answerable"], found["blank"]) == (1, 2)
    assert found["results"][0]["top1"] == 1
    assert "2 lines without a query" in good("evaluate", index_file, draft, "--embedder", "none")


def test_a_sample_is_the_same_with_the_same_seed() -> None:
    """Another seed draws other records, and none that holds no longer is drawn."""
    many = {str(n): RecordText(f"Number {n}.") for n in range(100)}
    records = Records(many, frozenset(list(many)[:50]))

    def drawn(seed: int) -> list[str]:
        return [line["target"] for line in drafted(records, 10, seed)]

    assert drawn(1) == drawn(1) != drawn(2)
    assert len(set(drawn(1))) == 10
    assert set(drawn(1)) <= records.active


SCORES = {"questions", "top1", "top5", "mrr"}


def test_the_keys_of_the_json_stay(files: tuple[Path, Path]) -> None:
    """Programs read the output, so no key of it changes its name or goes."""
    pytest.importorskip("wordllama")
    found = json.loads(good("evaluate", *files, "--json", "--rendering", "full"))
    assert list(found) == [
        *("ok", "records", "answerable", "unanswerable", "blank", "results", "warnings"),
    ]
    words, near, both = found["results"]
    assert (words["layer"], words["embedder"], words["rendering"]) == ("lexical", None, None)
    assert words["against_lexical"] is None
    assert (near["layer"], both["layer"]) == ("semantic", "fused")
    for each in (near, both):
        assert (each["embedder"], each["rendering"]) == ("wordllama", "full")
        assert set(each) == {
            *("layer", "embedder", "rendering", "tiers", "empty", "refused", "against_lexical"),
            *("cost", *SCORES),
        }
        assert set(each["against_lexical"]) == {"mrr", "top1"}
        assert set(each["against_lexical"]["mrr"]) == {"mean", "low", "high"}
        assert {tier: set(scores) for tier, scores in each["tiers"].items()} == {
            "hard": SCORES,
            "plain": SCORES,
        }
        assert set(each["cost"]) == {
            *("query_ms", "embedding_seconds"),
            *("stored_bytes_per_record", "memory_bytes_per_record"),
        }
    assert (words["top1"], words["mrr"]) == (2, 0.625)


def test_tables_are_aligned_or_markdown(files: tuple[Path, Path]) -> None:
    """The columns of each table begin at one place; as Markdown each row has the same cells."""
    said = good("evaluate", *files, "--embedder", "none").split("\n\n")
    assert said[0].startswith("4 records; 4 questions with an answer among them, 2 without")
    head, row = said[1].splitlines()
    assert row[head.index("top-1") :].startswith("2 ")
    assert row[head.index("MRR") :].startswith("0.625 ")
    assert "hard (2)" in said[2]
    assert "0/1/0.250" in said[2]
    said = good("evaluate", *files, "--embedder", "none", "--markdown").split("\n\n")
    for table in said[1:]:
        head, line, row = table.strip().splitlines()
        assert head.count("|") == line.count("|") == row.count("|")
        assert head.startswith("| layer | embedder | text |")
        assert line.startswith("| --- |")


def test_without_the_library_words_are_measured(
    files: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever did not ask for the embedder is told what to install; whoever did gets an error."""
    monkeypatch.setattr("datasette_concept_recall.embedders.find_spec", lambda name: None)
    result = invoke("evaluate", *files)
    assert result.exit_code == 0
    assert "pip install 'datasette-concept-recall[semantic]'" in result.stderr
    assert "semantic  " not in result.stdout
    assert "pip install" in bad("evaluate", *files, "--embedder", "wordllama")
    assert "There is no embedder named 'word2vec'" in bad(
        "evaluate", *files, "--embedder", "word2vec"
    )


def test_a_command_that_makes_no_sense_is_an_error(files: tuple[Path, Path]) -> None:
    """Questions or a sample, JSON or Markdown, and a rendering that there is."""
    assert "--sample" in bad("evaluate", files[0])
    assert "--sample" in bad("evaluate", *files, "--sample", 3)
    assert "--markdown" in bad("evaluate", *files, "--json", "--markdown")
    assert "frontmatter" in bad("evaluate", *files, "--rendering", "prose")
    assert "line 1: this is no JSON" in bad("evaluate", __file__, files[1])


def test_what_had_expired_is_asked_for_by_a_day(tmp_path: Path) -> None:
    """An evaluation can be made again as it was before records expired."""
    records = lines(
        tmp_path / "r.jsonl",
        {**MEMORY, "expires_at": "2020-05-01"},
        {"id": "tea", "statement": "Tea is hot."},
    )
    asked = lines(tmp_path / "q.jsonl", {"query": "hot tea", "target": "tea"})
    now = good("evaluate", records, asked, "--embedder", "")
    then = good("evaluate", records, asked, "--embedder", "", "--as-of", "2020-04-01")
    assert (now[:9], then[:9]) == ("1 records", "2 records")


# --- records as a source -------------------------------------------------------------------------


def test_records_come_and_go_without_approval() -> None:
    """Who gives the records says what there is: all of them may vanish at once."""
    records = {f"r{n}": RecordText(f"Number {n} is here.") for n in range(300)}
    with tempfile.TemporaryDirectory() as folder, closing(Store(Path(folder) / "i.db")) as store:
        source = store.add_source("given", RecordIndexer.kind, "")

        def texts() -> list[str]:
            service = indexing(store, [RecordIndexer(RecordSource(records))])
            service.ask(source.id, "run")
            service.run_all()
            assert store.source(source.id) == _done(store, source)
            return live_texts(store)

        assert len(texts()) == 300
        records["r7"] = RecordText("Number seven has changed.")
        del records["r8"]
        assert len(texts()) == 299
        assert "Number seven has changed." in live_texts(store)
        records.clear()
        assert texts() == []


def _done(store: Store, source: SourceRow) -> SourceRow:
    """The source as it is when a run got through and nothing of it is held."""
    found = store.source(source.id)
    assert found is not None
    return replace(found, state="done", problem=None, held_removals=0)


@pytest.mark.parametrize(
    "change",
    [
        {"statement": "Tea is cold."},
        {"subject": "Cup"},
        {"kind": "fact"},
        {"predicate": "is_hot"},
        {"entities": ("Tea", "Milk")},
        {"location": "here"},
        {"qualifier": "now"},
        {"temporal_scope": "always"},
        {"tags": ("hot",)},
        {"aliases": ("brew",)},
    ],
)
def test_every_field_of_a_record_tells_that_it_changed(change: dict[str, Any]) -> None:
    """Whatever may be embedded is in the content hash and in the fingerprint."""
    records = {"1": RecordText("Tea is hot.", "Tea")}
    source = RecordSource(records)
    (entry,) = source.listing().entries
    before = source.read(entry).content_hash
    assert source.fingerprint(entry) == entry.fingerprint
    records["1"] = replace(records["1"], **change)
    assert source.read(entry).content_hash != before
    assert source.fingerprint(entry) != entry.fingerprint
    del records["1"]
    assert source.fingerprint(entry) is None


def test_a_record_is_listed_by_its_first_line() -> None:
    """Its title is the first line of its statement, and its path the reference."""
    source = RecordSource({"a": RecordText("\nOne.\nTwo."), "b": RecordText("Three.")}, {"a"})
    one, three = source.listing().entries
    assert (one.key, one.path, one.title, one.item_table) == (b"a", "a", "One.", None)
    assert (one.is_active, three.is_active) == (True, False)
    assert source.read(one).kind == "row"


# --- the shared corpus ---------------------------------------------------------------------------

MEMORIES = SHARED_DATA / "memory"


@pytest.mark.skipif(not MEMORIES.exists(), reason="the shared records are not beside this checkout")
def test_words_alone_leave_few_questions_of_the_corpus_empty() -> None:
    """None of the questions without an answer gets one, and at most four others none."""
    records = read_records(MEMORIES / "records.jsonl", NOW)
    files = [MEMORIES / "questions.jsonl", MEMORIES / "unanswerable.jsonl"]
    found = evaluate(records, read_questions(files, records))
    (words,) = found.measured
    assert (found.records, found.answerable, found.unanswerable) == (1199, 47, 4)
    assert words.refused == 4
    assert words.empty <= 4
