"""Recall by concept from databases of up to 5 million links, with and without `optimize`.

    python -m bench.recall [--smoke | --full | --profile QUERY] [--output FOLDER] [--folder FOLDER]

Beside ours stands the plain statement of the rules: load every tagged row, sort all, cut. The full
database and its optimized copy need 7 GB in the folder while this runs.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import pstats
import shutil
import sqlite3
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from datasette.app import Datasette
from datasette.utils import sqlite_timelimit

from datasette_concept_recall import optimizing
from datasette_concept_recall.models import RecallRequest

from .bed import HOTS, MIDDLING, ONE_HOT, RARE, Ask, Bed, open_database, recall_call
from .common import Report, Sizes, Timing, interleaved, milliseconds, ratio, read_arguments
from .generated import Size, build
from .load_all import load_all
from .writing import measure_after_changes, measure_writes

OURS, PLAIN = "ours, optimized", "ours, plain file"
LOAD_PLAIN, LOAD = "load all, plain file", "load all, optimized"
LIMITS = (5, 20, 1000)
_SIZES = {
    "smoke": Size(1_000, 200, 100, 4_000, 300),
    "usual": Size(100_000, 20_000, 10_000, 500_000, 10_000),
    "full": Size(1_000_000, 200_000, 100_000, 5_000_000, 100_000),
}
_TARGETS = {RARE: 1, MIDDLING: 10, ONE_HOT: 10, HOTS: 25}
_TIME_LIMIT = 1000  # milliseconds, Datasette's own


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, given = read_arguments(__doc__, arguments, _more_arguments)
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        report = Report("recall", sizes)
        bed = _make(report, sizes, Path(folder))
        if given.profile:
            _profile(bed, given.profile)
            return
        _recalls(report, sizes, bed)
        asyncio.run(_time_limit(report, bed))
        measure_writes(report, sizes, bed)
        measure_after_changes(report, sizes, bed)
    print(f"\nWritten to {report.finish()}")


def _more_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="where the databases are while they are needed")
    parser.add_argument(
        "--profile", choices=_TARGETS, help="only say where the time of a query goes"
    )


# --- the databases -------------------------------------------------------------------------------


def _make(report: Report, sizes: Sizes, folder: Path) -> Bed:
    size = sizes.pick(_SIZES["smoke"], _SIZES["usual"], _SIZES["full"])
    plain, optimized = folder / "plain.db", folder / "optimized.db"
    began = time.perf_counter()
    made = build(plain, size)
    report.note(f"{size}, written in {time.perf_counter() - began:.1f} s.")
    shutil.copyfile(plain, optimized)
    _optimize(report, optimized)
    return Bed(plain, optimized, made)


def _optimize(report: Report, file: Path) -> None:
    """Optimizes a file, and says how long each step takes and how large each part is."""
    steps: list[tuple[str, float]] = []
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        before, began = optimizing.size_of(conn), time.perf_counter()
        optimizing.optimize(conn, lambda step: steps.append((step, time.perf_counter())))
        steps.append(("", time.perf_counter()))
        after = optimizing.size_of(conn)
    rows = [(step, f"{until - since:.1f}") for (step, since), (_, until) in pairwise(steps)]
    seconds, added = steps[-1][1] - began, (after - before) / 1e6
    report.table("`optimize`", ("step", "s"), [*rows, ("all", f"{seconds:.1f}")])
    report.note(f"\nIt adds {added:,.1f} MB to {before / 1e6:,.1f} MB.")
    report.data["optimize"] = {"seconds": seconds, "added MB": added, "before MB": before / 1e6}


# --- what is measured ----------------------------------------------------------------------------


def _recalls(report: Report, sizes: Sizes, bed: Bed) -> None:
    rows, times = [], {}
    with (
        closing(open_database(bed.plain)) as plain,
        closing(open_database(bed.optimized)) as optimized,
    ):
        ours, ours_plain = recall_call(optimized), recall_call(plain)
        for query, names in bed.queries.items():
            for limit in LIMITS:
                asked = RecallRequest(names=tuple(names), limit=limit)
                calls: dict[str, Callable[[], Any]] = {
                    OURS: partial(ours, asked),
                    PLAIN: partial(ours_plain, asked),
                    LOAD_PLAIN: partial(load_all, plain, names, limit),
                    LOAD: partial(load_all, optimized, names, limit),
                }
                _check(calls)
                seconds = sizes.pick(0.0, 2.0, 10.0)
                timing = interleaved(calls, seconds, least=sizes.pick(1, 3), most=100)
                times[query, limit] = timing
                rows.append(_row(bed, query, limit, timing))
        _facets(report, sizes, bed, ours)
    header = ("query", "links", "limit", *(OURS, PLAIN, LOAD_PLAIN, LOAD), "÷ plain", "÷ optimized")
    report.table("Recall, ms (quartiles), and how many times slower loading all is", header, rows)
    report.data["recall"] = {
        f"{query}, limit {limit}": {label: each.as_json() for label, each in timing.items()}
        for (query, limit), timing in times.items()
    }
    _targets(report, {query: times[query, 20] for query in bed.queries})


def _check(calls: dict[str, Callable[[], Any]]) -> None:
    """All four say the same, or they could not be compared."""
    expected = calls[LOAD]()
    for label in (OURS, PLAIN):
        found = [(match.source_type, match.id) for match in calls[label]().matches]
        if found != expected:
            raise RuntimeError(f"{label} and loading all disagree: {found} {expected}")


def _row(bed: Bed, query: str, limit: int, times: dict[str, Timing]) -> tuple[str, ...]:
    links = sum(bed.made.tagged[name] for name in bed.queries[query])
    cells = [str(times[label]) for label in (OURS, PLAIN, LOAD_PLAIN, LOAD)]
    slower = [times[label].median / times[OURS].median for label in (LOAD_PLAIN, LOAD)]
    return query, f"{links:,}", str(limit), *cells, *(f"{value:,.0f} ×" for value in slower)


def _targets(report: Report, times: dict[str, dict[str, Timing]]) -> None:
    for query, limit in _TARGETS.items():
        timing = times[query]
        report.target(f"{query}, limit 20, ms", timing[OURS].median * 1000, limit)
        for label in (LOAD_PLAIN,) if query == RARE else (LOAD_PLAIN, LOAD):
            slower = ratio(timing[label], timing[OURS])
            report.target(f"{query}: {label}, times ours", slower, 20, at_least=True)


def _facets(report: Report, sizes: Sizes, bed: Bed, ours: Ask) -> None:
    """What the page asks more: the counts by type and project, and a narrowing to one project."""
    rows = []
    for query, names in bed.queries.items():
        asked = RecallRequest(names=tuple(names), limit=20)
        counts = replace(asked, facets=True)
        calls = {
            "plain": partial(ours, asked),
            "facets": partial(ours, counts),
            "narrow": partial(ours, replace(counts, project="project 2")),
        }
        timing = interleaved(calls, sizes.pick(0.0, 1.0, 3.0), least=sizes.pick(1, 3))
        rows.append((query, *map(str, timing.values())))
        report.data[f"facets, {query}"] = {name: each.as_json() for name, each in timing.items()}
    header = ("query", "matches", "and the counts", "and of one project")
    report.table("As for the page, limit 20, ms (quartiles)", header, rows)


async def _time_limit(report: Report, bed: Bed) -> None:
    """Asks a Datasette for the JSON of each query, from the file without the index."""
    rows = []
    datasette = Datasette([str(bed.plain)], settings={"sql_time_limit_ms": _TIME_LIMIT})
    for query, names in bed.queries.items():
        path = "/plain/-/recall.json?" + urlencode({"concept": names, "_size": 20}, doseq=True)
        began = time.perf_counter()
        response = await datasette.client.get(path)
        seconds = time.perf_counter() - began
        with closing(open_database(bed.plain)) as conn:
            alone = _limited(partial(load_all, conn, names, 20), conn)
        said = response.json()
        words = said.get("error") or " ".join(said.get("warnings", [])) or "answers"
        rows.append((query, str(response.status_code), milliseconds(seconds), words, alone))
    header = ("query", "status", "ms", "what it says", "loading all under that limit")
    report.table(
        "Without `optimize`, in a Datasette that stops at 1 s, first request", header, rows
    )


def _limited(call: Callable[[], object], conn: sqlite3.Connection) -> str:
    try:
        with sqlite_timelimit(conn, _TIME_LIMIT):
            call()
    except sqlite3.OperationalError as error:
        return str(error)
    return "ends"


def _profile(bed: Bed, query: str) -> None:
    with closing(open_database(bed.optimized)) as conn:
        ours, asked = recall_call(conn), RecallRequest(names=tuple(bed.queries[query]), limit=20)
        ours(asked)
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(100):
            ours(asked)
        profile.disable()
    for order in ("cumulative", "tottime"):
        pstats.Stats(profile).strip_dirs().sort_stats(order).print_stats(25)


if __name__ == "__main__":
    main()
