"""One step of one source: what is there, what is gone, what changed, and a document at a time."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass, field
from enum import Enum, auto
from importlib.util import find_spec

from . import departures
from .departures import Compared
from .document_run import DocumentRun, Reader, Result, Stopped, Tools
from .documents import Documents, Known
from .embedding import EmbedderFailure
from .failures import DocumentFailure, SourceUnreachable, Unusable
from .generations import Generations
from .marker import Left, Marker, is_left
from .models import Entry, Listing
from .passes import Outcome, Pass, Share
from .store import Counts, SourceRow, Store, StoreUnavailable
from .troubles import Skip, Troubles
from .versions import Version

log = logging.getLogger("datasette_concept_recall.indexing")

TRIES = 5
"""After so many documents in a row for which the embedder failed, a step goes no further."""

LIBRARIES = {
    "index": "semantic_text_splitter",
    "pdf": "pypdfium2",
    "office": "python_calamine",
    "html": "markdownify",
}
"""Of each extra the module that tells that it is installed."""


class _End(Enum):
    """How the reading of documents ended."""

    THROUGH = auto()
    """All had their turn."""
    FAILING = auto()
    """The same, and for the last of them the embedder failed."""
    STOPPED = auto()
    """Somebody pauses or ends the run."""
    USED_UP = auto()
    """The share is over."""
    HOPELESS = auto()
    """The embedder failed for too many in a row."""


@dataclass
class SourceRun:
    """A step under way, as the indexer of a source gets it.

    ``told`` is called with each message for the user, ``progressed`` after each document.
    ``removes_later`` is for sources whose documents may only be on their way to another place:
    what is gone is removed one run later.
    """

    store: Store
    source: SourceRow
    version: Version
    run_id: int
    tools: Tools
    share: Share
    pass_: Pass
    removes_later: bool = False
    told: Callable[[str], None] = lambda message: None
    progressed: Callable[[Counts], None] = lambda counts: None
    counts: Counts = field(default_factory=Counts)
    problems: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.documents, self.troubles = Documents(self.store), Troubles(self.store)
        self.generations = Generations(self.store)

    def work_through(self, reader: Reader) -> Outcome:
        """Brings the index in line with what the reader lists, as far as the share goes.

        Raises `SourceUnreachable` when it cannot be listed, and `StoreUnavailable`.
        """
        # What others add while it is listed is not gone.
        latest = self.documents.latest()
        listing = reader.listing()
        self.share.begin()
        self.problems += listing.problems
        self.counts.known = len(listing.entries)
        if self._is_as_listed(listing):
            self.counts.done = self.counts.known
            self.counts.skipped = self.troubles.count_skips(self.source.id)
            self.counts.unchanged = self.counts.known - self.counts.skipped
            return Outcome.DONE
        digest, is_whole = listing.digest, not listing.unverified
        marker = Marker(self.store.path)
        try:
            left = marker.left()
            compared = self._compare(listing, latest, left)
            del listing  # all that there is takes room, which is not needed while it is read
            outcome = self._bring_in_line(reader, compared, left, marker)
        finally:
            marker.close()
        if outcome is Outcome.DONE and is_whole and not self.documents.has_orphans(self.source.id):
            self.documents.note_listing(self.version, digest)  # the next run has nothing to do
        return outcome

    def _compare(self, listing: Listing, latest: int, left: Left | None) -> Compared:
        """What differs between a source and the index, of which notes are taken. Raises
        `SourceUnreachable` when everything is gone at once."""
        listed = listing.keys()
        stored = self.documents.fingerprints(self.version, latest)
        if not listed and stored and self.source.approved_removals != len(stored):
            self.store.hold_removals(self.source.id, len(stored))
            raise SourceUnreachable(
                f"It is empty, though {len(stored)} documents of it are known: is it mounted?"
                " Nothing was removed"
            )
        troubled = self._troubled()
        entries = self._to_be_looked_at(listing, stored, {*troubled, *([left.key] if left else ())})
        self.counts.done = self.counts.unchanged = self.counts.known - len(entries)
        known = self.documents.known(self.version, entries.keys() | (stored.keys() - listed))
        gone = {
            key: each for key, each in known.items()
            if key not in listed and not _is_covered(key, listing.unverified)
        }  # fmt: skip
        self._note_seen(known, listed, gone)
        vanished = [
            key for key in troubled
            if key not in listed and not _is_covered(key, listing.unverified)
        ]  # fmt: skip
        if vanished:
            self.troubles.forget_all(self.source.id, vanished)
        return Compared(entries, known, gone, len(stored))

    def _bring_in_line(
        self, reader: Reader, compared: Compared, left: Left | None, marker: Marker
    ) -> Outcome:
        if not departures.move(self, reader, compared):
            return Outcome.MORE_TO_DO
        held = departures.remove(self, compared)
        self._blame(left, compared.entries)
        return self._read_all(reader, compared, marker, held)

    def _to_be_looked_at(
        self, listing: Listing, stored: dict[bytes, str | None], suspect: set[bytes]
    ) -> dict[bytes, Entry]:
        """What is listed otherwise than it is stored, or had troubles, in this pass, an earlier one
        or with the end of a process; everything where contents are compared."""
        if self.pass_.verify:
            return {entry.key: entry for entry in listing.entries}
        suspect = suspect | self.pass_.failed.keys()
        if suspect:
            stored = {key: value for key, value in stored.items() if key not in suspect}
        return {entry.key: entry for entry in listing.differing(stored)}

    def _troubled(self) -> set[bytes]:
        source_id = self.source.id
        return {*self.troubles.skips(source_id), *self.troubles.failed(source_id)}

    def _is_as_listed(self, listing: Listing) -> bool:
        """Whether everything is listed as it was when nothing was left to do, and nothing was
        written since: the quick way through a source in which nothing changed."""
        return (
            self.documents.listing(self.version) == listing.digest
            and not (self.pass_.verify or self.pass_.failed or self.source.held_removals)
            and not any(map(_is_installed, self.troubles.extras(self.source.id)))
            and not is_left(self.store.path)
        )

    def _blame(self, left: Left | None, entries: dict[bytes, Entry]) -> None:
        """A document whose reading ended a process is read last, and after another time no more."""
        if left is None or left.source_id != self.source.id or left.key not in entries:
            return
        entry = entries[left.key]
        if self.troubles.has_crashed(self.source.id, entry.key):
            message = "Reading it ended the program twice"
            self.troubles.skip(self.source.id, entry, "crashed", message, None)
        else:
            message = "Reading it ended the program; it is tried once more, after all others"
            self.troubles.fail(self.source.id, entry, "crashed", message)

    def _note_seen(
        self, known: dict[bytes, Known], listed: Set[bytes], gone: dict[bytes, Known]
    ) -> None:
        lost = [
            each.document_id
            for key, each in known.items()
            if key not in listed and key not in gone and not each.is_unverified
        ]
        if lost:
            self.documents.mark(unverified=lost)
        found = [
            each.document_id
            for key, each in known.items()
            if key in listed and (each.is_unverified or each.is_orphaned)
        ]
        if found:
            self.documents.verified(found)

    def _read_all(self, reader: Reader, compared: Compared, marker: Marker, held: bool) -> Outcome:
        run = DocumentRun(self.store, self.generations, self.version, reader, self.tools)
        try:
            end = self._read_due(run, compared, marker)
        except StoreUnavailable:
            raise
        except Exception:  # whatever the code of another plugin raises
            self._write_before_failing(run)
            raise
        self._write(run)
        if end is _End.STOPPED:
            return Outcome.MORE_TO_DO
        if end is _End.USED_UP:
            return self._used_up()
        self.counts.current = None
        if end is _End.HOPELESS or (end is _End.FAILING and self._builds_nothing()):
            return Outcome.ABORTED
        if self.counts.failed:
            return Outcome.FAILED
        return Outcome.HELD if held else Outcome.DONE

    def _read_due(self, run: DocumentRun, compared: Compared, marker: Marker) -> _End:
        """Reads what has to be read, as far as it goes; what waits in the end is to be written."""
        entries, known = compared.entries, compared.known
        skips = self.troubles.skips(self.source.id)
        in_a_row = 0
        for key in self._in_order(entries):
            entry, stored = entries.pop(key), known.get(key)  # what is done takes no memory
            if not self._is_due(entry, stored, skips.get(entry.key)):
                continue
            if self.tools.stop():
                return _End.STOPPED
            if not self.share.allows_another():
                return _End.USED_UP
            self.share.note_read()
            self.counts.current = entry.path or entry.title
            self.progressed(self.counts)
            marker.set(self.source.id, entry.key)
            try:
                self._read_one(run, entry, stored)
            except Stopped:
                return _End.STOPPED
            except EmbedderFailure as failure:
                self._embedder_failed(entry, failure)
                in_a_row += 1
                if in_a_row == TRIES:
                    return _End.HOPELESS
            else:
                in_a_row = 0
            if run.is_due:
                self._write(run)
        return _End.FAILING if in_a_row else _End.THROUGH

    def _write_before_failing(self, run: DocumentRun) -> None:
        """What was read before something failed is kept; a failure of that is told of as well."""
        try:
            self._write(run)
        except Exception:
            log.exception("What was read of %s could not be written", self.source.name)

    def _used_up(self) -> Outcome:
        """The share is over. Where nothing succeeded, going on would fail again, for ever."""
        is_stuck = self.counts.failed and not self.counts.indexed
        return Outcome.ABORTED if is_stuck else Outcome.MORE_TO_DO

    def _builds_nothing(self) -> bool:
        """Whether a version that is built has no document, so that it replaces nothing."""
        done = self.counts.indexed or self.counts.unchanged
        return self.version.state == "building" and not done

    def _in_order(self, entries: dict[bytes, Entry]) -> list[bytes]:
        """What failed the last time comes last, so that it never keeps the rest from its turn."""
        failed = self.troubles.failed(self.source.id)
        if not failed:
            return list(entries)
        return sorted(entries, key=lambda key: key in failed)

    def _is_due(self, entry: Entry, known: Known | None, skip: Skip | None) -> bool:
        """Whether a document has to be looked at; what has not is counted here."""
        if entry.key in self.pass_.failed:
            self.counts.failed += 1
        elif skip and skip.fingerprint == entry.fingerprint and not _is_installed(skip.extra):
            self.counts.skipped += 1
        elif (
            known is None
            or known.fingerprint != entry.fingerprint
            or known.lacks_vectors
            or (self.pass_.verify and entry.key not in self.pass_.seen)
        ):
            return True
        else:
            if known.has_leftovers:
                self.generations.drop_leftovers(known, self.version)
            if entry.locations and not self.documents.is_located(
                known.document_id, entry.locations
            ):
                self.generations.refresh(known, self.version, entry)
            self.counts.unchanged += 1
        self.counts.done += 1
        return False

    def _read_one(self, run: DocumentRun, entry: Entry, known: Known | None) -> None:
        try:
            result = run.index(entry, known)
        except DocumentFailure as failure:
            self._note_failure(entry, failure)
        else:
            if result is Result.READ:  # it is counted when it is written
                return
            if result is Result.INDEXED:
                self.counts.indexed += 1
            else:
                self.counts.unchanged += 1
        self._note_done(entry)

    def _write(self, run: DocumentRun) -> None:
        for entry, failure in run.write():
            if failure is None:
                self.counts.indexed += 1
            else:
                self._note_failure(entry, failure)
            self._note_done(entry)

    def _note_failure(self, entry: Entry, failure: DocumentFailure) -> None:
        if isinstance(failure, Unusable):
            self.troubles.skip(self.source.id, entry, failure.code, str(failure), failure.extra)
            self.counts.skipped += 1
        else:
            self._fail(entry, failure.code, str(failure))

    def _note_done(self, entry: Entry) -> None:
        self.pass_.seen.add(entry.key)
        self.counts.done += 1
        self.progressed(self.counts)

    def _fail(self, entry: Entry, code: str, message: str) -> None:
        self.troubles.fail(self.source.id, entry, code, message)
        self.pass_.failed[entry.key] = code
        self.counts.failed += 1

    def _embedder_failed(self, entry: Entry, failure: EmbedderFailure) -> None:
        self._fail(entry, "embedder", f"The embedder failed: {failure}")
        self.counts.done += 1
        if failure.kind not in self.pass_.told:
            self.pass_.told.add(failure.kind)
            self.told(f"The embedder failed ({failure.kind}): {failure}")


def _is_covered(key: bytes, unverified: Sequence[bytes]) -> bool:
    beginnings = tuple(part for part in unverified if part.endswith((b"/", b":")))
    return key in unverified or key.startswith(beginnings)


def _is_installed(extra: str | None) -> bool:
    return extra is not None and find_spec(LIBRARIES.get(extra, extra)) is not None
