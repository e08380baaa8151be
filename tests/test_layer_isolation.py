"""What is wrong with one database, index or library takes nothing with it that is well."""

from __future__ import annotations

import sqlite3
import sys
from contextlib import closing
from pathlib import Path

import pytest
from datasette.database import Database

import knowledge
from conftest import MakeDatasette
from datasette_concept_recall import layer_search
from datasette_concept_recall.fusion import Fusion
from datasette_concept_recall.layer_search import Semantic, search_layers
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.query_vectors import QueryVectors
from datasette_concept_recall.semantic import VectorIndex
from layer_worlds import (
    AUTOMOBILE,
    BICYCLES,
    PARKING,
    Meanings,
    World,
    ask,
    build,
    configured,
    titles,
)

pytestmark = pytest.mark.usefixtures("meanings")


@pytest.mark.asyncio
async def test_another_database_under_the_same_name_is_not_asked_by_the_vectors_of_the_first(
    make_datasette: MakeDatasette, tmp_path: Path
) -> None:
    """What was held of an index goes with the database that was removed."""

    def others(conn: sqlite3.Connection) -> None:
        """The same rows, and more before them."""
        knowledge.add_record(conn, "Bicycles park inside", "At the wall.")
        knowledge.add_record(conn, "The automobile stays outside", "In the yard.")
        for n in range(34):
            knowledge.add_observation(conn, f"Remark {n} of no weight")

    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first, second = build(tmp_path / "first"), build(tmp_path / "second", others)
    for each in (first, second):  # as in indexes from before changes had marks
        each.change("delete from live_change where id > 20", file="library")
        each.change("update live_change set mark = null", file="library")
    datasette = make_datasette(first.library, config=configured())
    fresh = make_datasette(second.library, config=configured())
    assert titles(await ask(datasette, "index", PARKING, mode="semantic"))
    datasette.remove_database("index")
    datasette.add_database(Database(datasette, str(second.library), is_mutable=True), name="index")
    found, expected = (
        [(row["title"], row["layers"]) for row in answer["rows"]]
        for answer in [
            await ask(each, "index", PARKING, mode="semantic") for each in (datasette, fresh)
        ]
    )
    assert found == expected
    assert found[0][0] == AUTOMOBILE


@pytest.mark.asyncio
async def test_a_database_that_cannot_be_asked_hides_its_own_rows_alone(
    make_datasette: MakeDatasette, own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The notes in the same index are found, and a warning names what is missing."""
    datasette = make_datasette(*own_world, config=configured())
    lunar = "A lunar calendar for the car park"
    assert len(titles(await ask(datasette, "index", lunar))) == 3
    served, real = datasette.get_database("knowledge"), Database.execute_fn

    async def locked(self: Database, *rest: object, **more: object) -> object:
        if self is served:
            raise sqlite3.OperationalError("database is locked")
        return await real(self, *rest, **more)

    monkeypatch.setattr(Database, "execute_fn", locked)
    answer = await ask(datasette, "index", lunar)
    assert titles(answer) == ["moon"]
    (warning,) = answer["warnings"]
    assert "ows of knowledge were" in warning
    assert warning.endswith("database is locked.")


@pytest.mark.asyncio
async def test_rows_of_which_nobody_can_say_whether_they_hold_are_left_out(
    make_datasette: MakeDatasette, own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The database is locked after it was asked who may see what."""
    from datasette_concept_recall import layering

    datasette = make_datasette(*own_world, config=configured())
    assert titles(await ask(datasette, "index", PARKING)) == [BICYCLES, AUTOMOBILE]

    def locked(*_: object, **__: object) -> object:
        raise sqlite3.OperationalError("database is locked")

    monkeypatch.setattr(layering, "outdated", locked)
    answer = await ask(datasette, "index", PARKING)
    assert titles(answer) == []
    (warning,) = answer["warnings"]
    assert warning.startswith("Rows of knowledge were left out")


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "damage",
    [
        "update document set key = cast('no key' || id as blob) where item_table = 'records'",
        "update source set options = 'no JSON' where kind = 'rows'",
        "update setting set value = 'no JSON' where name = 'embedder'",
    ],
)
async def test_no_value_in_an_index_keeps_concepts_from_being_found(
    make_datasette: MakeDatasette, own_world: World, damage: str
) -> None:
    """What nobody expects there is told in a warning, and in the log."""
    own_world.change(damage, file="library")
    datasette = make_datasette(*own_world, config=configured())
    answer = await ask(datasette, "knowledge", "Where is the car of the Hall?")
    assert BICYCLES in titles(answer)
    (warning,) = answer["warnings"]
    assert "only concepts were found" in warning


@pytest.mark.asyncio
async def test_without_numpy_words_are_found_and_it_is_said_what_to_install(
    make_datasette: MakeDatasette, own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An embedder of another plugin may do without it."""
    monkeypatch.setitem(sys.modules, "numpy", None)
    datasette = make_datasette(*own_world, config=configured())
    answer = await ask(datasette, "knowledge", PARKING)
    assert titles(answer) == [BICYCLES]
    assert "install datasette-concept-recall[semantic]" in " ".join(answer["warnings"])


def test_all_that_the_semantic_layer_does_is_within_one_deadline(
    own_world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What reading the vectors took is not given to the embedder once more."""
    now = [0.0]
    monkeypatch.setattr(layer_search, "perf_counter", lambda: now[0])
    patience: list[float | None] = []

    class Slow(VectorIndex):
        def width(self, reader: object, patience_: float | None = None) -> int | None:
            patience.append(patience_)
            now[0] += 0.03
            return 12

        def nearest(self, *_: object) -> list[object]:  # type: ignore[override]
            patience.append(_[3])  # type: ignore[arg-type]
            return []

    class Asked(QueryVectors):
        def vector(self, text: str, width: int, deadline: float | None) -> object:
            patience.append(deadline)
            now[0] += 0.03
            return None

    embedder = Meanings()
    semantic = Semantic(Slow(embedder.identity.name), Asked(embedder), 0.05)
    with closing(sqlite3.connect(own_world.library)) as conn:
        search_layers(conn, RecallRequest(PARKING, mode="auto"), Within(), Fusion(), semantic)
    assert patience == pytest.approx([0.05, 0.02, 0.0])
