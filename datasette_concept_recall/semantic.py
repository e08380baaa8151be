"""The semantic layer: the live vectors of an index that are nearest to that of a question.

Vectors stay in the database. In memory there is one byte for each of their numbers, and of more
than `BY_BYTES` vectors one bit: the signs of the numbers, less their mean, keep most of what the
cosine says (M. Charikar, "Similarity estimation techniques from rounding algorithms", STOC 2002).
What is best by these is compared by the stored vectors, so every similarity that is told is exact.

A vector is near to something whatever is asked, so what is near has to be admitted: by a topical
word of the question, or by being more similar than the most similar text is by chance.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .layered import Passage
from .lexical import Within
from .reading import Reader, json_list

BY_BYTES = 20_000
"""Of up to so many vectors the bytes are scanned; of more reading only bits is faster."""

RERANKED = 1_000
"""So many of the best by bits are compared by their vectors; of more than a hundred thousand one in
a hundred."""

SAMPLE = 1_000
"""So many vectors stand for all where it is asked how similar an unrelated text is."""

_SLACK = 0.8
"""An index that grows or shrinks is held as it was until it is this much beyond `BY_BYTES`."""

_ROWS = 2_000
_BLOCK = 500


NAMED = 1.0
"""So many standard deviations nearer counts a document of which the question has a whole name."""

_BEYOND_CHANCE = 0.25


def floor(size: int) -> float:
    """From how many standard deviations above the mean of the cosines on a text is more similar to
    a question than the most similar of so many unrelated ones.

    Of n numbers that are normally distributed the largest is about sqrt(2 ln n) (H. Cramér,
    "Mathematical methods of statistics", 1946, section 28.6), and a quarter is added: 4.0 for 1,200
    texts, 5.05 for 100,000.
    """
    return math.sqrt(2 * math.log(max(size, 2))) + _BEYOND_CHANCE


@dataclass(frozen=True)
class Asked:
    """A question to a `VectorIndex`: its ``vector`` (d,) float32 of length 1, in what is searched,
    its documents that are ``named``, and which of some chunks (None: of all) have a topical word
    of it."""

    vector: Any
    within: Within
    named: Sequence[int]
    admitted: Callable[[Sequence[int] | None], Sequence[int]]


@dataclass(frozen=True)
class _Held:
    """What is in memory of n vectors of d numbers: ``chunks`` (n,), ``documents`` (n,), and where
    these belong as the numbers of ``groups``; ``coarse`` (n, d) int8 with the ``scale`` (n,) of
    each, None for many; else ``bits`` (d / 64, n) uint64, and ``centre`` (d,), what was taken off
    before the signs were kept; ``sample`` (up to `SAMPLE`, d) float32. ``change`` is the last one
    that it knows."""

    change: int
    width: int
    chunks: Any
    documents: Any
    group_of: Any
    groups: tuple[tuple[int, str | None, str], ...]
    coarse: Any
    scale: Any
    bits: Any
    centre: Any
    sample: Any

    @property
    def size(self) -> int:
        return len(self.chunks)


class VectorIndex:
    """The live vectors of one embedder in one index, shared by all threads that read it.

    What changed since it was read is read when it is asked, by the log that the index keeps of its
    documents; where that does not go back so far everything is read. ``loads`` counts the latter.
    ``embedder`` is the name of an `EmbedderIdentity`: vectors of another one are never compared.
    """

    def __init__(self, embedder: str, by_bytes: int = BY_BYTES) -> None:
        self.embedder, self.loads = embedder, 0
        self._by_bytes = by_bytes
        self._lock = threading.Lock()
        self._held: _Held | None = None

    def width(self, reader: Reader) -> int | None:
        """How many numbers the vectors have; None while there are none."""
        held = self._current(reader)
        return held.width if held.size else None

    def nearest(self, reader: Reader, asked: Asked, limit: int) -> list[Passage]:
        """The nearest documents that are admitted, best first; nothing that this snapshot of the
        database does not show."""
        import numpy

        held = self._current(reader)
        if not held.size or len(asked.vector) != held.width:
            return []
        places = numpy.arange(held.size)
        if held.coarse is not None:
            similarities = _cosines(held, asked.vector)
            mean, deviation = similarities.mean(), similarities.std()
            chunks = None
        else:
            by_chance = held.sample @ asked.vector
            mean, deviation = by_chance.mean(), by_chance.std()
            places = _nearest_by_bits(held, asked)
            chunks = held.chunks[places].tolist()
            similarities = _exact(reader, self.embedder, chunks, asked.vector)
        scores = (similarities - mean) / (deviation or 1.0)
        is_admitted = numpy.isin(held.chunks[places], asked.admitted(chunks))
        is_admitted |= scores >= floor(held.size)
        is_admitted &= _allowed(held, asked.within)[places]
        bonus = NAMED * numpy.isin(held.documents[places], asked.named)
        order = numpy.where(is_admitted, -(scores + bonus), numpy.inf)
        best = _smallest(order, 4 * limit)  # a document may have several chunks
        best = best[is_admitted[best]]
        found = _looked_up(
            reader, self.embedder, held.chunks[places[best]].tolist(), asked, NAMED * deviation
        )
        return found[:limit]

    # -- keeping it true --------------------------------------------------------------------------

    def _current(self, reader: Reader) -> _Held:
        ((first, last),) = reader.rows(
            "select coalesce(min(id), 0),"
            " coalesce((select seq from sqlite_sequence where name = 'live_change'), 0)"
            " from live_change"
        )
        with self._lock:
            held = self._held
            if held is not None and held.change == last:
                return held
            if reader.in_foreign_transaction:  # for this caller only
                return self._read(reader, last)
            if held is None or held.change > last or (first or last + 1) > held.change + 1:
                held = self._read(reader, last)
            else:
                held = self._followed(reader, held, last)
            self._held = held
            return held

    def _read(self, reader: Reader, change: int) -> _Held:
        self.loads += 1
        ((count, width),) = reader.rows(
            f"select count(*), max(length(v.embedding)) / 4 {_LIVE}", self.embedder
        )
        gathered = _Gathered(width or 0, count, count <= self._by_bytes)
        gathered.add(reader.each(f"{_SELECT} {_LIVE} order by c.id", self.embedder))
        return gathered.held(change)

    def _followed(self, reader: Reader, held: _Held, change: int) -> _Held:
        """What is held with the documents that changed since then read anew."""
        changed = [
            id_
            for (id_,) in reader.rows(
                "select distinct document_id from live_change where id > ?", held.change
            )
        ]
        if not held.size:
            return self._read(reader, change)
        gathered = _Gathered(held.width, held.size, held.coarse is not None, held, changed)
        gathered.add(
            reader.each(
                f"{_SELECT} {_LIVE} and d.id in (select value from json_each(?2)) order by c.id",
                self.embedder,
                json_list(changed),
            )
        )
        followed = gathered.held(change)
        if followed.coarse is None:
            fits = followed.size > self._by_bytes * _SLACK
        else:
            fits = followed.size <= self._by_bytes / _SLACK
        return followed if fits else self._read(reader, change)


_SELECT = "select c.id, d.id, d.source_id, d.item_table, d.kind, v.embedding"

_LIVE = (
    "from document d join generation g on g.id = d.live_generation"
    " join index_version x on x.id = g.version_id and x.embedder = ?1"
    " join chunk c on c.generation_id = g.id join vector v on v.chunk_id = c.id"
    " where d.is_active"
)


class _Gathered:
    """Vectors on their way into memory, block by block; behind what was held before, without that
    of the documents that changed."""

    def __init__(
        self,
        width: int,
        count: int,
        keeps_bytes: bool,
        before: _Held | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        import numpy

        self._width, self._count, self._keeps_bytes = width, count, keeps_bytes
        self._centre = None if before is None else before.centre
        self._groups: dict[tuple[int, str | None, str], int] = {}
        self._chunks, self._documents, self._group_of = [], [], []
        self._coarse: list[Any] = []
        self._scale: list[Any] = []
        self._bits: list[Any] = []
        self._sample: list[Any] = []
        if before is not None:
            kept = ~numpy.isin(before.documents, numpy.array(changed, "int64"))
            self._groups = {group: n for n, group in enumerate(before.groups)}
            self._chunks.append(before.chunks[kept])
            self._documents.append(before.documents[kept])
            self._group_of.append(before.group_of[kept])
            if before.coarse is not None:
                self._coarse.append(before.coarse[kept])
                self._scale.append(before.scale[kept])
            else:
                self._bits.append(before.bits[:, kept])
            self._sample.append(before.sample)

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes rows of `_SELECT`; vectors of another width are of no use and left out."""
        block: list[tuple[Any, ...]] = []
        for row in rows:
            if isinstance(row[5], bytes) and len(row[5]) == 4 * self._width:
                block.append(row)
            if len(block) == _ROWS:
                self._take(block)
                block = []
        if block:
            self._take(block)

    def _take(self, block: Sequence[tuple[Any, ...]]) -> None:
        import numpy

        vectors = numpy.frombuffer(b"".join(row[5] for row in block), "<f4")
        vectors = vectors.reshape(len(block), self._width)
        if self._centre is None:
            self._centre = vectors.mean(axis=0)
        for row in block:
            self._groups.setdefault(row[2:5], len(self._groups))
        self._chunks.append(numpy.array([row[0] for row in block], "int64"))
        self._documents.append(numpy.array([row[1] for row in block], "int64"))
        self._group_of.append(numpy.array([self._groups[row[2:5]] for row in block], "int32"))
        if self._keeps_bytes:
            scale = numpy.maximum(numpy.abs(vectors).max(axis=1), 1e-9) / 127
            self._coarse.append(numpy.rint(vectors / scale[:, None]).astype("int8"))
            self._scale.append(scale)
        else:
            self._bits.append(_bits(vectors - self._centre))
        step = max(1, self._count // SAMPLE)
        self._sample.append(vectors[::step].copy())

    def held(self, change: int) -> _Held:
        """All of it as it is searched."""
        import numpy

        none: Any = numpy.zeros(0, "int64")
        if not self._chunks:
            return _Held(change, self._width, none, none, none, (), None, None, None, none, none)
        sample = numpy.concatenate(self._sample)
        return _Held(
            change,
            self._width,
            numpy.concatenate(self._chunks),
            numpy.concatenate(self._documents),
            numpy.concatenate(self._group_of),
            tuple(self._groups),
            numpy.concatenate(self._coarse) if self._keeps_bytes else None,
            numpy.concatenate(self._scale) if self._keeps_bytes else None,
            None if self._keeps_bytes else numpy.concatenate(self._bits, axis=1),
            self._centre,
            sample[-SAMPLE:],
        )


def _bits(vectors: Any) -> Any:
    """The signs of (n, d) or (d,) numbers as (d / 64 rounded up, n) uint64."""
    import numpy

    rows = numpy.atleast_2d(vectors)
    packed = numpy.packbits(rows > 0, axis=1)
    padded = numpy.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return numpy.ascontiguousarray(padded.view("<u8").T)


def _cosines(held: _Held, query: Any) -> Any:
    """The cosines (n,) of all vectors with one, to about 0.003, block by block in float32."""
    import numpy

    found: Any = numpy.empty(held.size, "float32")
    for start in range(0, held.size, _BLOCK):
        block = held.coarse[start : start + _BLOCK]
        found[start : start + _BLOCK] = block.astype("float32") @ query
    return found * held.scale


def _nearest_by_bits(held: _Held, asked: Asked) -> Any:
    """Where the vectors are whose signs differ least from those of the question, in no order."""
    import numpy

    distances: Any = numpy.zeros(held.size, "uint16")
    for row, bits in zip(held.bits, _bits(asked.vector - held.centre), strict=True):
        distances += numpy.bitwise_count(row ^ bits[0])
    distances[~_allowed(held, asked.within)] = numpy.iinfo("uint16").max
    return _smallest(distances, max(RERANKED, held.size // 100))


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
    cosines = numpy.frombuffer(b"".join(usable), "<f4").reshape(len(chunks), -1) @ query
    return numpy.where([vector is nothing for vector in usable], -1.0, cosines)


def _allowed(held: _Held, within: Within) -> Any:
    """Which of the vectors (n,) are within what is searched."""
    import numpy

    allowed = [
        (within.sources is None or source in within.sources)
        and (within.tables is None or table in within.tables)
        and (within.kinds is None or kind in within.kinds)
        for source, table, kind in held.groups
    ]
    return numpy.array(allowed, bool)[held.group_of]


def _smallest(costs: Any, number: int) -> Any:
    """Where the so many smallest of (n,) costs are, in no order."""
    import numpy

    if number >= len(costs):
        return numpy.arange(len(costs))
    return numpy.argpartition(costs, number)[:number]


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
