"""What the page on the index shows is true: its examples run, and its commands and keys exist."""

from __future__ import annotations

import re
import sqlite3
import types
from collections.abc import Iterator
from contextlib import closing
from dataclasses import fields
from pathlib import Path

import pytest
import yaml
from datasette.plugins import pm

from datasette_concept_recall import sql_functions
from datasette_concept_recall.compat import INDEX_ACTION
from datasette_concept_recall.config import IndexConfig, parse_index
from datasette_concept_recall.index_cli import index as index_group
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.vocabulary import Vocabulary
from indexing import orphans, write_note
from test_cli import bad, good
from test_docs import INDEXING, blocks

PAGE = INDEXING.read_text("utf-8")


@pytest.fixture
def example() -> Iterator[types.ModuleType]:
    """The plugin of the page, installed."""
    (code,) = blocks("python", [INDEXING])
    module = types.ModuleType("datasette_quotes")
    exec(compile(code, "datasette_quotes.py", "exec"), module.__dict__)
    pm.register(module, name="datasette_quotes")
    yield module
    pm.unregister(name="datasette_quotes")


def test_the_example_of_a_plugin_brings_in_a_kind_of_source_and_an_embedder(
    example: types.ModuleType, tmp_path: Path
) -> None:
    """Its documents are added, indexed with its vectors, and recalled."""
    index = tmp_path / "index.db"
    good("index", "add", "other", "quotes", "everywhere", "--to", index, "--name", "q")
    good("index", "run", index, "--embedder", "backwards")
    assert "Salt (2)" in good("recall", index, "salt")
    with closing(Store(index)) as store:
        assert store.rows("select count(*) from vector") == [(2,)]
        assert orphans(store) == 0


def test_without_the_plugin_its_source_is_refused_and_kept(tmp_path: Path) -> None:
    """A kind that nothing reads is named, and an embedder that nobody registers too."""
    index = tmp_path / "index.db"
    assert "Nothing here reads the kind quotes; known are folder, mailbox, rows" in bad(
        "index", "add", "other", "quotes", "everywhere", "--to", index
    )
    write_note(tmp_path / "notes", "a.md", "A note.")
    good("index", "add", "folder", tmp_path / "notes", "--to", index)
    assert "There is no embedder named 'backwards'; known are wordllama" in bad(
        "index", "run", index, "--embedder", "backwards"
    )


def test_the_sql_of_the_page_finds_what_is_searched(tmp_path: Path) -> None:
    """The view is there with the columns that are shown."""
    write_note(tmp_path / "notes", "a.md", "Bread needs salt.")
    index = tmp_path / "index.db"
    good("index", "add", "folder", tmp_path / "notes", "--to", index)
    good("index", "run", index)
    (sql,) = blocks("sql", [INDEXING])
    with closing(sqlite3.connect(index)) as conn:
        sql_functions.register(conn, Vocabulary())
        assert conn.execute(sql).fetchall() == [("a", "line 1", "Bread needs salt.")]


def test_every_command_and_key_of_the_page_exists() -> None:
    """And every command and key that there is stands on it."""
    table = PAGE.split("## Commands")[1].split("## What is read")[0]
    commands = {word for line in re.findall(r"^\| (.*?) \|", table, re.M) for word in
                re.findall(r"`(\w+)", line)}  # fmt: skip
    assert commands == set(index_group.commands)
    permissions, configuration = blocks("yaml", [INDEXING])
    assert list(yaml.safe_load(permissions)["permissions"]) == [INDEX_ACTION]
    given = yaml.safe_load(configuration)["plugins"]["datasette-concept-recall"]
    assert parse_index(given) == IndexConfig("index", watch=True)
    keys = set(re.findall(r"^\| `index\.(\w+)` \|", PAGE, re.M))
    assert keys == {field.name for field in fields(IndexConfig)}
