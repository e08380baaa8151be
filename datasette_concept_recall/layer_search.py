"""What the lexical and the semantic layer find for a question, in an index or in kb_fts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import NamedTuple

from .fusion import Fusion
from .indexing.embedding import EmbedderFailure
from .indexing.sources.row_keys import Rowid, decoded_key
from .layered import (
    CANDIDATES,
    DocumentTarget,
    Finding,
    Layers,
    Origin,
    Passage,
    RankedList,
    RefTarget,
    RowTarget,
)
from .lexical import Within, admitted, named, search_index, search_kb, words_of_chunks
from .mapping import Mapping
from .models import RecallRequest
from .query_vectors import QueryVectors
from .reading import Reader, reading
from .schema import lowered
from .semantic import Asked, VectorIndex, has_other_vectors
from .topical import Question

NARROWED = 500
"""So many a layer is asked for where they are narrowed to what it knows nothing of."""

NO_SEMANTIC = "There is no semantic layer here: no index with vectors holds what is asked."


@dataclass
class Semantic:
    """What the semantic layer of an index asks: the vectors that the index has, and who makes one
    of a question. ``deadline`` in seconds, None for none."""

    vectors: VectorIndex
    queries: QueryVectors
    deadline: float | None = None


def wanted(request: RecallRequest) -> frozenset[str]:
    """The layers that a request lets answer besides the concepts."""
    layers = {"lexical": {"lexical"}, "semantic": {"semantic"}, "auto": {"lexical", "semantic"}}
    return frozenset(layers.get(request.mode, ()))


def search_layers(
    conn: sqlite3.Connection,
    request: RecallRequest,
    within: Within,
    fusion: Fusion,
    semantic: Semantic | None = None,
    *,
    visible: Within | None = None,
    rows_only: bool = False,
) -> Layers:
    """What the layers of an index find for a request.

    ``within`` is what the request narrows to, of what is ``visible`` (None: the same). With
    ``rows_only`` what is found is named as the rows of the database it comes from, else as
    documents of the index. Without ``semantic`` there is no such layer. Raises `sqlite3.Error`.
    """
    question = fusion.question(request.text)
    layers = wanted(request)
    limit = CANDIDATES if request.project is None else NARROWED
    warnings: list[str] = []
    with reading(conn) as reader:
        by_words: list[Passage] = []
        if "lexical" in layers:
            by_words = search_index(reader, question, within, limit)
        neighbours: list[Passage] = []
        if "semantic" in layers and semantic is not None and question.topical:
            try:
                everything = (visible or within).with_meaning()
                asked = _Question(request.text, question, within.with_meaning(), everything)
                neighbours = _nearest(reader, asked, semantic, limit)
            except EmbedderFailure as failure:
                warnings.append(without_semantic(str(failure)))
        elif request.mode == "semantic" and semantic is None:
            warnings.append(NO_SEMANTIC)
        chunks = {each.chunk for each in (*by_words, *neighbours)}
        words = words_of_chunks(reader, question, within, chunks)
        paths = _origins(reader)
        documents = {each.document: each for each in (*by_words, *neighbours)}
        origins = {id_: _origin(each, paths) for id_, each in documents.items()}

    def finding(each: Passage) -> Finding | None:
        origin = origins[each.document]
        if rows_only and origin is None:
            return None
        return Finding(
            origin.row if rows_only and origin else DocumentTarget(each.document),
            words.get(each.chunk, ()),
            each.similarity,
            None if rows_only else each.chunk,
            origin=None if rows_only else origin,
        )

    lexical = (finding(each) for each in by_words)
    near = (finding(each) for each in neighbours)
    lists = (
        RankedList("lexical", tuple(filter(None, lexical)), fusion.lexical),
        RankedList("semantic", tuple(filter(None, near)), fusion.semantic),
    )
    return Layers(tuple(each for each in lists if each.found), tuple(warnings))


def warned(found: Layers, problem: str | None) -> Layers:
    """What was found, with the warning that a problem kept the semantic layer from answering."""
    if problem is None:
        return found
    others = (warning for warning in found.warnings if warning != NO_SEMANTIC)
    return replace(found, warnings=(*others, without_semantic(problem)))


def without_semantic(problem: str) -> str:
    """The warning that an answer was made without the semantic layer."""
    return f"Answered without the semantic layer: {problem.rstrip('.')}."


class _Question(NamedTuple):
    """What is asked of the semantic layer: `search_layers` has what the parts are."""

    text: str
    question: Question
    within: Within
    visible: Within


def _nearest(reader: Reader, asked: _Question, semantic: Semantic, limit: int) -> list[Passage]:
    try:
        return _in_time(reader, asked, semantic, limit)
    except TimeoutError:
        raise EmbedderFailure("timeout", "the vectors of the index are still being read") from None
    except ModuleNotFoundError as error:
        problem = f"{error}: install datasette-concept-recall[semantic]"
        raise EmbedderFailure("internal", problem) from error


def _in_time(reader: Reader, asked: _Question, semantic: Semantic, limit: int) -> list[Passage]:
    """The same, which raises `TimeoutError` where the vectors are not there before the deadline."""
    began = perf_counter()

    def left() -> float | None:
        deadline = semantic.deadline
        return None if deadline is None else max(0.0, deadline - (perf_counter() - began))

    width = semantic.vectors.width(reader, left())
    if width is None:
        if has_other_vectors(reader, semantic.vectors.embedder):
            name = semantic.queries.embedder.name
            problem = f"the index has no vectors of {name} yet, and others cannot be compared"
            raise EmbedderFailure("invalid", problem)
        return []
    text, question, within, visible = asked
    vector = semantic.queries.vector(text, width, left())

    def have_words(chunks: Sequence[int] | None) -> Sequence[int]:
        return admitted(reader, question, within, chunks)

    known = named(reader, question, within)
    of_vector = Asked(vector, within, visible, known, have_words)
    return semantic.vectors.nearest(reader, of_vector, limit, left())


def _origins(reader: Reader) -> dict[int, str]:
    """The path of the database of each source that has rows for documents."""
    return dict(reader.rows("select id, origin from source where kind = 'rows'"))


def _origin(each: Passage, paths: dict[int, str]) -> Origin | None:
    path = paths.get(each.source) if each.is_row else None
    if path is None:
        return None
    table, *values = decoded_key(each.key)
    is_rowid = any(isinstance(value, Rowid) for value in values)
    key = (value.number if isinstance(value, Rowid) else value for value in values)
    return Origin(path, RowTarget(lowered(table), tuple(key), is_rowid))


def search_full_text(
    conn: sqlite3.Connection, mapping: Mapping, request: RecallRequest, fusion: Fusion
) -> Layers:
    """What is found in the full text of a knowledge database for which there is no index."""
    if request.mode == "semantic":
        return Layers(warnings=(NO_SEMANTIC,))
    if "lexical" not in wanted(request):
        return Layers()
    narrowed = request.project is not None or request.types
    with reading(conn) as reader:
        hits = search_kb(
            reader,
            mapping,
            fusion.question(request.text),
            NARROWED if narrowed else CANDIDATES * 2,  # some are superseded
        )
    found = tuple(Finding(RefTarget(f"{hit.source}:{hit.id}"), hit.words) for hit in hits)
    return Layers((RankedList("lexical", found, fusion.lexical),) if found else ())


def references(refs: Iterable[str], fusion: Fusion) -> RankedList:
    """What a `SemanticFallback` found; whether it has to do with the question is yet to be seen."""
    found = tuple(Finding(RefTarget(ref), is_admitted=False) for ref in refs)
    return RankedList("semantic", found, fusion.semantic)
