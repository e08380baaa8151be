"""How well the layers find what answers a question: measured on anybody's records and questions.

For each embedder and rendering an index is built as for any other source, in a folder that is
removed at the end, and asked as recall asks it. So the figures are those of what people get.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from statistics import median
from time import process_time
from typing import Literal

from .evaluation_data import JudgedQuestion, Questions, Records
from .evaluation_index import TimedEmbedder, TrialIndex, trial_index
from .indexing.embedding import Embedder
from .indexing.service import Progress, Service
from .indexing.sources.records import RecordSource
from .models import Mode
from .rendering import DEFAULT_RENDERING, Rendering
from .retrieval_metrics import (
    Interval,
    Scores,
    by_tier,
    paired_bootstrap,
    reciprocal_rank,
    scores,
    success_at,
)

MeasuredLayer = Literal["lexical", "semantic", "fused"]

_MODES: dict[MeasuredLayer, Mode] = {"lexical": "lexical", "semantic": "semantic", "fused": "auto"}


@dataclass(frozen=True)
class Configuration:
    """What answers: one of the two layers, or both fused, by vectors of an embedder from texts of
    a rendering. Both are None of the lexical layer."""

    layer: MeasuredLayer
    embedder: str | None = None
    rendering: Rendering | None = None

    def __str__(self) -> str:
        return ", ".join(filter(None, (self.layer, self.embedder, self.rendering)))


@dataclass(frozen=True)
class Gain:
    """The differences to the lexical layer alone, of the mean reciprocal rank and of the share of
    questions whose target comes first."""

    mrr: Interval
    top1: Interval


@dataclass(frozen=True)
class Cost:
    """What a configuration takes: seconds to ``embed`` all records, milliseconds of CPU for the
    median ``query``, and bytes for each record that holds, in the database and in memory. None of
    the lexical layer, which has no vectors."""

    query: float
    embed: float | None = None
    stored: float | None = None
    in_memory: float | None = None


@dataclass(frozen=True)
class Measured:
    """How a configuration did: over all questions that have an answer, and by ``tiers``. ``empty``
    is how many of these were left without any, ``refused`` how many without an answer were."""

    configuration: Configuration
    scores: Scores
    tiers: dict[str, Scores]
    empty: int
    refused: int
    gain: Gain | None
    cost: Cost


@dataclass(frozen=True)
class Evaluation:
    """What was measured, with how many records that hold and how many questions; ``warnings`` are
    sentences about what went wrong meanwhile."""

    records: int
    answerable: int
    unanswerable: int
    blank: int
    measured: tuple[Measured, ...]
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Watch:
    """Who follows an evaluation: ``told`` sentences, and ``progressed`` for each record."""

    told: Callable[[str], None] = lambda message: None
    progressed: Callable[[Progress], None] = lambda progress: None


def evaluate(
    records: Records,
    questions: Questions,
    embedders: Sequence[Embedder] = (),
    renderings: Sequence[Rendering] = (DEFAULT_RENDERING,),
    watch: Watch | None = None,
) -> Evaluation:
    """The lexical layer, then for each embedder and rendering the semantic one and both fused.

    Raises `RecallError` when an embedder has no vectors for the records.
    """
    judged = questions.judged
    asked = _Asked(records, judged, watch or Watch())
    base = asked.lexical()
    measured = [base.measured]
    for embedder in embedders:
        for rendering in renderings:
            measured += asked.by_vectors(embedder, rendering, base)
    answerable = sum(question.target is not None for question in judged)
    return Evaluation(
        len(records.active),
        answerable,
        len(judged) - answerable,
        questions.blank,
        tuple(measured),
        tuple(asked.warnings),
    )


@dataclass(frozen=True)
class _Ranked:
    """The rank of the target of each question that has one, and what came of all."""

    measured: Measured
    ranks: list[int | None]


@dataclass
class _Asked:
    """The questions while they are asked of one index after the other."""

    records: Records
    questions: tuple[JudgedQuestion, ...]
    watch: Watch
    warnings: list[str] = field(default_factory=list)

    def lexical(self) -> _Ranked:
        """The words alone."""
        with self._index(None, DEFAULT_RENDERING) as index:
            return self._ranked(Configuration("lexical"), index, Cost(0), None)

    def by_vectors(
        self, embedder: Embedder, rendering: Rendering, base: _Ranked
    ) -> Iterator[Measured]:
        """Both configurations of an embedder and a rendering."""
        timed = TimedEmbedder(embedder)
        with self._index(timed, rendering) as index:
            cost = Cost(0, timed.seconds, *index.bytes_a_record())
            for layer in ("semantic", "fused"):
                what = Configuration(layer, embedder.name, rendering)
                yield self._ranked(what, index.afresh(), cost, base).measured

    @contextmanager
    def _index(self, embedder: TimedEmbedder | None, rendering: Rendering) -> Iterator[TrialIndex]:
        name = "the words alone" if embedder is None else f"{embedder.name}, {rendering}"
        self.watch.told(f"Indexing {len(self.records.texts):,} records: {name}")
        source = RecordSource(self.records.texts, self.records.active)
        service = partial(Service, progressed=self.watch.progressed, told=self.watch.told)
        with trial_index(name, source, service, embedder, rendering) as index:
            yield index

    def _ranked(
        self, configuration: Configuration, index: TrialIndex, cost: Cost, base: _Ranked | None
    ) -> _Ranked:
        ranks: list[int | None] = []
        tiers: list[str] = []
        times: list[float] = []
        said: Counter[str] = Counter()
        empty = refused = 0
        for question in self.questions:
            started = process_time()
            found, warnings = index.answer(question.text, _MODES[configuration.layer])
            times.append(process_time() - started)
            said.update(warnings)
            if question.target is None:
                refused += not found
                continue
            empty += not found
            ranks.append(_rank(found, question.target))
            tiers.append(question.tier)
        self.warnings += (
            f"{configuration}: {warning} ({count} of {len(times)} questions)"
            for warning, count in said.items()
        )
        measured = Measured(
            configuration,
            scores(ranks),
            by_tier(ranks, tiers) if any(tiers) else {},
            empty,
            refused,
            _gain(ranks, base.ranks) if base else None,
            replace(cost, query=median(times) * 1000),
        )
        return _Ranked(measured, ranks)


def _rank(found: Sequence[str], target: str) -> int | None:
    return found.index(target) + 1 if target in found else None


def _gain(ranks: Sequence[int | None], base: Sequence[int | None]) -> Gain | None:
    if not ranks:
        return None
    mrr = paired_bootstrap([*map(reciprocal_rank, ranks)], [*map(reciprocal_rank, base)])
    first = [[float(success_at(rank, 1)) for rank in each] for each in (ranks, base)]
    return Gain(mrr, paired_bootstrap(*first))
