"""Configuration: what may be written, and that a mistake is told by its key."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from datasette_concept_recall.config import (
    NONE,
    ConceptsConfig,
    DatabaseConfig,
    SourceConfig,
    parse_configuration,
)
from datasette_concept_recall.errors import BadConfiguration

POSTS = {"table": "posts", "link": "posts_tags"}
TAGS = {"table": "tags", "name": "tag"}


def blog(concepts: object = TAGS, **sources: object) -> dict[str, Any]:
    """Configuration of one database."""
    return {"databases": {"blog": {"concepts": concepts, "sources": sources}}}


def test_everything_that_may_be_configured_is_read() -> None:
    """Every key has its place, and one column may be written without a list."""
    given = yaml.safe_load(
        """
        databases:
          blog:
            concepts: {table: tags, name: tag, description: null, key: slug}
            sources:
              Post:
                table: posts
                link: posts_tags
                item_key: [a, b]
                concept_key: tag_id
                link_where: "x = 1"
                key: id
                title: headline
                body: null
                created: pub
                project: section
                where: "draft = 0"
              Note: {table: notes, tags: labels}
        """
    )
    assert parse_configuration(given) == {
        "blog": DatabaseConfig(
            ConceptsConfig("tags", "tag", NONE, ("slug",)),
            {
                "Post": SourceConfig(
                    table="posts",
                    link="posts_tags",
                    item_key=("a", "b"),
                    concept_key="tag_id",
                    link_where="x = 1",
                    key=("id",),
                    title="headline",
                    body=NONE,
                    created="pub",
                    project="section",
                    where="draft = 0",
                ),
                "Note": SourceConfig(table="notes", tags="labels"),
            },
        )
    }


@pytest.mark.parametrize("given", [None, {}, {"databases": {}}, {"databases": None}])
def test_no_configuration_is_none(given: object) -> None:
    """An empty configuration describes no database."""
    assert parse_configuration(given) == {}


@pytest.mark.parametrize(
    ("given", "key", "problem"),
    [
        ([], "(top)", "not an object"),
        ({"database": {}}, "database", "unknown here; known are databases"),
        ({"databases": []}, "databases", "not an object"),
        ({"databases": {"blog": None}}, "databases.blog", "not an object"),
        (blog(), "databases.blog.sources", "at least one"),
        (blog(None, Post=POSTS), "databases.blog.concepts", "is missing"),
        (blog({"name": "x"}, Post=POSTS), "databases.blog.concepts.table", "is missing"),
        (blog({"table": "t", "nam": "x"}, Post=POSTS), "databases.blog.concepts.nam", "unknown"),
        (blog({"table": 5}, Post=POSTS), "databases.blog.concepts.table", "5 is not a text"),
        (blog(Post={"link": "x"}), "databases.blog.sources.Post.table", "is missing"),
        (blog(Post={"table": "x"}), "databases.blog.sources.Post.link", "either"),
        (blog(Post={**POSTS, "tags": "x"}), "databases.blog.sources.Post.link", "either"),
        (blog(Post={**POSTS, "titel": "x"}), "databases.blog.sources.Post.titel", "unknown"),
        (blog(Post={**POSTS, "title": " "}), "databases.blog.sources.Post.title", "not a text"),
        (blog(Post={**POSTS, "table": None}), "databases.blog.sources.Post.table", "not a text"),
        (blog(Post={**POSTS, "item_key": []}), "databases.blog.sources.Post.item_key", "column"),
        (blog(Post={**POSTS, "key": ["a", 1]}), "databases.blog.sources.Post.key", "column"),
        (
            blog(None, Post={"table": "x", "tags": "y", "item_key": "z"}),
            "databases.blog.sources.Post.item_key",
            "belongs to a link",
        ),
        (blog(**{"a\nb": POSTS}), "databases.blog.sources.a\nb", "label"),
        ({"databases": {5: {}}}, "databases.5", "keys are texts"),
    ],
)
def test_a_mistake_is_told_by_its_key(given: object, key: str, problem: str) -> None:
    """The error names the key under which the mistake stands, and what is wrong with it."""
    with pytest.raises(BadConfiguration, match=problem) as raised:
        parse_configuration(given)
    assert raised.value.key == key


def test_printed_configuration_reads_as_the_same() -> None:
    """What is printed for pasting describes what was found, also through YAML."""
    config = DatabaseConfig(
        ConceptsConfig("my tags", "naïve: name", NONE),
        {
            "Post": SourceConfig(
                "posts", link="l", item_key=("a", "b"), body=NONE, where="x <> ''"
            ),
            "no": SourceConfig("notes", tags="on"),
        },
    )
    printed = yaml.safe_dump({"databases": {"1.0": config.as_configuration()}}, sort_keys=False)
    assert parse_configuration(yaml.safe_load(printed)) == {"1.0": config}
