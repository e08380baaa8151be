"""The layers behind the concepts: what a question costs, what a scan of vectors costs and finds.

    python -m bench.semantic [--smoke | --full] [--output FOLDER]

Vectors are of sentences of the shared knowledge database by WordLlama, 256 numbers each, and where
that is not enough mixtures of two of them; without the shared data they are random around random
centres. They are searched as recall searches them: what is in memory is scanned, the best are
compared by the vectors stored in the database, and looked up in its live tables. The peer is the
exact product of all vectors with the question, which has nothing to look up. Times are processor
time.
"""

from __future__ import annotations

import re
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time
from typing import Any

import numpy

from datasette_concept_recall.embedders import WordLlamaEmbedder
from datasette_concept_recall.indexing.store import Store
from datasette_concept_recall.lexical import Within
from datasette_concept_recall.reading import reading
from datasette_concept_recall.semantic import Asked, VectorIndex

from .common import Report, Sizes, interleaved, megabytes, read_arguments, resident

DATA = Path(__file__).parents[2] / "shared" / "data"
WIDTH = 256
TOP = 10
_BATCH = 500
_EMBEDDER = "bench"

_QUESTIONS = (
    "remove the lock that lets only one thing run at a time",
    "write numbers with many digits so that they can be read",
    "a shorter way to say what a class holds",
    "who decides what goes into a release",
    "start faster",
    "leave out an argument on purpose",
    "text that may not be decoded",
    "which files belong to a package",
    "wait for several things at once",
    "compare a value with many shapes",
)


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, _ = read_arguments(__doc__, arguments)
    report = Report("semantic", sizes)
    vectors, questions, of_what = _vectors(sizes.pick(2_000, 100_000))
    rows: list[tuple[str, ...]] = []
    for size in sizes.pick((2_000,), (16_000, 100_000), (16_000, 100_000, 1_000_000)):
        found = _scanned(_as_many(vectors, size), questions, sizes)
        rows.append((f"{size:,}", *(str(each) for each in found["shown"])))
        report.data[f"{size} vectors"] = found["data"]
        _targets(report, size, found)
        print(".", end="", file=sys.stderr, flush=True)
    header = ("vectors", "ours, CPU ms", "exact product", "ours / exact")
    more = (f"recall@{TOP}", "in memory, MB", "process grows by, MB", "to read, s")
    report.table(f"Nearest vectors ({of_what})", (*header, *more), rows)
    report.finish()


def _targets(report: Report, size: int, found: dict[str, Any]) -> None:
    limits = {100_000: 10, 1_000_000: 80}
    if size in limits:
        report.target(f"{size:,} vectors: CPU ms", found["ms"], limits[size])
        report.target(f"{size:,} vectors: 1 - recall@{TOP}", 1 - found["recall"], 0.02)
    if size == 16_000:
        report.target("16,000 vectors: MB in memory", found["bytes"] / 1e6, 16)


def _vectors(number: int) -> tuple[Any, Any, str]:
    """So many vectors at most, those of the questions, and what they are of."""
    archive = DATA / "peps.db.xz"
    if not archive.exists():
        random = numpy.random.default_rng(1)
        centres = random.normal(size=(1_000, WIDTH))
        chosen = centres[random.integers(0, len(centres), number + len(_QUESTIONS))]
        made = _unit(chosen + random.normal(0, 0.7, (len(chosen), WIDTH)))
        return made[:number], made[number:], "random, around 1,000 centres"
    embedder = WordLlamaEmbedder()
    texts = list(_sentences(archive))[:number]
    batches = (texts[n : n + _BATCH] for n in range(0, len(texts), _BATCH))
    embedded = numpy.concatenate([embedder.embed_documents(batch) for batch in batches])
    questions = numpy.concatenate([embedder.embed_query(text) for text in _QUESTIONS])
    return embedded, questions, f"{len(texts):,} sentences by WordLlama, the rest mixtures"


def _sentences(archive: Path) -> Iterator[str]:
    import lzma

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "peps.db"
        file.write_bytes(lzma.decompress(archive.read_bytes()))
        conn = sqlite3.connect(file)
        seen: set[str] = set()
        for (body,) in conn.execute(
            "select body from records union all select body from observations"
        ):
            for sentence in re.split(r"(?<=[.!?])\s+|\n\n", body):
                if len(sentence) > 20 and sentence not in seen:
                    seen.add(sentence)
                    yield sentence
        conn.close()


def _as_many(vectors: Any, size: int) -> Any:
    """So many vectors: these, and mixtures of two of them each."""
    missing = size - len(vectors)
    if missing <= 0:
        return vectors[:size]
    random = numpy.random.default_rng(2)
    first, second = random.integers(0, len(vectors), (2, missing))
    share = random.uniform(0.3, 0.7, (missing, 1)).astype("float32")
    noise = random.normal(0, 0.02, (missing, WIDTH)).astype("float32")
    mixed = share * vectors[first] + (1 - share) * vectors[second] + noise
    return numpy.concatenate([vectors, _unit(mixed)])


def _unit(vectors: Any) -> Any:
    lengths = numpy.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / lengths).astype("float32")


def _scanned(vectors: Any, questions: Any, sizes: Sizes) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "index.db"
        _fill(file, vectors)
        conn = sqlite3.connect(f"file:{file}?mode=ro", uri=True)
        index, before, began = VectorIndex(_EMBEDDER), resident() or 0, process_time()
        _width(index, conn)
        read, grown = process_time() - began, (resident() or 0) - before
        held = index._held
        assert held is not None
        parts = (held.chunks, held.documents, held.group_of, held.coarse, held.scale, held.bits)
        in_memory = sum(part.nbytes for part in (*parts, held.sample) if part is not None)
        found = [_nearest(index, conn, question) for question in questions]
        exact = [set(numpy.argpartition(-(vectors @ q), TOP)[:TOP].tolist()) for q in questions]
        shared = (len(ours & best) / TOP for ours, best in zip(found, exact, strict=True))
        recall = sum(shared) / len(questions)
        times = interleaved(
            {
                "ours": lambda: [_nearest(index, conn, question) for question in questions],
                "exact": lambda: [vectors @ question for question in questions],
            },
            seconds=sizes.pick(0.1, 5),
        )
        conn.close()
    ms = times["ours"].median / len(questions) * 1e3
    exact_ms = times["exact"].median / len(questions) * 1e3
    shown = (f"{ms:.2f}", f"{exact_ms:.2f}", f"{ms / exact_ms:.2f}", f"{recall:.3f}")
    return {
        "ms": ms,
        "recall": recall,
        "bytes": in_memory,
        "shown": (*shown, megabytes(in_memory), megabytes(grown), f"{read:.2f}"),
        "data": {"ms": ms, "exact_ms": exact_ms, "recall": recall, "bytes": in_memory},
    }


def _width(index: VectorIndex, conn: sqlite3.Connection) -> int | None:
    with reading(conn) as reader:
        return index.width(reader)


def _nearest(index: VectorIndex, conn: sqlite3.Connection, question: Any) -> set[int]:
    """Where the nearest are; all are admitted."""
    with reading(conn) as reader:
        everything = range(index._held.size + 1) if index._held else range(0)
        asked = Asked(
            question,
            Within(),
            Within(),
            [],
            lambda chunks: everything if chunks is None else chunks,
        )
        return {found.chunk - 1 for found in index.nearest(reader, asked, TOP)}


def _fill(file: Path, vectors: Any) -> None:
    """An index with one document of one chunk for each vector."""
    with Store(file) as store:
        source = store.add_source("bench", "folder", "/", {}, "any")
        with store.writing() as conn:
            conn.execute(
                "insert into index_version (id, source_id, signature, embedder, dimensions, state,"
                " started_at) values (1, ?, '', ?, ?, 'live', '')",
                [source.id, _EMBEDDER, WIDTH],
            )
            numbers = range(1, len(vectors) + 1)
            conn.executemany(
                "insert into document (id, source_id, key, title, kind, path)"
                " values (?, 1, ?, '', 'note', '')",
                ((n, n.to_bytes(8, "big")) for n in numbers),
            )
            conn.executemany(
                "insert into generation (id, document_id, version_id, fingerprint, content_hash,"
                " is_complete, started_at) values (?, ?, 1, '', '', 1, '')",
                ((n, n) for n in numbers),
            )
            conn.executemany(
                "insert into chunk (id, generation_id, position, text, text_hash, start_offset,"
                " end_offset) values (?, ?, 0, '', '', 0, 0)",
                ((n, n) for n in numbers),
            )
            conn.executemany(
                "insert into vector values (?, ?)",
                ((n, vector.tobytes()) for n, vector in enumerate(vectors, 1)),
            )
            conn.execute("update document set live_generation = id")


if __name__ == "__main__":
    main()
