"""What all measurements share: interleaved timing, medians and spread, tables, targets, JSON."""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import sqlite3
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import Any

Clock = Callable[[], float]

RESULTS = Path(__file__).parent / "results"
PACKAGES = (
    "datasette-concept-recall",
    "datasette",
    "uvicorn",
    "ahocorasick_rs",
    "pyahocorasick",
    "flashtext",
    "rapidfuzz",
)
_SHORTEST_SAMPLE = 0.005
"""Seconds: a call that takes less is repeated within a sample, or the clock is what is measured."""


@dataclass(frozen=True)
class Sizes:
    """How much to measure, as the command line says."""

    smoke: bool
    full: bool
    output: Path

    def pick(self, smoke: Any, usual: Any, full: Any = None) -> Any:
        """The value for this run; a full one is as the usual unless it is given."""
        if self.smoke:
            return smoke
        return full if self.full and full is not None else usual


def read_arguments(
    description: str | None,
    arguments: Sequence[str] | None = None,
    more: Callable[[argparse.ArgumentParser], None] | None = None,
) -> tuple[Sizes, argparse.Namespace]:
    """The sizes asked for, and all arguments, those that ``more`` adds among them."""
    parser = argparse.ArgumentParser(description=description)
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--smoke", action="store_true", help="the smallest sizes, in seconds")
    group.add_argument("--full", action="store_true", help="the largest sizes, in many minutes")
    parser.add_argument("--output", type=Path, default=RESULTS, help="the folder of the JSON file")
    if more:
        more(parser)
    given = parser.parse_args(arguments)
    return Sizes(given.smoke, given.full, given.output), given


def quantile(values: Iterable[float], share: float) -> float:
    """The smallest value that at least this share of all values does not exceed (nearest rank)."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass(frozen=True)
class Timing:
    """Seconds per call, one value a sample."""

    samples: tuple[float, ...]

    @property
    def median(self) -> float:
        return median(self.samples)

    def __str__(self) -> str:
        """Milliseconds: the median, and the quartiles where there are enough samples for them."""
        if len(self.samples) < 3:
            return milliseconds(self.median)
        low, high = quantile(self.samples, 0.25), quantile(self.samples, 0.75)
        return f"{milliseconds(self.median)} ({milliseconds(low)}–{milliseconds(high)})"

    def as_json(self) -> dict[str, float]:
        low, high = quantile(self.samples, 0.25), quantile(self.samples, 0.75)
        return {"median": self.median, "q1": low, "q3": high, "samples": len(self.samples)}


def milliseconds(seconds: float) -> str:
    """Three digits that count, never in scientific notation."""
    value = seconds * 1000
    digits = 3 - (math.floor(math.log10(value)) + 1) if value > 0 else 0
    return f"{value:,.{min(max(digits, 0), 5)}f}"


def megabytes(count: float | None) -> str:
    return "–" if count is None else f"{count / 1e6:,.1f}"


def interleaved(
    calls: Mapping[str, Callable[[], object]],
    seconds: float,
    least: int = 3,
    most: int = 200,
    clock: Clock = time.process_time,
) -> dict[str, Timing]:
    """Times all calls in turn, each round beginning with another one, for about so many seconds.

    Unless another clock is given this is processor time, which other programs on the machine
    disturb little. What is alive before is frozen, so that collecting garbage costs each call what
    it made itself.
    """
    gc.collect()
    gc.freeze()
    try:
        repeats = {label: _repeats(call, clock) for label, call in calls.items()}
        samples: dict[str, list[float]] = {label: [] for label in calls}
        labels, rounds, began = list(calls), 0, time.perf_counter()
        while rounds < least or (rounds < most and time.perf_counter() - began < seconds):
            for label in labels[rounds % len(labels) :] + labels[: rounds % len(labels)]:
                samples[label].append(_sample(calls[label], repeats[label], clock))
            rounds += 1
    finally:
        gc.unfreeze()
    return {label: Timing(tuple(values)) for label, values in samples.items()}


def _sample(call: Callable[[], object], repeats: int, clock: Clock) -> float:
    began = clock()
    for _ in range(repeats):
        call()
    return (clock() - began) / repeats


def _repeats(call: Callable[[], object], clock: Clock) -> int:
    """How many calls make a sample that is long enough; the first call is for warming up."""
    _sample(call, 1, clock)
    return max(1, math.ceil(_SHORTEST_SAMPLE / max(_sample(call, 1, clock), 1e-7)))


@dataclass(frozen=True)
class Target:
    """A promise, and what was measured of it; None for what could not be measured."""

    what: str
    measured: float | None
    limit: float
    at_least: bool = False

    @property
    def verdict(self) -> str:
        if self.measured is None:
            return "not measured"
        met = self.measured >= self.limit if self.at_least else self.measured <= self.limit
        return "met" if met else "MISSED"

    def row(self) -> tuple[str, ...]:
        measured = "–" if self.measured is None else f"{self.measured:.2f}"
        return self.what, f"{'≥' if self.at_least else '≤'} {self.limit:g}", measured, self.verdict


def ratio(ours: Timing | None, theirs: Timing | None) -> float | None:
    """The ratio of the medians, or None when one of them is missing."""
    return ours.median / theirs.median if ours and theirs else None


class Report:
    """Prints tables as they come, and writes all of them to one JSON file at the end."""

    def __init__(self, name: str, sizes: Sizes) -> None:
        self._name, self._sizes = name, sizes
        self._tables: list[dict[str, Any]] = []
        self._targets: list[Target] = []
        self._machine = machine()
        self.data: dict[str, Any] = {}
        self.note(f"{name}: " + ", ".join(f"{key} {value}" for key, value in self._machine.items()))

    def note(self, text: str) -> None:
        print(text, flush=True)

    def table(self, title: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
        """Prints a table in Markdown, its columns as wide as they have to be."""
        cells = [tuple(header), *map(tuple, rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["| " + " | ".join(map(str.ljust, row, widths)) + " |" for row in cells]
        lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
        self.note("\n" + "\n".join([f"### {title}", "", *lines]))
        self._tables.append({"title": title, "header": cells[0], "rows": cells[1:]})

    def target(self, what: str, measured: float | None, limit: float, **more: bool) -> None:
        """Notes what was measured of a target; all of them are printed at the end."""
        self._targets.append(Target(what, measured, limit, **more))

    def finish(self) -> Path:
        """Prints the targets and writes the JSON file."""
        if self._targets:
            header = ("target", "limit", "measured", "")
            self.table("Targets", header, [target.row() for target in self._targets])
        self._sizes.output.mkdir(parents=True, exist_ok=True)
        path = self._sizes.output / f"{self._name}.json"
        targets = [{**asdict(target), "verdict": target.verdict} for target in self._targets]
        content = {
            "name": self._name,
            "smoke": self._sizes.smoke,
            "full": self._sizes.full,
            "machine": {**self._machine, "load after": _load()},
            "tables": self._tables,
            "targets": targets,
            "data": self.data,
        }
        path.write_text(json.dumps(content, indent=1, ensure_ascii=False), encoding="utf-8")
        return path


def machine() -> dict[str, str]:
    """The machine and the versions that a result belongs to."""
    found = {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "load": _load(),
        "system": f"{platform.system()} {platform.machine()}",
        "Python": platform.python_version(),
        "SQLite": sqlite3.sqlite_version,
    }
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def _load() -> str:
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or "unknown"


def resident(process: int | str = "self", peak: bool = False) -> int | None:
    """Bytes of memory that a process has, or had at most; None where the system does not say."""
    wanted = "VmHWM:" if peak else "VmRSS:"
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith(wanted)), None)
