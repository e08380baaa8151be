"""Knowledge databases of any size, the same ones every time, with concepts tagged as in life.

A few concepts carry much and most carry little (the law of Zipf and Mandelbrot), newer items have
higher ids but for some that came late, and bodies are as long as notes, decisions and sections are.
"""

from __future__ import annotations

import math
import random
import sqlite3
from array import array
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import accumulate
from pathlib import Path

import datasette_concept_recall

from . import corpus

SCHEMA = Path(datasette_concept_recall.__file__).parent / "demo_data" / "schema.sql"

HOT, HOT_SHARE = 3, 0.017
"""So many concepts have this share of all links each: 85,000 of 5 million."""

_FLATTENED = 5  # ranks that the head of the law is moved by
_SECTIONS = 10  # of each document, the gist among them
_START = datetime(2021, 1, 1, tzinfo=timezone.utc)
_SECONDS = 5 * 365 * 24 * 3600
_TEXT_BYTES = 1_000_000


@dataclass(frozen=True)
class Size:
    """How many rows of each kind."""

    observations: int
    records: int
    sections: int
    links: int
    concepts: int
    projects: int = 40


@dataclass(frozen=True)
class Made:
    """What was written: ``tagged`` are the names of concepts with how many links each has."""

    tagged: dict[str, int]

    def hot(self) -> list[str]:
        return list(self.tagged)[:HOT]

    def about(self, links: int, count: int) -> list[str]:
        """The concepts that have about so many links, none of the hot ones."""
        names = list(self.tagged)[HOT:]
        return sorted(names, key=lambda name: abs(self.tagged[name] - links))[:count]


def build(path: Path, size: Size) -> Made:
    """Writes a database of that size to a new file."""
    rng, names = random.Random("knowledge"), list(corpus.names(size.concepts))
    with closing(sqlite3.connect(path, isolation_level=None)) as conn:
        conn.executescript(SCHEMA.read_text(encoding="utf-8"))
        conn.execute("pragma synchronous = off")
        conn.execute("pragma cache_size = -200000")
        conn.execute("begin")
        conn.executemany(
            "insert into concepts (id, name, uuid) values (?, ?, ?)",
            ((id_, name, _uuid(id_)) for id_, name in enumerate(names, 1)),
        )
        _add_items(conn, size, rng)
        tagged = _add_links(conn, size, names, rng)
        conn.execute("commit")
    return Made(tagged)


# --- items ---------------------------------------------------------------------------------------


def _add_items(conn: sqlite3.Connection, size: Size, rng: random.Random) -> None:
    projects = range(1, size.projects + 1)
    conn.executemany(
        "insert into projects (id, name, uuid) values (?, ?, ?)",
        ((id_, f"project {id_}", _uuid(id_)) for id_ in projects),
    )
    owners = _owners(rng, size.projects)
    conn.executemany(
        "insert into observations (id, project_id, body, created_at, uuid) values (?, ?, ?, ?, ?)",
        (
            (id_, next(owners), body, time, _uuid(id_))
            for id_, body, time in _written(size.observations, 400, 0.9, rng)
        ),
    )
    conn.executemany(
        "insert into records (id, project_id, record_id, path, title, date, status, body,"
        " ingested_at, uuid) values (?, ?, ?, ?, ?, '2026-01-15', ?, ?, ?, ?)",
        (
            (
                id_,
                next(owners),
                f"{id_:04}",
                f"decisions/{id_:04}.md",
                body[:40],
                rng.choice(("proposed", "accepted", "accepted", "superseded")),
                body,
                time,
                _uuid(id_),
            )
            for id_, body, time in _written(size.records, 4_000, 0.7, rng)
        ),
    )
    _add_documents(conn, size, owners, rng)


def _add_documents(
    conn: sqlite3.Connection, size: Size, owners: Iterator[int | None], rng: random.Random
) -> None:
    documents = range(1, math.ceil(size.sections / _SECTIONS) + 1)
    conn.executemany(
        "insert into documents (id, project_id, title, path, uuid) values (?, ?, ?, ?, ?)",
        ((id_, next(owners), f"Document {id_}", f"{id_}.md", _uuid(id_)) for id_ in documents),
    )
    conn.executemany(
        "insert into document_sections (id, document_id, level, seq, heading, body, summary_body,"
        " summary_status, created_at, uuid) values (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            (
                id_,
                (id_ - 1) // _SECTIONS + 1,
                "section" if (id_ - 1) % _SECTIONS else "gist",
                (id_ - 1) % _SECTIONS,
                body[:30],
                body,
                body[: len(body) // 5],
                rng.choice(("unsummarized", "drafted", "reviewed")),
                time,
                _uuid(id_),
            )
            for id_, body, time in _written(size.sections, 1_500, 0.7, rng)
        ),
    )


def _written(
    count: int, median: int, spread: float, rng: random.Random
) -> Iterator[tuple[int, str, str]]:
    """Ids with bodies, their length log-normally distributed, and times."""
    text = corpus.prose(_TEXT_BYTES, corpus.names(100))
    for id_ in range(1, count + 1):
        length = int(rng.lognormvariate(math.log(median), spread))
        start = rng.randrange(max(1, len(text) - length))
        age = min(1.0, id_ / count + rng.random() ** 8 * 0.2)
        instant = _START + timedelta(seconds=int(age * _SECONDS))
        # Some were imported, and those are spelled otherwise.
        spelling = "%Y-%m-%dT%H:%M:%SZ" if rng.random() < 0.3 else "%Y-%m-%d %H:%M:%S"
        yield id_, text[start : start + length], instant.strftime(spelling)


def _owners(rng: random.Random, projects: int) -> Iterator[int | None]:
    """Project ids without end, few of them frequent, and None now and then."""
    weights = list(accumulate(1 / (rank + 1) for rank in range(projects)))
    while True:
        for owner in rng.choices(range(1, projects + 1), cum_weights=weights, k=10_000):
            yield None if rng.random() < 0.05 else owner


def _uuid(serial: int) -> str:
    return f"01900000-0000-7000-8000-{serial:012x}"


# --- links ---------------------------------------------------------------------------------------


def _link_counts(size: Size) -> list[int]:
    """How many links the concept of each rank has."""
    hot = int(size.links * HOT_SHARE)
    ranks = range(HOT, size.concepts)
    weights = [1 / (rank + _FLATTENED) for rank in ranks]
    unit = (size.links - HOT * hot) / sum(weights)
    return [hot] * HOT + [max(1, min(hot, round(unit * weight))) for weight in weights]


def _add_links(
    conn: sqlite3.Connection, size: Size, names: list[str], rng: random.Random
) -> dict[str, int]:
    """Tags items at random, and writes the links in the order of the items."""
    tables = {
        "observation_concepts": size.observations,
        "record_concepts": size.records,
        "document_section_concepts": size.sections,
    }
    items = sum(tables.values())
    by_rank = rng.sample(range(1, size.concepts + 1), size.concepts)
    tagged: dict[str, int] = {}
    packed = array("Q")
    for concept, count in zip(by_rank, _link_counts(size), strict=True):
        chosen = rng.sample(range(items), min(count, items))
        packed.extend([item << 24 | concept for item in chosen])
        tagged[names[concept - 1]] = len(chosen)
    links, start = iter(sorted(packed)), 0
    link = next(links, None)
    for table, count in tables.items():
        rows = []
        while link is not None and link >> 24 < start + count:
            rows.append(((link >> 24) - start + 1, link & 0xFFFFFF))
            link = next(links, None)
        conn.executemany(f"insert into {table} values (?, ?)", rows)
        start += count
    return tagged
