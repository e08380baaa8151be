"""Datasette keeps an index fresh by itself, in a process of its own that ends with it."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest
import yaml
from datasette.utils import StartupError

import knowledge
from browser import wait_for_address
from conftest import IS_1_0, MakeDatasette
from datasette_concept_recall.config import IndexConfig, parse_index
from datasette_concept_recall.errors import BadConfiguration
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.indexing.turns import Turn
from datasette_concept_recall.keeping import Keeper
from indexing import add_folder, live_texts, write_note

PATIENCE_SECONDS = 60


def eventually(is_so: Callable[[], object]) -> None:
    """Waits until something is so, and fails when it never is."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not is_so():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.1)


def configured(index: object) -> dict[str, Any]:
    return {"plugins": {"datasette-concept-recall": {"index": index}}}


@pytest.fixture
def index(tmp_path: Path) -> Path:
    """An index with one folder that nobody read yet."""
    path = tmp_path / "index.db"
    write_note(tmp_path / "notes", "bread.md", "Bread needs [[Salt]].")
    with closing(Store(path)) as store:
        add_folder(store, tmp_path / "notes")
    return path


@pytest.mark.parametrize(
    ("given", "key", "problem"),
    [
        ({"database": 3}, "index.database", "name the database"),
        ({}, "index.database", "name the database"),
        ({"database": "i", "watch": "yes"}, "index.watch", "neither true nor false"),
        ({"database": "i", "concepts_of": "k"}, "index.concepts_of", "not a list"),
        ({"database": "i", "wacht": True}, "index.wacht", "is unknown here"),
        ("index", "index", "is not an object"),
    ],
)
def test_what_is_configured_wrongly_is_named(given: object, key: str, problem: str) -> None:
    """The error says which key it is, and what is wrong with it."""
    with pytest.raises(BadConfiguration) as caught:
        parse_index({"index": given})
    assert caught.value.key == key
    assert problem in caught.value.problem


def test_what_is_configured_is_read() -> None:
    """Nothing is watched unless somebody says so."""
    assert parse_index(None) is None
    assert parse_index({"databases": {}}) is None
    assert parse_index({"index": {"database": "i"}}) == IndexConfig("i", watch=False)
    assert parse_index(
        {"index": {"database": "i", "watch": True, "concepts_of": ["k"]}}
    ) == IndexConfig("i", watch=True, concepts_of=("k",))


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"database": "nothing"}, "no database named nothing is served"),
        ({"database": "index", "concepts_of": ["other"]}, "no database named other is served"),
        ({"database": "k"}, "k is no index"),
    ],
)
async def test_datasette_does_not_start_with_an_index_that_is_none(
    make_datasette: MakeDatasette, tmp_path: Path, index: Path, given: object, problem: str
) -> None:
    """One line says what of the configuration does not fit what is served."""
    knowledge.create(tmp_path / "k.db").close()
    datasette = make_datasette(index, tmp_path / "k.db", config=configured(given))
    with pytest.raises(StartupError, match=problem):
        await datasette.invoke_startup()


def test_a_keeper_starts_again_what_was_killed(index: Path, tmp_path: Path) -> None:
    """The process may be killed at any moment; what it keeps is kept again soon after."""
    keeper = Keeper(index)
    keeper.start()
    try:
        eventually(lambda: Turn(index, "keeper").is_taken() and texts(index))
        process = keeper._process
        assert process is not None
        process.kill()
        write_note(tmp_path / "notes", "soup.md", "Soup needs [[Salt]].")
        eventually(lambda: "Soup needs [[Salt]]." in texts(index))
    finally:
        keeper.stop()
    assert not Turn(index, "keeper").is_taken()


def texts(index: Path) -> list[str]:
    with closing(Store(index)) as store:
        return live_texts(store)


@contextmanager
def served(config: Path, *files: Path) -> Iterator[tuple[str, subprocess.Popen[bytes]]]:
    """Datasette as people start it, with a configuration file; its address and its process."""
    log = config.with_name("datasette.log")
    given = "-c" if IS_1_0 else "-m"
    command = [sys.executable, "-m", "datasette", "serve", *map(str, files), "-p", "0"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, given, str(config)], stdout=output, stderr=output, cwd=config.parent
        )
    try:
        yield wait_for_address(process, log), process
    finally:
        process.kill()
        process.wait()


def _answers(url: str) -> Any:
    try:
        with urlopen(url, timeout=10) as response:
            return json.load(response)
    except (URLError, OSError):
        return None


@pytest.mark.slow
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGKILL], ids=["asked to", "killed"])
def test_pages_follow_the_notes_while_datasette_runs_and_nothing_outlives_it(
    index: Path, tmp_path: Path, end: signal.Signals
) -> None:
    """A note is edited, renamed and deleted, and recall says so; then everything ends together."""
    notes, config = tmp_path / "notes", tmp_path / "datasette.yaml"
    config.write_text(yaml.safe_dump(configured({"database": "index", "watch": True})), "utf-8")
    with served(config, index) as (address, process):

        def found() -> list[tuple[str, str]]:
            rows = (_answers(f"{address}/index/-/recall.json?q=salt") or {"rows": []})["rows"]
            return sorted((row["title"], row["excerpt"]) for row in rows)

        eventually(lambda: found() == [("bread", "Bread needs [[Salt]].")])
        write_note(notes, "bread.md", "Bread needs more [[Salt]].")
        eventually(lambda: found() == [("bread", "Bread needs more [[Salt]].")])
        (notes / "bread.md").rename(notes / "loaf.md")
        eventually(lambda: found() == [("loaf", "Bread needs more [[Salt]].")])
        write_note(notes, "soup.md", "Soup needs [[Salt]] too.")
        eventually(lambda: len(found()) == 2)
        (notes / "loaf.md").unlink()
        eventually(lambda: found() == [("soup", "Soup needs [[Salt]] too.")])
        process.send_signal(end)
        process.wait(timeout=PATIENCE_SECONDS)
    eventually(lambda: not Turn(index, "keeper").is_taken())
    with closing(Store(index)) as store:
        assert store.rows("select count(*) from failure") == [(0,)]
        assert store.rows("pragma integrity_check") == [("ok",)]
