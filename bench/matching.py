"""Finding names in texts: ours beside Aho-Corasick in Rust and in C, flashtext and plain `re`.

    python -m bench.matching [--smoke | --full] [--output FOLDER]

Every matcher returns the same: the stored names that a text mentions, by our rules of folding and
of word boundaries, sorted. How far their answers differ is printed beside the times, which are
processor time.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from datasette_concept_recall import ConceptMatcher
from datasette_concept_recall.folding import canonical_name

from . import corpus, memory, peers
from .common import (
    Report,
    Sizes,
    Timing,
    interleaved,
    ratio,
    read_arguments,
)
from .peers import FLASH, OURS, RUST, C, Matcher

REGEX = "re, one a name"
_TEXTS = {200: "200 B", 10_000: "10 KB", 1_000_000: "1 MB"}
_REGEX_SECONDS = 10


@dataclass
class Measured:
    """Times by vocabulary (and text) and by matcher, from which the targets are computed."""

    match: dict[tuple[int, int], dict[str, Timing]] = field(default_factory=dict)
    build: dict[int, dict[str, Timing]] = field(default_factory=dict)
    bare: dict[int, dict[str, Timing]] = field(default_factory=dict)
    memory: dict[int, float] = field(default_factory=dict)  # ours, as a multiple of the names

    def ratio(self, size: int, text: int, other: str) -> float | None:
        times = self.match.get((size, text), {})
        return ratio(times.get(OURS), times.get(other))


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, _ = read_arguments(__doc__, arguments)
    report, measured = Report("matching", sizes), Measured()
    missing = peers.MATCHERS.keys() - set(peers.available())
    if missing:
        report.note(f"Not installed, so left out: {', '.join(sorted(missing))}.")
    vocabularies = sizes.pick((100, 1_000), (100, 1_000, 10_000, 100_000, 1_000_000))
    names = corpus.names(vocabularies[-1])
    built: dict[int, Matcher] = {}
    rows: list[tuple[str, ...]] = []
    for size in vocabularies:
        built[size] = _vocabulary(names[:size], sizes, measured, rows)
        print(".", end="", file=sys.stderr, flush=True)
    _report_builds(report, measured)
    _report_matches(report, measured, rows)
    for size in sizes.pick((1_000,), (100_000, 1_000_000)):
        labels = [label for label in peers.available() if _runs_at(label, size, sizes)]
        measured.memory[size] = memory.measure(report, labels, names[:size])
    same_hits = _same_hits(report, names, built, sizes)
    worst = _adversaries(report, built, names, sizes)
    _targets(report, measured, same_hits, worst)
    print(f"\nWritten to {report.finish()}")


def _runs_at(label: str, size: int, sizes: Sizes) -> bool:
    """The characters of a million names in Python dictionaries are for the full run only."""
    return label in (OURS, RUST) or size <= 100_000 or sizes.full


def _vocabulary(
    names: tuple[str, ...], sizes: Sizes, measured: Measured, rows: list[tuple[str, ...]]
) -> Matcher:
    """Measures building and matching with one vocabulary; our matcher is returned."""
    size = len(names)
    labels = [label for label in peers.available() if _runs_at(label, size, sizes)]
    rounds = sizes.pick(1, 3 if size < 1_000_000 else 2, 5 if size < 1_000_000 else 3)
    seconds = sizes.pick(0.0, 1.5, 4.0)
    builds: dict[str, Callable[[], object]] = {
        label: partial(peers.MATCHERS[label], names) for label in labels
    }
    measured.build[size] = _in_turn(builds, rounds)
    canonical = list(dict.fromkeys(map(canonical_name, names)))
    bare = {label: partial(peers.BARE[label], canonical) for label in labels if label != OURS}
    measured.bare[size] = _in_turn(bare, 1 if size > 100_000 else rounds)
    matchers = {label: peers.MATCHERS[label](names) for label in labels}
    for length in sizes.pick((200, 10_000), tuple(_TEXTS)):
        text = corpus.prose(length, names[:100], every=25 if length > 1_000 else 8)
        answers = {label: matchers[label].names(text) for label in labels}
        calls: dict[str, Callable[[], object]] = {
            label: partial(matchers[label].names, text) for label in labels
        }
        times = interleaved(calls, seconds, least=sizes.pick(1, 5))
        regex = _regex(names, text, answers)
        if regex:
            times[REGEX] = regex
        measured.match[size, length] = times
        rows.append(_row(size, length, times, answers))
    return matchers[OURS]


def _in_turn(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, Timing]:
    """Times calls that take long and need no warming up; each result is dropped at once."""
    samples: dict[str, list[float]] = {label: [] for label in calls}
    for _ in range(rounds):
        for label, call in calls.items():
            began = time.process_time()
            result = call()
            samples[label].append(time.process_time() - began)
            del result
    return {label: Timing(tuple(values)) for label, values in samples.items()}


def _regex(names: Sequence[str], text: str, answers: dict[str, list[str]]) -> Timing | None:
    """Compiling and searching, once, with its answer added; None when it does not end in time."""
    began = time.process_time()
    try:
        matcher = peers.RegexMatcher(names, deadline=began + _REGEX_SECONDS)
        answers[REGEX] = matcher.names(text)
    except TimeoutError:
        return None
    return Timing((time.process_time() - began,))


LABELS = (OURS, RUST, C, FLASH, REGEX)


def _row(
    size: int, length: int, times: dict[str, Timing], answers: dict[str, list[str]]
) -> tuple[str, ...]:
    ours = set(answers[OURS])
    differing = {label: len(ours ^ set(found)) for label, found in answers.items()}
    shown = [f"{label} {count}" for label, count in differing.items() if count]
    cells = [str(times[label]) if label in times else "–" for label in LABELS]
    return f"{size:,}", _TEXTS[length], str(len(ours)), *cells, ", ".join(shown) or "none"


def _report_builds(report: Report, measured: Measured) -> None:
    rows = []
    for size, times in measured.build.items():
        bare = measured.bare[size]
        for label, timing in times.items():
            alone = f"{bare[label]}" if label in bare else ""
            rows.append(
                (f"{size:,}", label, f"{timing}", alone, f"{timing.median / size * 1e6:.2f}")
            )
    header = (
        "names",
        "matcher",
        "CPU ms (quartiles)",
        "automaton alone, names folded before",
        "µs a name",
    )
    report.table("Build", header, rows)
    report.data["build"] = _as_json(measured.build)
    report.data["automaton alone"] = _as_json(measured.bare)


def _report_matches(report: Report, measured: Measured, rows: Sequence[tuple[str, ...]]) -> None:
    header = ("names", "text", "found", *LABELS, "answers that differ from ours")
    report.table("Match, CPU ms (quartiles); `re` compiles on each call", header, rows)
    report.note(
        "flashtext takes the longest name at each place only and goes on after it, so it misses"
        " names within names."
    )
    report.data["match"] = {
        f"{size} names, {_TEXTS[length]}": {label: each.as_json() for label, each in times.items()}
        for (size, length), times in measured.match.items()
    }
    _report_growth(report, measured)


def _report_growth(report: Report, measured: Measured) -> None:
    """Microseconds a kilobyte of text, so that rows and columns can be compared."""
    rows = []
    for label in LABELS:
        for length in dict.fromkeys(length for _, length in measured.match):
            cells = []
            for size in measured.build:
                timing = measured.match[size, length].get(label)
                cells.append(f"{timing.median * 1e9 / length:,.1f}" if timing else "–")
            if set(cells) != {"–"}:
                rows.append((label, _TEXTS[length], *cells))
    header = ("matcher", "text", *(f"{size:,} names" for size in measured.build))
    title = (
        "Growth, CPU µs a KB of text: along a row with the vocabulary, down a column with the text"
    )
    report.table(title, header, rows)


def _as_json(times: dict[int, dict[str, Timing]]) -> dict[str, Any]:
    return {
        f"{size} names": {label: timing.as_json() for label, timing in each.items()}
        for size, each in times.items()
    }


def _same_hits(
    report: Report, names: Sequence[str], built: dict[int, Matcher], sizes: Sizes
) -> float | None:
    """Times the smallest and the largest vocabulary on one text of which both find the same."""
    small, large = sizes.pick((100, 1_000), (1_000, 1_000_000))
    text = corpus.prose(10_000, names[:100])
    more = set(built[large].names(text)) - set(built[small].names(text))
    reduced = [name for name in names[:large] if name not in more]
    few, many = built[small], ConceptMatcher(reduced)
    if few.names(text) != many.names(text):
        report.note("The two vocabularies do not find the same: no comparison.")
        return None
    calls = {"few": partial(few.names, text), "many": partial(many.names, text)}
    seconds, least = sizes.pick(0.0, 3.0, 10.0), sizes.pick(1, 5)
    times = interleaved(calls, seconds, least)
    alone = {key: interleaved({key: call}, seconds / 2, least)[key] for key, call in calls.items()}
    rows = [
        (f"{size:,}", str(len(calls[key]())), str(times[key]), str(alone[key]))
        for key, size in (("few", small), ("many", len(reduced)))
    ]
    header = ("names", "found", "CPU ms (quartiles)", "the same call over and over")
    report.table("The same text and the same answer, 10 KB", header, rows)
    return ratio(times["many"], times["few"])


def _adversaries(
    report: Report, built: dict[int, Matcher], names: Sequence[str], sizes: Sizes
) -> float:
    """Times texts made to be slow beside prose of the same size; the worst ratio is returned."""
    length, vocabulary = sizes.pick((10_000, 1_000), (1_000_000, 10_000))
    text = corpus.prose(length, names[:100])
    prose = partial(built[vocabulary].names, text)
    rows, ratios = [], []
    for what, (hostile, hostile_text) in corpus.adversaries(length).items():
        matcher = ConceptMatcher(hostile)
        calls = {"prose": prose, "hostile": partial(matcher.names, hostile_text)}
        times = interleaved(calls, sizes.pick(0.0, 2.0, 6.0), least=sizes.pick(1, 3))
        ratios.append(times["hostile"].median / times["prose"].median)
        found = len(matcher.names(hostile_text))
        rows.append(
            (what, str(found), str(times["hostile"]), str(times["prose"]), f"{ratios[-1]:.2f}")
        )
    header = (
        "text and names",
        "found",
        "CPU ms (quartiles)",
        f"prose, {vocabulary:,} names",
        "ratio",
    )
    report.table(f"Adversarial texts of {length:,} bytes", header, rows)
    return max(ratios)


def _targets(report: Report, measured: Measured, same_hits: float | None, worst: float) -> None:
    for size in (10_000, 100_000):
        report.target(
            f"match 10 KB, {size:,} names: × {RUST}", measured.ratio(size, 10_000, RUST), 2
        )
    for other in (FLASH, C):
        report.target(
            f"match 10 KB, 100,000 names: × {other}", measured.ratio(100_000, 10_000, other), 1
        )
    report.target(
        f"match 10 KB, 1,000,000 names: × {RUST}", measured.ratio(1_000_000, 10_000, RUST), 1
    )
    for size in (100_000, 1_000_000):
        ours, theirs = measured.build.get(size, {}), measured.bare.get(size, {})
        against = (("", ours.get(RUST)), (" (automaton alone)", theirs.get(RUST)))
        for what, timing in against:
            report.target(
                f"build {size:,} names: × {RUST}{what}", ratio(ours.get(OURS), timing), 0.6
            )
        report.target(
            f"peak memory, {size:,} names: × the names' own", measured.memory.get(size), 2
        )
    report.target("match time, 1,000,000 names: × 1,000, same answer", same_hits, 1.5)
    report.target("adversarial text, the worst: × prose", worst, 15)


if __name__ == "__main__":
    main()
