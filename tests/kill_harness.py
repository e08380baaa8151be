"""Kills an indexing run at every point at which it could matter, and looks at what is left.

``python kill_harness.py FOLDER`` prints one JSON object. A run is made once without being killed,
to count its commits and the answers of the embedder. Then, on a copy each time, it is made again
in a process of its own that kills itself right before the n-th commit, right after it, or with
the n-th answer of the embedder in its hands, for every n. After each kill the index is looked at,
and a run that nobody kills has to end where the first one did.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from datasette_concept_recall.indexing.holding import remove_source
from datasette_concept_recall.indexing.store import Store
from indexing import SMALL, FakeClock, FakeEmbedder, add_folder, orphans, paragraphs, run

BATCH = 3
OLD = [f"old{n}" for n in range(6)] + ["kept1", "kept2"]
NEW = ["kept1", *(f"new{n}" for n in range(6)), "kept2"]


class Place(NamedTuple):
    """Where a scenario takes place."""

    root: Path

    @property
    def index(self) -> Path:
        return self.root / "index.db"

    @property
    def notes(self) -> Path:
        return self.root / "notes"

    def write(self, name: str, text: str) -> None:
        self.notes.mkdir(exist_ok=True)
        (self.notes / name).write_text(text, "utf-8")


class Scenario(NamedTuple):
    """Something that happens to an index: ``prepare`` leads up to it, ``act`` is killed."""

    prepare: Callable[[Place], None]
    act: Callable[[Place, FakeEmbedder | None], None]
    with_embedder: bool


def index_all(place: Place, embedder: FakeEmbedder | None) -> None:
    with closing(Store(place.index, FakeClock())) as store:
        for source in store.sources():
            run(store, source, embedder=embedder)


def begin(place: Place, embedder: FakeEmbedder | None) -> None:
    place.write("a.md", paragraphs(OLD))
    place.write("gone.md", "A note that will be gone.")
    place.write("named.md", "A note that gets another name.")
    with closing(Store(place.index, FakeClock())) as store:
        add_folder(store, place.notes, **SMALL)
    index_all(place, embedder)


def change(place: Place) -> None:
    place.write("a.md", paragraphs(NEW))
    place.write("b.md", paragraphs(["first", "second"]) + "\n\nAbout [[Bread]] and [[Salt]].")
    (place.notes / "gone.md").unlink()
    (place.notes / "named.md").rename(place.notes / "renamed.md")


def changed(with_embedder: bool) -> Callable[[Place], None]:
    def prepare(place: Place) -> None:
        begin(place, FakeEmbedder(batch_size=BATCH) if with_embedder else None)
        change(place)

    return prepare


def to_be_rebuilt(place: Place) -> None:
    begin(place, FakeEmbedder(batch_size=BATCH))
    with closing(Store(place.index, FakeClock())) as store, store.writing() as conn:
        conn.execute("update source set options = ?", [json.dumps({**SMALL, "chunk_size": 120})])


def to_be_removed(place: Place) -> None:
    begin(place, FakeEmbedder(batch_size=BATCH))


def remove(place: Place, embedder: FakeEmbedder | None) -> None:
    with closing(Store(place.index, FakeClock())) as store:
        for source in store.sources():
            remove_source(store, source)


def first_time(place: Place) -> None:
    begin(place, None)
    with closing(Store(place.index, FakeClock())) as store:
        remove_source(store, store.sources()[0])
        add_folder(store, place.notes, **SMALL)


SCENARIOS = {
    "first index": Scenario(first_time, index_all, True),
    "changes, with vectors": Scenario(changed(True), index_all, True),
    "changes, without": Scenario(changed(False), index_all, False),
    "another signature": Scenario(to_be_rebuilt, index_all, True),
    "removal of a source": Scenario(to_be_removed, remove, True),
}


def visible(index: Path) -> dict[str, list[str]]:
    """The texts that are searched, by path of their document."""
    found: dict[str, list[str]] = {}
    with closing(Store(index, FakeClock())) as store:
        for path, text in store.rows("select path, text from live_chunk order by path, position"):
            found.setdefault(path, []).append(text)
    return found


class Killer:
    """Counts commits and answers, and kills this process at one of them."""

    def __init__(self, point: str, number: int, log: Path) -> None:
        self._point, self._number, self._log = point, number, log
        self.commits = self.answers = 0

    def install(self) -> None:
        killer, commit = self, Store.commit

        def counted(self: Store) -> None:
            killer.commits += 1
            killer.reached("before commit", killer.commits)
            commit(self)
            killer.reached("after commit", killer.commits)

        Store.commit = counted  # type: ignore[method-assign]

    def reached(self, point: str, number: int) -> None:
        if point == self._point and number == self._number:
            os.kill(os.getpid(), signal.SIGKILL)

    def embedder(self) -> FakeEmbedder:
        killer = self

        class Logged(FakeEmbedder):
            def embed_documents(self, texts: Sequence[str]) -> Any:
                vectors = super().embed_documents(texts)
                with killer._log.open("a", encoding="utf-8") as log:
                    log.writelines(f"{json.dumps(text)}\n" for text in texts)
                killer.answers += 1
                killer.reached("with answer", killer.answers)
                return vectors

        return Logged(batch_size=BATCH)


def in_child(place: Place, scenario: Scenario, point: str, number: int) -> tuple[int, int] | None:
    """Runs the scenario in a process of its own; commits and answers, None when it was killed."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        killer = Killer(point, number, place.root / "paid.jsonl")
        killer.install()
        scenario.act(place, killer.embedder() if scenario.with_embedder else None)
        os.write(write, json.dumps([killer.commits, killer.answers]).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        said = answer.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return None
    if status:
        raise SystemExit(f"The child ended with {status}")
    commits, answers = json.loads(said)
    return commits, answers


def paid(place: Place) -> int:
    log = place.root / "paid.jsonl"
    return len(log.read_text("utf-8").splitlines()) if log.exists() else 0


def problems_of(index: Path) -> list[str]:
    """What is wrong with an index by itself."""
    with closing(Store(index, FakeClock())) as store:
        ((integrity,),) = store.rows("pragma integrity_check")
        found = [] if integrity == "ok" else [integrity]
        found += [f"dangling: {row}" for row in store.rows("pragma foreign_key_check")]
        store.conn.execute("insert into chunk_fts (chunk_fts, rank) values ('integrity-check', 1)")
        if orphans(store):
            found.append("chunks or vectors without each other")
        return found


def try_everywhere(name: str, root: Path) -> dict[str, Any]:
    scenario = SCENARIOS[name]
    start = Place(root / "start")
    start.root.mkdir(parents=True)
    # The notes stay where they are: their folder is in the index.
    scenario.prepare(start)
    before = visible(start.index)
    whole = Place(root / "whole")
    copy(start, whole)
    ended = in_child(whole, scenario, "", 0)
    assert ended is not None
    commits, answers = ended
    after, least = visible(whole.index), paid(whole)
    points = [("before commit", n + 1) for n in range(commits)]
    points += [("after commit", n + 1) for n in range(commits)]
    points += [("with answer", n + 1) for n in range(answers)]
    faults: list[str] = []
    most_paid_again = 0
    for point, number in points:
        place = Place(root / "killed")
        copy(start, place)
        where = f"{name}, {point} {number}: "
        if in_child(place, scenario, point, number) is not None:
            faults.append(where + "it was not killed")
        faults += [where + problem for problem in problems_of(place.index)]
        for path, texts in visible(place.index).items():
            if texts not in (before.get(path), after.get(path)):
                faults.append(f"{where}{path} is neither the old nor the new: {texts}")
        in_child(place, scenario, "", 0)
        if visible(place.index) != after:
            faults.append(where + "the next run did not get through")
        faults += [where + "after all: " + problem for problem in problems_of(place.index)]
        again = paid(place) - least
        most_paid_again = max(most_paid_again, again)
        if again > BATCH:
            faults.append(f"{where}{again} texts were paid for twice")
    return {
        "scenario": name, "commits": commits, "answers": answers, "kills": len(points),
        "texts": least, "most_paid_again": most_paid_again, "faults": faults,
    }  # fmt: skip


def copy(start: Place, to: Place) -> None:
    """The index as it was before the scenario; its sources stay where they are."""
    shutil.rmtree(to.root, ignore_errors=True)
    to.root.mkdir()
    with closing(Store(start.index, FakeClock())) as store:
        store.backup(to.index)


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    report = [try_everywhere(name, folder / str(n)) for n, name in enumerate(SCENARIOS)]
    print(json.dumps(report))
