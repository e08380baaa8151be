"""Documents without vectors are written several at once, and each is still indexed for itself."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from datasette_concept_recall.indexing import document_run
from datasette_concept_recall.indexing.generations import Attempt, Generations
from datasette_concept_recall.indexing.models import Entry, Opened
from datasette_concept_recall.indexing.service import Service
from datasette_concept_recall.indexing.sources.folder import FolderSource
from datasette_concept_recall.indexing.store import SourceRow, Store
from indexing import SMALL, FakeClock, add_folder, indexing, live_texts, orphans, run, write_note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.mkdir()
    return path


@pytest.fixture
def source(store: Store, folder: Path) -> SourceRow:
    """A source that was indexed while it held one note, so that what is new is found at once."""
    source = add_folder(store, folder, **SMALL)
    write_note(folder, "0.md", "Note 0.")
    run(store, source)
    return source


def notes(folder: Path, count: int, text: str = "Note {}.") -> list[str]:
    """Writes so many more notes; their texts."""
    for n in range(1, count + 1):
        write_note(folder, f"{n:03}.md", text.format(n))
    return [text.format(n) for n in range(1, count + 1)]


def found_at_each_read(
    store: Store, source: SourceRow, then: Callable[[Entry], object] = lambda entry: None
) -> list[int]:
    """How many texts were searched whenever a run began to read a document."""
    found: list[int] = []
    real = FolderSource.read

    def read(self: FolderSource, entry: Entry) -> Opened:
        found.append(len(live_texts(store)))
        then(entry)
        return real(self, entry)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderSource, "read", read)
        run(store, source)
    return found


def test_small_documents_are_shown_several_at_once(
    store: Store, source: SourceRow, folder: Path
) -> None:
    """So many are read before the first of them is searched, and none is left over."""
    most = document_run.MOST_WAITING
    texts = notes(folder, 2 * most + 1)
    assert found_at_each_read(store, source) == [1] * most + [1 + most] * most + [1 + 2 * most]
    assert sorted(live_texts(store)) == sorted(["Note 0.", *texts])
    assert store.rows("select indexed, done from run order by id desc limit 1") == [
        (2 * most + 1, 2 * most + 2)
    ]


def test_long_documents_do_not_wait_for_others(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits never takes much memory."""
    monkeypatch.setattr(document_run, "_WAITING_CHARACTERS", 16)
    notes(folder, 6)
    assert found_at_each_read(store, source) == [1, 1, 3, 3, 5, 5]


def test_no_document_waits_for_long(
    store: Store, source: SourceRow, folder: Path, clock: FakeClock
) -> None:
    """Where reading takes its time each document is searched soon."""
    notes(folder, 4)
    seconds = document_run._WAITING_SECONDS
    found = found_at_each_read(store, source, lambda entry: clock.advance(seconds))
    assert found == [1, 1, 3, 3]


def test_of_what_waits_only_what_changed_meanwhile_is_not_written(
    store: Store, source: SourceRow, folder: Path
) -> None:
    """Each document is compared with its source in the moment in which it is written."""
    texts = notes(folder, 4)

    def edit(entry: Entry) -> None:
        if entry.key == b"003.md":
            write_note(folder, "001.md", "Another text.")
            (folder / "002.md").unlink()

    found_at_each_read(store, source, edit)
    assert sorted(live_texts(store)) == ["Note 0.", *texts[2:]]
    assert store.rows("select path, code from failure order by path") == [
        ("001.md", "changed"), ("002.md", "not_found")
    ]  # fmt: skip
    assert store.rows("select state from source") == [("failed",)]
    run(store, source)
    assert sorted(live_texts(store)) == ["Another text.", "Note 0.", *texts[2:]]
    assert store.rows("select state from source") == [("done",)]


def test_what_cannot_be_written_takes_nothing_else_with_it(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are written by themselves, and nothing of it is half there."""
    notes(folder, 4)
    real = Generations.complete

    def complete(self: Generations, attempt: Attempt, *rest: Any, **more: Any) -> None:
        real(self, attempt, *rest, **more)
        if store.rows("select key from document where id = ?", attempt.document_id) == [
            (b"003.md",)
        ]:
            raise ValueError("a number that no database takes")

    monkeypatch.setattr(Generations, "complete", complete)
    run(store, source)
    assert sorted(live_texts(store)) == ["Note 0.", "Note 1.", "Note 2.", "Note 4."]
    assert store.rows("select count(*) from document") == [(4,)]
    assert orphans(store) == 0
    assert "a number that no database takes" in store.rows("select problem from source")[0][0]


@pytest.mark.parametrize("how", ["stop", "pause"])
def test_what_was_read_is_written_before_a_run_ends_early(
    store: Store, source: SourceRow, folder: Path, clock: FakeClock, how: str
) -> None:
    """Nothing has to be read again."""
    texts = notes(folder, 4)
    services: list[Service] = []

    def end(entry: Entry) -> None:
        if entry.key == b"002.md":
            if how == "stop":
                services[0].stop()
            else:
                store.set_setting("paused", True)
                clock.advance(0.3)

    real = FolderSource.read

    def read(self: FolderSource, entry: Entry) -> Opened:
        end(entry)
        return real(self, entry)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderSource, "read", read)
        services.append(indexing(store))
        services[0].ask(source.id, "round")
        services[0].run_all()
    assert sorted(live_texts(store)) == ["Note 0.", texts[0]]


def test_a_share_that_is_used_up_ends_with_what_was_read(
    store: Store, source: SourceRow, folder: Path, clock: FakeClock
) -> None:
    """What a step read is found when its time is over."""
    notes(folder, 4)
    real = FolderSource.read

    def read(self: FolderSource, entry: Entry) -> Opened:
        clock.advance(0.2)
        return real(self, entry)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(FolderSource, "read", read)
        service = indexing(store, share_seconds=0.3)
        service.ask(source.id, "round")
        service.run_next()
    assert sorted(live_texts(store)) == ["Note 0.", "Note 1.", "Note 2."]


def test_what_was_read_is_written_before_the_code_of_a_source_fails(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever another plugin raises costs what comes after it alone."""
    notes(folder, 4)
    real = FolderSource.read

    def read(self: FolderSource, entry: Entry) -> Opened:
        if entry.key == b"003.md":
            raise ValueError("a fault of another plugin")
        return real(self, entry)

    monkeypatch.setattr(FolderSource, "read", read)
    run(store, source)
    assert sorted(live_texts(store)) == ["Note 0.", "Note 1.", "Note 2."]
    assert "a fault of another plugin" in store.rows("select problem from source")[0][0]


def test_nobody_waits_for_a_source_that_is_asked_whether_a_document_is_what_was_read(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another program may write the index meanwhile."""
    texts = notes(folder, 3)
    real = FolderSource.fingerprint
    written: list[bytes] = []

    def fingerprint(self: FolderSource, entry: Entry) -> str | None:
        with closing(sqlite3.connect(store.path, timeout=0)) as other, other:
            other.execute("insert or replace into setting values ('a', 'true')")
        written.append(entry.key)
        return real(self, entry)

    monkeypatch.setattr(FolderSource, "fingerprint", fingerprint)
    run(store, source)
    assert written == [b"001.md", b"002.md", b"003.md"]
    assert sorted(live_texts(store)) == ["Note 0.", *texts]


def test_a_document_that_was_deleted_by_hand_comes_back(
    store: Store, source: SourceRow, folder: Path
) -> None:
    """Also where a new one has got its number, and what it left is still there."""
    notes(folder, 3)
    run(store, source)
    with closing(sqlite3.connect(store.path)) as other, other:  # without foreign keys
        other.execute("delete from document where id = (select max(id) from document)")
    write_note(folder, "4.md", "Note 4.")
    run(store, source)
    assert sorted(live_texts(store)) == [f"Note {n}." for n in range(5)]
    assert store.rows("select state from source") == [("done",)]
