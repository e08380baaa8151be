"""What the tests of the index have in common: a clock that is set, an embedder that is counted."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from datasette_concept_recall.indexing.embedding import EmbedderFailure
from datasette_concept_recall.indexing.ids import EmbedderIdentity
from datasette_concept_recall.indexing.service import Service
from datasette_concept_recall.indexing.sources.base import SourceIndexer
from datasette_concept_recall.indexing.store import SourceRow, Store


class FakeClock:
    """A clock that goes on only when it is told to."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 30, 12, tzinfo=timezone.utc)
        self.seconds = 1_000.0

    def now(self) -> datetime:
        return self.moment

    def monotonic(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)
        self.seconds += seconds


class FakeEmbedder:
    """Vectors that can be computed in the head: three numbers from the hash of a text.

    ``log`` is every text it was given. ``fails`` is asked with the number of each call (from 1) and
    its texts, and may raise or return something else than vectors.
    """

    dimensions = 3

    def __init__(
        self,
        *,
        model: str = "fake",
        batch_size: int = 3,
        is_remote: bool = False,
        fails: Callable[[int, Sequence[str]], Any] | None = None,
        token_limit: int = 0,
    ) -> None:
        self.name, self.is_remote, self.batch_size = f"fake:{model}", is_remote, batch_size
        self.identity = EmbedderIdentity("fake", model=model, token_limit=token_limit)
        self.log: list[str] = []
        self.calls = 0
        self.fails = fails

    def count_tokens(self, text: str) -> int:
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Any:
        self.calls += 1
        if self.fails is not None:
            answer = self.fails(self.calls, texts)
            if answer is not None:
                return answer
        self.log += texts
        return [vector_of(text) for text in texts]

    def embed_query(self, text: str) -> Any:
        return [vector_of(text)]


def vector_of(text: str) -> list[float]:
    return [float(byte) for byte in hashlib.sha256(text.encode()).digest()[:3]]


def down(call: int, texts: Sequence[str]) -> None:
    """A provider that cannot be reached."""
    raise EmbedderFailure("unreachable", "The provider is down")


def broken_at(number: int) -> Callable[[int, Sequence[str]], None]:
    """A provider that works until its call of this number, and not from then on."""

    def fails(call: int, texts: Sequence[str]) -> None:
        if call >= number:
            down(call, texts)

    return fails


def paragraphs(names: Iterable[str]) -> str:
    """A text that is cut into one chunk for each name, with chunks of 60 characters at most."""
    return "\n\n".join(f"{name} " + "is told of at some length here, in words." for name in names)


def write_note(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, "utf-8")
    return path


SMALL = {"chunk_size": 60, "chunk_overlap": 0}


def add_folder(store: Store, folder: Path, name: str = "notes", **options: object) -> SourceRow:
    return store.add_source(name, "folder", str(folder), options)


def indexing(
    store: Store, indexers: Sequence[SourceIndexer] | None = None, **options: Any
) -> Service:
    """A service over the indexers that come with the plugin."""
    from datasette_concept_recall.indexing.kinds import built_in

    options.setdefault("clock", store.clock)
    options.setdefault("rendering", "statement")  # so that what is embedded can be read in a test
    return Service(store, built_in() if indexers is None else indexers, **options)


def run(store: Store, source: SourceRow, reason: str = "run", **options: Any) -> Service:
    """One pass over a source, with a service of its own as after a restart."""
    service = indexing(store, **options)
    service.ask(source.id, reason)
    service.run_all()
    return service


def live_texts(store: Store) -> list[str]:
    """All texts that are searched, by document and position."""
    rows = store.rows("select text from live_chunk order by path, position")
    return [text for (text,) in rows]


def orphans(store: Store) -> int:
    """Vectors without a chunk, chunks without a generation, and chunks without a vector of a live
    generation in a version that has an embedder."""
    ((vectors,),) = store.rows(
        "select count(*) from vector where chunk_id not in (select id from chunk)"
    )
    ((chunks,),) = store.rows(
        "select count(*) from chunk where generation_id not in (select id from generation)"
    )
    ((bare,),) = store.rows(
        "select count(*) from document d join generation g on g.id = d.live_generation"
        " join index_version x on x.id = g.version_id join chunk c on c.generation_id = g.id"
        " where x.embedder is not null and c.id not in (select chunk_id from vector)"
    )
    return vectors + chunks + bare


def generations(store: Store) -> int:
    """The most generations that any document has."""
    ((most,),) = store.rows(
        "select coalesce(max(n), 0) from (select count(*) n from generation group by document_id)"
    )
    return int(most)
