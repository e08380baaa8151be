"""The documentation says what the code does: its examples run and its names exist."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner
from datasette.cli import cli

import datasette_concept_recall
from conftest import MakeDatasette
from datasette_concept_recall import sql_functions, word_match
from datasette_concept_recall.canned_sql import canned_queries
from datasette_concept_recall.cli import concept_recall
from datasette_concept_recall.config import ConceptsConfig, SourceConfig, parse_configuration
from datasette_concept_recall.demo import build_demo
from datasette_concept_recall.mapped import read_mapping
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.presenting import (
    ShownMatch,
    context_json,
    show_matches,
)
from datasette_concept_recall.reading import reading
from datasette_concept_recall.search import recall, recall_by_text
from datasette_concept_recall.vocabulary import Vocabulary

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


INDEXING = ROOT / "docs" / "indexing.md"
"""Its examples are about an index; tests/test_index_docs.py runs them."""


def blocks(language: str, pages: Iterable[Path] = PAGES) -> list[str]:
    """The fenced blocks of this language in all pages but that on indexing."""
    fence = re.compile(rf"^```{language}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
    texts = [page.read_text("utf-8") for page in pages if page != INDEXING or pages is not PAGES]
    return [block for text in texts for block in fence.findall(text)]


@pytest.fixture
def demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sqlite3.Connection]:
    """The demo database in the current folder, with the SQL functions."""
    monkeypatch.chdir(tmp_path)
    path = Path("concept-recall-demo.db")
    build_demo(path)
    with closing(sqlite3.connect(path)) as conn:
        sql_functions.register(conn, Vocabulary())
        yield conn


@pytest.mark.parametrize("block", blocks("console"))
def test_a_console_session_prints_what_the_page_shows(
    block: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every command of a shown session works and prints exactly the lines below it."""
    monkeypatch.chdir(tmp_path)
    for part in block.split("$ ")[1:]:
        command, _, output = part.partition("\n")
        program, *arguments = shlex.split(command)
        assert program == "datasette"
        result = CliRunner().invoke(cli, arguments)
        assert (result.exit_code, result.output) == (0, output)


@pytest.mark.parametrize("sql", blocks("sql"))
def test_an_sql_example_returns_rows_from_the_demo(sql: str, demo: sqlite3.Connection) -> None:
    """Every SQL example runs on the demo and finds something."""
    assert demo.execute(sql, {"text": "matcher and permissions"}).fetchall()


@pytest.mark.parametrize("code", blocks("python"))
def test_a_python_example_runs_on_the_demo(
    code: str, demo: sqlite3.Connection, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every Python example runs and prints something."""
    names: dict[str, object] = {}
    exec(compile(code, "example", "exec"), names)
    assert capsys.readouterr().out
    for value in names.values():
        if isinstance(value, sqlite3.Connection):
            value.close()


def matching_rows() -> list[tuple[str, str, bool]]:
    """``(name, text, mentioned)`` for every text of the table of docs/matching.md."""
    found = []
    for line in (ROOT / "docs" / "matching.md").read_text("utf-8").splitlines():
        name, *columns = [cell.strip() for cell in line.strip("|").split("|")]
        if not re.fullmatch("`[^`]+`", name):
            continue
        for column, mentioned in zip(columns, (True, False), strict=True):
            texts = re.findall(r'"([^"]*)"', column)
            found += [(name[1:-1], text.replace("\\n", "\n"), mentioned) for text in texts]
    return found


@pytest.mark.parametrize(("name", "text", "mentioned"), matching_rows())
def test_the_table_of_mentions_is_true(name: str, text: str, mentioned: bool) -> None:
    """Every text that the matching page names is, or is not, a mention as it says."""
    assert word_match(name, text) is mentioned


def test_the_table_of_mentions_was_found() -> None:
    """The table is still written in the form that the test above reads."""
    assert len(matching_rows()) > 25


def test_the_json_page_names_every_key(demo: sqlite3.Connection) -> None:
    """Each key of a row stands in the table of keys."""
    shown: ShownMatch = show_matches(recall_by_text(demo, "matcher"))[0]
    text = (ROOT / "docs" / "json-api.md").read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (.*?) \|", text, re.M))))
    assert set(shown.as_json("")) <= documented
    assert {"concepts", "rows", "projects", "total", "truncated", "warnings"} <= documented
    assert {"next", "next_url"} <= documented


@pytest.mark.asyncio
async def test_the_answers_that_the_json_page_shows_are_those_of_the_demo(
    demo: sqlite3.Connection, make_datasette: MakeDatasette
) -> None:
    """The API gives them for the questions of which the page says that they are the answer."""
    text = (ROOT / "docs" / "json-api.md").read_text("utf-8")
    datasette = make_datasette(Path("concept-recall-demo.db"))
    ((query, shown),) = re.findall(
        r"answer to\s`([^`]+)` on the demo, without its rows\..*?\n```json\n(.*?)^```",
        text,
        re.DOTALL | re.MULTILINE,
    )
    answer = (await datasette.client.get(f"/concept-recall-demo/-/recall.json?{query}")).json()
    assert len(answer["rows"]) == answer["total"]
    assert json.loads(shown) == {**answer, "rows": []}
    ((query, shown),) = re.findall(
        r"context of\s`([^`]+)` on the demo:\n\n```markdown\n(.*?)^```",
        text,
        re.DOTALL | re.MULTILINE,
    )
    context = await datasette.client.get(f"/concept-recall-demo/-/recall.md?{query}")
    assert context.text == shown


def test_the_json_page_names_every_key_of_a_context(demo: sqlite3.Connection) -> None:
    """The keys that a budget adds stand in their table."""
    result = recall(demo, RecallRequest(text="timestamps", budget=250))
    text = (ROOT / "docs" / "json-api.md").read_text("utf-8")
    for key in context_json(result):
        assert f"\n| `{key}` | " in text
    assert show_matches(result)[0].as_json("")["in_context"] in ("whole", "excerpt")
    assert "`in_context`, which is `whole` or `excerpt`" in text


def test_the_sql_page_names_every_query_with_its_parameters(demo: sqlite3.Connection) -> None:
    """The table of canned queries is complete."""
    text = (ROOT / "docs" / "sql.md").read_text("utf-8")
    with reading(demo) as reader:
        queries = canned_queries(read_mapping(reader))
    for query in queries:
        parameters = ", ".join(f"`{name}`" for name in query.parameters)
        assert f"| `{query.name}` | {parameters} |" in text


def test_the_near_miss_of_the_readme_is_one_of_the_demo(demo: sqlite3.Connection) -> None:
    """Who tries the example on the demo is asked what the page says, since it has the extra."""
    text = (ROOT / "README.md").read_text("utf-8")
    ((said, concept),) = re.findall(r'nearly names a concept, as "(\w+)" does\s`(\w+)`', text)
    (miss,) = recall_by_text(demo, f"About {said}").near_misses
    assert (miss.text, miss.concept) == (said, concept)
    installed = re.findall(r"-e (.*)", (ROOT / "Makefile").read_text("utf-8"))
    assert installed[0] == '".[fuzzy]"'


def test_the_readme_names_every_option_of_the_recall_command() -> None:
    """No option of ``concept-recall recall`` is left undocumented."""
    text = (ROOT / "README.md").read_text("utf-8")
    for option in concept_recall.commands["recall"].params:
        for name in option.opts:
            assert not name.startswith("--") or name in text


def test_the_readme_names_every_public_name() -> None:
    """What can be imported from the package is told, and so found without reading its source."""
    text = (ROOT / "README.md").read_text("utf-8").partition("\n## Python\n")[2]
    section = text.partition("\n## ")[0]
    for name in datasette_concept_recall.__all__:
        assert re.search(rf"\b{name}\b", section), name


def test_the_configuration_page_names_every_key() -> None:
    """The tables of keys are complete and hold no other ones, and the example can be read."""
    text = (ROOT / "docs" / "other-databases.md").read_text("utf-8")
    documented = set(re.findall(r"`(\w+)`", "\n".join(re.findall(r"^\| (`.*?) \|", text, re.M))))
    kinds = (ConceptsConfig, SourceConfig)
    assert documented == {key.name for kind in kinds for key in dataclasses.fields(kind)}
    for block in blocks("yaml"):
        plugins = yaml.safe_load(block).get("plugins", {})
        assert parse_configuration(plugins.get("datasette-concept-recall")) is not None


def test_every_link_between_pages_leads_somewhere() -> None:
    """Links and pictures of the documentation that are no web addresses are files here."""
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
