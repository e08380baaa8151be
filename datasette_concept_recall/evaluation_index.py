"""An index that is built to try something, asked as recall asks any other, and then removed."""

from __future__ import annotations

import sqlite3
import tracemalloc
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from .errors import RecallError
from .fusion import Fusion
from .indexing.embedding import Embedder
from .indexing.ids import EmbedderIdentity
from .indexing.passes import Outcome
from .indexing.service import Service
from .indexing.sources.records import RecordIndexer, RecordSource
from .indexing.store import Store
from .layer_search import Semantic, search_layers
from .layered import CANDIDATES
from .lexical import Within
from .models import Mode, RecallRequest
from .opening import opened
from .query_vectors import QueryVectors
from .reading import reading
from .rendering import Rendering
from .search import recall
from .semantic import VectorIndex
from .vocabulary import Vocabulary


@contextmanager
def trial_index(
    name: str,
    source: RecordSource,
    service: Callable[..., Service],
    embedder: Embedder | None,
    rendering: Rendering,
) -> Iterator[TrialIndex]:
    """An index of records in a folder of its own; ``service`` makes the one that fills it.

    Raises `RecallError`, which begins with the name, when a record cannot be indexed.
    """
    with TemporaryDirectory(prefix="concept-recall-") as folder:
        path = Path(folder) / "index.db"
        with Store(path) as store:
            store.add_source(name, RecordIndexer.kind, "")
            made = service(
                store,
                [RecordIndexer(source)],
                embedder=embedder,
                rendering=rendering,
                share_seconds=None,
            )
            made.ask_all("run")
            for added, outcome in made.run_all():
                if outcome is not Outcome.DONE:
                    ended = store.source(added.id)
                    problem = ended.problem if ended else None
                    raise RecallError(f"{name}: {problem or 'the records could not be indexed'}")
        with opened(path) as conn:
            yield TrialIndex(conn, embedder)


class TrialIndex:
    """An index as recall asks it, with what is kept between two questions."""

    def __init__(self, conn: sqlite3.Connection, embedder: Embedder | None) -> None:
        self._conn, self._embedder = conn, embedder
        self._vocabulary, self._fusion = Vocabulary(), Fusion()
        self._refs = {
            id_: key.decode() for id_, key in conn.execute("select id, key from document")
        }
        self._semantic: Semantic | None = None
        if embedder is not None:
            vectors = VectorIndex(embedder.identity.name)
            self._semantic = Semantic(vectors, QueryVectors(embedder))

    def afresh(self) -> TrialIndex:
        """The same, with nothing kept of the questions that were asked before."""
        return TrialIndex(self._conn, self._embedder)

    def answer(self, text: str, mode: Mode) -> tuple[list[str], Sequence[str]]:
        """The references of what is recalled, best first, and the warnings."""
        request = RecallRequest(text, limit=CANDIDATES, mode=mode)
        found = recall(self._conn, request, vocabulary=self._vocabulary)
        if found.wants_layers:
            layers = search_layers(self._conn, request, Within(), self._fusion, self._semantic)
            found = recall(
                self._conn,
                request,
                vocabulary=self._vocabulary,
                layers=layers,
                fusion=self._fusion,
            )
        return [self._refs[match.id] for match in found.matches], found.warnings

    def bytes_a_record(self) -> tuple[float, float]:
        """What the vectors of a record that holds take in the database, and in memory; of an index
        with an embedder, before anything else is asked of it."""
        assert self._semantic is not None
        ((stored, count),) = self._conn.execute(
            "select total(length(v.embedding)), max(1, count(distinct d.id)) from document d"
            " join chunk c on c.generation_id = d.live_generation"
            " join vector v on v.chunk_id = c.id where d.is_active"
        )
        was_tracing = tracemalloc.is_tracing()
        try:
            with reading(self._conn) as reader:
                # So that what numpy loads when it is first used is not counted.
                VectorIndex(self._semantic.vectors.embedder).width(reader)
                tracemalloc.start()
                before, _ = tracemalloc.get_traced_memory()
                self._semantic.vectors.width(reader)  # reads all of them
                after, _ = tracemalloc.get_traced_memory()
        finally:
            if not was_tracing:
                tracemalloc.stop()
        return stored / count, (after - before) / count


class TimedEmbedder:
    """An embedder, and the ``seconds`` that it took for the documents it was given."""

    def __init__(self, embedder: Embedder) -> None:
        self._embedder, self.seconds = embedder, 0.0
        self.name, self.is_remote = embedder.name, embedder.is_remote
        self.batch_size = embedder.batch_size

    @property
    def dimensions(self) -> int | None:
        """Those of the embedder."""
        return self._embedder.dimensions

    @property
    def identity(self) -> EmbedderIdentity:
        """That of the embedder."""
        return self._embedder.identity

    def count_tokens(self, text: str) -> int:
        """As the embedder counts them."""
        return self._embedder.count_tokens(text)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """The vectors of the embedder."""
        started = perf_counter()
        try:
            return self._embedder.embed_documents(texts)
        finally:
            self.seconds += perf_counter() - started

    def embed_query(self, text: str) -> Any:
        """The vector of the embedder."""
        return self._embedder.embed_query(text)
