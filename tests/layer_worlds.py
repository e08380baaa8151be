"""What the tests of the layers behind the concepts share: a small knowledge database with an index.

An embedder that knows a few synonyms, what other plugins bring in, and what Datasette is asked.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import sqlite3
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

import knowledge
from datasette_concept_recall.fallbacks import ActiveRecord
from datasette_concept_recall.indexing.ids import EmbedderIdentity
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.instances import PLUGIN
from indexing import FakeClock, add_folder, run, write_note

THEMES = {
    **dict.fromkeys(("automobile", "car", "vehicle"), 0),
    **dict.fromkeys(("moon", "lunar"), 1),
    **dict.fromkeys(("rain", "drizzle"), 2),
    "potoroo": 3,
}
"""Words of the same number mean the same; all others mean nothing in particular."""

WIDTH = 12
PATIENT = 60_000
"""A deadline in milliseconds that no test ever meets."""

PARKING = "Where do we park the car?"
"""Names no concept: a record of bicycles has its words, and one of an automobile its meaning."""

WITHOUT = "Answered without the semantic layer: "
AUTOMOBILE, BICYCLES = "The automobile stays outside", "Bicycles park inside"
LAYERS_MODES = ["auto", "lexical", "semantic"]
EVERYWHERE = ["knowledge", "index", None]

REFS = [
    "record:9",
    "nonsense",
    "record:2",
    "record:2",
    "observation:3",
    "record:1",
    "record:-1",
    "",
]
"""What a fallback says that it found: only three of them are there, and one of those is twice."""


def meaning_of(text: str) -> list[float]:
    """The vector of a text: its themes, blurred a little by its hash; of length 1."""
    digest = hashlib.sha256(text.encode()).digest()
    vector = [0.0] * 4 + [(byte - 127.5) / 1000 for byte in digest[: WIDTH - 4]]
    for word in text.lower().split():
        theme = THEMES.get(word.strip(".,?!"))
        if theme is not None:
            vector[theme] += 1.0
    length = math.hypot(*vector)
    return [number / length for number in vector]


class Meanings:
    """An embedder that knows a few synonyms. ``asked`` is every question; ``answer`` may raise,
    wait, or give something else for one."""

    batch_size = 16
    dimensions = WIDTH

    def __init__(self, name: str = "meanings", *, is_remote: bool = False) -> None:
        self.name, self.is_remote = name, is_remote
        self.identity = EmbedderIdentity("test", model=name)
        self.asked: list[str] = []
        self.answer: Callable[[str], Any] | None = None

    @property
    def questions(self) -> list[str]:
        """What people asked: at its start Datasette asks something itself."""
        return [text for text in self.asked if text != "warm-up"]

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Any:
        return [meaning_of(text) for text in texts]

    def embed_query(self, text: str) -> Any:
        self.asked.append(text)
        return [meaning_of(text)] if self.answer is None else self.answer(text)


class Fallback:
    """A fallback that finds what it is told to; ``held`` is what was reconciled last."""

    def __init__(self, database: str = "knowledge", found: Sequence[str] = ()) -> None:
        self.database, self.found = database, found
        self.asked: list[tuple[str, int]] = []
        self.held: list[ActiveRecord] = []
        self.reconciled = 0
        self.fails = False

    def search(self, query: str, limit: int) -> Sequence[str]:
        self.asked.append((query, limit))
        if self.fails:
            raise ConnectionError("the store is down")
        return self.found

    def reconcile(self, active: Any) -> None:
        self.held = list(active)
        self.reconciled += 1


class Plugin:
    """What another plugin brings in."""

    def __init__(self, embedders: Sequence[Any], fallbacks: Sequence[Any]) -> None:
        self.__name__ = f"layers-of-tests-{id(self)}"
        self.embedders, self.fallbacks = list(embedders), list(fallbacks)

    @hookimpl
    def register_embedders(self, datasette: Any) -> list[Any]:
        return self.embedders

    @hookimpl
    def register_semantic_fallbacks(self, datasette: Any) -> list[Any]:
        return self.fallbacks


@contextmanager
def registered(*embedders: Any, fallbacks: Sequence[Any] = ()) -> Iterator[Plugin]:
    """As long as another plugin brings in these."""
    plugin = Plugin(embedders, fallbacks)
    pm.register(plugin)
    try:
        yield plugin
    finally:
        pm.unregister(plugin)


class World(NamedTuple):
    """A knowledge database, and a library: an index of its rows and of a folder of notes."""

    knowledge: Path
    library: Path

    def change(self, sql: str, *parameters: object, file: str = "knowledge") -> None:
        """Commits a change of one of the files, as another program would."""
        with closing(sqlite3.connect(getattr(self, file), timeout=30)) as conn, conn:
            conn.execute(sql, parameters)

    def run(self) -> None:
        """Brings the index up to date."""
        with closing(Store(self.library, FakeClock())) as store:
            for source in store.sources():
                run(store, source, embedder=Meanings(), knowledge=[self.knowledge])


def fill(conn: sqlite3.Connection) -> None:
    """Two records that are asked for, a document, and remarks that mean nothing."""
    knowledge.add_record(
        conn, "The automobile stays outside", "In the yard.", concepts=["Yard"], project="Home"
    )
    knowledge.add_record(conn, "Bicycles park inside", "At the wall.", concepts=["Hall"])
    for n in range(24):
        knowledge.add_observation(
            conn, f"Remark {n} of no weight", concepts=["Remarks"], project="Diary"
        )
    knowledge.add_document(
        conn,
        "Handbook",
        gist=knowledge.Section(summary="Umbrellas against drizzle", status="reviewed"),
        sections=[knowledge.Section("Weather", "It is dry.", summary="Dry", status="reviewed")],
    )


NOTE = "A lunar calendar hangs in the [[Hall]]."


def build(
    folder: Path,
    fill: Callable[[sqlite3.Connection], None] = fill,
    note: str = NOTE,
    index: bool = True,
) -> World:
    """Both databases, the index with vectors of `Meanings`; or only the first."""
    world = World(folder / "knowledge.db", folder / "index.db")
    with closing(knowledge.create(world.knowledge, wal=True)) as conn, conn:
        fill(conn)
    if not index:
        return world
    write_note(folder / "notes", "moon.md", note)
    with closing(Store(world.library, FakeClock())) as store:
        store.set_setting("embedder", "meanings")
        store.add_source("rows", "rows", str(world.knowledge.resolve()), {})
        add_folder(store, folder / "notes")
    world.run()
    return world


def configured(
    layers: object = None, index: object = None, databases: object = None
) -> dict[str, Any]:
    """The configuration of Datasette with these parts of that of the plugin."""
    given = {"layers": {"deadline_ms": PATIENT} if layers is None else layers}
    more = {} if index is None else {"index": index}
    permissions = {} if databases is None else {"databases": databases}
    return {"plugins": {PLUGIN: {**given, **more}}, **permissions}


async def ask(
    datasette: Datasette, database: str | None, text: str, cookies: Any = None, **more: str
) -> dict[str, Any]:
    """The answer of the JSON API of a database (None: all), which must be good."""
    path = "/-/recall.json" if database is None else f"/{database}/-/recall.json"
    response = await datasette.client.get(path, params={"q": text, **more}, cookies=cookies)
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


def titles(answer: dict[str, Any]) -> list[str]:
    return [row["title"] for row in answer["rows"]]


def reasons(answer: dict[str, Any]) -> list[str]:
    """Why there was no semantic layer, each once; there must be no other warning. Where several
    databases were asked the name of each stands before its own."""
    found = dict.fromkeys(warning.partition(WITHOUT)[::2] for warning in answer["warnings"])
    assert {of for of, _ in found} <= {"", "knowledge: ", "index: "}
    return list(dict.fromkeys(reason for _, reason in found))


def layer_names(row: dict[str, Any]) -> list[str]:
    return [hit["layer"] for hit in row["layers"]]


async def eventually(datasette: Datasette, database: str | None, text: str) -> dict[str, Any]:
    """The first answer without a warning; a machine that is busy may need some."""
    for _ in range(100):
        found = await ask(datasette, database, text)
        if not found["warnings"]:
            return found
        await asyncio.sleep(0.05)
    pytest.fail(f"There was always a warning: {found['warnings']}")


def settled(
    fallback: Fallback, wanted: Callable[[dict[str, ActiveRecord]], bool]
) -> dict[str, ActiveRecord]:
    """What the fallback holds as soon as that is as wanted."""
    for _ in range(500):
        held = {record.ref: record for record in fallback.held}
        if held and wanted(held):
            return held
        time.sleep(0.02)
    pytest.fail(f"It never came to that: {sorted(held)}")
