"""The pages of tables, asked for as JSON or CSV, and what must be on them, said in plain Python."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import knowledge
from conftest import IS_1_0
from knowledge import Section

TAGS = {
    1: {"RAG", "chunking"},
    2: {"RAG"},
    3: {"rag", "C++"},
    4: {"C++"},
    5: set(),
    6: {"RAG", "rag"},
}
"""Observation -> what it is tagged with; two names are one but for their letters."""

KINDS = {number: "finding" if number % 2 else "note" for number in TAGS}


def build(path: Path) -> Path:
    """A knowledge database of these observations, two records and two documents, one tagged."""
    with closing(knowledge.create(path)) as conn:
        for number, tags in TAGS.items():
            project, body = "P" if number < 4 else None, f"Body {number}"
            about = {"concepts": sorted(tags), "kind": KINDS[number], "project": project}
            knowledge.add_observation(conn, body, **about)
        knowledge.add_record(conn, "First", "x", concepts=["RAG"])
        knowledge.add_record(conn, "Second", "x", concepts=["chunking"])
        section = Section("Part", body="x", concepts=["RAG"])
        knowledge.add_document(conn, "Book", sections=[section])
        knowledge.add_document(conn, "Other", sections=[Section("Part", body="x")])
        conn.commit()
    return path


def named(tag: str, name: str) -> bool:
    """Whether a tag is a name, in any letter case."""
    return tag.casefold() == name.casefold()


def tagged(*names: str) -> list[int]:
    """The observations that have every one of these names."""
    return [
        number
        for number, tags in TAGS.items()
        if all(any(named(tag, name) for tag in tags) for name in names)
    ]


def counted(numbers: Iterable[int]) -> list[tuple[str, int]]:
    """What the facet says of these observations: variants are one, by the first of them."""
    names = set().union(*TAGS.values())
    first = {tag: min(name for name in names if named(name, tag)) for tag in names}
    found = Counter(name for n in numbers for name in {first[tag] for tag in TAGS[n]})
    return sorted(found.items(), key=lambda each: (-each[1], each[0]))


async def table(datasette: Any, name: str = "observations", **query: object) -> dict[str, Any]:
    """The JSON of a table page of the database ``k``, with the same keys on both versions."""
    extras = {"_extra": "count,human_description_en,facet_results,facets_timed_out"}
    asked = urlencode({"_shape": "objects", **(extras if IS_1_0 else {}), **query}, doseq=True)
    response = await datasette.client.get(f"/k/{name}.json?{asked}")
    assert response.status_code == 200, response.text
    answer: dict[str, Any] = response.json()
    answer["count"] = answer["count" if IS_1_0 else "filtered_table_rows_count"]
    if IS_1_0:
        answer["facet_results"] = answer["facet_results"]["results"]
    return answer


async def csv_rows(datasette: Any, name: str, **query: object) -> list[dict[str, str]]:
    """The rows of the CSV of a table page."""
    response = await datasette.client.get(f"/k/{name}.csv?{urlencode(query, doseq=True)}")
    assert response.status_code == 200, response.text
    return list(csv.DictReader(io.StringIO(response.text)))


def counts(answer: dict[str, Any]) -> list[tuple[str, int]]:
    """The concept facet of an answer."""
    return [(v["value"], v["count"]) for v in answer["facet_results"]["concepts"]["results"]]


def private(*tables: str) -> dict[str, Any]:
    """Configuration by which only ``root`` may see these tables of ``k``, or without any all."""
    block = {"allow": {"id": "root"}}
    return {"databases": {"k": {"tables": dict.fromkeys(tables, block)} if tables else block}}


def described(concepts: str, **sources: dict[str, Any]) -> dict[str, Any]:
    """Configuration of the tables of ``k``: that of the concepts, and the sources."""
    database = {"concepts": {"table": concepts}, "sources": sources}
    return {"plugins": {"datasette-concept-recall": {"databases": {"k": database}}}}
