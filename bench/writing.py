"""What `optimize` costs those who write, and what their writing costs a recall."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from functools import partial

from datasette_concept_recall.models import RecallRequest

from .bed import Bed, open_database, recall_call
from .common import Report, Sizes, interleaved


def measure_writes(report: Report, sizes: Sizes, bed: Bed) -> None:
    """What the triggers cost those who write: observations with three links each, rolled back."""
    number = sizes.pick(100, 5_000)
    with (
        closing(open_database(bed.plain, "rw")) as plain,
        closing(open_database(bed.optimized, "rw")) as optimized,
    ):
        calls = {
            "plain": partial(_write, plain, number),
            "optimized": partial(_write, optimized, number),
        }
        timing = interleaved(calls, sizes.pick(0.0, 2.0), least=sizes.pick(1, 5))
    cells = [f"{each.median / number * 1e6:.1f}" for each in timing.values()]
    title = "Writing an observation with three links, µs"
    report.table(title, ("plain file", "optimized"), [cells])
    report.data[title] = {name: each.as_json() for name, each in timing.items()}


def _write(conn: sqlite3.Connection, number: int) -> None:
    _insert(conn, number)
    conn.rollback()


def _insert(conn: sqlite3.Connection, number: int) -> None:
    """Adds observations that are tagged with three concepts each."""
    ((highest, concepts),) = conn.execute(
        "select (select max(id) from observations), (select max(id) from concepts)"
    ).fetchall()
    ids = range(highest + 1, highest + 1 + number)
    conn.executemany(
        "insert into observations (id, body, uuid) values (?, 'A note.', ?)",
        ((id_, f"new {id_}") for id_ in ids),
    )
    conn.executemany(
        "insert into observation_concepts values (?, ?)",
        ((id_, (id_ * 7 + part * 13) % concepts + 1) for id_ in ids for part in range(3)),
    )


def measure_after_changes(report: Report, sizes: Sizes, bed: Bed) -> None:
    """How recall slows down as items change after `optimize`, which is never run by itself."""
    rows, changed = [], 0
    with closing(open_database(bed.optimized, "rw")) as conn:
        for number in sizes.pick((0, 10), (0, 100, 1_000, 10_000, 100_000)):
            _insert(conn, number - changed)
            conn.commit()
            changed = number
            ours = recall_call(conn)
            calls = {
                query: partial(ours, RecallRequest(names=tuple(names), limit=20))
                for query, names in bed.queries.items()
            }
            timing = interleaved(calls, sizes.pick(0.0, 2.0), least=sizes.pick(1, 3))
            rows.append((f"{number:,}", *map(str, timing.values())))
            report.data[f"{number} changed"] = {q: each.as_json() for q, each in timing.items()}
    header = ("items changed", *bed.queries)
    report.table("Recall after changes, limit 20, ms (quartiles)", header, rows)
