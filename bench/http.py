"""Requests to the page and the JSON API beside a trivial canned query of the same Datasette.

    python -m bench.http [--smoke | --full | --profile] [--output FOLDER]

It serves the demo and asks it the demo's own question, in this process and over a socket, in turn
with `select 1` as JSON and as a page. Run it in an environment of each version of Datasette.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import json
import pstats
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from datasette.app import Datasette

from datasette_concept_recall.demo import build_demo

from .common import (
    Report,
    Sizes,
    Timing,
    interleaved,
    megabytes,
    milliseconds,
    quantile,
    ratio,
    read_arguments,
    resident,
)
from .serving import Block, Server, load, served

JSON, PAGE = "recall, JSON", "recall, page"
LIMITS = {JSON: 0.8, PAGE: 1.0}
CANNED = {JSON: "select 1, JSON", PAGE: "select 1, page"}
CONFIG = {"databases": {"demo": {"queries": {"one": {"sql": "select 1"}}}}}
_CONFIG_NAME = "config" if hasattr(Datasette, "add_query") else "metadata"  # before 1.0


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, given = read_arguments(__doc__, arguments, _more_arguments)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "demo.db"
        question = build_demo(file).question
        if given.profile:
            _profile(file, requests(question)[JSON if given.profile == "json" else PAGE])
            return
        report = Report(f"http-{metadata.version('datasette')}", sizes)
        _in_process(report, sizes, file, requests(question))
        config = Path(folder) / "config.json"
        config.write_text(json.dumps(CONFIG), encoding="utf-8")
        with served([str(file), f"--{_CONFIG_NAME}", str(config)]) as server:
            asyncio.run(_over_socket(report, sizes, server, requests(question)))
        for kinds in sizes.pick(((JSON, PAGE),), ((JSON, PAGE), tuple(CANNED.values()))):
            with served([str(file), f"--{_CONFIG_NAME}", str(config)]) as server:
                asyncio.run(_memory(report, sizes, server, question, kinds))
    print(f"\nWritten to {report.finish()}")


def _more_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--profile",
        choices=("json", "page"),
        help="only say where 300 such requests spend their time",
    )


def requests(question: str) -> dict[str, str]:
    """The addresses compared, by what they are."""
    query = urlencode({"q": question})
    return {
        JSON: f"/demo/-/recall.json?{query}",
        CANNED[JSON]: "/demo/one.json",
        PAGE: f"/demo/-/recall?{query}",
        CANNED[PAGE]: "/demo/one",
    }


@contextmanager
def _asking(file: Path, **settings: int) -> Iterator[Callable[[str], None]]:
    """A function that sends a request to a Datasette in this process."""
    named: dict[str, Any] = {_CONFIG_NAME: CONFIG}
    datasette = Datasette([str(file)], settings=settings, **named)
    loop = asyncio.new_event_loop()

    def ask(path: str) -> None:
        response = loop.run_until_complete(datasette.client.get(path))
        if response.status_code != 200:
            raise RuntimeError(f"{path}: {response.text[:500]}")

    with closing(loop):
        yield ask


def _in_process(report: Report, sizes: Sizes, file: Path, paths: Mapping[str, str]) -> None:
    with _asking(file) as ask:
        calls = {kind: partial(ask, path) for kind, path in paths.items()}
        measure = partial(interleaved, calls, sizes.pick(0.0, 12.0, 40.0), sizes.pick(1, 20), 1_000)
        wall, cpu = measure(clock=time.perf_counter), measure(clock=time.process_time)
    rows = [(kind, str(wall[kind]), str(cpu[kind]), str(len(wall[kind].samples))) for kind in paths]
    header = ("request", "ms (quartiles)", "CPU ms (quartiles)", "samples")
    report.table("In process, one after another", header, rows)
    for kind in paths:
        both = {"wall": wall[kind].as_json(), "cpu": cpu[kind].as_json()}
        report.data.setdefault("in process", {})[kind] = both
    for kind, limit in LIMITS.items():
        for what, times in (("", wall), (" CPU,", cpu)):
            against = ratio(times[kind], times[CANNED[kind]])
            report.target(f"{kind}, in process:{what} × canned", against, limit)


@dataclass
class _Load:
    """All blocks of one kind of request with so many clients."""

    blocks: list[Block] = field(default_factory=list)

    @property
    def latency(self) -> Timing:
        return Timing(tuple(latency for block in self.blocks for latency in block.latencies))

    @property
    def throughput(self) -> float:
        return median(block.throughput for block in self.blocks)

    @property
    def tail(self) -> float:
        return quantile(self.latency.samples, 0.99)

    @property
    def cpu(self) -> float | None:
        """Seconds of the server's processor time for one request."""
        used = sum(block.cpu or 0 for block in self.blocks)
        return used / sum(len(block.latencies) for block in self.blocks) or None

    def row(self) -> tuple[str, ...]:
        cpu = "–" if self.cpu is None else milliseconds(self.cpu)
        latency = self.latency
        tail = f"{milliseconds(self.tail)} = {self.tail / latency.median:.1f} ×"
        return str(latency), tail, f"{self.throughput:,.0f}", cpu, str(len(latency.samples))

    def as_json(self) -> dict[str, Any]:
        more = {"p99": self.tail, "throughput": self.throughput, "cpu": self.cpu}
        return {**self.latency.as_json(), **more}


async def _over_socket(
    report: Report, sizes: Sizes, server: Server, paths: Mapping[str, str]
) -> None:
    rows: list[tuple[str, ...]] = []
    every: dict[str, Any] = {}
    for clients in sizes.pick((1, 2), (1, 8, 32)):
        loads = await _loads(server, sizes, paths, clients)
        for kind, found in loads.items():
            rows.append((str(clients), kind, *found.row()))
            every[f"{kind}, {clients} clients"] = found.as_json()
        _socket_targets(report, loads, clients)
    header = (
        "clients", "request", "ms (quartiles)", "p99, ms and × the median",
        "requests a second", "server's CPU ms each", "samples",
    )  # fmt: skip
    report.table("Over a socket, one server process", header, rows)
    report.data["over a socket"] = every


async def _loads(
    server: Server, sizes: Sizes, paths: Mapping[str, str], clients: int
) -> dict[str, _Load]:
    """Blocks of all kinds in turn, each of about the same time."""
    loads = {kind: _Load() for kind in paths}
    counts = {}
    for kind, path in paths.items():
        trial = await load(server, [path] * clients * sizes.pick(1, 3), clients)
        wanted = round(trial.throughput * sizes.pick(0.0, 1.0, 3.0))
        counts[kind] = max(wanted, clients * sizes.pick(1, 4))
    for _ in range(sizes.pick(1, 5, 8)):
        for kind, path in paths.items():
            loads[kind].blocks.append(await load(server, [path] * counts[kind], clients))
    return loads


def _socket_targets(report: Report, loads: Mapping[str, _Load], clients: int) -> None:
    for kind, limit in LIMITS.items():
        ours, canned = loads[kind], loads[CANNED[kind]]
        what = f"{kind}, {clients} client{'s' if clients > 1 else ''}"
        if clients == 1:
            report.target(f"{what}: × canned", ratio(ours.latency, canned.latency), limit)
            if ours.cpu and canned.cpu:
                report.target(f"{what}: CPU, × canned", ours.cpu / canned.cpu, limit)
        if clients == 32:
            throughput = ours.throughput / canned.throughput
            report.target(f"{what}: throughput, × canned", throughput, 0.9, at_least=True)
            report.target(f"{what}: p99, × median", ours.tail / ours.latency.median, 10)


async def _memory(
    report: Report, sizes: Sizes, server: Server, question: str, kinds: Sequence[str]
) -> None:
    """How a fresh server grows over many requests, no two of the recalls being the same."""
    total = sizes.pick(20, 2_000, 20_000 if JSON in kinds else 5_000)
    sent, step, sizes_seen = 0, total // 10, [resident(server.process)]
    while sent < total:
        paths = []
        for number in range(sent, sent + step):
            addresses = requests(f"{question} {number}")
            paths.append(addresses[kinds[number % len(kinds)]])
        await load(server, paths, 8)
        sent += step
        sizes_seen.append(resident(server.process))
    marks = [step * place for place in range(len(sizes_seen))]
    title = f"Memory of the server in MB after so many requests, half {' and half '.join(kinds)}"
    report.table(title, [f"{mark:,}" for mark in marks], [[megabytes(size) for size in sizes_seen]])
    report.data[title] = dict(zip(marks, sizes_seen, strict=True))


def _profile(file: Path, path: str) -> None:
    """Prints where the time goes, with database work on the event loop so that it is seen."""
    with _asking(file, num_sql_threads=0) as ask:
        for _ in range(30):
            ask(path)
        profile = cProfile.Profile()
        profile.enable()
        for _ in range(300):
            ask(path)
        profile.disable()
    for order in ("cumulative", "tottime"):
        pstats.Stats(profile).strip_dirs().sort_stats(order).print_stats(45)


if __name__ == "__main__":
    main()
