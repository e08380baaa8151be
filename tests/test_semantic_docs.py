"""docs/semantic.md is true: its command indexes the demo, its SQL and settings are there."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from importlib.metadata import requires
from pathlib import Path

import pytest
from click.testing import CliRunner

from datasette_concept_recall import sql_functions
from datasette_concept_recall.cli import concept_recall
from datasette_concept_recall.config import LayersConfig
from datasette_concept_recall.demo import QUESTION_WITHOUT_CONCEPT
from datasette_concept_recall.embedders import WordLlamaEmbedder
from datasette_concept_recall.instances import PLUGIN
from datasette_concept_recall.rendering import RENDERINGS
from datasette_concept_recall.vocabulary import match_concept_names
from test_docs import ROOT, blocks

PAGE = ROOT / "docs" / "semantic.md"

pytest.importorskip("wordllama", reason="the extra semantic is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demo and its index, as the one command makes them."""
    folder = tmp_path_factory.mktemp("semantic")
    done = run("demo", folder / "demo.db", "--semantic", "--no-serve")
    assert done.exit_code == 0, done.output
    return folder


@pytest.fixture
def index(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(f"file:{folder / 'demo-index.db'}?mode=ro", uri=True)) as conn:
        yield conn


def run(*arguments: object) -> object:
    return CliRunner().invoke(concept_recall, [str(each) for each in arguments])


def test_one_command_indexes_the_demo_and_turns_the_layers_on(folder: Path) -> None:
    """A question that names no concept is then answered by words and by meaning."""
    with closing(sqlite3.connect(folder / "demo.db")) as conn:
        assert match_concept_names(conn, QUESTION_WITHOUT_CONCEPT) == []
    index = folder / "demo-index.db"
    done = run("recall", folder / "demo.db", QUESTION_WITHOUT_CONCEPT, "--index", index, "--json")
    answer = json.loads(done.stdout)
    assert answer["warnings"] == []
    found = {hit["layer"] for row in answer["rows"] for hit in row["layers"]}
    assert found == {"lexical", "semantic"}


def test_the_extra_semantic_is_all_that_the_command_needs() -> None:
    """What cuts texts comes with it, so that nothing is skipped for want of another extra."""
    extra = [
        each for each in requires(PLUGIN) or () if "extra == 'semantic'" in each.replace('"', "'")
    ]
    assert {re.split("[<>=; ]", each)[0] for each in extra} >= {
        *("numpy", "semantic-text-splitter", "wordllama"),
    }


def test_running_the_command_again_indexes_nothing_anew(folder: Path) -> None:
    """The demo is built anew with the same rows, so all of its index stays."""
    done = run("demo", folder / "demo.db", "--semantic", "--no-serve")
    assert " unchanged" in done.output
    assert " indexed" not in done.output


def test_the_demo_without_the_option_needs_no_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is built where no embedder can be had."""
    monkeypatch.setattr(WordLlamaEmbedder, "_folder", property(lambda self: 1 / 0))
    assert run("demo", tmp_path / "demo.db", "--no-serve").exit_code == 0
    assert list(tmp_path.glob("*index*")) == []


@pytest.mark.parametrize("sql", blocks("sqlite", [PAGE]))
def test_the_query_of_the_page_finds_what_is_nearest(sql: str, index: sqlite3.Connection) -> None:
    """It runs on an index, and what comes first is most similar."""
    embedder = WordLlamaEmbedder()
    sql_functions.register_embedding(index, lambda: embedder)
    rows = index.execute(sql, {"question": "permissions of tables"}).fetchall()
    assert len(rows) == 10
    similarities = [similarity for *_, similarity in rows]
    assert similarities == sorted(similarities, reverse=True)
    assert similarities[0] > 0.3


def test_the_page_names_every_setting_and_rendering() -> None:
    """What can be configured is on the page, and nothing else is promised."""
    text = PAGE.read_text("utf-8")
    for field in fields(LayersConfig):
        assert f"`layers.{field.name}`" in text
    for rendering in RENDERINGS:
        assert f"| `{rendering}`" in text
