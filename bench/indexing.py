"""The index of a folder of notes beside the plainest program that would do something like it.

    python -m bench.indexing [--smoke | --full | --profile] [--output FOLDER] [--folder FOLDER]

Notes are generated. What a run costs is told in multiples of a peer that was measured in turn with
it: reading, cutting and inserting the same notes without any promise, or a bare walk over them.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import gc
import json
import logging
import os
import pstats
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import (
    AbstractContextManager,
    asynccontextmanager,
    closing,
    contextmanager,
    suppress,
)
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import accumulate, cycle
from pathlib import Path
from urllib.parse import urlencode

from datasette_concept_recall.indexing.ids import WITHOUT_EMBEDDER, effective_size
from datasette_concept_recall.indexing.kinds import built_in
from datasette_concept_recall.indexing.passes import Outcome
from datasette_concept_recall.indexing.service import Service
from datasette_concept_recall.indexing.store import Store

from . import corpus
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

OURS, PLAIN = "ours", "read, cut, insert"
AGAIN, CHANGED, WALK = "ours, nothing changed", "ours, one note changed", "walk and stat"
DURING, IDLE = "during a run", "idle"
CLOCKS: dict[str, Callable[[], float]] = {"CPU": time.process_time, "wall": time.perf_counter}
_NOTHING = "nothing"
_TICK = 0.001
"""Seconds after which something wants the event loop again."""


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, given = read_arguments(__doc__, arguments, _more_arguments)
    if given.peak:
        _print_peak(*given.peak)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        notes = Path(folder) / "notes"
        written = write_notes(notes, sizes.pick(100, 5_000))
        if given.profile:
            _profile(notes, Path(folder) / "profiled.db")
            return
        report = Report("indexing", sizes)
        count = sizes.pick(100, 5_000)
        report.note(f"{count:,} notes of {megabytes(written)} MB")
        index = _first_index(report, sizes, notes, Path(folder))
        _runs_again(report, sizes, notes, index)
        _replacements(report, sizes, Path(folder) / "replaced")
        _memory(report, sizes, Path(folder) / "small")
        asyncio.run(_requests(report, sizes, notes, index))
    print(f"\nWritten to {report.finish()}")


def _more_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, help="where notes and indexes are while needed")
    parser.add_argument(
        "--profile", action="store_true", help="only say where the time of a first index goes"
    )
    parser.add_argument("--peak", nargs=2, type=Path, help=argparse.SUPPRESS)


# --- the notes -----------------------------------------------------------------------------------


_COMMON = """
the of and to a in is that it for was on are as with be by at from this or an have not but which
you we they their has its were can will if one all more when there would about what so no some
other than into up out them then do only time may these new also two any like first work now over
such our use how after because see should could people many your most make well where while through
each same both even between must before way long just very part under know little back still need
used good set last take every around system number against own day here place however since show
made small never another without world high right during again below above change different point
few order line large write file once always found code read call name list follow question problem
case reason result idea note start end keep test plan team project meeting draft review decide
release version data table index search text word page link section message mail letter answer
agree later next week month year today morning build fix break run check error log server client
request response service user group key value model prompt instruction rule previous ignore forget
print repeat reveal output secret hidden access permission token password cost price market
customer garden kitchen recipe water bread river road train house window door music book paper
history language science method measure compare summary
"""
"""Words of English notes by rank: a filter that looks for phrases has to look at such words."""


@cache
def _words() -> tuple[tuple[str, ...], list[float]]:
    """All words, of which rare ones are made up, and their weights, cumulated."""
    words = (*_COMMON.split(), *corpus.lexicon()[200:])
    return words, list(accumulate((rank + 3) ** -1.1 for rank in range(len(words))))


@cache
def _names() -> tuple[str, ...]:
    """What notes link to and are tagged with, so that each byte is a character."""
    return tuple(name for name in corpus.names(700) if name.isascii() and "/" not in name)


def note(number: int, edition: int, length: int) -> str:
    """A note of so many characters; another edition of it has other words at other places."""
    rng = random.Random(f"note {number} {edition}")
    known, weights = _words()
    words = cycle(rng.choices(known, cum_weights=weights, k=length // 4 + 20))
    blocks = [_front_matter(rng)] if rng.random() < 0.3 else []
    blocks.append(f"# {_phrase(words, 4).capitalize()}\n\n")
    size = sum(map(len, blocks))
    while size < length:
        kind = rng.choices(_BLOCKS, (60, 18, 10, 6, 6))[0]
        blocks.append(kind(rng, words) + "\n\n")
        size += len(blocks[-1])
    return "".join(blocks)[: length - 1] + "\n"


def _phrase(words: Iterator[str], count: int) -> str:
    return " ".join(next(words) for _ in range(count))


def _front_matter(rng: random.Random) -> str:
    tags = "".join(f"  - {name}\n" for name in rng.sample(_names(), 2))
    return f"---\ntags:\n{tags}created: 2026-{rng.randint(1, 12):02}-01\n---\n\n"


def _paragraph(rng: random.Random, words: Iterator[str]) -> str:
    sentences = []
    for _ in range(rng.randint(2, 6)):
        sentence = _phrase(words, rng.randint(5, 18)).capitalize()
        if rng.random() < 0.15:
            sentence += f" [[{rng.choice(_names())}]]"
        sentences.append(sentence + ".")
    return " ".join(sentences)


def _list(rng: random.Random, words: Iterator[str]) -> str:
    mark = rng.choice(("- ", "* ", "1. ", "- [ ] "))
    return "\n".join(mark + _phrase(words, rng.randint(2, 12)) for _ in range(rng.randint(3, 8)))


def _heading(rng: random.Random, words: Iterator[str]) -> str:
    return f"{'#' * rng.randint(2, 4)} {_phrase(words, rng.randint(1, 5)).capitalize()}"


def _fence(rng: random.Random, words: Iterator[str]) -> str:
    lines = (f"    {next(words)} = {next(words)}({next(words)})" for _ in range(rng.randint(2, 8)))
    return "\n".join(["```python", f"def {next(words)}():", *lines, "```"])


def _tags(rng: random.Random, words: Iterator[str]) -> str:
    known = [name for name in _names() if " " not in name][:60]
    return " ".join(f"#{rng.choice(known)}" for _ in range(rng.randint(1, 3)))


_BLOCKS: tuple[Callable[[random.Random, Iterator[str]], str], ...] = (
    _paragraph,
    _list,
    _heading,
    _fence,
    _tags,
)


def path_of(folder: Path, number: int) -> Path:
    """Where a note is: about a hundred in each folder, as people keep them."""
    return folder / f"area {number % 10}" / f"topic {number // 10 % 5}" / f"note {number:05}.md"


def length_of(number: int) -> int:
    """The characters of a note: 500 to 7,500, so 4,000 on average."""
    return random.Random(f"length {number}").randint(500, 7_500)


def write_notes(folder: Path, count: int, edition: int = 0, *, shortened: int = 1) -> int:
    """Writes so many notes, or another edition of each, of a fraction of their length; how many
    bytes they have."""
    written = 0
    for number in range(count):
        path = path_of(folder, number)
        path.parent.mkdir(parents=True, exist_ok=True)
        text = note(number, edition, length_of(number) // shortened)
        written += path.write_text(text, encoding="ascii")
    return written


# --- the peers -----------------------------------------------------------------------------------


def run(store: Store, folder: Path) -> None:
    """One run over a folder, as after a restart; a failure of it ends the measurement."""
    if not store.sources():
        store.add_source("notes", "folder", str(folder))
    service = Service(store, built_in(), share_seconds=None)
    service.ask(store.source_named("notes").id, "run")
    outcomes = [outcome for _, outcome in service.run_all()]
    if outcomes != [Outcome.DONE]:
        raise RuntimeError(f"A run over {folder} ended otherwise: {outcomes}")


def index_anew(folder: Path, file: Path) -> None:
    with Store(file) as store:
        run(store, folder)


_PLAIN_TABLES = """
pragma journal_mode = wal;
pragma synchronous = normal;
create table document (id integer primary key, path text not null unique);
create table chunk (id integer primary key, document_id integer not null, position integer not null,
    text text not null, unique (document_id, position));
create virtual table chunk_fts using fts5 (text, content = 'chunk', content_rowid = 'id',
    tokenize = 'porter unicode61 remove_diacritics 2');
"""


def insert_plainly(folder: Path, file: Path) -> None:
    """What is left of an index without any promise: no hash, no filter, no concept, no check."""
    from semantic_text_splitter import MarkdownSplitter

    size = effective_size(WITHOUT_EMBEDDER, 0, None)
    splitter = MarkdownSplitter(size.limit, overlap=size.overlap)
    with closing(sqlite3.connect(file, isolation_level=None)) as conn:
        conn.executescript(_PLAIN_TABLES)
        for path in sorted(folder.rglob("*.md")):
            chunks = splitter.chunks(path.read_text(encoding="utf-8"))
            conn.execute("begin")
            document = conn.execute("insert into document (path) values (?)", [str(path)]).lastrowid
            conn.executemany(
                "insert into chunk (document_id, position, text) values (?, ?, ?)",
                [(document, position, text) for position, text in enumerate(chunks)],
            )
            conn.execute(
                "insert into chunk_fts (rowid, text)"
                " select id, text from chunk where document_id = ?",
                [document],
            )
            conn.execute("commit")


def walk(folder: str | os.DirEntry[str]) -> int:
    """The bytes of all files, with one `stat` each."""
    with os.scandir(folder) as entries:
        return sum(
            walk(entry) if entry.is_dir(follow_symlinks=False) else entry.stat().st_size
            for entry in entries
        )


class _Samples:
    """Seconds of calls that cannot be repeated, by both clocks."""

    def __init__(self, labels: Iterable[str]) -> None:
        self._samples = {label: {clock: list[float]() for clock in CLOCKS} for label in labels}

    def take(self, label: str, call: Callable[[], object]) -> None:
        began = {clock: read() for clock, read in CLOCKS.items()}
        call()
        for clock, read in CLOCKS.items():
            self._samples[label][clock].append(read() - began[clock])

    def timings(self) -> dict[str, dict[str, Timing]]:
        return {
            label: {clock: Timing(tuple(each)) for clock, each in found.items()}
            for label, found in self._samples.items()
        }


# --- a first index -------------------------------------------------------------------------------


def _first_index(report: Report, sizes: Sizes, notes: Path, folder: Path) -> Path:
    """Measures it; the index is returned."""
    builds: dict[str, Callable[[Path, Path], None]] = {OURS: index_anew, PLAIN: insert_plainly}
    samples = _Samples(builds)
    for number in range(sizes.pick(1, 3, 7)):
        for label in builds if number % 2 else reversed(builds):
            samples.take(label, partial(builds[label], notes, folder / f"{label} {number}.db"))
    times = samples.timings()
    made = {label: folder / f"{label} 0.db" for label in builds}
    rows = [
        (label, f"{times[label]['CPU'].median:.2f}", f"{times[label]['wall'].median:.2f}",
         f"{_chunks(made[label]):,}", megabytes(made[label].stat().st_size))
        for label in builds
    ]  # fmt: skip
    header = ("first index", "CPU s", "wall s", "chunks", "MB of the file")
    report.table("A first index of the notes", header, rows)
    report.data["first index"] = {
        label: {clock: each.as_json() for clock, each in found.items()}
        for label, found in times.items()
    }
    for clock in CLOCKS:
        multiple = ratio(times[OURS][clock], times[PLAIN][clock])
        report.target(f"first index, {clock}: × {PLAIN}", multiple, 3)
    return made[OURS]


def _chunks(file: Path) -> int:
    with closing(sqlite3.connect(file)) as conn:
        ((count,),) = conn.execute("select count(*) from chunk").fetchall()
    return int(count)


def _profile(notes: Path, file: Path) -> None:
    profiler = cProfile.Profile()
    profiler.runcall(index_anew, notes, file)
    for order in ("tottime", "cumtime"):
        pstats.Stats(profiler).sort_stats(order).print_stats(45)


# --- further runs --------------------------------------------------------------------------------


def _runs_again(report: Report, sizes: Sizes, notes: Path, index: Path) -> None:
    with Store(index) as store:
        calls: dict[str, Callable[[], object]] = {
            AGAIN: partial(run, store, notes),
            WALK: partial(walk, str(notes)),
        }
        measure = partial(interleaved, calls, sizes.pick(0.0, 8.0, 20.0), sizes.pick(2, 15))
        cpu, wall = measure(), measure(clock=time.perf_counter)
        after = _with_one_changed(sizes, store, notes)
    rows = [(label, str(cpu[label]), str(wall[label])) for label in calls]
    rows += [
        (f"{label}, in turn", str(each["CPU"]), str(each["wall"])) for label, each in after.items()
    ]
    header = ("a further run", "CPU ms (quartiles)", "wall ms (quartiles)")
    report.table("Further runs over the notes", header, rows)
    report.data["further runs"] = {label: cpu[label].as_json() for label in calls}
    report.data["one changed"] = {
        label: {clock: time.as_json() for clock, time in each.items()}
        for label, each in after.items()
    }
    for clock, times in (("CPU", cpu), ("wall", wall)):
        report.target(f"nothing changed, {clock}: × {WALK}", ratio(times[AGAIN], times[WALK]), 2)
        more = (after[CHANGED][clock].median - after[AGAIN][clock].median) * 1e3
        report.target(f"one note changed, {clock}: ms beyond nothing changed", more, 50)


def _with_one_changed(sizes: Sizes, store: Store, notes: Path) -> dict[str, dict[str, Timing]]:
    """Runs after one note was written anew, and in turn runs after none was."""
    samples = _Samples((CHANGED, AGAIN))
    for edition in range(1, sizes.pick(3, 16, 40)):
        path_of(notes, edition).write_text(note(edition, edition, length_of(edition)), "ascii")
        for label in (CHANGED, AGAIN):
            samples.take(label, partial(run, store, notes))
    return samples.timings()


# --- what replacing leaves -----------------------------------------------------------------------


def _replacements(report: Report, sizes: Sizes, folder: Path) -> None:
    """Every note is written anew, so many times, with other text of the same length."""
    count, editions = sizes.pick((10, 5), (200, 100))
    folder.mkdir()
    file = folder / "index.db"
    sizes_of_file = []
    with Store(file) as store:
        for edition in range(editions + 1):
            write_notes(folder / "notes", count, edition, shortened=2)
            run(store, folder / "notes")
            if edition == 0:
                sizes_of_file.append(_vacuumed(store))
        sizes_of_file += [_whole(store), _vacuumed(store)]
    first, plain, vacuumed = sizes_of_file
    rows = [
        ("first index, vacuumed", megabytes(first), "1.00"),
        ("as it is after the replacements", megabytes(plain), f"{plain / first:.2f}"),
        ("the same, vacuumed", megabytes(vacuumed), f"{vacuumed / first:.2f}"),
    ]
    title = f"{count:,} notes, each replaced {editions:,} times"
    report.table(title, ("the file", "MB", "× the first"), rows)
    report.data["replacements"] = {"first": first, "after": plain, "vacuumed": vacuumed}
    report.target(f"{editions} replacements, vacuumed: × the first size", vacuumed / first, 1.3)


def _whole(store: Store) -> int:
    """The bytes of an index of which nothing is left beside its file."""
    store.conn.execute("pragma wal_checkpoint(truncate)")
    return store.path.stat().st_size


def _vacuumed(store: Store) -> int:
    store.conn.execute("vacuum")
    return _whole(store)


# --- memory --------------------------------------------------------------------------------------


def _memory(report: Report, sizes: Sizes, folder: Path) -> None:
    """First indexes of few and of many small notes, each in a process of its own."""
    few, many = sizes.pick((50, 100), (5_000, 20_000), (5_000, 50_000))
    rows, peaks = [], []
    for count in (few, many):
        _write_small(folder / str(count), count)
        peak = _peak_of(folder / str(count), folder / f"{count}.db")
        peaks.append(peak)
        rows.append((f"{count:,}", megabytes(peak)))
    header = ("small documents", "MB at the peak")
    low, high = peaks
    grown = None if low is None or high is None else (high - low) / (many - few) * 10_000
    rows.append(("10,000 more", megabytes(grown)))
    report.table("Memory of a process that makes a first index", header, rows)
    report.data["memory"] = {str(few): low, str(many): high}
    multiple = None if low is None or high is None else high / low
    report.target(f"memory, {many:,} documents: × that of {few:,}", multiple, 1.5)


def _write_small(folder: Path, count: int) -> None:
    for number in range(count):
        path = folder / f"part {number // 1_000}" / f"small {number:06}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note(number, 0, 300), encoding="ascii")


def _peak_of(folder: Path, file: Path) -> int | None:
    command = [sys.executable, "-m", "bench.indexing", "--peak", str(folder), str(file)]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root)
    peak: int | None = json.loads(done.stdout)
    return peak


def _print_peak(folder: Path, file: Path) -> None:
    """The peak of this program only: what `getrusage` says includes that of who started it."""
    index_anew(folder, file)
    print(json.dumps(resident(peak=True)))


# --- requests during a run -----------------------------------------------------------------------


@dataclass
class _Phase:
    """By what was asked the seconds of each request, by how much the event loop came too late
    meanwhile, and how long Python collected garbage at a time."""

    requests: dict[str, list[float]] = field(default_factory=dict)
    late: dict[str, list[float]] = field(default_factory=dict)
    collecting: dict[str, list[float]] = field(default_factory=dict)


async def _requests(report: Report, sizes: Sizes, notes: Path, index: Path) -> None:
    """Asks for pages while another process indexes every note anew, and while it is halted."""
    from datasette.app import Datasette

    from datasette_concept_recall.demo import build_demo

    logging.getLogger("httpx").setLevel(logging.WARNING)  # it would tell of every request
    knowledge = index.with_name("knowledge.db")
    question = build_demo(knowledge).question
    served = index.rename(index.with_name("notes.db"))
    datasette = Datasette([str(served), str(knowledge)])
    pages = {
        "recall, knowledge": f"/knowledge/-/recall?{urlencode({'q': question})}",
        "recall, index": f"/notes/-/recall?{urlencode({'q': ' and '.join(_names()[:3])})}",
        "table of documents": "/notes/document",
    }
    write_notes(notes, sizes.pick(100, 5_000), edition=1_000)
    phases = {IDLE: _Phase(), DURING: _Phase()}

    async def ask(path: str) -> None:
        response = await datasette.client.get(path)
        if response.status_code != 200:
            raise RuntimeError(f"{path}: {response.text[:500]}")

    for path in (*pages.values(), *pages.values()):  # for warming up
        await ask(path)
    with _running(served) as (process, halted):
        for _ in range(sizes.pick(1, 20, 60)):
            await _measure(ask, pages, phases[DURING], sizes.pick(0.05, 0.8))
            with halted():
                await _measure(ask, pages, phases[IDLE], sizes.pick(0.05, 0.8))
            if process.poll() is not None:
                break
    _report_requests(report, phases)


@contextmanager
def _running(
    index: Path,
) -> Iterator[tuple[subprocess.Popen[bytes], Callable[[], AbstractContextManager[None]]]]:
    """A run in a process of its own that has begun, and what halts it for a while."""
    command = [sys.executable, "-m", "datasette", "concept-recall", "index", "run", str(index)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    @contextmanager
    def halted() -> Iterator[None]:
        process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            process.send_signal(signal.SIGCONT)

    try:
        with closing(sqlite3.connect(index)) as conn:
            while (
                process.poll() is None
                and not conn.execute(
                    "select 1 from run where ended_at is null and done > 0"
                ).fetchall()
            ):
                time.sleep(0.02)
        yield process, halted
    finally:
        process.terminate()
        process.wait(60)


async def _measure(
    ask: Callable[[str], Awaitable[None]], pages: dict[str, str], phase: _Phase, seconds: float
) -> None:
    """Asks for nothing and for one page after the other, while something else wants the event loop
    all the time."""
    deadline = time.perf_counter() + seconds
    while time.perf_counter() < deadline:
        async with _watched(phase, _NOTHING):
            await asyncio.sleep(0.05)
        for label, path in pages.items():
            async with _watched(phase, label):
                began = time.perf_counter()
                await ask(path)
                phase.requests.setdefault(label, []).append(time.perf_counter() - began)


@asynccontextmanager
async def _watched(phase: _Phase, label: str) -> AsyncIterator[None]:
    """Notes what keeps the event loop from coming in time, as long as this goes on."""
    late = phase.late.setdefault(label, [])
    collecting = phase.collecting.setdefault(label, [0.0])
    began_collecting = 0.0

    async def tick() -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK)
            late.append(time.perf_counter() - began - _TICK)

    def note(stage: str, _: object) -> None:
        nonlocal began_collecting
        if stage == "start":
            began_collecting = time.perf_counter()
        else:
            collecting.append(time.perf_counter() - began_collecting)

    gc.callbacks.append(note)
    ticking = asyncio.create_task(tick())
    try:
        await asyncio.sleep(0)  # so that it has begun
        yield
        await asyncio.sleep(2 * _TICK)  # so that what blocked it last is noted
    finally:
        gc.callbacks.remove(note)
        ticking.cancel()
        with suppress(asyncio.CancelledError):
            await ticking


def _report_requests(report: Report, phases: dict[str, _Phase]) -> None:
    during, idle = phases[DURING], phases[IDLE]
    rows, multiples = [], []
    for label in idle.requests:
        times = [Timing(tuple(phase.requests[label])) for phase in (idle, during)]
        multiples.append(times[1].median / times[0].median)
        worst = [milliseconds(max(each.samples)) for each in times]
        count = str(len(times[1].samples))
        rows.append((label, *map(str, times), f"{multiples[-1]:.2f}", *worst, count))
        report.data.setdefault("requests", {})[label] = [each.as_json() for each in times]
    header = ("page, wall ms", IDLE, DURING, "×", "longest idle", "longest during", "samples")
    report.table("Pages while another process indexes every note anew", header, rows)
    blocked = [
        (
            label,
            *(
                milliseconds(value)
                for phase in (idle, during)
                for value in (
                    quantile(phase.late[label], 0.99),
                    max(phase.late[label]),
                    max(phase.collecting[label]),
                )
            ),
        )
        for label in during.late
    ]
    columns = ("the event loop came so late, ms", *_columns(IDLE), *_columns(DURING))
    report.table("The event loop of Datasette by what is asked", columns, blocked)
    longest = {label: max(late) for label, late in during.late.items()}
    report.data["blocked"] = longest
    report.target("pages during a run: × idle, the worst page", max(multiples), 2)
    report.target("the event loop blocked by a run, nothing asked: ms", longest[_NOTHING] * 1e3, 50)


def _columns(phase: str) -> tuple[str, str, str]:
    return f"p99, {phase}", "longest", "longest collection of garbage"


if __name__ == "__main__":
    main()
