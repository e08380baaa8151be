"""Any tagged database: found by its foreign keys, or described by configuration."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from datetime import datetime, timezone
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
import yaml
from click.testing import CliRunner
from datasette.cli import cli
from datasette.utils import StartupError

import foreign
from conftest import IS_1_0, MakeDatasette, actor_cookie, file_bytes
from datasette_concept_recall import ConceptMatch, RecallResult, recall_by_text
from datasette_concept_recall.config import parse_configuration
from datasette_concept_recall.models import RecallRequest
from datasette_concept_recall.search import recall
from datasette_concept_recall.vocabulary import Vocabulary
from pages import parse

Build = Callable[[Path], Path]

found_alone = pytest.mark.parametrize(
    "build", foreign.FOUND_WITHOUT_CONFIGURATION.values(), ids=foreign.FOUND_WITHOUT_CONFIGURATION
)


def recalled(path: Path, text: str) -> RecallResult:
    """What a text brings, without configuration."""
    with closing(sqlite3.connect(path)) as conn:
        return recall_by_text(conn, text)


def plugin(**databases: object) -> dict[str, Any]:
    """Configuration of the plugin."""
    return {"plugins": {"datasette-concept-recall": {"databases": databases}}}


@found_alone
def test_tags_are_found_without_configuration(tmp_path: Path, build: Build) -> None:
    """Link tables, or arrays, titles, texts and times are found; the rank is that of recall."""
    path = build(tmp_path / "x.db")
    before = file_bytes(path)
    result = recalled(path, "How does BREAD go with jam?")
    assert result.concepts == ["bread", "jam"]
    both, one = result.matches[:2]
    assert (both.title, both.body, both.concepts) == (
        foreign.BOTH,
        "Bread with jam.",
        ("bread", "jam"),
    )
    assert (one.title, one.body, one.concepts) == (foreign.ONE, "Scones and jam.", ("jam",))
    assert both.created_at == datetime(2026, 3, 1, 8, tzinfo=timezone.utc)
    assert foreign.NEITHER not in {match.title for match in result.matches}
    assert file_bytes(path) == before


@found_alone
def test_what_inspect_prints_is_the_same_as_configuration(
    tmp_path: Path, build: Build, make_datasette: MakeDatasette
) -> None:
    """The block can be pasted as it is, and then recall finds the same."""
    path = build(tmp_path / "x y.db")
    result = CliRunner().invoke(cli, ["concept-recall", "inspect", str(path)])
    assert result.exit_code == 0
    printed = yaml.safe_load(result.output[result.output.index("plugins:") :])
    described = printed["plugins"]["datasette-concept-recall"]["databases"]
    assert list(described) == ["x y"]

    config = parse_configuration({"databases": described})["x y"]
    with closing(sqlite3.connect(path)) as conn:
        request = RecallRequest(text="bread, jam, soup")
        configured = recall(conn, request, vocabulary=Vocabulary(config=config))
        assert configured.matches == recall(conn, request).matches != []


@found_alone
@pytest.mark.asyncio
async def test_page_json_and_queries_work_on_it(
    tmp_path: Path, build: Build, make_datasette: MakeDatasette
) -> None:
    """The page links to rows that are there, kinds narrow, pages follow, canned queries agree."""
    datasette = make_datasette(build(tmp_path / "x.db"))
    base = "/x/-/recall"
    answer = (await datasette.client.get(f"{base}.json?q=bread+and+jam")).json()
    titles = [row["title"] for row in answer["rows"]]
    assert titles[:2] == [foreign.BOTH, foreign.ONE]
    page = parse((await datasette.client.get(f"{base}?q=bread+and+jam")).text)
    links = [h.one("a")["href"] for h in page.all("h3", "recall-title")]
    assert len(links) == len(titles)
    for link, row in zip(links, answer["rows"], strict=True):
        response = await datasette.client.get(link)
        assert response.status_code == 200
        assert row["title"] in response.text
        assert row["url"].endswith(link)
    kind = answer["rows"][0]["source_type"]
    narrowed = await datasette.client.get(f"{base}.json?{urlencode({'q': 'jam', 'type': kind})}")
    assert {row["source_type"] for row in narrowed.json()["rows"]} == {kind}
    one_by_one, next_ = [], ""
    while next_ is not None:
        query = urlencode({"q": "bread and jam", "_size": 1, "_next": next_})
        part = (await datasette.client.get(f"{base}.json?{query}")).json()
        one_by_one += [row["title"] for row in part["rows"]]
        next_ = part["next"]
    assert one_by_one == titles
    query = urlencode({"text": "bread and jam", "_shape": "array"})
    rows = (await datasette.client.get(f"/x/concept_recall_by_text.json?{query}")).json()
    assert [row["title"] for row in rows] == titles
    assert [json.loads(row["concepts"]) for row in rows] == [r["concepts"] for r in answer["rows"]]
    assert [row["id"] for row in rows] == [row["id"] for row in answer["rows"]]
    by_names = urlencode({"names": "JAM", "_shape": "array"})
    rows = (await datasette.client.get(f"/x/concept_recall_by_names.json?{by_names}")).json()
    assert {row["title"] for row in rows} >= {foreign.BOTH, foreign.ONE}
    words = urlencode({"word": "scones", "_shape": "array"})
    rows = (await datasette.client.get(f"/x/concept_word_search.json?{words}")).json()
    assert [row["title"] for row in rows] == [foreign.ONE]


def test_arrays_may_hold_anything(tmp_path: Path) -> None:
    """What is no array of names tags nothing, and a number in one is its text."""
    path = foreign.json_array(tmp_path / "x.db")
    foreign.add_odd_arrays(path)
    assert [m.title for m in recalled(path, "jam").matches] == [foreign.ONE, foreign.BOTH]
    assert [m.title for m in recalled(path, "just 1").matches] == ["odd"]


def test_numbers_are_times_since_1970(tmp_path: Path) -> None:
    """Seconds and milliseconds rank beside texts; what is no time comes last."""
    matches = recalled(foreign.epochs(tmp_path / "x.db"), "jam").matches
    assert [m.title for m in matches] == ["text", "milliseconds", "seconds", "none", "blob"]
    assert matches[1].created_at == datetime(2023, 11, 14, 22, 13, 21, tzinfo=timezone.utc)
    assert matches[3].created_at is matches[4].created_at is None


@pytest.mark.parametrize(
    "statements",
    [
        "create table posts (id integer primary key, title text);",
        # Two foreign keys, but texts of its own: an ordinary table.
        """create table users (id integer primary key, name text);
        create table tags (id integer primary key, name text);
        create table posts (id integer primary key, author integer references users(id),
            tag integer references tags(id), body text);""",
        # A table of links to itself, one to something that is gone, one with three keys.
        """create table tags (id integer primary key, name text);
        create table pairs (a integer references tags(id), b integer references tags(id));
        create table links (tag integer references tags(id), item integer references gone(id));
        create table posts (id integer primary key, title text);
        create table users (id integer primary key, name text);
        create table triples (t integer references tags(id), p integer references posts(id),
            u integer references users(id));""",
        # Shared by one link table only, and not named like tags.
        """create table people (id integer primary key, name text);
        create table rooms (id integer primary key, name text);
        create table bookings (person integer references people(id),
            room integer references rooms(id));""",
        """create table tags (id integer primary key, tags text);
        insert into tags (tags) values ('a, b'), ('["a"]'), ('b');""",
        "create view broken_tags as select no_such_function(1) as tags;",
    ],
)
def test_other_tables_are_not_taken_for_tags(tmp_path: Path, statements: str) -> None:
    """A database without links or arrays of tags has nothing to recall, and says so."""
    path = foreign.executed(tmp_path / "x.db", statements)
    result = recalled(path, "a")
    assert result.matches == []
    assert result.warnings
    printed = CliRunner().invoke(cli, ["concept-recall", "inspect", str(path)])
    assert printed.exit_code == 0
    assert "TABLE_OF_TAGS" in printed.output


def inspected(path: Path) -> str:
    """What ``inspect`` prints."""
    result = CliRunner().invoke(cli, ["concept-recall", "inspect", str(path)])
    assert result.exit_code == 0
    return result.output


@pytest.mark.parametrize("tags", ["tags", "label", "notes"])
def test_a_column_of_tags_is_no_text_of_an_item(tmp_path: Path, tags: str) -> None:
    """Neither title nor text, whatever it is called, nor is another that is named like tags."""
    path = foreign.executed(
        tmp_path / "x.db",
        f"""create table songs (id integer primary key, genre_tags text, {tags} text);
        insert into songs ({tags}, genre_tags) values ('["jam"]', '["folk"]');""",
    )
    sources = {"S": {"table": "songs", "tags": tags}}
    config = parse_configuration({"databases": {"x": {"sources": sources}}})["x"]
    with closing(sqlite3.connect(path)) as conn:
        vocabulary = Vocabulary(config=config)
        (match,) = recall(conn, RecallRequest(text="jam"), vocabulary=vocabulary).matches
    assert (match.title, match.body) == ("", "")
    if tags == "tags":
        (match,) = recalled(path, "folk").matches
        assert (match.title, match.body) == ("", "")


def test_inspect_says_which_columns_are_passed_over(tmp_path: Path) -> None:
    """A column named like tags may hold few arrays or none, or be the second of its table."""
    path = foreign.executed(
        foreign.json_array(tmp_path / "x.db"),
        """alter table meals add column topics text;
        update meals set topics = '["a"]';
        create table plain (id integer primary key, category text, keywords text);
        insert into plain (category) values ('["a"]'), ('b'), ('c');
        create view broken as select json('x') as tags;""",
    )
    printed = inspected(path)
    for line in (
        "meals is tagged: tags holds JSON arrays of names.",
        "meals.topics is passed over: meals is tagged by tags.",
        "plain.category is passed over: 1 of 3 values looked at are JSON arrays, fewer than half.",
        "plain.keywords is passed over: it holds nothing.",
        "broken.tags is passed over: it cannot be read (malformed JSON).",
    ):
        assert f"  {line}\n" in printed


def test_inspect_says_that_link_tables_come_before_arrays(tmp_path: Path) -> None:
    """Only of columns that might be tags: no key, no reference, and not the concepts themselves."""
    path = foreign.executed(
        foreign.many_to_many_of_sqlite_utils(tmp_path / "x.db"),
        "alter table meals add column keywords text",
    )
    (line,) = [line for line in inspected(path).splitlines() if "passed over" in line]
    why = "arrays are looked for only where there are no link tables."
    assert line == f"  meals.keywords is passed over: {why}"


def test_inspect_says_how_many_concepts_the_names_are(tmp_path: Path) -> None:
    """Names that differ only in case are one concept, and a blank one is none."""
    path = foreign.many_to_many_of_sqlite_utils(tmp_path / "x.db")
    assert "Concepts: 3 names in tags\n" in inspected(path)
    foreign.executed(path, "insert into tags (tag) values ('JAM'), (' ')")
    assert "Concepts: 5 names in tags, 3 concepts (variants of a name are one)\n" in inspected(path)


def test_of_a_table_of_concepts_only_its_names_count(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """Another name in an array, or the same in other letters, tags nothing."""
    path = foreign.executed(
        tmp_path / "x.db",
        """create table names (name text);
        create table songs (id integer primary key, title text, tags text);
        insert into names values ('jam');
        insert into songs (title, tags) values ('a', '["jam", "tea"]'), ('b', '["Jam"]');""",
    )
    sources = {"S": {"table": "songs", "tags": "tags"}}
    described = {"concepts": {"table": "names"}, "sources": sources}
    config = parse_configuration({"databases": {"x": described}})["x"]
    with closing(sqlite3.connect(path)) as conn:
        request = RecallRequest(text="jam and tea")
        result = recall(conn, request, vocabulary=Vocabulary(config=config))
    assert result.concepts == ["jam"]
    assert [match.title for match in result.matches] == ["a"]


def test_a_table_that_several_link_tables_share_holds_the_concepts(tmp_path: Path) -> None:
    """Whatever it is called, if nothing is named like tags."""
    path = foreign.executed(
        tmp_path / "x.db",
        """create table themes (id integer primary key, name text);
        create table books (id integer primary key, title text);
        create table films (id integer primary key, title text);
        create table book_themes (b integer references books(id), t integer references themes(id));
        create table film_themes (f integer references films(id), t integer references themes(id));
        insert into themes values (1, 'sea'); insert into books values (1, 'A voyage');
        insert into films values (1, 'A wreck'); insert into book_themes values (1, 1);
        insert into film_themes values (1, 1);""",
    )
    assert {m.title for m in recalled(path, "by the SEA").matches} == {"A voyage", "A wreck"}


def test_links_may_hold_the_name(tmp_path: Path) -> None:
    """A foreign key to the column of the names, in another letter case than others have it."""
    path = foreign.executed(
        tmp_path / "x.db",
        """create table keywords (id integer primary key, keyword text unique);
        create table notes (id text primary key, note text);
        create table notes_keywords (note_id text references notes(id),
            keyword text references keywords(keyword));
        insert into keywords (keyword) values ('Jam'), ('jam');
        insert into notes values ('a', 'first'), ('b', 'second');
        insert into notes_keywords values ('a', 'Jam'), ('b', 'jam'), ('c', 'jam');""",
    )
    result = recalled(path, "jam")
    assert [(m.id, m.body) for m in result.matches] == [("a", "first"), ("b", "second")]
    assert result.counts[0].total == 2


def test_rows_without_a_usable_key_are_still_found(tmp_path: Path) -> None:
    """Keys of bytes, NULL keys, and tables without a primary key, whose rows have numbers."""
    path = foreign.executed(
        tmp_path / "x.db",
        """create table tags (id blob primary key, name text);
        create table things (name text, rowid text);
        create table thing_tags (thing text references things(name), tag blob references tags(id));
        insert into tags values (x'ff00', 'hex'), ('t', 'text');
        insert into things values ('one', 'x'), ('two', 'y');
        insert into thing_tags values ('one', 't'), ('two', x'ff00'), (null, 't');""",
    )
    (match,) = recalled(path, "text").matches
    assert (match.title, match.id) == ("one", 1)
    assert recalled(path, "hex").matches == []


BLOG = """
    create table sections (id integer primary key, name text);
    create table posts (id integer primary key, headline text, words text, day text,
        section_id integer references sections(id), draft integer, paper text);
    create table labels (code text primary key, shown text, about text);
    create table labelled (post integer, label text);
    insert into sections values (1, 'Food'), (2, 'Travel');
    insert into posts values (1, 'Jam', 'About it', '2026-01-01', 1, 0, 'Morning'),
        (2, 'Trains', 'On rails', '2026-01-02', 2, 0, 'Evening'),
        (3, 'Unfinished', '', '2026-01-03', 1, 1, null);
    insert into labels values ('j', 'jam', 'Fruit'), ('t', 'train', 'Rails');
    insert into labelled values (1, 'j'), (2, 't'), (2, 'j'), (3, 'j'), (4, 'j');
    create view published as select * from posts where not draft;
"""
POST = {
    "table": "posts",
    "link": "labelled",
    "item_key": "post",
    "concept_key": "label",
    "title": "headline",
    "body": "words",
    "created": "day",
}
LABELS = {"table": "labels", "name": "shown", "description": "about"}


@pytest.fixture
def blog(tmp_path: Path) -> Path:
    """A database in which nothing can be found without configuration."""
    return foreign.executed(tmp_path / "blog.db", BLOG)


async def ask(datasette: Any, **query: object) -> dict[str, Any]:
    """The JSON answer for a query."""
    response = await datasette.client.get(f"/blog/-/recall.json?{urlencode(query, doseq=True)}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    return answer


@pytest.mark.asyncio
async def test_configuration_says_what_cannot_be_found(
    blog: Path, make_datasette: MakeDatasette
) -> None:
    """Links without foreign keys to a text key, labels, and only some of the rows."""
    assert recalled(blog, "jam").matches == []
    source = {**POST, "where": "draft = 0 and day < '2027'"}
    config = plugin(blog={"concepts": LABELS, "sources": {"Blog post": source}})
    datasette = make_datasette(blog, config=config)
    answer = await ask(datasette, q="jam and a train")
    assert [(row["title"], row["ref"], row["body"]) for row in answer["rows"]] == [
        ("Trains", "Blog post:2", "On rails"),
        ("Jam", "Blog post:1", "About it"),
    ]
    assert answer["total"] == 2


@pytest.mark.asyncio
@pytest.mark.parametrize("column", ["section_id", "paper"])
async def test_a_project_is_a_column_or_what_it_refers_to(
    blog: Path, make_datasette: MakeDatasette, column: str
) -> None:
    """Items are narrowed to it by name; a name that no item has is an error."""
    config = plugin(blog={"concepts": LABELS, "sources": {"Post": {**POST, "project": column}}})
    datasette = make_datasette(blog, config=config)
    names = {row["title"]: row["project"] for row in (await ask(datasette, q="jam"))["rows"]}
    expected = {
        "section_id": {"Jam": "Food", "Trains": "Travel", "Unfinished": "Food"},
        "paper": {"Jam": "Morning", "Trains": "Evening", "Unfinished": None},
    }[column]
    assert names == expected
    project = expected["Trains"]
    narrowed = await ask(datasette, q="jam", project=project)
    assert [row["title"] for row in narrowed["rows"]] == ["Trains"]
    page = await datasette.client.get(f"/blog/-/recall?q=jam&project={project}")
    assert project in page.text
    response = await datasette.client.get("/blog/-/recall.json?q=jam&project=Nope")
    assert response.status_code == 400
    assert "Nope" in response.json()["error"]


@pytest.mark.asyncio
async def test_a_view_can_be_a_source(blog: Path, make_datasette: MakeDatasette) -> None:
    """Its rows have no pages, so a link shows the view cut down to the row."""
    source = {**POST, "table": "published"}
    config = plugin(blog={"concepts": LABELS, "sources": {"Post": source}})
    datasette = make_datasette(blog, config=config)
    rows = (await ask(datasette, q="jam"))["rows"]
    assert [row["title"] for row in rows] == ["Trains", "Jam"]
    assert rows[0]["id"] == 2
    response = await datasette.client.get(rows[0]["url"].partition("localhost")[2])
    assert response.status_code == 200
    assert "On rails" in response.text
    assert "About it" not in response.text


@pytest.mark.asyncio
@pytest.mark.parametrize("private", ["posts", "labels", "labelled", "sections"])
async def test_private_tables_of_a_configured_database_stay_private(
    blog: Path, make_datasette: MakeDatasette, private: str
) -> None:
    """Without a table of its own a source is not there; without the names nobody may ask."""
    config = plugin(
        blog={
            "concepts": LABELS,
            "sources": {"Post": {**POST, "project": "section_id"}},
        }
    )
    config["databases"] = {"blog": {"tables": {private: {"allow": {"id": "root"}}}}}
    datasette = make_datasette(blog, config=config)
    response = await datasette.client.get("/blog/-/recall.json?q=jam")
    if private == "labels":
        assert response.status_code == 403
        return
    answer = response.json()
    if private == "sections":
        assert [row["project"] for row in answer["rows"]] == [None, None, None]
    else:
        assert (answer["rows"], answer["total"], answer["concepts"][0]["total"]) == ([], 0, 0)
    cookies = actor_cookie(datasette, "root")
    seen = await datasette.client.get("/blog/-/recall.json?q=jam", cookies=cookies)
    assert seen.json()["total"] == 3


@pytest.mark.asyncio
async def test_names_in_arrays_need_every_table_they_are_in(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """What a text names must not tell what is in a table that is not to be seen."""
    path = foreign.json_array(tmp_path / "blog.db")
    foreign.executed(
        path,
        "create table secrets (id integer primary key, tags text);"
        "insert into secrets (tags) values ('[\"ambush\"]');",
    )
    config = {"databases": {"blog": {"tables": {"secrets": {"allow": {"id": "root"}}}}}}
    datasette = make_datasette(path, config=config)
    response = await datasette.client.get("/blog/-/recall.json?q=ambush+jam")
    assert response.status_code == 403
    cookies = actor_cookie(datasette, "root")
    answer = (
        await datasette.client.get("/blog/-/recall.json?q=ambush+jam", cookies=cookies)
    ).json()
    assert [c["name"] for c in answer["concepts"]] == ["ambush", "jam"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"table": "post"}, "sources.Post.table: there is no table post"),
        ({"link": "links"}, "sources.Post.link: there is no table links"),
        ({"item_key": "nope"}, "sources.Post.item_key: labelled has no column nope"),
        ({"item_key": ["post", "label"]}, "sources.Post.item_key: post, label cannot refer to id"),
        ({"item_key": None}, "sources.Post.item_key: None is neither"),
        ({"concept_key": "nope"}, "sources.Post.concept_key: labelled has no column nope"),
        ({"title": "nope"}, "sources.Post.title: posts has no column nope"),
        ({"created": "nope"}, "sources.Post.created: posts has no column nope"),
        ({"project": "nope"}, "sources.Post.project: posts has no column nope"),
        ({"where": "nope = 1"}, "sources.Post.where: is no condition that can be used"),
        ({"where": "1) or (1"}, ""),
        ({"where": "id = ?"}, "sources.Post.where: is no condition that can be used"),
        ({"where": "(1"}, "sources.Post.where: is no condition that can be used"),
        ({"link_where": "1; drop table posts"}, "sources.Post.link_where: is no condition"),
        ({"key": "nope"}, "sources.Post.key: posts has no column nope"),
        ({"tittle": "headline"}, "sources.Post.tittle: is unknown here"),
    ],
)
async def test_a_wrong_configuration_stops_datasette_with_its_key(
    blog: Path, make_datasette: MakeDatasette, change: dict[str, Any], key: str
) -> None:
    """One line at the start, before anything is served."""
    config = plugin(blog={"concepts": LABELS, "sources": {"Post": {**POST, **change}}})
    datasette = make_datasette(blog, config=config)
    if not key:
        await datasette.invoke_startup()
        return
    with pytest.raises(StartupError) as raised:
        await datasette.invoke_startup()
    message = str(raised.value)
    assert message.startswith(f"plugins.datasette-concept-recall.databases.blog.{key}")
    assert "\n" not in message


@pytest.mark.asyncio
async def test_a_database_that_is_not_served_is_a_mistake(
    blog: Path, make_datasette: MakeDatasette
) -> None:
    """Its name is most likely misspelt."""
    datasette = make_datasette(
        blog, config=plugin(blogg={"sources": {"P": {**POST}}, "concepts": LABELS})
    )
    with pytest.raises(StartupError, match=r"databases\.blogg: no database of this name"):
        await datasette.invoke_startup()


def test_the_command_says_what_is_wrong_in_one_line(blog: Path, tmp_path: Path) -> None:
    """``datasette serve`` ends with the key of the mistake."""
    file = tmp_path / "datasette.yaml"
    config = plugin(blog={"concepts": LABELS, "sources": {"P": {"table": 1}}})
    file.write_text(yaml.safe_dump(config))
    option = "--config" if IS_1_0 else "--metadata"
    command = [sys.executable, "-m", "datasette", "serve", str(blog), option, str(file), "-p", "0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode != 0
    (line,) = ended.stderr.strip().splitlines()
    assert line.startswith("Error: plugins.datasette-concept-recall")
    assert line.endswith("databases.blog.sources.P.table: 1 is not a text")


@pytest.mark.asyncio
async def test_a_configured_table_that_is_dropped_is_missed_not_an_error(
    blog: Path, make_datasette: MakeDatasette
) -> None:
    """What is left is answered with."""
    sources = {"Post": POST, "View": {**POST, "table": "published"}}
    datasette = make_datasette(blog, config=plugin(blog={"concepts": LABELS, "sources": sources}))
    assert (await ask(datasette, q="train"))["total"] == 2
    foreign.executed(blog, "drop view published")
    assert [row["ref"] for row in (await ask(datasette, q="train"))["rows"]] == ["Post:2"]
    foreign.executed(blog, "drop table labels")
    assert (await ask(datasette, q="train"))["rows"] == []


@pytest.mark.asyncio
async def test_a_token_of_another_source_is_refused(
    tmp_path: Path, make_datasette: MakeDatasette
) -> None:
    """A number is no place among texts."""
    datasette = make_datasette(foreign.compound(tmp_path / "blog.db", without_rowid=True))
    response = await datasette.client.get("/blog/-/recall.json?q=jam&_next=1.5.0.7")
    assert response.status_code == 400
    assert "_next" in response.json()["error"]


def test_an_item_is_called_by_its_key() -> None:
    """A single number or text stands for itself, several values for a JSON array."""

    def ref(id_: int | str) -> str:
        return ConceptMatch("Post", id_, None, None, "", "", 1, (), None).ref

    assert (ref(5), ref("a/b"), ref('["a",1]')) == ("Post:5", "Post:a/b", 'Post:["a",1]')
