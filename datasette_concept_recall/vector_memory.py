"""What is held in memory of many vectors, and how it is scanned.

Of each number of a vector one byte is held. Of many vectors one bit is held as well: the signs of
the numbers, less their mean, keep most of what a cosine says (M. Charikar, "Similarity estimation
techniques from rounding algorithms", STOC 2002), and are read much faster; what is best by these is
compared by the bytes. Of very many vectors only the bits are held.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any

from .lexical import Within

BY_BYTES = 20_000
"""Of up to so many vectors the bytes are scanned; of more reading the bits first is faster."""

BYTES_HELD = 250_000
"""Of more vectors than that no bytes are held."""

POOL = 5_000
"""So many of the best by bits are compared again."""

RERANKED = 1_000
"""So many of these, the best by the signs and the numbers of the question, where there are no
bytes: A. Gordo and F. Perronnin, "Asymmetric distances for binary embeddings", CVPR 2011."""

SAMPLE = 1_000
"""So many vectors stand for all where it is asked how similar an unrelated text is."""

ROWS = 2_000
"""So many vectors are read at once."""

_BLOCK = 500
_BIT_BLOCK = 65_536

Group = tuple[int, str | None, str]
"""The source, the table and the kind of a document."""

Change = tuple[int, int | None]
"""The number of a change in the log of an index, and the mark that tells it from that of a copy."""


@dataclass(frozen=True)
class Log:
    """Which changes of an index are known: ``last`` is the latest of them, and ``some`` are that
    and a number of those before it."""

    last: Change
    some: tuple[Change, ...] = ()


@dataclass(frozen=True)
class Form:
    """What is held of a number of vectors: their bytes, their bits, or both."""

    has_bytes: bool
    has_bits: bool


@dataclass(frozen=True)
class Held:
    """n vectors of d numbers: ``chunks`` (n,), ``documents`` (n,), and where these belong as the
    numbers of ``groups``; ``coarse`` (n, d) int8 with the ``scale`` (n,) of each, or None; ``bits``
    (d / 64, n) uint64, or None, and ``centre`` (d,), what was taken off before the signs were kept;
    ``sample`` (about `SAMPLE`, d) float32 of the vectors at the places ``sampled``, where there are
    bits. ``log`` is what it knows of the changes of the index."""

    log: Log
    width: int
    chunks: Any
    documents: Any
    group_of: Any
    groups: tuple[Group, ...]
    coarse: Any
    scale: Any
    bits: Any
    centre: Any
    sample: Any
    sampled: Any

    @property
    def size(self) -> int:
        return len(self.chunks)

    @property
    def is_scanned_whole(self) -> bool:
        """Whether all vectors are compared by their bytes."""
        return self.bits is None

    @property
    def form(self) -> Form:
        return Form(self.coarse is not None, self.bits is not None)

    def allowed(self, within: Within) -> Any:
        """Which of the vectors (n,) are within what is searched."""
        return self._are_in(self.group_of, within)

    def _are_in(self, group_of: Any, within: Within) -> Any:
        import numpy

        allowed = [within.admits(*group) for group in self.groups]
        return numpy.array(allowed, bool)[group_of]

    def by_chance(self, query: Any, within: Within) -> Any:
        """The cosines with (d,) of those of the sample that are within what is searched: nothing
        else has a say in what is similar by chance."""
        import numpy

        found = self.sample[self._are_in(self.group_of[self.sampled], within)] @ query
        return found if len(found) else numpy.array([0.0, 2.0])  # nobody knows: nothing is beyond

    def cosines(self, query: Any, places: Any = None) -> Any:
        """The cosines with (d,) of all vectors (n,), or of those at some places, to about 0.003."""
        import numpy

        coarse = self.coarse if places is None else self.coarse[places]
        scale = self.scale if places is None else self.scale[places]
        found: Any = numpy.empty(len(coarse), "float32")
        for start in range(0, len(coarse), _BLOCK):
            block = coarse[start : start + _BLOCK]
            found[start : start + _BLOCK] = block.astype("float32") @ query
        return found * scale

    def by_bits(self, query: Any, allowed: Any) -> Any:
        """Where the vectors are whose signs differ least from those of (d,): `POOL` of them and
        all that tie with the last."""
        import numpy

        question = signs(query - self.centre)
        distances: Any = numpy.zeros(self.size, "uint16")
        for start in range(0, self.size, _BIT_BLOCK):
            block = slice(start, start + _BIT_BLOCK)
            for row, bits in zip(self.bits, question, strict=True):
                distances[block] += numpy.bitwise_count(row[block] ^ bits[0])
        distances[~allowed] = self.width + 1
        reached = numpy.bincount(distances, minlength=self.width + 2)[: self.width + 1].cumsum()
        last = int(numpy.searchsorted(reached, min(POOL, reached[-1])))
        return numpy.flatnonzero(distances <= min(last, self.width))

    def by_signs(self, query: Any, places: Any) -> Any:
        """Of some places the `RERANKED` whose signs fit the numbers of (d,) best."""
        import numpy

        packed = numpy.ascontiguousarray(self.bits[:, places].T).view("uint8")
        unpacked = numpy.unpackbits(packed, axis=1, count=self.width)
        return places[smallest(-(unpacked.astype("float32") @ (query - self.centre)), RERANKED)]


class Gathered:
    """Vectors on their way into memory, block by block; behind what was held before, without that
    of the documents that changed."""

    def __init__(
        self,
        width: int,
        count: int,
        form: Form,
        before: Held | None = None,
        changed: Sequence[int] = (),
    ) -> None:
        import numpy

        self._width, self._form = width, form
        self._odds, self._size = SAMPLE / max(count, 1), 0
        self._centre = None if before is None else before.centre
        self._groups: dict[Group, int] = {}
        self._chunks, self._documents, self._group_of = [], [], []
        self._coarse: list[Any] = []
        self._scale: list[Any] = []
        self._bits: list[Any] = []
        self._sample: list[Any] = []
        self._sampled: list[Any] = []
        if before is not None:
            kept = ~numpy.isin(before.documents, numpy.array(changed, "int64"))
            self._groups = {group: n for n, group in enumerate(before.groups)}
            self._chunks.append(before.chunks[kept])
            self._size = len(self._chunks[0])
            self._documents.append(before.documents[kept])
            self._group_of.append(before.group_of[kept])
            if form.has_bytes:
                self._coarse.append(before.coarse[kept])
                self._scale.append(before.scale[kept])
            if form.has_bits:
                self._bits.append(before.bits[:, kept])
                stay = kept[before.sampled]
                self._sample.append(before.sample[stay])
                self._sampled.append((numpy.cumsum(kept) - 1)[before.sampled[stay]])

    def add(self, rows: Iterable[tuple[Any, ...]]) -> None:
        """Takes rows of (chunk, document, source, table, kind, vector); vectors of another width
        are of no use and left out."""
        block: list[tuple[Any, ...]] = []
        for row in rows:
            if isinstance(row[5], bytes) and len(row[5]) == 4 * self._width:
                block.append(row)
            if len(block) == ROWS:
                self._take(block)
                block = []
        if block:
            self._take(block)

    def _take(self, block: Sequence[tuple[Any, ...]]) -> None:
        import numpy

        vectors = numpy.frombuffer(b"".join(row[5] for row in block), "<f4")
        vectors = vectors.reshape(len(block), self._width)
        usable = numpy.isfinite(vectors).all(axis=1)
        if not usable.all():
            vectors, block = vectors[usable], list(compress(block, usable))
        if not block:
            return
        if self._centre is None:
            self._centre = vectors.mean(axis=0)
        for row in block:
            self._groups.setdefault(row[2:5], len(self._groups))
        self._chunks.append(numpy.array([row[0] for row in block], "int64"))
        self._documents.append(numpy.array([row[1] for row in block], "int64"))
        self._group_of.append(numpy.array([self._groups[row[2:5]] for row in block], "int32"))
        if self._form.has_bytes:
            scale = numpy.maximum(numpy.abs(vectors).max(axis=1), 1e-9) / 127
            self._coarse.append(numpy.rint(vectors / scale[:, None]).astype("int8"))
            self._scale.append(scale)
        if self._form.has_bits:
            self._bits.append(signs(vectors - self._centre))
            chosen = numpy.flatnonzero(_draw(self._chunks[-1]) < self._odds)
            self._sample.append(vectors[chosen])
            self._sampled.append(chosen + self._size)
        self._size += len(block)

    def held(self, log: Log) -> Held:
        """All of it as it is searched."""
        import numpy

        none: Any = numpy.zeros(0, "int64")
        if not self._chunks:
            return Held(log, self._width, none, none, none, (), None, None, None, none, none, none)
        chunks = numpy.concatenate(self._chunks)
        sample = sampled = none
        if self._form.has_bits:
            sampled = numpy.concatenate(self._sampled)
            fits = _draw(chunks[sampled]) < self._odds  # of what was drawn when there were fewer
            sample, sampled = numpy.concatenate(self._sample)[fits], sampled[fits]
        return Held(
            log,
            self._width,
            chunks,
            numpy.concatenate(self._documents),
            numpy.concatenate(self._group_of),
            tuple(self._groups),
            numpy.concatenate(self._coarse) if self._form.has_bytes else None,
            numpy.concatenate(self._scale) if self._form.has_bytes else None,
            numpy.concatenate(self._bits, axis=1) if self._form.has_bits else None,
            self._centre,
            sample,
            sampled,
        )


def _draw(chunks: Any) -> Any:
    """For the numbers (n,) of chunks numbers from 0 to 1 that look like drawn by lot, and are the
    same each time: by the golden ratio (D. E. Knuth, "The art of computer programming", volume 3,
    section 6.4)."""
    import numpy

    return (chunks.astype("uint64") * numpy.uint64(0x9E3779B97F4A7C15)) / 2.0**64


def signs(vectors: Any) -> Any:
    """The signs of (n, d) or (d,) numbers as (d / 64 rounded up, n) uint64."""
    import numpy

    rows = numpy.atleast_2d(vectors)
    packed = numpy.packbits(rows > 0, axis=1)
    padded = numpy.pad(packed, ((0, 0), (0, -packed.shape[1] % 8)))
    return numpy.ascontiguousarray(padded.view("<u8").T)


def smallest(costs: Any, number: int) -> Any:
    """Where the so many smallest of (n,) costs are, in no order."""
    import numpy

    if number >= len(costs):
        return numpy.arange(len(costs))
    return numpy.argpartition(costs, number)[:number]
