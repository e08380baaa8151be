"""What the other layers found, looked up in the live tables and fused into one order.

A reference is served only when its row is there, holds, may be seen and is what the answer is
narrowed to. Ranks are counted among what is left, so nothing can be told of the rest.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from itertools import islice

from .candidates import Narrowing
from .layered import (
    CANDIDATES,
    DocumentTarget,
    Finding,
    Layers,
    RankedList,
    RefTarget,
    RowTarget,
    Target,
)
from .liveness import active_sql
from .mapping import Mapping, Source
from .models import Candidate, Key, LayerHit, RankKey
from .ranking import RANK_CONSTANT, reciprocal_rank_fusion
from .reading import Reader, as_text, equals, quote_identifier
from .references import conditions, readings
from .schema import Schema
from .timestamps import age_of
from .topical import Question, in_words, singular

ItemKey = tuple[int, Key]
"""The source of an item and its id."""


@dataclass(frozen=True)
class Beside:
    """The items that other layers found, in fused order, with why, and with the piece of the text
    of each that was found."""

    candidates: list[Candidate] = field(default_factory=list)
    hits: dict[ItemKey, tuple[LayerHit, ...]] = field(default_factory=dict)
    pieces: dict[ItemKey, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Looked:
    """How findings are looked up: in what is to be seen of a database, with what is asked, without
    the items that are ``taken`` already."""

    reader: Reader
    mapping: Mapping
    question: Question
    narrowing: Narrowing
    taken: Container[ItemKey]
    known: dict[tuple[Target, bool], Candidate | None] = field(default_factory=dict)

    def kept(self, ranked: RankedList) -> Iterator[tuple[ItemKey, Finding, Candidate]]:
        """What of a list may be served, each item once."""
        seen: set[ItemKey] = set()
        for finding in ranked.found:
            found = self._candidate(finding)
            if found is None or not self.narrowing.admits(found):
                continue
            key = found.key[2:]
            if key not in seen and key not in self.taken:
                seen.add(key)
                yield key, finding, found

    def _candidate(self, finding: Finding) -> Candidate | None:
        asked = finding.target, finding.is_admitted
        if asked not in self.known:
            self.known[asked] = self._found(finding)
        return self.known[asked]

    def _found(self, finding: Finding) -> Candidate | None:
        for source, condition, values in _places(self.mapping, finding.target):
            texts = ("null",) if finding.is_admitted else (source.title, *source.searched)
            for id_, created, project, type_, *found in self.reader.rows(
                f"select {source.id}, {source.created}, {source.project_id}, {source.source_type},"
                f" {', '.join(texts)} from {source.rows} where {condition} and {active_sql(source)}"
                " limit 1",
                *values,
            ):
                if finding.is_admitted or _is_topical(self.question, found):
                    place = RankKey(0, age_of(created), source.order, id_)
                    return Candidate(place, type_, project, 0)
        return None


def beside(looked: Looked, layers: Layers, k: float = RANK_CONSTANT) -> Beside:
    """What layers found as one order, behind everything that concepts found."""
    kept = [list(islice(looked.kept(ranked), CANDIDATES)) for ranked in layers.lists]
    candidates = {key: found for each in kept for key, _, found in each}
    fused = reciprocal_rank_fusion(
        [[key for key, _, _ in each] for each in kept],
        [ranked.weight for ranked in layers.lists],
        k,
        tie=lambda key: (key[0], isinstance(key[1], str), key[1]),
    )
    hits: dict[ItemKey, tuple[LayerHit, ...]] = {}
    pieces: dict[ItemKey, int] = {}
    for ranked, each in zip(layers.lists, kept, strict=True):
        for rank, (key, finding, _) in enumerate(each, 1):
            hit = LayerHit(ranked.layer, rank, finding.words, finding.similarity)
            hits[key] = (*hits.get(key, ()), hit)
            if finding.passage is not None:
                pieces.setdefault(key, finding.passage)
    ordered = [
        candidates[key]._replace(key=RankKey(0, n, *key)) for n, (key, _) in enumerate(fused, 1)
    ]
    return Beside(ordered, hits, pieces)


def is_live(reader: Reader, mapping: Mapping, target: Target) -> bool:
    """Whether what a reference names is there and holds."""
    return any(
        reader.rows(
            f"select 1 from {source.rows} where {condition} and {active_sql(source)} limit 1",
            *values,
        )
        for source, condition, values in _places(mapping, target)
    )


def is_there(reader: Reader, schema: Schema, target: RowTarget) -> bool:
    """Whether there is a row of any table."""
    table = schema.get(target.table)
    if table is None:
        return False
    columns = [quote_identifier(column) for column in table.primary_key]
    if target.is_rowid or len(columns) != len(target.key):
        columns = [table.rowid] if table.rowid and len(target.key) == 1 else []
    if not columns:
        return False
    condition, values = equals(columns, target.key)
    sql = f"select 1 from {quote_identifier(table.name)} where {condition} limit 1"
    return bool(reader.rows(sql, *values))


def _places(mapping: Mapping, target: Target) -> Iterator[tuple[Source, str, list[object]]]:
    """Where the row of a reference may be, as a condition over the items of a source."""
    match target:
        case DocumentTarget(id_):
            for source in mapping.sources:
                if source.passage is not None:
                    yield source, "i.id = ?", [id_]
        case RowTarget(table, key, False):
            for source in mapping.sources:
                columns, expressions = source.key_in(table)
                if source.item_table == table and len(columns) == len(key):
                    condition, values = equals(expressions, key)
                    yield source, condition, values
        case RefTarget(ref):
            for source, named in readings(mapping, ref):
                for condition, values in conditions(source, named):
                    yield source, condition, values


def _is_topical(question: Question, texts: list[object]) -> bool:
    """Whether one of the texts has a topical word of the question, in whatever number."""
    words = {singular(word) for text in texts for word in in_words(as_text(text)).split()}
    return any(singular(word) in words for word in question.topical)
