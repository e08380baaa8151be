"""Chunks on their way to an embedder and into the index."""

from __future__ import annotations

from dataclasses import replace

from ..rendering import RecordText, Rendering, embedding_text
from .embedding import Embedder, EmbedderFailure, dimensions_of, embed
from .generations import Attempt, Generations, Piece
from .ids import text_hash
from .models import Chunk
from .store import Store
from .versions import Version, Versions


class Sent:
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


class Batches:
    """Chunks on their way into an attempt: what has a stored vector takes it over, the rest waits
    until the embedder is given as many texts as it takes at once.

    After a failure the embedder is asked nothing more, and only chunks with a vector are stored.
    """

    def __init__(
        self,
        store: Store,
        generations: Generations,
        version: Version,
        attempt: Attempt,
        embedder: Embedder,
        sent: Sent,
    ) -> None:
        self._store, self._generations, self._version = store, generations, version
        self._attempt, self._embedder, self._sent = attempt, embedder, sent
        self.dimensions = version.dimensions
        self._waiting: list[tuple[int, Chunk, str, bytes]] = []
        self._stored = generations.has_vectors(attempt.document_id, embedder.identity.name)
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
        vectors = self._generations.stored_vectors(
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
            self._generations.write(self._attempt, self._sent.record, pieces)
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
