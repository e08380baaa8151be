"""One document, one generation: read, filter, cut, embed, link, and show it in one step."""

from __future__ import annotations

import logging
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from itertools import islice
from typing import Protocol

from ..matching import ConceptMatcher
from ..rendering import DEFAULT_RENDERING, RecordText, Rendering, embedding_text
from .chunking import cut
from .documents import Attempt, Documents, Known, Piece, Redaction
from .embedding import Embedder, EmbedderFailure, dimensions_of, embed
from .failures import DocumentFailure, Unavailable, Unusable
from .ids import text_hash
from .links import Named, mentioned, named_in
from .models import Chunk, Entry, Extracted, Listing, Opened, Segment, Size, storable
from .places import describe
from .sanitise import Report, sanitised
from .store import Store
from .versions import Version, Versions

log = logging.getLogger("datasette_concept_recall.indexing")


LARGEST_TEXT = 50_000_000
"""Characters of one document: what unpacks to more was made to."""


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


@dataclass
class _Text:
    """The text of a document, gathered while it is cut, and what the filter took out of it;
    ``record`` is what is known of it besides."""

    extracted: Extracted
    record: RecordText
    report: Report = field(default_factory=Report)
    parts: list[str] = field(default_factory=list)
    length: int = 0

    def segments(self) -> Iterator[Segment]:
        """The segments, filtered. An error of the filter lets no text pass."""
        filtered = sanitised(self._read(), self.report)
        while True:
            try:
                segment = next(filtered, None)
            except DocumentFailure:
                raise
            except Exception as error:
                raise Unavailable("filter", f"The filter failed: {error}") from error
            if segment is None:
                return
            self.length += len(segment.text)
            if self.length > LARGEST_TEXT:
                raise Unusable("too_large", f"Its text has more than {LARGEST_TEXT:,} characters")
            self.parts.append(segment.text)
            yield segment

    def _read(self) -> Iterator[Segment]:
        """What the extractor gives; what it raises that is no failure of a document is its own."""
        try:
            for segment in self.extracted.segments:
                yield segment._replace(text=storable(segment.text))
        except (DocumentFailure, GeneratorExit):
            raise
        except Exception as error:
            raise Unavailable("internal", f"The file could not be read: {error}") from error

    def redactions(self) -> list[Redaction]:
        """What was taken out, for the report of the document."""
        return [
            Redaction(finding.family, describe(finding.place), finding.removed)
            for finding in self.report.findings
        ]


class DocumentRun:
    """Indexes single documents of one source into one version of its index."""

    def __init__(
        self, store: Store, documents: Documents, version: Version, reader: Reader, tools: Tools
    ) -> None:
        self._store, self._documents = store, documents
        self._version, self._reader, self._tools = version, reader, tools

    def index(self, entry: Entry, known: Known | None) -> Result:
        """Brings what the index has of a document up to date.

        Raises `DocumentFailure`, `EmbedderFailure` and `Stopped`; what was stored of the document
        stays as it was, and what was paid for stays for the next attempt.
        """
        opened = self._reader.read(entry)
        if known and known.content_hash == opened.content_hash and not known.lacks_vectors:
            self._check_unchanged(entry)
            self._documents.refresh(known, self._version, entry)
            return Result.UNCHANGED
        extracted = opened.extract()
        title = storable(extracted.title or entry.title)
        text = _Text(extracted, opened.record or RecordText("", subject=title))
        try:
            if self._tools.embedder is None:
                self._at_once(entry, opened, text)
            else:
                self._in_batches(entry, opened, text, self._tools.embedder)
        finally:
            close = getattr(text.extracted.segments, "close", None)
            if close:
                close()
        return Result.INDEXED

    def _at_once(self, entry: Entry, opened: Opened, text: _Text) -> None:
        """Without vectors there is nothing worth keeping of an attempt: one transaction."""
        chunks: list[Chunk] = []
        for chunk in cut(text.segments(), text.extracted.strategy, self._tools.size):
            self._check_stop()
            chunks.append(chunk)
        with self._store.writing():
            attempt = self._documents.begin_attempt(
                self._version, entry, opened.content_hash, opened.kind
            )
            self._documents.write(
                attempt,
                text.record,
                (Piece(n, chunk, text_hash(chunk.text)) for n, chunk in enumerate(chunks)),
            )
            self._complete(attempt, entry, opened, text, [(c.start, c.end) for c in chunks])

    def _in_batches(self, entry: Entry, opened: Opened, text: _Text, embedder: Embedder) -> None:
        attempt = self._documents.begin_attempt(
            self._version, entry, opened.content_hash, opened.kind
        )
        sent = _Sent(text.record, self._tools.rendering, embedder)
        batches = _Batches(self._store, self._documents, self._version, attempt, embedder, sent)
        try:
            for chunk in cut(text.segments(), text.extracted.strategy, self._tools.size):
                batches.add(chunk)
                if batches.is_hopeless:
                    break
                self._check_stop()
            batches.finish()
            if batches.failure:
                raise batches.failure
            self._complete(attempt, entry, opened, text, batches.spans)
        except (EmbedderFailure, Stopped, KeyboardInterrupt):
            self._documents.give_up(attempt, keep=True)
            raise
        except BaseException:
            self._give_up(attempt)
            raise
        finally:  # the width is known from the first vector, for the documents after this one too
            self._version = replace(self._version, dimensions=batches.dimensions)

    def _give_up(self, attempt: Attempt) -> None:
        """Removes an attempt; a failure of that never takes the place of the one that led to it."""
        try:
            self._documents.give_up(attempt, keep=False)
        except Exception as another:
            log.warning("What was begun of a document could not be removed: %s", another)

    def _complete(
        self,
        attempt: Attempt,
        entry: Entry,
        opened: Opened,
        text: _Text,
        spans: Sequence[tuple[int, int]],
    ) -> None:
        if not spans:
            raise Unusable("no_text", "There is no text in it")
        concepts = self._concepts(opened, text, spans)
        self._check_unchanged(entry)
        self._documents.complete(
            attempt,
            self._version,
            entry,
            title=storable(text.extracted.title) if text.extracted.title else None,
            kind=opened.kind,
            record=text.record,
            concepts=concepts,
            redactions=text.redactions(),
        )

    def _concepts(
        self, opened: Opened, text: _Text, spans: Sequence[tuple[int, int]]
    ) -> dict[str, list[int]]:
        whole, matcher = "".join(text.parts), self._tools.matcher()
        named: list[Named] = []
        if text.extracted.strategy == "markdown" or opened.kind != "file":
            named = named_in(whole, markdown=text.extracted.strategy == "markdown")
        named = _first_names(named)
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


MOST_NAMES = 1_000
"""So many names, the first ones, a document may bring of itself; a list of words is no tagging."""


def _first_names(named: Sequence[Named]) -> list[Named]:
    names = set(islice(dict.fromkeys(each.name for each in named), MOST_NAMES))
    return [each for each in named if each.name in names]


def concepts_of(
    text: str,
    spans: Sequence[tuple[int, int]],
    matcher: ConceptMatcher,
    named: Sequence[Named],
    tags: Sequence[str] = (),
) -> dict[str, list[int]]:
    """The concepts of a text with the positions of the chunks that carry them.

    Chunk n is ``text[slice(*spans[n])]``, ``named`` is what it names on purpose. ``tags`` are of
    the document as a whole: its first chunk carries them. A name that was written in a new way is
    the known concept that it matches.
    """
    found: dict[str, list[tuple[int, int]]] = dict(mentioned(text, matcher))
    for tag in tags:
        found.setdefault(_known_spelling(storable(tag), matcher), []).append((0, 0))
    for each in named:
        name = _known_spelling(each.name, matcher)
        found.setdefault(name, []).append((each.start, each.end))
    return positions_of(found, spans)


def positions_of(
    found: Mapping[str, Sequence[tuple[int, int]]], spans: Sequence[tuple[int, int]]
) -> dict[str, list[int]]:
    """Of names with the places where they stand in a text the positions of the chunks there.

    What a chunk repeats of the one before is that one's.
    """
    starts, before = [], 0
    for start, end in spans:
        starts.append(max(start, before))
        before = max(before, end)
    return {
        name: sorted({max(0, bisect_right(starts, start) - 1) for start, _ in places})
        for name, places in found.items()
    }


def _known_spelling(name: str, matcher: ConceptMatcher) -> str:
    """The first known spelling of a name, and the name itself where there is none."""
    known = matcher.resolve(name)
    return name if not known or name in known else known[0]


class _Sent:
    """The texts of one document as an embedder is given them: each chunk with what is known of its
    document, of which the last lines are left out where the embedder would not take them."""

    def __init__(self, record: RecordText, rendering: Rendering, embedder: Embedder) -> None:
        self.record, self._rendering, self._embedder = record, rendering, embedder

    def text(self, chunk: Chunk) -> str:
        """The text that is embedded for a chunk."""
        rendered = embedding_text(replace(self.record, statement=chunk.text), self._rendering)
        limit = self._embedder.identity.token_limit
        while limit and rendered != chunk.text and self._embedder.count_tokens(rendered) > limit:
            rendered = max(chunk.text, rendered.rpartition("\n")[0], key=len)
        return rendered


class _Batches:
    """Chunks on their way into an attempt: what has a stored vector takes it over, the rest waits
    until the embedder is given as many texts as it takes at once.

    After a failure the embedder is asked nothing more, and only chunks with a vector are stored.
    """

    def __init__(
        self,
        store: Store,
        documents: Documents,
        version: Version,
        attempt: Attempt,
        embedder: Embedder,
        sent: _Sent,
    ) -> None:
        self._store, self._documents, self._version = store, documents, version
        self._attempt, self._embedder, self._sent = attempt, embedder, sent
        self.dimensions = version.dimensions
        self._waiting: list[tuple[int, Chunk, str, bytes]] = []
        self._stored = documents.has_vectors(attempt.document_id, embedder.identity.name)
        self.spans: list[tuple[int, int]] = []
        self.failure: EmbedderFailure | None = None

    @property
    def is_hopeless(self) -> bool:
        """Whether the embedder failed, and there is nothing for which to read on."""
        return self.failure is not None and not self._stored

    def add(self, chunk: Chunk) -> None:
        """Takes the next chunk of the document."""
        text = self._sent.text(chunk)
        self._waiting.append((len(self.spans), chunk, text, text_hash(text)))
        self.spans.append((chunk.start, chunk.end))
        if len(self._waiting) >= self._embedder.batch_size:
            self.finish()

    def finish(self) -> None:
        """Embeds and writes what waits."""
        if not self._waiting:
            return
        waiting, self._waiting = self._waiting, []
        vectors = self._documents.stored_vectors(
            self._attempt.document_id,
            self._embedder.identity.name,
            [mark for *_, mark in waiting],
        )
        missing = {mark: text for _, _, text, mark in waiting if mark not in vectors}
        if missing and self.failure is None:
            vectors |= self._embed(missing)
        pieces = [
            Piece(n, chunk, mark, vectors[mark]) for n, chunk, _, mark in waiting if mark in vectors
        ]
        if pieces:
            self._documents.write(self._attempt, self._sent.record, pieces)
            self._stored = True

    def _embed(self, texts: dict[bytes, str]) -> dict[bytes, bytes]:
        try:
            found = embed(self._embedder, list(texts.values()), self.dimensions)
        except EmbedderFailure as failure:
            self.failure = failure
            return {}
        if self.dimensions is None:
            self.dimensions = dimensions_of(found[0])
            Versions(self._store).set_dimensions(self._version.id, self.dimensions)
        return dict(zip(texts, found, strict=True))
