"""One document, one generation: read, filter, cut, embed, link, and show it in one step."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from ..matching import ConceptMatcher
from ..rendering import DEFAULT_RENDERING, RecordText, Rendering
from .batches import Batches, Sent
from .chunking import cut
from .document_concepts import concepts_of, first_names
from .document_text import DocumentText
from .documents import Known
from .embedding import Embedder, EmbedderFailure
from .failures import DocumentFailure, Unavailable, Unusable
from .generations import Attempt, Generations, Piece, Redaction
from .ids import text_hash
from .links import Named, named_in
from .models import Chunk, Entry, Kind, Listing, Opened, Size, storable
from .store import Store, StoreUnavailable
from .versions import Version

log = logging.getLogger("datasette_concept_recall.indexing")


class Reader(Protocol):
    """What a source gives of its documents. Failures of one are raised as `DocumentFailure`."""

    def listing(self) -> Listing:
        """All documents that there are. Raises `SourceUnreachable`."""

    def read(self, entry: Entry) -> Opened:
        """The content of one."""

    def fingerprint(self, entry: Entry) -> str | None:
        """The fingerprint of a document as it is now, None when it is gone."""


class Result(Enum):
    """What became of a document."""

    INDEXED = "indexed"
    UNCHANGED = "unchanged"
    READ = "read"
    """It waits for `DocumentRun.write`."""


class Stopped(Exception):
    """The run is to stop before this document is done: somebody pauses or ends it."""


@dataclass
class Tools:
    """What documents of a run are made with. ``stop`` tells that the run is to stop; ``matcher``
    gives what knows the names of all concepts, ``rendering`` what of a record is embedded."""

    size: Size
    embedder: Embedder | None = None
    rendering: Rendering = DEFAULT_RENDERING
    matcher: Callable[[], ConceptMatcher] = lambda: ConceptMatcher(())
    stop: Callable[[], bool] = lambda: False


@dataclass(frozen=True)
class _Read:
    """A document that waits to be written."""

    entry: Entry
    content_hash: str
    kind: Kind
    title: str | None
    record: RecordText
    chunks: list[Chunk]
    concepts: dict[str, list[int]]
    redactions: list[Redaction]


MOST_WAITING = 20
"""Each transaction adds to the full text a part of its own, which is merged with others later: so
many small documents together take half the time that they take one by one."""

_WAITING_CHARACTERS = 1_000_000
_WAITING_SECONDS = 0.5
"""What waits is written when it is this much or this old; what is killed meanwhile is read anew."""


class DocumentRun:
    """Indexes single documents of one source into one version of its index.

    Without an embedder documents are written several at once: whoever calls `index` calls `write`
    when `is_due` says so, and at the end.
    """

    def __init__(
        self, store: Store, generations: Generations, version: Version, reader: Reader, tools: Tools
    ) -> None:
        self._store, self._generations = store, generations
        self._version, self._reader, self._tools = version, reader, tools
        self._waiting: list[_Read] = []
        self._characters, self._since = 0, 0.0

    def index(self, entry: Entry, known: Known | None) -> Result:
        """Brings what the index has of a document up to date, or reads it for `write`.

        Raises `DocumentFailure`, `EmbedderFailure` and `Stopped`; what was stored of the document
        stays as it was, and what was paid for stays for the next attempt.
        """
        opened = self._reader.read(entry)
        if known and known.content_hash == opened.content_hash and not known.lacks_vectors:
            self._check_unchanged(entry)
            self._generations.refresh(known, self._version, entry)
            return Result.UNCHANGED
        extracted = opened.extract()
        title = storable(extracted.title or entry.title)
        text = DocumentText(extracted, opened.record or RecordText("", subject=title))
        try:
            if self._tools.embedder is None:
                self._read(entry, opened, text)
                return Result.READ
            self._in_batches(entry, opened, text, self._tools.embedder)
            return Result.INDEXED
        finally:
            close = getattr(text.extracted.segments, "close", None)
            if close:
                close()

    # -- without vectors --------------------------------------------------------------------------

    def _read(self, entry: Entry, opened: Opened, text: DocumentText) -> None:
        chunks: list[Chunk] = []
        for chunk in cut(text.segments(), text.extracted.strategy, self._tools.size):
            self._check_stop()
            chunks.append(chunk)
        concepts = self._concepts(opened, text, [(chunk.start, chunk.end) for chunk in chunks])
        if not self._waiting:
            self._since = self._store.clock.monotonic()
        self._characters += text.length
        self._waiting.append(
            _Read(
                entry,
                opened.content_hash,
                opened.kind,
                text.title,
                text.record,
                chunks,
                concepts,
                text.redactions(),
            )
        )

    @property
    def is_due(self) -> bool:
        """Whether what waits is to be written now."""
        return bool(self._waiting) and (
            len(self._waiting) >= MOST_WAITING
            or self._characters >= _WAITING_CHARACTERS
            or self._store.clock.monotonic() - self._since >= _WAITING_SECONDS
        )

    def write(self) -> Iterator[tuple[Entry, DocumentFailure | None]]:
        """Writes the documents that wait, in one transaction, but for those that changed since they
        were read; gives each when that is done. Raises `SourceUnreachable`, `StoreUnavailable`, and
        what keeps one of them from being written, when the others are."""
        waiting, self._waiting, self._characters = self._waiting, [], 0
        failed = {}
        for read in waiting:  # before the transaction: a source may take its time
            failure = self._failure_since(read.entry)
            if failure is not None:
                failed[read.entry.key] = failure
                yield read.entry, failure
        unchanged = [read for read in waiting if read.entry.key not in failed]
        try:
            self._write_together(unchanged)
        except StoreUnavailable:
            raise
        except Exception:
            if len(unchanged) == 1:
                raise
            yield from self._one_by_one(unchanged)
        else:
            yield from ((read.entry, None) for read in unchanged)

    def _one_by_one(self, waiting: Sequence[_Read]) -> Iterator[tuple[Entry, None]]:
        broken: Exception | None = None
        for read in waiting:
            try:
                self._write_together([read])
            except StoreUnavailable:
                raise
            except Exception as error:
                broken = broken or error
            else:
                yield read.entry, None
        if broken:
            raise broken

    def _failure_since(self, entry: Entry) -> DocumentFailure | None:
        """What became of a document since it was read, unless it is as it was."""
        try:
            self._check_unchanged(entry)
        except DocumentFailure as failure:
            return failure
        return None

    def _write_together(self, waiting: Sequence[_Read]) -> None:
        if waiting:
            with self._store.writing():
                for read in waiting:
                    self._write(read)

    def _write(self, read: _Read) -> None:
        attempt = self._generations.begin_attempt(
            self._version, read.entry, read.content_hash, read.kind
        )
        pieces = (Piece(n, chunk, text_hash(chunk.text)) for n, chunk in enumerate(read.chunks))
        self._generations.write(attempt, read.record, pieces)
        self._generations.complete(
            attempt,
            self._version,
            read.entry,
            title=read.title,
            kind=read.kind,
            record=read.record,
            concepts=read.concepts,
            redactions=read.redactions,
        )

    # -- with vectors -----------------------------------------------------------------------------

    def _in_batches(
        self, entry: Entry, opened: Opened, text: DocumentText, embedder: Embedder
    ) -> None:
        attempt = self._generations.begin_attempt(
            self._version, entry, opened.content_hash, opened.kind
        )
        sent = Sent(text.record, self._tools.rendering, embedder)
        batches = Batches(self._store, self._generations, self._version, attempt, embedder, sent)
        try:
            for chunk in cut(text.segments(), text.extracted.strategy, self._tools.size):
                batches.add(chunk)
                if batches.is_hopeless:
                    break
                self._check_stop()
            batches.finish()
            if batches.failure:
                raise batches.failure
            concepts = self._concepts(opened, text, batches.spans)
            self._check_unchanged(entry)
            self._generations.complete(
                attempt,
                self._version,
                entry,
                title=text.title,
                kind=opened.kind,
                record=text.record,
                concepts=concepts,
                redactions=text.redactions(),
            )
        except (EmbedderFailure, Stopped, KeyboardInterrupt):
            self._generations.give_up(attempt, keep=True)
            raise
        except BaseException:
            self._give_up(attempt)
            raise
        finally:  # the width is known from the first vector, for the documents after this one too
            self._version = replace(self._version, dimensions=batches.dimensions)

    def _give_up(self, attempt: Attempt) -> None:
        """Removes an attempt; a failure of that never takes the place of the one that led to it."""
        try:
            self._generations.give_up(attempt, keep=False)
        except Exception as another:
            log.warning("What was begun of a document could not be removed: %s", another)

    # -- both -------------------------------------------------------------------------------------

    def _concepts(
        self, opened: Opened, text: DocumentText, spans: Sequence[tuple[int, int]]
    ) -> dict[str, list[int]]:
        """The concepts of a document with the positions of the chunks that carry them; one without
        any text is unusable."""
        if not spans:
            raise Unusable("no_text", "There is no text in it")
        whole, matcher = "".join(text.parts), self._tools.matcher()
        named: list[Named] = []
        if text.extracted.strategy == "markdown" or opened.kind != "file":
            named = named_in(whole, markdown=text.extracted.strategy == "markdown")
        named = first_names(named)
        if opened.kind == "row":  # in code, which is in many rows, brackets mean something else
            named = [each for each in named if matcher.resolve(each.name)]
        return concepts_of(whole, spans, matcher, named, opened.tags)

    def _check_unchanged(self, entry: Entry) -> None:
        now = self._reader.fingerprint(entry)
        if now is None:
            raise Unavailable("not_found", "It was removed while it was read")
        if now != entry.fingerprint:
            raise Unavailable("changed", "It was changed while it was read")

    def _check_stop(self) -> None:
        if self._tools.stop():
            raise Stopped
