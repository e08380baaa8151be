"""A source whose listing is as it was when nothing was left to do is done at once."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from datasette_concept_recall.indexing import source_run
from datasette_concept_recall.indexing.documents import Documents
from datasette_concept_recall.indexing.marker import Marker
from datasette_concept_recall.indexing.models import Entry, Listing, Location
from datasette_concept_recall.indexing.sources.folder import FolderSource
from datasette_concept_recall.indexing.store import SourceRow, Store
from indexing import SMALL, FakeEmbedder, add_folder, live_texts, run, write_note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "notes"
    path.mkdir()
    for n in range(3):
        write_note(path, f"{n}.md", f"Note {n}.")
    write_note(path, "empty.md", "")
    return path


@pytest.fixture
def source(store: Store, folder: Path) -> SourceRow:
    return add_folder(store, folder, **SMALL)


def looks_closer(store: Store, source: SourceRow, reason: str = "round", **options: object) -> bool:
    """Whether a run loads what the index has of the documents of a source."""
    looked: list[bool] = []
    real = Documents.fingerprints
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            Documents,
            "fingerprints",
            lambda self, *rest: looked.append(True) or real(self, *rest),
        )
        run(store, source, reason, **options)
    return bool(looked)


def test_a_run_with_nothing_to_do_counts_what_is_there(store: Store, source: SourceRow) -> None:
    """What is left alone is told apart from what is unchanged, though neither is looked at."""
    run(store, source)
    assert not looks_closer(store, source)
    rows = store.rows("select known, done, indexed, unchanged, skipped from run order by id")
    assert rows == [(4, 4, 3, 0, 1), (4, 4, 0, 3, 1)]


@pytest.mark.parametrize(
    "change",
    [
        "delete from document where key = cast('1.md' as blob)",
        "update document set is_unverified = 1 where key = cast('1.md' as blob)",
        "update document set orphaned_in = 1 where key = cast('1.md' as blob)",
        "update document set key = cast('4.md' as blob) where key = cast('1.md' as blob)",
        "delete from generation",
        "update generation set fingerprint = '0:0'",
        "insert into generation (document_id, version_id, fingerprint, content_hash, started_at)"
        " select document_id, version_id, fingerprint, content_hash, started_at from generation",
        "delete from vector where chunk_id = 1",
        "delete from skipped",
        "update skipped set fingerprint = '0:0'",
        "insert into failure select source_id, key, path, code, message, since from skipped",
    ],
)
def test_whatever_is_written_of_documents_is_looked_at(
    store: Store, source: SourceRow, change: str
) -> None:
    """By whoever it was: the next run looks closer and mends it, and soon none need look again."""
    embedder = FakeEmbedder()
    run(store, source, embedder=embedder)
    with closing(sqlite3.connect(store.path)) as other, other:
        other.execute("pragma foreign_keys = on")
        other.execute(change)
    assert looks_closer(store, source, embedder=embedder)
    run(store, source, embedder=embedder)
    assert not looks_closer(store, source, embedder=embedder)
    assert sorted(live_texts(store)) == ["Note 0.", "Note 1.", "Note 2."]


@pytest.mark.parametrize("change", ["touched", "longer", "renamed", "gone", "new"])
def test_a_listing_that_differs_is_looked_at(
    store: Store, source: SourceRow, folder: Path, change: str
) -> None:
    """Another time, size, name or number of files is no listing that was seen before."""
    run(store, source)
    note = folder / "1.md"
    if change == "touched":
        os.utime(note, ns=(1, 1))
    elif change == "longer":
        status = note.stat()
        note.write_text("A longer note.", "utf-8")
        os.utime(note, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "renamed":
        note.rename(folder / "9.md")
    elif change == "gone":
        note.unlink()
    else:
        write_note(folder, "9.md", "A new note.")
    assert looks_closer(store, source)
    assert not looks_closer(store, source)


def test_contents_are_compared_when_it_is_asked_for(store: Store, source: SourceRow) -> None:
    """To verify is more than to list."""
    run(store, source)
    assert looks_closer(store, source, "verify")


def test_what_a_process_was_reading_when_it_ended_is_looked_at(
    store: Store, source: SourceRow
) -> None:
    """The note that it left is not passed over."""
    run(store, source)
    marker = Marker(store.path)
    marker.set(source.id, b"1.md")
    assert looks_closer(store, source)
    marker.close()


def test_what_waits_for_an_extra_is_read_when_it_is_installed(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are as they were, but now they can be read."""
    monkeypatch.setitem(source_run.LIBRARIES, "pdf", "no_such_module_is_there")
    with store.writing() as conn:
        conn.execute(
            "insert into skipped values (?, ?, 'empty.md', '', 'missing', 'Install it', 'pdf', '')",
            [source.id, b"empty.md"],
        )
        conn.execute(
            "update skipped set fingerprint = ?",
            [f"{(folder / 'empty.md').stat().st_mtime_ns}:0"],
        )
    run(store, source)
    assert not looks_closer(store, source)
    monkeypatch.setitem(source_run.LIBRARIES, "pdf", "json")
    assert looks_closer(store, source)


def test_a_part_that_cannot_be_listed_is_looked_for_in_each_run(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was kept without having been seen does not become what is known to be there."""
    run(store, source)
    rest = [entry for entry in FolderSource(folder).listing().entries if entry.key != b"1.md"]
    monkeypatch.setattr(FolderSource, "listing", lambda self: Listing(rest, (b"1.md",)))
    assert looks_closer(store, source)
    assert looks_closer(store, source)
    assert "Note 1." in live_texts(store)


def test_places_that_were_deleted_by_hand_come_back(store: Store, tmp_path: Path) -> None:
    """In which folders a mail is, is noted anew."""
    (tmp_path / "work.mbox").write_bytes(
        b"From x Tue Nov  3 10:00:00 2026\n"
        b"Message-ID: <1@example.com>\nSubject: Mill\n\nIt grinds.\n"
    )
    source = store.add_source("mail", "mailbox", str(tmp_path / "work.mbox"))
    run(store, source)
    assert not looks_closer(store, source)
    with store.writing() as conn:
        conn.execute("delete from location")
    run(store, source)
    assert store.rows("select count(*) from location") == [(1,)]


ENTRY = Entry(b"key", "A title", "a fingerprint")


@pytest.mark.parametrize(
    "other",
    [
        [],
        [ENTRY, ENTRY],
        [replace(ENTRY, key=b"other")],
        [replace(ENTRY, fingerprint="another fingerprint")],
        [replace(ENTRY, locations=(Location("INBOX", "1"),))],
        [replace(ENTRY, key=b"keya", fingerprint=" fingerprint")],
    ],
)
def test_listings_that_differ_have_digests_that_differ(other: list[Entry]) -> None:
    """In keys, fingerprints or places, while a title alone makes no difference."""
    assert Listing([ENTRY]).digest == Listing([replace(ENTRY, title="Another")]).digest
    assert Listing([ENTRY]).digest != Listing(other).digest
    assert len(Listing(other).digest) == 16


def test_of_what_is_listed_as_it_is_stored_only_the_fingerprint_is_loaded(
    store: Store, source: SourceRow, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run looks closer at what changed, what came, and what is gone, however much there is."""
    run(store, source)
    write_note(folder, "1.md", "A longer note.")
    write_note(folder, "9.md", "A new note.")
    (folder / "2.md").unlink()
    loaded: list[bytes] = []
    real = Documents.known
    monkeypatch.setattr(
        Documents,
        "known",
        lambda self, version, keys: loaded.extend(keys) or real(self, version, keys),
    )
    run(store, source)
    assert sorted(loaded) == [b"1.md", b"2.md", b"9.md", b"empty.md"]  # the last one was skipped
    rows = store.rows("select indexed, unchanged, skipped, removed, done from run order by id desc")
    assert rows[0] == (2, 1, 1, 1, 4)
