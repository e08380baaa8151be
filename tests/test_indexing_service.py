"""The service: whose turn it is, what a pause and a removal wait for, and what goes wrong."""

from __future__ import annotations

import logging
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pytest

from datasette_concept_recall.errors import RecallError
from datasette_concept_recall.indexing.embedding import EmbedderFailure
from datasette_concept_recall.indexing.failures import SourceUnreachable, Unavailable
from datasette_concept_recall.indexing.freshness import keep
from datasette_concept_recall.indexing.holding import pause, remove_source, resume
from datasette_concept_recall.indexing.ids import content_hash, fingerprint
from datasette_concept_recall.indexing.models import Entry, Extracted, Listing, Opened, Segment
from datasette_concept_recall.indexing.passes import Outcome
from datasette_concept_recall.indexing.service import Service
from datasette_concept_recall.indexing.sources.base import AskForRun, SourceIndexer
from datasette_concept_recall.indexing.store import SourceRow, Store
from datasette_concept_recall.indexing.turns import Busy, Turn
from datasette_concept_recall.indexing.versions import Versions
from datasette_concept_recall.indexing.watching import Watch, is_relevant
from indexing import SMALL, FakeClock, FakeEmbedder, down, indexing, live_texts, orphans, paragraphs

PATIENCE = 20.0
"""Seconds after which a test gives up on what happens in another thread."""


@dataclass
class Shelf:
    """A source of documents that are texts in a dict, or failures to be raised for them."""

    documents: dict[str, str | Exception] = field(default_factory=dict)
    on_read: Callable[[str], None] = lambda key: None
    on_listing: Callable[[], None] = lambda: None
    reads: list[str] = field(default_factory=list)

    def listing(self) -> Listing:
        self.on_listing()
        return Listing(
            [
                Entry(key.encode(), key, self._fingerprint(key), path=key, size=len(str(text)) + at)
                for at, (key, text) in enumerate(self.documents.items())
            ]
        )

    def read(self, entry: Entry) -> Opened:
        key = entry.key.decode()
        self.reads.append(key)
        self.on_read(key)
        text = self.documents[key]
        if isinstance(text, Exception):
            raise text
        return Opened(
            content_hash(text.encode()),
            "file",
            lambda: Extracted("text", "plain", iter([Segment(text)])),
        )

    def fingerprint(self, entry: Entry) -> str | None:
        key = entry.key.decode()
        return self._fingerprint(key) if key in self.documents else None

    def _fingerprint(self, key: str) -> str:
        return fingerprint(key, str(self.documents[key]))


class ShelfIndexer(SourceIndexer):
    """Indexes shelves, which are known by the origin of their source."""

    kind = "shelf"

    def __init__(self, **shelves: Shelf) -> None:
        self.shelves = shelves
        self.tracked: list[str] = []
        self.on_track: Callable[[SourceRow, AskForRun], None] = lambda source, ask: None

    def open(self, source: SourceRow) -> Shelf:
        return self.shelves[source.origin]

    def track_changes(self, source: SourceRow, ask: AskForRun) -> None:
        self.tracked.append(source.name)
        self.on_track(source, ask)


def add(store: Store, name: str, **more: Any) -> SourceRow:
    return store.add_source(name, "shelf", name, dict(SMALL), **more)


def texts(count: int, prefix: str = "d") -> dict[str, str | Exception]:
    """So many documents of one chunk each."""
    return {f"{prefix}{n:04}": f"The text of {prefix}{n:04} is its own" for n in range(count)}


def steps(service: Service, most: int = 40) -> list[tuple[str, str]]:
    """All steps that are made, as (name of the source, outcome); fails when there is no end."""
    made: list[tuple[str, str]] = []
    while (step := service.run_next()) is not None:
        made.append((step[0].name, step[1].value))
        assert len(made) < most, f"no end of steps: {made[-5:]}"
    return made


def run_rows(store: Store, column: str = "reason") -> list[Any]:
    return [value for (value,) in store.rows(f"select {column} from run order by id")]


def count(store: Store, table: str) -> int:
    ((found,),) = store.rows(f"select count(*) from {table}")
    return int(found)


def state_of(store: Store, source: SourceRow) -> tuple[str, str | None]:
    found = store.source(source.id)
    assert found is not None
    return found.state, found.problem


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.005)


class Elsewhere:
    """Something done in another thread with a connection of its own, as by another program."""

    def __init__(self, path: Path, action: Callable[[Store], object]) -> None:
        self.error: BaseException | None = None
        self._path, self._action = path, action
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            with Store(self._path) as store:
                self._action(store)
        except BaseException as error:
            self.error = error

    def end(self) -> None:
        self.thread.join(PATIENCE)
        assert not self.thread.is_alive()
        if self.error:
            raise self.error


# -- which sources are looked at at all -----------------------------------------------------------


def test_a_source_that_nobody_claims_is_refused_and_told_of(store: Store) -> None:
    """Without an indexer there is no run, no version and no row but the source, and the user is
    told why."""
    source = store.add_source("wiki", "wiki", "https://wiki.invalid")
    told: list[str] = []
    embedder = FakeEmbedder()
    service = indexing(store, [ShelfIndexer()], embedder=embedder, told=told.append)
    service.ask(source.id, "run")
    assert steps(service) == [("wiki", "refused")]
    assert state_of(store, source) == (
        "refused",
        "Nothing that is installed reads sources of the kind wiki",
    )
    assert [count(store, table) for table in ("run", "index_version", "document")] == [0, 0, 0]
    assert embedder.calls == 0
    assert len(told) == 1
    assert "wiki" in told[0]


def test_a_kind_that_is_switched_off_is_neither_scanned_nor_tracked(store: Store) -> None:
    """Whoever asks — the start, a round, a request or a change — all sources pass through one
    place, which knows no indexer for a kind that is off."""
    shelf = Shelf(texts(3))
    add(store, "A")
    off = ShelfIndexer(A=shelf)
    off.kind = "another"
    embedder = FakeEmbedder()
    service = indexing(store, [off], embedder=embedder)
    service.ask_all("start")
    store.ask("retry")
    service.ask(1, "changed")
    steps(service)
    threading.Timer(0.2, service.stop).start()
    keep(service)
    assert (shelf.reads, off.tracked, embedder.calls) == ([], [], 0)
    assert [count(store, table) for table in ("run", "index_version", "document")] == [0, 0, 0]


def test_raising_the_confidence_refuses_the_run_and_keeps_the_index(store: Store) -> None:
    """A source of which nothing may leave is not run with a remote embedder, with a message, and
    what is indexed of it stays as it is."""
    shelf = Shelf(texts(3))
    source = add(store, "A")
    embedder = FakeEmbedder(is_remote=True)
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    service.ask(source.id, "run")
    steps(service)
    before = live_texts(store)
    store.set_confidence(source.id, "local")
    shelf.documents["new"] = "A secret that must not leave"
    service.ask(source.id, "changed")
    assert steps(service) == [("A", "refused")]
    state, problem = state_of(store, source)
    assert state == "refused"
    assert embedder.name in str(problem)
    assert live_texts(store) == before
    assert len(before) == 3
    assert "A secret that must not leave" not in embedder.log


def test_lowering_the_confidence_again_embeds_nothing_anew(store: Store) -> None:
    """The confidence is no part of what an index is built with."""
    shelf = Shelf(texts(3))
    source = add(store, "A", confidence="local")
    remote, local = FakeEmbedder(is_remote=True), FakeEmbedder()
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=local)
    service.ask(source.id, "run")
    steps(service)
    store.set_confidence(source.id, "any")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=remote)
    service.ask(source.id, "run")
    assert steps(service) == [("A", "done")]
    assert remote.calls == 0
    assert len(Versions(store).of(source.id)) == 1


def test_an_embedder_that_cannot_be_had_refuses_the_run_with_its_reason(store: Store) -> None:
    """An index that had vectors is not built anew without them because of a mistake in settings."""
    shelf = Shelf(texts(2))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=FakeEmbedder())
    service.ask(source.id, "run")
    steps(service)
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder_problem="No such model: x")
    service.ask(source.id, "run")
    assert steps(service) == [("A", "refused")]
    assert state_of(store, source) == ("refused", "No such model: x")
    assert count(store, "vector") == 2


# -- whose turn it is -----------------------------------------------------------------------------


def one_second_each(shelf: Shelf, clock: FakeClock) -> Shelf:
    shelf.on_read = lambda key: clock.advance(1)
    return shelf


def test_a_step_ends_at_the_first_document_after_five_minutes(
    store: Store, clock: FakeClock
) -> None:
    """Of 2,000 documents of a second each 300 are read, and none is found before all are done."""
    shelf = one_second_each(Shelf(texts(2_000)), clock)
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    step = service.run_next()
    assert step is not None
    assert step[1] is Outcome.MORE_TO_DO
    assert len(shelf.reads) == 300
    assert live_texts(store) == []
    assert state_of(store, source)[0] == "waiting"


def test_a_step_of_a_mailbox_ends_after_five_hundred_reads_that_are_found_at_once(
    store: Store,
) -> None:
    """Failures count as reads, and what a mailbox has so far is searched."""
    shelf = Shelf({**texts(600), "d0003": Unavailable("locked", "It is locked")})
    source = add(store, "A")
    indexer = ShelfIndexer(A=shelf)
    indexer.reads_per_share, indexer.searchable_at_once = 500, True
    service = indexing(store, [indexer])
    service.ask(source.id, "start")
    service.run_next()
    assert len(shelf.reads) == 500
    assert len(live_texts(store)) == 499


def test_a_document_that_takes_too_long_is_warned_of_once(
    store: Store, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    """A step that did not ask for more than twice its share leaves one warning in the log."""
    shelf = Shelf(texts(3), on_read=lambda key: clock.advance(700))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    with caplog.at_level(logging.WARNING):
        service.run_next()
    assert [r.getMessage() for r in caplog.records] == [
        "A step took 700 seconds without asking to go on"
    ]


def test_a_large_source_lets_the_others_have_their_turn(store: Store, clock: FakeClock) -> None:
    """Of a thousand documents each is read once, and the steps after the first wait behind every
    source that begins."""
    shelf = one_second_each(Shelf(texts(1_000)), clock)
    indexer = ShelfIndexer(A=shelf, B=Shelf(texts(2)), C=Shelf(texts(2)))
    for name in "ABC":
        add(store, name)
    service = indexing(store, [indexer])
    service.ask_all("start")
    made = steps(service)
    assert made == [
        ("A", "more to do"), ("B", "done"), ("C", "done"),
        ("A", "more to do"), ("A", "more to do"), ("A", "done"),
    ]  # fmt: skip
    assert Counter(shelf.reads) == dict.fromkeys(shelf.documents, 1)
    assert len(live_texts(store)) == 1_004


@pytest.mark.parametrize("changes", [50, 100])
def test_changes_during_a_run_give_one_follow_up(store: Store, changes: int) -> None:
    """However many changes a watcher tells of while a source is run, it is run once more, for the
    reason that was told first."""
    shelf = Shelf(texts(3))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])

    def tell() -> None:
        for number in range(changes):
            service.ask(source.id, "changed" if number == 0 else "round")

    def from_a_thread(key: str) -> None:
        if key == "d0001":
            thread = threading.Thread(target=tell)
            thread.start()
            thread.join()

    shelf.on_read = from_a_thread
    service.ask(source.id, "start")
    assert steps(service) == [("A", "done")] * 2
    assert run_rows(store) == ["start", "changed"]


def test_requests_of_other_programs_are_taken_up_once(store: Store) -> None:
    """What the command line leaves in the index is done by whoever keeps it fresh, and is gone."""
    add(store, "A")
    add(store, "B")
    service = indexing(store, [ShelfIndexer(A=Shelf(texts(1)), B=Shelf(texts(1)))])
    store.ask("run")
    store.ask("retry", 1)
    assert steps(service) == [("A", "done"), ("B", "done")]
    assert count(store, "request") == 0
    assert steps(service) == []


def test_only_one_program_works_on_an_index(store: Store) -> None:
    """While another one has the turn nothing is begun, and what was asked is not forgotten."""
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=Shelf(texts(1)))])
    service.ask(source.id, "run")
    with Turn(store.path).taken():
        with pytest.raises(Busy):
            service.run_next()
        assert count(store, "run") == 0
    assert steps(service) == [("A", "done")]


# -- starting -------------------------------------------------------------------------------------


def test_at_the_start_all_are_queued_then_checked_and_only_then_tracked(store: Store) -> None:
    """Trackers begin when every source was looked at, and all were shown as queued before that."""
    events: list[str] = []
    seen: list[list[str]] = []
    indexer = ShelfIndexer()
    service = indexing(store, [indexer])

    def note(name: str) -> Callable[[], None]:
        def listed() -> None:
            events.append(f"check {name}")
            seen.append([each.state for each in store.sources()])

        return listed

    def track(source: SourceRow, ask: AskForRun) -> None:
        events.append(f"track {source.name}")
        if source.name == "C":
            service.stop()

    for name in "ABC":
        add(store, name)
        indexer.shelves[name] = Shelf(texts(1, name), on_listing=note(name))
    indexer.on_track = track
    keep(service)
    assert events == ["check A", "check B", "check C", "track A", "track B", "track C"]
    assert seen[0] == ["running", "queued", "queued"]


def test_a_service_that_is_stopped_during_the_check_tracks_nothing(store: Store) -> None:
    """Trackers stay off when the refresh was switched off before they began."""
    indexer = ShelfIndexer(A=Shelf(texts(2)), B=Shelf(texts(2)))
    for name in "AB":
        add(store, name)
    service = indexing(store, [indexer])
    indexer.shelves["A"].on_read = lambda key: service.stop()
    keep(service)
    assert indexer.tracked == []
    assert indexer.shelves["B"].reads == []


def test_a_source_that_is_added_comes_before_what_another_has_more_to_do(store: Store) -> None:
    """While an index is kept, too: nobody waits for the end of a large mailbox."""
    large, small = Shelf(texts(3)), Shelf(texts(1, "s"))
    indexer = ShelfIndexer(A=large, B=small)
    indexer.reads_per_share = 1
    add(store, "A")
    service = indexing(store, [indexer])

    def on_read(key: str) -> None:
        if key == "d0000":
            add(store, "B")
        if key == "d0002":
            service.stop()

    large.on_read = on_read
    keep(service)
    names = [
        name
        for (name,) in store.rows(
            "select s.name from run r join source s on s.id = r.source_id order by r.id"
        )
    ]
    assert names == ["A", "B", "A", "A"]


def test_a_source_that_is_added_later_is_looked_at_and_tracked(store: Store) -> None:
    """Whoever keeps an index fresh takes up sources that another program adds."""
    indexer = ShelfIndexer(A=Shelf(texts(1)), B=Shelf(texts(1, "b")))
    add(store, "A")
    service = indexing(store, [indexer])

    def track(source: SourceRow, ask: AskForRun) -> None:
        if source.name == "A":
            Elsewhere(store.path, lambda other: add(other, "B")).end()
        else:
            service.stop()

    indexer.on_track = track
    guard = threading.Timer(PATIENCE, service.stop)
    guard.start()
    keep(service)
    guard.cancel()
    assert indexer.tracked == ["A", "B"]
    assert indexer.shelves["B"].reads == ["b0000"]


def test_an_id_is_never_given_to_another_source(store: Store) -> None:
    """What still remembers a removed source — a tracker, a queue — cannot take a new one for it."""
    first = add(store, "A")
    remove_source(store, first)
    assert add(store, "B").id != first.id


class RunningClock(FakeClock):
    """A clock that goes on by ten seconds whenever somebody looks at it."""

    def now(self) -> Any:
        self.advance(10)
        return super().now()


def keep_running(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """Keeps an index fresh without waiting between two looks."""
    monkeypatch.setattr("datasette_concept_recall.indexing.freshness.LOOK_SECONDS", 0.0)
    guard = threading.Timer(PATIENCE, service.stop)
    guard.start()
    keep(service)
    guard.cancel()


def test_a_source_that_cannot_be_reached_is_tried_again_ever_less_often(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the first failure of a round come retries after about 1, 2, 4 and 8 minutes."""
    clock = RunningClock()
    with Store(tmp_path / "index.db", clock) as store:
        source = add(store, "A")
        times: list[float] = []
        indexer = ShelfIndexer(A=Shelf())
        indexer.interval = 24 * 3600.0
        service = indexing(store, [indexer])

        def away() -> None:
            times.append(clock.seconds)
            if len(times) == 6:
                service.stop()
            raise SourceUnreachable("The server does not answer")

        indexer.shelves["A"].on_listing = away
        keep_running(service, monkeypatch)
        gaps = [later - sooner for sooner, later in pairwise(times)]
        assert len(gaps) == 5
        for gap, expected in zip(gaps[1:], [60, 120, 240, 480], strict=True):
            assert expected <= gap <= expected + 150
        assert state_of(store, source) == ("unreachable", "The server does not answer")


def test_rounds_find_what_no_watcher_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without trackers, or with one that died, a source is looked at again by the clock, and the
    time of the next round is to be seen."""
    clock = RunningClock()
    with Store(tmp_path / "index.db", clock) as store:
        source = add(store, "A")
        shelf = Shelf(texts(1))
        indexer = ShelfIndexer(A=shelf)
        service = indexing(store, [indexer])
        planned: list[str | None] = []

        def listed() -> None:
            found = store.source(source.id)
            planned.append(found.next_run_at if found else None)
            if len(planned) == 2:
                shelf.documents["late"] = "What came without a word"

        shelf.on_listing = listed
        shelf.on_read = lambda key: service.stop() if key == "late" else None
        monkeypatch.setattr("datasette_concept_recall.indexing.freshness.LOOK_SECONDS", 0.0)
        guard = threading.Timer(PATIENCE, service.stop)
        guard.start()
        keep(service, watch=False)
        guard.cancel()
        assert shelf.reads == ["d0000", "late"]
        assert indexer.tracked == []
        assert planned[0] is None
        assert planned[1] is not None
        assert run_rows(store) == ["start", "round"]


def test_rounds_of_one_source_come_between_the_steps_of_another(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mailbox waits for one step of a large folder at most, not for all of its pass."""
    with Store(tmp_path / "index.db", clock) as store:
        large = one_second_each(Shelf(), clock)
        indexer = ShelfIndexer(A=large, M=Shelf(texts(1, "m")))
        indexer.interval = 600.0
        service = indexing(store, [indexer], share_seconds=30)
        add(store, "A")
        add(store, "M")

        def track(source: SourceRow, ask: AskForRun) -> None:
            if source.name == "M":
                large.documents.update(texts(200))
                service.ask(1, "changed")

        def until_all_is_read(key: str) -> None:
            clock.advance(1)
            if len(large.reads) == 200:
                service.stop()

        indexer.on_track = track
        large.on_read = until_all_is_read
        keep_running(service, monkeypatch)
        order = store.rows(
            "select s.name from run r join source s on s.id = r.source_id order by r.id"
        )
        names = "".join(name for (name,) in order)
        assert names.startswith("AM")
        assert "M" in names[2:], names


# -- passes ---------------------------------------------------------------------------------------


def failing(**kinds: str) -> Callable[[int, Any], None]:
    """An embedder that fails for the texts of some documents, each with its kind of failure."""

    def fails(call: int, asked: Any) -> None:
        for key, kind in kinds.items():
            if any(key in text for text in asked):
                raise EmbedderFailure(kind, f"No vector for {key}")  # type: ignore[arg-type]

    return fails


def test_a_pass_reads_what_failed_only_once_and_tells_of_each_kind_once(
    store: Store, clock: FakeClock
) -> None:
    """What failed in the first step is not read in the next ones but counted, each kind of failure
    is one message, and a retry of the user begins anew."""
    shelf = one_second_each(Shelf(texts(14)), clock)
    source = add(store, "A")
    told: list[str] = []
    embedder = FakeEmbedder(fails=failing(d0001="timeout", d0002="timeout", d0007="quota"))
    service = indexing(
        store, [ShelfIndexer(A=shelf)], embedder=embedder, share_seconds=5, told=told.append
    )
    service.ask(source.id, "start")
    assert steps(service) == [("A", "more to do"), ("A", "more to do"), ("A", "failed")]
    assert Counter(shelf.reads) == dict.fromkeys(shelf.documents, 1)
    assert [message.split(":")[0] for message in told] == [
        "The embedder failed (timeout)", "The embedder failed (quota)",
    ]  # fmt: skip
    assert run_rows(store, "failed")[-1] == 3
    shelf.reads.clear()
    embedder.fails = None
    service.ask(source.id, "retry")
    assert steps(service) == [("A", "done")]
    assert sorted(shelf.reads) == ["d0001", "d0002", "d0007"]
    assert count(store, "failure") == 0


def test_a_retry_between_two_steps_begins_a_new_pass(store: Store, clock: FakeClock) -> None:
    """A user who asks again has what failed in this pass read again in the next step."""
    shelf = one_second_each(Shelf(texts(8)), clock)
    source = add(store, "A")
    embedder = FakeEmbedder(fails=failing(d0001="timeout"))
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder, share_seconds=5)
    service.ask(source.id, "start")
    service.run_next()
    embedder.fails = None
    service.ask(source.id, "retry")
    assert steps(service)[-1] == ("A", "done")
    assert Counter(shelf.reads)["d0001"] == 2


def test_a_pass_that_ended_is_forgotten(store: Store) -> None:
    """The next run for whatever reason reads what failed in the pass before."""
    shelf = Shelf({**texts(2), "d0001": Unavailable("locked", "It is locked")})
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    for _ in range(2):
        service.ask(source.id, "round")
        assert steps(service) == [("A", "failed")]
    assert Counter(shelf.reads) == {"d0000": 1, "d0001": 2}


def test_an_embedder_that_is_down_ends_the_pass_after_one_step(
    store: Store, clock: FakeClock
) -> None:
    """When it fails for everything there is one step, no follow-up and one message, and the next
    source has its turn."""
    shelf = one_second_each(Shelf(texts(50)), clock)
    indexer = ShelfIndexer(A=shelf, B=Shelf(texts(1, "b")))
    source = add(store, "A")
    add(store, "B")
    told: list[str] = []

    def fails(call: int, asked: Any) -> None:
        if any("text of d" in text for text in asked):
            down(call, asked)

    service = indexing(store, [indexer], embedder=FakeEmbedder(fails=fails), told=told.append)
    service.ask_all("start")
    assert steps(service) == [("A", "aborted"), ("B", "done")]
    assert state_of(store, source)[0] == "failed"
    assert len(shelf.reads) == 5
    assert told == ["The embedder failed (unreachable): The provider is down"]


def test_an_embedder_that_times_out_until_the_share_is_over_ends_the_pass(
    store: Store, clock: FakeClock
) -> None:
    """A step in which something failed and nothing was indexed is followed by none, also when the
    time was over before it was clear that the embedder is down."""
    shelf = Shelf(texts(50), on_read=lambda key: clock.advance(100))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=FakeEmbedder(fails=down))
    service.ask(source.id, "start")
    assert len(steps(service)) == 1
    assert len(shelf.reads) == 3
    assert state_of(store, source)[0] == "failed"


def test_an_indexer_that_breaks_ends_its_pass_and_stops_no_other(
    store: Store, clock: FakeClock
) -> None:
    """A fault in the code of one kind of source is told of and noted, and the others are run."""
    shelf = one_second_each(
        Shelf({**texts(8), "d0001": Unavailable("locked", "It is locked")}), clock
    )
    indexer = ShelfIndexer(A=shelf, B=Shelf(texts(1, "b")))
    source = add(store, "A")
    other = add(store, "B")
    told: list[str] = []
    service = indexing(store, [indexer], share_seconds=5, told=told.append)
    service.ask(source.id, "start")
    service.run_next()

    def breaks() -> None:
        raise ZeroDivisionError("a fault of an indexer")

    shelf.on_listing = breaks
    service.ask(other.id, "start")
    assert steps(service) == [("B", "done"), ("A", "aborted")]
    state, problem = state_of(store, source)
    assert state == "failed"
    assert "a fault of an indexer" in str(problem)
    assert any("a fault of an indexer" in message for message in told)
    shelf.on_listing = lambda: None
    service.ask(source.id, "changed")
    assert steps(service)[-1] == ("A", "failed")
    assert Counter(shelf.reads)["d0001"] == 2


def test_a_verification_goes_on_where_its_last_step_ended(store: Store, clock: FakeClock) -> None:
    """Comparing the content of everything reads each document once, over as many steps as it
    takes."""
    shelf = one_second_each(Shelf(texts(12)), clock)
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], share_seconds=5)
    service.ask(source.id, "start")
    steps(service)
    shelf.reads.clear()
    service.ask(source.id, "verify")
    assert [outcome for _, outcome in steps(service)] == ["more to do", "more to do", "done"]
    assert Counter(shelf.reads) == dict.fromkeys(shelf.documents, 1)


def test_a_verification_that_waits_is_not_lost_to_another_request(store: Store) -> None:
    """Whoever asks for a run after somebody asked for a verification gets that one."""
    shelf = Shelf(texts(3))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    steps(service)
    shelf.reads.clear()
    store.ask("verify", source.id)
    store.ask("run", source.id)
    steps(service)
    assert len(shelf.reads) == 3


def test_a_knowledge_database_that_is_missing_is_told_of_once_a_run(
    store: Store, tmp_path: Path
) -> None:
    """The same sentence is not said for every document."""
    source = add(store, "A")
    told: list[str] = []
    service = indexing(
        store,
        [ShelfIndexer(A=Shelf(texts(10)))],
        knowledge=[tmp_path / "nowhere.db"],
        told=told.append,
    )
    service.ask(source.id, "start")
    assert steps(service) == [("A", "done")]
    assert 1 <= len(told) <= 2


class SameSize(Shelf):
    """A shelf whose documents are all of one size, as rows are."""

    def listing(self) -> Listing:
        return Listing([replace(entry, size=7) for entry in super().listing().entries])


def moving(store: Store, **options: Any) -> tuple[Service, Shelf]:
    """A source of which one document is gone and forty others of its size came."""
    shelf = SameSize(texts(3))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], **options)
    service.ask(source.id, "start")
    steps(service)
    shelf.reads.clear()
    shelf.documents = {**texts(2), **texts(40, "n")}
    service.ask(source.id, "changed")
    return service, shelf


def test_a_stop_ends_the_search_for_documents_that_were_moved(
    store: Store, clock: FakeClock
) -> None:
    """While the step compares what is new with what is gone it stops as at any other time, and
    what may have been moved is not removed."""
    service, shelf = moving(store)

    def stop(key: str) -> None:
        clock.advance(1)
        if len(shelf.reads) == 3:
            service.stop()

    shelf.on_read = stop
    assert steps(service) == [("A", "cancelled")]
    assert len(shelf.reads) == 3
    assert len(live_texts(store)) == 3


def test_the_search_for_documents_that_were_moved_is_part_of_the_share(
    store: Store, clock: FakeClock
) -> None:
    """Reading what is new to compare it with what is gone takes no longer than a step may, and
    in the end all of it is indexed."""
    service, shelf = moving(store, share_seconds=5)
    one_second_each(shelf, clock)
    service.run_next()
    assert len(shelf.reads) == 5
    steps(service)
    assert len(live_texts(store)) == 42


def test_a_vector_of_another_width_is_not_taken_in_the_very_first_run(store: Store) -> None:
    """The first vector of an index sets the width for all documents, those of the same step too."""
    source = add(store, "A")
    embedder = FakeEmbedder(
        fails=lambda call, asked: [[1.0] * (3 if call == 1 else 4) for _ in asked]
    )
    told: list[str] = []
    service = indexing(
        store, [ShelfIndexer(A=Shelf(texts(3)))], embedder=embedder, told=told.append
    )
    service.ask(source.id, "start")
    assert steps(service) == [("A", "failed")]
    assert store.rows("select distinct length(embedding) from vector") == [(12,)]
    assert [version.dimensions for version in Versions(store).of(source.id)] == [3]
    assert len(told) == 1
    assert "(invalid)" in told[0]


# -- another signature ----------------------------------------------------------------------------


def live_version(store: Store, source: SourceRow) -> str | None:
    return next((v.embedder for v in Versions(store).of(source.id) if v.state == "live"), None)


def built(store: Store, shelf: Shelf, **options: Any) -> SourceRow:
    """The source A, indexed with the model "old"."""
    source = add(store, "A")
    embedder = FakeEmbedder(model="old")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder, **options)
    service.ask(source.id, "start")
    steps(service)
    return source


def test_another_model_is_built_beside_the_old_index_which_serves_until_then(
    store: Store, clock: FakeClock
) -> None:
    """Until all documents are embedded anew, over several steps, what is searched is the old index
    with vectors of the old model; then it is the new one, and nothing of the old is left."""
    shelf = one_second_each(Shelf(texts(12)), clock)
    source = built(store, shelf)
    before, old = live_texts(store), live_version(store, source)
    assert old is not None
    seen: set[tuple[str | None, bool]] = set()

    def look(call: int, asked: Any) -> None:
        seen.add((live_version(store, source), live_texts(store) == before))

    new = FakeEmbedder(model="new", fails=look)
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=new, share_seconds=5)
    service.ask(source.id, "start")
    assert [outcome for _, outcome in steps(service)] == ["more to do", "more to do", "done"]
    assert seen == {(old, True)}
    assert live_version(store, source) == new.identity.name
    assert [v.state for v in Versions(store).of(source.id)] == ["live"]
    assert sorted(new.log) == sorted(before) == sorted(live_texts(store))
    assert (count(store, "vector"), count(store, "generation"), orphans(store)) == (12, 12, 0)


def test_going_back_to_the_old_model_drops_what_was_built(store: Store, clock: FakeClock) -> None:
    """A change of settings that is taken back costs nothing and leaves nothing behind."""
    shelf = one_second_each(Shelf(texts(12)), clock)
    source = built(store, shelf)
    new = FakeEmbedder(model="new")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=new, share_seconds=5)
    service.ask(source.id, "start")
    service.run_next()
    assert [v.state for v in Versions(store).of(source.id)] == ["live", "building"]
    old = FakeEmbedder(model="old")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=old)
    service.ask(source.id, "start")
    assert steps(service) == [("A", "done")]
    assert old.calls == 0
    assert [v.state for v in Versions(store).of(source.id)] == ["live"]
    assert (count(store, "vector"), count(store, "generation"), orphans(store)) == (12, 12, 0)


def old_index_is_whole(store: Store, source: SourceRow, old: str | None, documents: int) -> bool:
    return live_version(store, source) == old and orphans(store) == 0 and (
        count(store, "vector") >= documents
    )  # fmt: skip


def test_a_rebuild_whose_share_is_over_before_anything_was_embedded_leaves_the_old_index(
    store: Store, clock: FakeClock
) -> None:
    """An embedder that times out while a new model is tried costs no vector of the old index."""
    shelf = Shelf(texts(12))
    source = built(store, shelf)
    old = live_version(store, source)
    shelf.on_read = lambda key: clock.advance(100)
    service = indexing(
        store, [ShelfIndexer(A=shelf)], embedder=FakeEmbedder(model="new", fails=down)
    )
    service.ask(source.id, "start")
    steps(service)
    assert len(live_texts(store)) == 12
    assert old_index_is_whole(store, source, old, 12)


@pytest.mark.parametrize("documents", [1, 4, 5])
def test_a_rebuild_with_an_embedder_that_is_down_leaves_the_old_index(
    store: Store, documents: int
) -> None:
    """However few documents a source has, an embedder that fails for all of them replaces
    nothing."""
    shelf = Shelf(texts(documents))
    source = built(store, shelf)
    old = live_version(store, source)
    service = indexing(
        store, [ShelfIndexer(A=shelf)], embedder=FakeEmbedder(model="new", fails=down)
    )
    service.ask(source.id, "start")
    steps(service)
    assert state_of(store, source)[0] == "failed"
    assert old_index_is_whole(store, source, old, documents)


def test_a_rebuild_that_is_stopped_after_a_failure_leaves_the_old_index(store: Store) -> None:
    """A cancelled step is none that got through, whatever failed in it before."""
    shelf = Shelf(texts(6))
    source = built(store, shelf)
    old = live_version(store, source)
    embedder = FakeEmbedder(model="new")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)

    def fails(call: int, asked: Any) -> None:
        service.stop()
        down(call, asked)

    embedder.fails = fails
    service.ask(source.id, "start")
    assert steps(service) == [("A", "cancelled")]
    assert old_index_is_whole(store, source, old, 6)


# -- pausing --------------------------------------------------------------------------------------


def written(store: Store, action: Callable[[], object]) -> bool:
    """Whether another connection sees that anything was written meanwhile."""
    other = sqlite3.connect(store.path)
    before = other.execute("pragma data_version").fetchall()
    changes = store.conn.total_changes
    action()
    after = other.execute("pragma data_version").fetchall()
    other.close()
    return before != after or store.conn.total_changes != changes


def test_nothing_is_written_during_a_pause_and_each_request_is_met_once_after_it(
    store: Store,
) -> None:
    """A change, a retry and the start during a pause wait, to the last row, until somebody
    resumes."""
    indexer = ShelfIndexer(A=Shelf(texts(2)), B=Shelf(texts(2, "b")))
    first = add(store, "A")
    add(store, "B")
    service = indexing(store, [indexer], embedder=FakeEmbedder())
    store.ask("retry", first.id)
    pause(store)

    def everything() -> None:
        service.ask(first.id, "changed")
        service.ask(first.id, "retry")
        service.ask_all("start")
        assert service.run_next() is None
        assert service.run_all() == []

    assert not written(store, everything)
    assert count(store, "run") == 0
    resume(store)
    assert sorted(steps(service)) == [("A", "done"), ("B", "done")]
    assert steps(service) == []


def test_a_service_that_starts_during_a_pause_writes_nothing(store: Store) -> None:
    """The start, the rounds and the trackers change no row before the index is resumed."""
    indexer = ShelfIndexer(A=Shelf(texts(2)))
    add(store, "A")
    pause(store)
    service = indexing(store, [indexer], embedder=FakeEmbedder())
    threading.Timer(0.4, service.stop).start()
    assert not written(store, lambda: keep(service))
    assert indexer.shelves["A"].reads == []


def test_a_source_is_not_removed_during_a_pause(store: Store) -> None:
    """The removal is refused with a message, changes nothing, and works after the pause, whatever
    else was asked meanwhile."""
    indexer = ShelfIndexer(A=Shelf(texts(2)))
    source = add(store, "A")
    service = indexing(store, [indexer], embedder=FakeEmbedder())
    service.ask(source.id, "start")
    steps(service)
    pause(store)

    def refused() -> None:
        with pytest.raises(RecallError, match="paused"):
            remove_source(store, source)

    assert not written(store, refused)
    service.ask(source.id, "retry")
    assert steps(service) == []
    resume(store)
    remove_source(store, source)
    assert steps(service) == []
    assert rows_left(store) == {}


def test_a_pause_in_the_middle_of_a_document_waits_until_the_step_has_stopped(
    store: Store, tmp_path: Path, clock: FakeClock
) -> None:
    """A copy of the raw files that is made when the pause has begun is whole; nothing is embedded
    until the index is resumed, and then only what was not."""
    shelf = Shelf({"long": paragraphs(f"Person{n}" for n in range(12)), **texts(3)})
    source = add(store, "A")
    copies = tmp_path / "copies"
    copies.mkdir()
    others: list[Elsewhere] = []
    calls: list[int] = []

    def backup(other: Store) -> None:
        pause(other, PATIENCE)
        calls.append(embedder.calls)
        for suffix in ("", "-wal"):
            shutil.copy(f"{store.path}{suffix}", copies / f"copy.db{suffix}")

    def fails(call: int, asked: Any) -> None:
        if call == 2:
            others.append(Elsewhere(store.path, backup))
            wait_for(store.is_paused)
            clock.advance(1)

    embedder = FakeEmbedder(fails=fails)
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    service.ask(source.id, "start")
    assert steps(service) == [("A", "more to do")]
    assert embedder.calls == 2
    others[0].end()
    assert calls == [2]
    copy = sqlite3.connect(copies / "copy.db")
    assert copy.execute("pragma integrity_check").fetchall() == [("ok",)]
    copy.close()
    with Store(copies / "copy.db") as copied:
        assert orphans(copied) == 0
        assert count(copied, "vector") == 6
    assert steps(service) == []
    clock.advance(1)
    resume(store)
    assert steps(service) == [("A", "done")]
    assert len(embedder.log) == len(set(embedder.log)) == 15
    assert len(live_texts(store)) == 15


def test_a_pause_after_a_failure_does_not_end_the_pass(store: Store, clock: FakeClock) -> None:
    """What was not read when the pause began is read when it is over, whatever failed before."""
    shelf = Shelf({"d0000": Unavailable("locked", "It is locked"), **texts(5, "e")})
    source = add(store, "A")
    others: list[Elsewhere] = []

    def halt(key: str) -> None:
        if key == "d0000":
            others.append(Elsewhere(store.path, lambda other: pause(other, PATIENCE)))
            wait_for(store.is_paused)
            clock.advance(1)

    shelf.on_read = halt
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    assert steps(service) == [("A", "more to do")]
    others[0].end()
    clock.advance(1)
    resume(store)
    assert steps(service) == [("A", "failed")]
    assert Counter(shelf.reads) == dict.fromkeys(shelf.documents, 1)


def test_a_step_after_a_pause_is_not_stopped_by_what_was_said_before(
    store: Store, clock: FakeClock
) -> None:
    """An index that is resumed in the same moment goes on with the next step."""
    shelf = Shelf(texts(6))
    source = add(store, "A")
    others: list[Elsewhere] = []

    def halt(key: str) -> None:
        if key == "d0001" and not others:
            others.append(Elsewhere(store.path, lambda other: pause(other, PATIENCE)))
            wait_for(store.is_paused)
            clock.advance(1)

    shelf.on_read = halt
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    assert steps(service) == [("A", "more to do")]
    others[0].end()
    resume(store)
    assert steps(service) == [("A", "done")]


def test_a_pause_that_cannot_begin_is_none(store: Store) -> None:
    """When the running step takes too long there is an error, and the index is not paused."""
    with Turn(store.path).taken(), pytest.raises(Busy):
        pause(store, 0.05)
    assert not store.is_paused()


# -- removing -------------------------------------------------------------------------------------

TABLES = (
    "source", "index_version", "document", "generation", "chunk", "vector", "chunk_concept",
    "document_concept", "concept", "location", "redaction", "skipped", "failure", "run",
)  # fmt: skip


def rows_left(store: Store) -> dict[str, int]:
    found = {table: count(store, table) for table in TABLES}
    return {table: number for table, number in found.items() if number}


def announced(store: Store, source: SourceRow, seconds: float = PATIENCE) -> Elsewhere:
    """A removal by another program that was told to the run that is going on."""
    removal = Elsewhere(store.path, lambda other: remove_source(other, source, seconds))
    wait_for(lambda: store.is_leaving(source.id))
    return removal


def test_removing_a_source_in_the_middle_of_a_document_leaves_no_row_of_it(
    store: Store, clock: FakeClock
) -> None:
    """The run stops, then all is removed, and neither it nor a late change writes again."""
    shelf = Shelf({"long": paragraphs(f"[[Person{n}]]" for n in range(12)), **texts(30)})
    source = add(store, "A")
    removals: list[Elsewhere] = []

    def fails(call: int, asked: Any) -> None:
        if call == 2:
            removals.append(announced(store, source))
            clock.advance(1)

    embedder = FakeEmbedder(fails=fails)
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    service.ask(source.id, "start")
    service.run_next()
    removals[0].end()
    assert shelf.reads == ["long"]
    assert rows_left(store) == {}
    service.ask(source.id, "changed")
    assert steps(service) == []
    assert rows_left(store) == {}
    assert embedder.calls == 2


def test_removing_one_source_does_not_stop_the_next(store: Store, clock: FakeClock) -> None:
    """The step after one that a removal ended goes through, with all of its documents."""
    indexer = ShelfIndexer(A=Shelf(texts(5)), B=Shelf(texts(5, "b")))
    source = add(store, "A")
    add(store, "B")
    removals: list[Elsewhere] = []

    def leave(key: str) -> None:
        if key == "d0001":
            removals.append(announced(store, source))
            clock.advance(1)

    indexer.shelves["A"].on_read = leave
    service = indexing(store, [indexer])
    service.ask_all("start")
    made = steps(service)
    removals[0].end()
    assert [step for step in made if step[0] == "B"] == [("B", "done")]
    assert len(live_texts(store)) == 5
    assert [each.name for each in store.sources()] == ["B"]


def test_a_removal_waits_for_the_run_of_its_own_source_only(store: Store, clock: FakeClock) -> None:
    """When its run has ended a source is removed, though others are queued behind it for long."""
    indexer = ShelfIndexer(A=Shelf(texts(5)), B=Shelf(texts(5, "b")))
    source = add(store, "A")
    add(store, "B")
    removals: list[Elsewhere] = []

    def leave(key: str) -> None:
        if key == "d0001":
            removals.append(announced(store, source, 0.5))
            clock.advance(1)

    def takes_long(key: str) -> None:
        clock.advance(1)
        if key == "b0001" and removals:
            removals[0].thread.join(PATIENCE)

    indexer.shelves["A"].on_read = leave
    indexer.shelves["B"].on_read = takes_long
    service = indexing(store, [indexer])
    service.ask_all("start")
    steps(service)
    removals[0].end()
    assert [each.name for each in store.sources()] == ["B"]


def test_a_removal_that_was_given_up_does_not_leave_a_source_that_is_never_run(
    store: Store,
) -> None:
    """A run that does not end in time is an error for whoever removes, and the source is either
    removed afterwards or lives on."""
    shelf = Shelf(texts(2))
    source = add(store, "A")
    with Turn(store.path).taken(), pytest.raises(Busy):
        remove_source(store, source, 0.05)
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "run")
    steps(service)
    assert store.source(source.id) is None or shelf.reads == ["d0000", "d0001"]


def test_a_removal_that_a_pause_overtakes_writes_nothing_during_it(store: Store) -> None:
    """A removal that waits for its turn when a pause begins looks again before it removes."""
    source = add(store, "A")
    with Turn(store.path).taken():
        removal = announced(store, source)
        store.set_setting("paused", True)
    removal.thread.join(1.0)
    assert store.source(source.id) is not None
    resume(store)
    removal.thread.join(PATIENCE)


# -- what goes wrong ------------------------------------------------------------------------------


def damage(path: Path) -> None:
    """Overwrites the vectors in the file."""
    conn = sqlite3.connect(path)
    conn.execute("pragma wal_checkpoint(truncate)")
    ((page,),) = conn.execute("select rootpage from sqlite_master where name = 'vector'").fetchall()
    ((size,),) = conn.execute("pragma page_size").fetchall()
    conn.close()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"\xff" * size)


def test_a_damaged_index_ends_the_run_and_waits_for_the_user(
    tmp_path: Path, clock: FakeClock
) -> None:
    """There is one error and not one for each document, nothing is deleted, changes are not heard,
    a retry tries again, and a restart with whole files goes on as if nothing was."""
    path = tmp_path / "index.db"
    shelf = Shelf(texts(6))
    with Store(path, clock) as store:
        source = built(store, shelf)
    whole = path.read_bytes()
    damage(path)
    embedder = FakeEmbedder(model="old")
    told: list[str] = []
    shelf.documents = {**texts(4), "new": "What came later is here"}
    with Store(path, clock) as store:
        service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder, told=told.append)
        service.ask(source.id, "start")
        assert steps(service) == [("A", "aborted")]
        state, problem = state_of(store, source)
        assert state == "broken"
        assert "malformed" in str(problem)
        assert len(told) == 1
        assert (count(store, "document"), count(store, "chunk"), count(store, "failure")) == (
            6,
            6,
            0,
        )
        service.ask(source.id, "changed")
        assert steps(service) == []
        assert state_of(store, source)[0] == "broken"
        service.ask(source.id, "retry")
        assert steps(service) == [("A", "aborted")]
        assert state_of(store, source)[0] == "broken"
    for suffix in ("-wal", "-shm"):
        Path(f"{path}{suffix}").unlink(missing_ok=True)
    path.write_bytes(whole)
    with Store(path, clock) as store:
        service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
        service.ask(source.id, "start")
        assert steps(service) == [("A", "done")]
        assert embedder.log == ["What came later is here"]


def test_a_retry_that_finds_the_index_whole_ends_the_repair(store: Store) -> None:
    """After it changes are heard again, and the source is no longer shown as broken."""
    shelf = Shelf(texts(2))
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], told=lambda message: None)

    def unreadable() -> None:
        raise sqlite3.DatabaseError("database disk image is malformed")

    shelf.on_listing = unreadable
    service.ask(source.id, "start")
    assert steps(service) == [("A", "aborted")]
    assert state_of(store, source)[0] == "broken"
    shelf.on_listing = lambda: None
    service.ask(source.id, "retry")
    assert steps(service) == [("A", "done")]
    assert state_of(store, source) == ("done", None)
    service.ask(source.id, "changed")
    assert steps(service) == [("A", "done")]


def many_words(mark: str) -> dict[str, str | Exception]:
    return {f"d{n}": paragraphs(f"{mark}{n}x{m}" for m in range(60)) for n in range(4)}


def rebuilt_texts(shelf: Shelf) -> list[str]:
    return [line for text in shelf.documents.values() for line in str(text).split("\n\n")]


@pytest.mark.parametrize("embedder", [FakeEmbedder(model="old"), None])
def test_a_full_disk_ends_the_run_and_leaves_what_was_indexed(
    store: Store, embedder: FakeEmbedder | None
) -> None:
    """The old text is searched whole, no document is said to have failed, and the next run with
    room brings the new one."""
    shelf = Shelf({f"d{n}": f"The first text of {n}" for n in range(4)})
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    service.ask(source.id, "start")
    steps(service)
    before = live_texts(store)
    shelf.documents = many_words("Second")
    shelf.reads.clear()
    store.conn.execute("vacuum")
    ((pages,),) = store.rows("pragma page_count")
    store.conn.execute(f"pragma max_page_count = {pages}")
    service.ask(source.id, "changed")
    assert steps(service) == [("A", "aborted")]
    assert shelf.reads == (["d0"] if embedder else ["d0", "d1", "d2", "d3"])
    assert live_texts(store) == before
    assert (count(store, "failure"), count(store, "skipped"), orphans(store)) == (0, 0, 0)
    state, problem = state_of(store, source)
    assert state == "failed"
    assert "full" in str(problem)
    store.conn.execute("pragma max_page_count = 1000000")
    service.ask(source.id, "round")
    assert steps(service) == [("A", "done")]
    assert live_texts(store) == rebuilt_texts(shelf)
    assert orphans(store) == 0


@pytest.mark.parametrize("with_embedder", [True, False])
def test_a_lock_that_outlasts_all_patience_ends_the_run_with_nothing_half_written(
    store: Store, with_embedder: bool
) -> None:
    """Another program that holds the file makes the run end, not its documents fail, and the next
    one goes on."""
    shelf = Shelf({f"d{n}": f"The first text of {n}" for n in range(4)})
    source = add(store, "A")
    told: list[str] = []
    embedder = FakeEmbedder() if with_embedder else None
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder, told=told.append)
    service.ask(source.id, "start")
    steps(service)
    shelf.documents = many_words("Second")
    shelf.reads.clear()
    store.conn.execute("pragma busy_timeout = 20")
    other = sqlite3.connect(store.path, isolation_level=None)

    def lock(key: str) -> None:
        if key == "d1":
            other.execute("begin immediate")

    shelf.on_read = lock
    service.ask(source.id, "changed")
    assert steps(service) == [("A", "aborted")]
    assert shelf.reads == (["d0", "d1"] if with_embedder else ["d0", "d1", "d2", "d3"])
    assert "locked" in told[0]
    new = rebuilt_texts(shelf)[:60] if with_embedder else ["The first text of 0"]
    assert live_texts(store) == [*new, *(f"The first text of {n}" for n in (1, 2, 3))]
    other.execute("rollback")
    other.close()
    assert (count(store, "failure"), count(store, "skipped"), orphans(store)) == (0, 0, 0)
    shelf.on_read = lambda key: None
    service.ask(source.id, "round")
    assert steps(service) == [("A", "done")]
    assert live_texts(store) == rebuilt_texts(shelf)
    assert run_rows(store, "outcome") == ["done", "interrupted", "done"]


def test_a_lock_that_ends_in_time_is_waited_for(store: Store) -> None:
    """A program that writes for a moment costs a run nothing."""
    shelf = Shelf(texts(3))
    source = add(store, "A")
    held = threading.Event()

    def hold() -> None:
        other = sqlite3.connect(store.path, isolation_level=None)
        other.execute("begin immediate")
        held.set()
        time.sleep(0.1)
        other.execute("commit")
        other.close()

    def lock(key: str) -> None:
        if key == "d0001":
            threading.Thread(target=hold).start()
            assert held.wait(PATIENCE)

    shelf.on_read = lock
    service = indexing(store, [ShelfIndexer(A=shelf)])
    service.ask(source.id, "start")
    assert steps(service) == [("A", "done")]


def test_a_service_outlives_a_lock_that_is_held_when_it_starts(store: Store) -> None:
    """Keeping an index fresh goes on after a time in which nothing could be written."""
    shelf = Shelf(texts(2))
    add(store, "A")
    store.conn.execute("pragma busy_timeout = 5")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    shelf.on_read = lambda key: service.stop() if key == "d0001" else None
    other = sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)
    other.execute("begin immediate")

    def release() -> None:
        other.execute("rollback")
        other.close()

    timers = [threading.Timer(0.3, release), threading.Timer(PATIENCE, service.stop)]
    for timer in timers:
        timer.start()
    try:
        keep(service)
    finally:
        timers[0].join()
        timers[1].cancel()
    assert shelf.reads == ["d0000", "d0001"]


# -- stopping -------------------------------------------------------------------------------------


def test_a_stop_in_the_middle_of_a_document_is_no_failure_and_the_next_start_goes_on(
    store: Store,
) -> None:
    """The end of the program records nothing as failed, and no text is embedded twice."""
    shelf = Shelf({"long": paragraphs(f"Person{n}" for n in range(12)), **texts(3)})
    source = add(store, "A")
    embedder = FakeEmbedder()
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    embedder.fails = lambda call, asked: service.stop() if call == 2 else None
    service.ask(source.id, "start")
    assert steps(service) == [("A", "cancelled")]
    assert embedder.calls == 2
    assert count(store, "failure") == 0
    assert run_rows(store, "failed") == [0]
    assert run_rows(store, "outcome") == ["cancelled"]
    assert state_of(store, source) == ("waiting", None)
    embedder.fails = None
    service = indexing(store, [ShelfIndexer(A=shelf)], embedder=embedder)
    service.ask_all("start")
    assert steps(service) == [("A", "done")]
    assert len(embedder.log) == len(set(embedder.log)) == 15


def test_a_stop_after_a_failure_is_still_no_failure(store: Store) -> None:
    """What failed before is noted, but the run was cancelled and is gone on with."""
    shelf = Shelf({"d0000": Unavailable("locked", "It is locked"), **texts(5, "e")})
    source = add(store, "A")
    service = indexing(store, [ShelfIndexer(A=shelf)])
    shelf.on_read = lambda key: service.stop()
    service.ask(source.id, "start")
    assert steps(service) == [("A", "cancelled")]
    assert shelf.reads == ["d0000"]
    assert live_texts(store) == []
    assert state_of(store, source)[0] == "waiting"


def test_a_stop_from_another_thread_ends_the_keeping(store: Store) -> None:
    """The shutdown of Datasette ends a service that only waits, and its trackers with it."""
    ended: list[int] = []

    class Tracking(ShelfIndexer):
        def stop_tracking(self, source_id: int) -> None:
            ended.append(source_id)

    indexer = Tracking(A=Shelf(texts(1)))
    source = add(store, "A")
    service = indexing(store, [indexer])
    indexer.on_track = lambda source, ask: threading.Timer(0.05, service.stop).start()
    keep(service)
    assert ended == [source.id]


def test_a_run_that_a_killed_program_left_open_is_closed_as_interrupted(store: Store) -> None:
    """The next run tells of it as of one that was cut off, and not as of a failure."""
    source = add(store, "A")
    store.begin_run(source.id, "start")
    service = indexing(store, [ShelfIndexer(A=Shelf(texts(1)))])
    service.ask(source.id, "start")
    steps(service)
    assert run_rows(store, "outcome") == ["interrupted", "done"]


# -- turns ----------------------------------------------------------------------------------------


def test_a_turn_is_had_by_one_at_a_time(tmp_path: Path) -> None:
    """A second taker is refused, at once or after the time that it waits, until the first ends."""
    turn, other = Turn(tmp_path / "index.db"), Turn(tmp_path / "index.db")
    with turn.taken():
        assert other.is_taken()
        for seconds in (0.0, 0.06):
            with pytest.raises(Busy), other.taken(seconds):
                raise AssertionError("it was had twice")
    assert not other.is_taken()
    with other.taken():
        assert turn.is_taken()


def test_a_turn_that_ends_with_an_error_is_free(tmp_path: Path) -> None:
    """Whatever is raised while it is held, the next one gets it."""
    turn = Turn(tmp_path / "index.db")
    with pytest.raises(ZeroDivisionError), turn.taken():
        raise ZeroDivisionError
    assert not turn.is_taken()


def test_a_turn_is_waited_for_until_it_is_free_or_given_up(tmp_path: Path) -> None:
    """Whoever waits gets it when it becomes free, and stops waiting when it is told to."""
    turn = Turn(tmp_path / "index.db")
    release = threading.Event()
    taken = threading.Event()

    def hold() -> None:
        with Turn(tmp_path / "index.db").taken():
            taken.set()
            release.wait(PATIENCE)

    thread = threading.Thread(target=hold)
    thread.start()
    assert taken.wait(PATIENCE)
    asked: list[int] = []

    def give_up() -> bool:
        asked.append(1)
        return len(asked) == 2

    with pytest.raises(Busy), turn.taken(PATIENCE, give_up):
        raise AssertionError("it was had twice")
    assert len(asked) == 2
    threading.Timer(0.05, release.set).start()
    with turn.taken(PATIENCE):
        thread.join(PATIENCE)


def test_a_turn_ends_with_the_process_that_holds_it(tmp_path: Path) -> None:
    """A program that is killed while it works leaves no lock behind."""
    code = (
        "import sys, time\nfrom pathlib import Path\n"
        "from datasette_concept_recall.indexing.turns import Turn\n"
        "with Turn(Path(sys.argv[1])).taken():\n    print('held', flush=True)\n    time.sleep(60)\n"
    )
    path = tmp_path / "index.db"
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        assert Turn(path).is_taken()
        process.kill()
    assert not Turn(path).is_taken()


# -- watching -------------------------------------------------------------------------------------


@dataclass
class Watched:
    """A watch with times short enough for a test, and what it asked."""

    root: Path
    asked: SimpleQueue[str] = field(default_factory=SimpleQueue)

    def __post_init__(self) -> None:
        self.watch = Watch(self.root, self.asked.put, debounce=50, look=50, retry=0.05)

    def heard(self, reason: str = "changed") -> bool:
        """Whether this is asked within a time that is long enough."""
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline:
            try:
                if self.asked.get(timeout=0.1) == reason:
                    return True
            except Empty:
                continue
        return False

    def is_armed(self) -> bool:
        """Whether a new file is heard of, which is tried until the watch has begun."""
        for number in range(50):
            (self.root / f"try{number}.md").write_text("x")
            try:
                while self.asked.get(timeout=0.15) != "changed":
                    pass
            except Empty:
                continue
            self.quiet()
            return True
        return False

    def quiet(self) -> list[str]:
        """Waits until nothing is asked any more; what was asked before that."""
        found = []
        while True:
            try:
                found.append(self.asked.get(timeout=0.3))
            except Empty:
                return found


@pytest.fixture
def watched(tmp_path: Path) -> Iterator[Watched]:
    root = tmp_path / "notes"
    (root / "folder").mkdir(parents=True)
    (root / ".hidden").mkdir()
    (root / "folder" / "inner.md").write_text("x")
    found = Watched(root)
    yield found
    found.watch.stop()


def test_a_new_file_and_a_renamed_folder_ask_for_a_run(watched: Watched) -> None:
    """Whatever happens below a watched folder says that it is to be looked at."""
    assert watched.is_armed()
    (watched.root / "folder").rename(watched.root / "renamed")
    assert watched.heard()
    watched.quiet()
    (watched.root / "renamed" / "inner.md").rename(watched.root / "renamed" / ".inner.md")
    assert watched.heard()
    watched.quiet()
    (watched.root / "renamed" / ".inner.md").unlink()
    assert watched.quiet() == []


def test_a_root_that_is_removed_and_made_again_is_watched_again(watched: Watched) -> None:
    """A folder that comes back, as a disk that is mounted again, asks for a run, and so does what
    happens in it from then on."""
    assert watched.is_armed()
    shutil.rmtree(watched.root)
    watched.quiet()
    watched.root.mkdir()
    assert watched.heard("watch begun anew")
    assert watched.is_armed()


def test_a_root_that_is_replaced_by_another_folder_is_watched_again(watched: Watched) -> None:
    """A folder of the same name in the place of the old one is the one that is watched."""
    assert watched.is_armed()
    watched.root.rename(watched.root.with_name("old"))
    watched.root.mkdir()
    assert watched.heard("watch begun anew")
    assert watched.is_armed()


def test_a_root_that_comes_later_is_watched_from_then_on(tmp_path: Path) -> None:
    """A watch of a folder that is not there waits for it."""
    watched = Watched(tmp_path / "later")
    try:
        assert watched.quiet() == []
        watched.root.mkdir()
        assert watched.heard("watch begun anew")
        assert watched.is_armed()
    finally:
        watched.watch.stop()


def test_what_happens_in_a_hidden_folder_asks_for_nothing(watched: Watched) -> None:
    """Files in hidden folders are not indexed, so that what programs keep there matters to no
    one."""
    assert watched.is_armed()
    (watched.root / ".hidden" / "workspace.json").write_text("x")
    assert watched.quiet() == []


def test_a_watch_that_was_stopped_asks_for_nothing(watched: Watched) -> None:
    """When `stop` has returned nothing is told any more."""
    assert watched.is_armed()
    watched.watch.stop()
    (watched.root / "late.md").write_text("x")
    assert watched.quiet() == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("note.md", True),
        ("report.pdf", True),
        ("folder", True),
        (".note.md", False),
        ("~$report.docx", False),
        ("note.md~", False),
        ("note.tmp", False),
        (".note.md.swp", False),
        ("film.part", False),
    ],
)
def test_names_of_temporary_files_do_not_matter(name: str, expected: bool) -> None:
    """What programs write for themselves asks for no run."""
    assert is_relevant(f"/somewhere/{name}") is expected
