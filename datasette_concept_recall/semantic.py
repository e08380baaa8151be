"""The semantic layer: the live vectors of an index that are nearest to that of a question.

Vectors stay in the database. What is held of them in memory (see `vector_memory`) tells which may
be the nearest, and these are compared by the stored vectors: every similarity that is told is
exact.

A vector is near to something whatever is asked, so what is near has to be admitted: by a topical
word of the question, or by being more similar than the most similar text is by chance.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import monotonic
from typing import Any

from .layered import Passage
from .lexical import Within
from .reading import Reader, json_list
from .vector_memory import BY_BYTES, BYTES_HELD, Change, Form, Gathered, Held, Log

_ROUNDING = 0.01
"""So far apart two cosines may be whose order the bytes do not tell."""

_LAG = 1_000
"""So many changes a snapshot may be older than what is held."""

_SNAPSHOT_SECONDS = 10.0
"""No request reads for longer than that in one transaction."""

_SORTED = 20
"""So many times as many chunks are sorted as documents are wanted, which may have several."""

_SLACK = 0.8
"""An index that grows or shrinks is held in the form that it was until it is this much beyond."""

NAMED = 1.0
"""So many standard deviations nearer counts a document of which the question has a whole name."""

_BEYOND_CHANCE = 1.15


def floor(size: int) -> float:
    """From how many standard deviations above the mean of the cosines on a text is more similar to
    a question than the most similar of so many unrelated ones.

    Of n numbers that are normally distributed the largest is about sqrt(2 ln n) (H. Cramér,
    "Mathematical methods of statistics", 1946, section 28.6); some is added, since cosines have
    longer tails: 4.3 for 1,200 texts, 5.5 for 100,000.
    """
    return _BEYOND_CHANCE * math.sqrt(2 * math.log(max(size, 2)))


@dataclass(frozen=True)
class Asked:
    """A question to a `VectorIndex`: its ``vector`` (d,) float32 of length 1, in what is searched,
    all that may be seen (which tells what is similar by chance), the documents that are ``named``,
    and which of some chunks (None: of all) have a topical word of it."""

    vector: Any
    within: Within
    visible: Within
    named: Sequence[int]
    admitted: Callable[[Sequence[int] | None], Sequence[int]]


class VectorIndex:
    """The live vectors of one embedder in one index, shared by all threads that read it.

    What changed since it was read is read when it is asked, by the log that the index keeps of its
    documents; where that does not go back so far everything is read. ``loads`` counts the latter.
    ``embedder`` is the name of an `EmbedderIdentity`: vectors of another one are never compared.
    """

    def __init__(
        self,
        embedder: str,
        by_bytes: int = BY_BYTES,
        bytes_held: int = BYTES_HELD,
        elsewhere: Callable[[], None] | None = None,
    ) -> None:
        """``elsewhere`` has everything read in the background, for who has little patience."""
        self.embedder, self.loads = embedder, 0
        self._elsewhere = elsewhere
        self._by_bytes, self._bytes_held = by_bytes, bytes_held
        self._lock = threading.Lock()
        self._held: Held | None = None
        self._held_since = 0.0

    def width(self, reader: Reader, patience: float | None = None) -> int | None:
        """How many numbers the vectors have; None while there are none.

        Raises `TimeoutError` when another thread has been reading them for longer than
        ``patience`` (seconds, None: for ever).
        """
        held = self._current(reader, patience)
        return held.width if held.size else None

    def nearest(
        self, reader: Reader, asked: Asked, limit: int, patience: float | None = None
    ) -> list[Passage]:
        """The nearest documents that are admitted, best first; nothing that this snapshot of the
        database does not show. Raises `TimeoutError` as `width` does."""
        import numpy

        held = self._current(reader, patience)
        if not held.size or len(asked.vector) != held.width:
            return []
        allowed = held.allowed(asked.within)
        if not allowed.any():
            return []
        visible = allowed if asked.visible == asked.within else held.allowed(asked.visible)
        seen = int(visible.sum())
        places, similarities, by_chance = self._compared(reader, held, asked, allowed, visible)
        chunks = None if held.is_scanned_whole else held.chunks[places].tolist()
        deviation = float(by_chance.std()) or 1.0
        scores = (similarities - by_chance.mean()) / deviation
        is_admitted = numpy.isin(held.chunks[places], asked.admitted(chunks))
        is_admitted |= scores >= floor(seen)
        best = _best(
            numpy.flatnonzero(is_admitted & allowed[places]),
            held.documents[places],
            scores + NAMED * numpy.isin(held.documents[places], asked.named),
            2 * limit,
            _ROUNDING / deviation,
        )
        wanted = held.chunks[places[best]].tolist()
        return _looked_up(reader, self.embedder, wanted, asked, NAMED * deviation)[:limit]

    def _compared(
        self, reader: Reader, held: Held, asked: Asked, allowed: Any, visible: Any
    ) -> tuple[Any, Any, Any]:
        """Where the vectors are that may be nearest, their cosines, and cosines of texts that have
        nothing to do with the question."""
        import numpy

        if held.is_scanned_whole:
            similarities = held.cosines(asked.vector)
            return numpy.arange(held.size), similarities, similarities[visible]
        places = held.by_bits(asked.vector, allowed)
        by_chance = held.by_chance(asked.vector, asked.visible)
        if held.form.has_bytes:
            return places, held.cosines(asked.vector, places), by_chance
        places = held.by_signs(asked.vector, places)
        stored = held.chunks[places].tolist()
        return places, _exact(reader, self.embedder, stored, asked.vector), by_chance

    # -- keeping it true --------------------------------------------------------------------------

    def _current(self, reader: Reader, patience: float | None = None) -> Held:
        last = _latest(reader, 1).last
        held = self._held
        if held is not None and held.log.last == last:
            return held
        if reader.in_foreign_transaction:  # for this caller only
            return self._read(reader)
        if not self._lock.acquire(timeout=-1 if patience is None else max(0, patience)):
            raise TimeoutError
        try:
            held = self._held
            if held is not None and (held.log.last == last or self._is_before(last)):
                return held  # what this snapshot lacks is not found in its tables
            if held is None or not _knows(reader, held.log.last):
                if patience is not None and self._elsewhere is not None and self._is_long(reader):
                    self._elsewhere()
                    raise TimeoutError
                held = self._read(reader)
            else:
                held = self._followed(reader, held)
            self._held, self._held_since = held, monotonic()
            return held
        finally:
            self._lock.release()

    def _is_before(self, last: Change) -> bool:
        """Whether a snapshot is one from before what is held was read. What still shows an earlier
        state when nobody can be reading since then any more was restored from a copy."""
        held = self._held
        is_earlier = held is not None and last in held.log.some
        return is_earlier and monotonic() - self._held_since < _SNAPSHOT_SECONDS

    def _is_long(self, reader: Reader) -> bool:
        """Whether reading everything may outlast the time limit of a request."""
        ((last,),) = reader.rows("select coalesce(max(chunk_id), 0) from vector")
        return bool(last > self._by_bytes)

    def _read(self, reader: Reader) -> Held:
        self.loads += 1
        widths = reader.rows(
            f"select length(v.embedding) / 4, count(*) {_LIVE} group by 1 order by 2 desc, 1",
            self.embedder,
        )
        width, count = widths[0] if widths else (0, 0)  # others were not made by this embedder
        gathered = Gathered(width, count, self._form(count))
        gathered.add(reader.each(f"{_SELECT} {_LIVE} order by c.id", self.embedder))
        return gathered.held(_latest(reader, _LAG))

    def _followed(self, reader: Reader, held: Held) -> Held:
        """What is held with the documents that changed since then read anew."""
        changed = [
            id_
            for (id_,) in reader.rows(
                "select distinct document_id from live_change where id > ?", held.log.last[0]
            )
        ]
        if not held.size:
            return self._read(reader)
        gathered = Gathered(held.width, held.size, held.form, held, changed)
        gathered.add(
            reader.each(
                f"{_SELECT} {_LIVE} and d.id in (select value from json_each(?2)) order by c.id",
                self.embedder,
                json_list(changed),
            )
        )
        followed = gathered.held(_latest(reader, _LAG))
        sizes = (followed.size * _SLACK, followed.size / _SLACK)
        return followed if held.form in map(self._form, sizes) else self._read(reader)

    def _form(self, size: float) -> Form:
        return Form(size <= self._bytes_held, size > self._by_bytes)


def _latest(reader: Reader, number: int) -> Log:
    """The latest changes of an index, so many of them."""
    some = reader.rows("select id, mark from live_change order by id desc limit ?", number)
    return Log(some[0], tuple(some)) if some else Log(_NO_CHANGE)


_NO_CHANGE: Change = (0, None)


def _knows(reader: Reader, change: Change) -> bool:
    """Whether the log of an index has a change, so that what came since is in it too; one that was
    restored from a copy, or is another one, has not."""
    if change == _NO_CHANGE:
        return reader.rows("select min(id) from live_change") == [(1,)]
    return bool(reader.rows("select 1 from live_change where id = ? and mark is ?", *change))


def has_other_vectors(reader: Reader, embedder: str) -> bool:
    """Whether what is searched of an index has vectors of another embedder."""
    sql = "select 1 from index_version where state = 'live' and embedder <> ? limit 1"
    return bool(reader.rows(sql, embedder))


_SELECT = "select c.id, d.id, d.source_id, d.item_table, d.kind, v.embedding"

_LIVE = (
    "from document d join generation g on g.id = d.live_generation"
    " join index_version x on x.id = g.version_id and x.embedder = ?1"
    " join chunk c on c.generation_id = g.id join vector v on v.chunk_id = c.id"
    " where d.is_active"
)


def _best(places: Any, documents: Any, scores: Any, number: int, margin: float) -> Any:
    """Of some places those of the so many documents with the highest scores, of each document all
    whose score is within the margin of its best; equal scores are in the order of documents."""
    import numpy

    first = _first_places(places, scores, _SORTED * number)
    if len(numpy.unique(documents[first])) < number and len(first) < len(places):
        first = places  # a few documents have nearly all of the best chunks
    ordered = first[numpy.lexsort((first, documents[first], -scores[first]))]
    known, at = numpy.unique(documents[ordered], return_index=True)
    chosen = numpy.sort(at)[:number]
    wanted = ordered[numpy.isin(documents[ordered], documents[ordered[chosen]])]
    of_document = scores[ordered[at]][numpy.searchsorted(known, documents[wanted])]
    return wanted[scores[wanted] >= of_document - margin]


def _first_places(places: Any, scores: Any, number: int) -> Any:
    """The so many places with the highest scores, with all that tie with the last."""
    import numpy

    if len(places) <= number:
        return places
    last = numpy.partition(-scores[places], number)[number]
    return places[-scores[places] <= last]


def _exact(reader: Reader, embedder: str, chunks: Sequence[int], query: Any) -> Any:
    """The cosines (n,) of the stored vectors of chunks; -1 of those that are not there."""
    import numpy

    stored = dict(
        reader.rows(
            "select chunk_id, embedding from vector"
            " where chunk_id in (select value from json_each(?))",
            json_list(chunks),
        )
    )
    nothing = bytes(query.nbytes)
    vectors = [stored.get(chunk, nothing) for chunk in chunks]
    usable = [vector if len(vector) == query.nbytes else nothing for vector in vectors]
    cosines = numpy.frombuffer(b"".join(usable), "<f4").reshape(len(chunks), len(query)) @ query
    return numpy.where([vector is nothing for vector in usable], -1.0, cosines)


def _looked_up(
    reader: Reader, embedder: str, chunks: Sequence[int], asked: Asked, bonus: float
) -> list[Passage]:
    """Those of the chunks that are live, one of each document, by their stored vectors."""
    condition, values = asked.within.condition()
    rows = reader.rows(
        "select d.id, c.id, d.source_id, d.key, d.item_table is not null"
        f" {_LIVE} and {condition} and c.id in (select value from json_each(?))",
        embedder,
        *values,
        json_list(chunks),
    )
    if not rows:
        return []
    cosines = _exact(reader, embedder, [row[1] for row in rows], asked.vector).tolist()
    named = set(asked.named)
    ranked = sorted(
        (-cosine - (bonus if row[0] in named else 0), *row, cosine)
        for row, cosine in zip(rows, cosines, strict=True)
    )
    found: dict[int, Passage] = {}
    for _, id_, chunk, source, key, is_row, cosine in ranked:
        found.setdefault(id_, Passage(id_, chunk, source, key, bool(is_row), cosine))
    return list(found.values())
