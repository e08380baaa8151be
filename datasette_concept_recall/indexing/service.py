"""Decides when which source is indexed, one at a time, and sees to what a run needs."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..matching import ConceptMatcher
from ..rendering import DEFAULT_RENDERING, Rendering
from .clock import Clock, SystemClock
from .document_run import Tools
from .documents import Documents
from .embedding import Embedder
from .failures import DocumentFailure, SourceUnreachable
from .ids import DEFAULT_TOKENS, WITHOUT_EMBEDDER, effective_size, signature
from .linking import link_new_names, names_of
from .models import Size
from .passes import SHARE_SECONDS, Ask, Outcome, Pass, Queue, Share
from .rounds import Rounds
from .source_run import SourceRun
from .sources.base import SourceIndexer
from .store import Counts, SourceRow, State, Store, StoreUnavailable
from .troubles import Troubles
from .turns import Turn
from .versions import Version, Versions

log = logging.getLogger("datasette_concept_recall.indexing")

BY_USER = frozenset({"added", "retry", "verify", "approve", "run"})
"""Reasons that begin a pass anew and are heard even where a source has to be repaired."""

_STATES: dict[Outcome, State] = {
    Outcome.DONE: "done",
    Outcome.MORE_TO_DO: "waiting",
    Outcome.FAILED: "failed",
    Outcome.HELD: "held",
    Outcome.UNREACHABLE: "unreachable",
    Outcome.REFUSED: "refused",
    Outcome.ABORTED: "failed",
    Outcome.CANCELLED: "waiting",
}
_THROUGH = (Outcome.DONE, Outcome.FAILED, Outcome.HELD)
"""After these every document had its turn."""


_NOTE_SECONDS = 0.5
_LOOK_SECONDS = 0.25


@dataclass
class Progress:
    """What is told of a run while it goes on."""

    source: SourceRow
    counts: Counts


class Service:
    """Keeps one index in line with its sources.

    It belongs to one thread; only `ask`, `stop` and what trackers call may come from others.
    ``embedder`` is None for an index without vectors, and ``embedder_problem`` says why one that
    is configured cannot be had. ``rendering`` is what of a record is embedded, ``knowledge`` are
    databases whose concepts are looked for in all texts. ``progressed`` is called after each
    document, ``told`` with messages for the user.
    """

    def __init__(
        self,
        store: Store,
        indexers: Sequence[SourceIndexer],
        *,
        embedder: Embedder | None = None,
        embedder_problem: str | None = None,
        rendering: Rendering = DEFAULT_RENDERING,
        knowledge: Iterable[Path] = (),
        clock: Clock | None = None,
        share_seconds: float | None = SHARE_SECONDS,
        progressed: Callable[[Progress], None] = lambda progress: None,
        told: Callable[[str], None] = log.warning,
    ) -> None:
        self.store, self.queue = store, Queue()
        self._indexers, self._embedder = indexers, embedder
        self._embedder_problem, self._rendering = embedder_problem, rendering
        self._knowledge = tuple(knowledge)
        self.clock = clock or SystemClock()
        self._share_seconds = share_seconds
        self._progressed, self.tell = progressed, told
        self._turn = Turn(store.path)
        self._passes: dict[int, Pass] = {}
        self.rounds: dict[int, Rounds] = {}
        self._broken: dict[int, str] = {}
        self._inbox: deque[Ask] = deque()
        self._woken = threading.Event()
        self._stopping = threading.Event()
        self._names: frozenset[str] | None = None
        self._matcher = ConceptMatcher(())
        self._noted_at = self._looked_at = float("-inf")
        self._is_paused = False

    # -- asking -----------------------------------------------------------------------------------

    def ask(self, source_id: int, reason: str) -> None:
        """Asks that a source be looked at; from any thread."""
        self._inbox.append(Ask(source_id, reason))
        self._woken.set()

    def ask_all(self, reason: str) -> None:
        """Asks that every source be looked at; all are shown as queued before the first begins."""
        for source in self.store.sources():
            self.ask(source.id, reason)
        if not self.store.is_paused():
            self._take_inbox()

    def stop(self) -> None:
        """Ends the running step, and what keeps the index fresh, soon; from any thread."""
        self._stopping.set()
        self._woken.set()

    def wait(self, seconds: float) -> None:
        """Returns after so many seconds, or when something is asked or `stop` was called."""
        self._woken.wait(seconds)
        self._woken.clear()

    @property
    def is_stopping(self) -> bool:
        """Whether `stop` was called."""
        return self._stopping.is_set()

    def _take_inbox(self) -> None:
        while self._inbox:
            ask = self._inbox.popleft()
            source = self.store.source(ask.source_id)
            if source is None or source.is_leaving:
                continue
            if ask.reason in BY_USER:
                self._passes[source.id] = Pass(verify=self._verifies(source.id, ask.reason))
                self._broken.pop(source.id, None)
                if ask.reason == "retry":
                    Troubles(self.store).forgive(source.id)
            elif source.id in self._broken:
                continue
            if self.queue.ask(source.id, ask.reason) and source.id != self.queue.active:
                self.store.set_state(source.id, "queued", source.problem)

    def _verifies(self, source_id: int, reason: str) -> bool:
        """Whether a pass compares contents: it is asked to, or one that waits was."""
        waiting = self._passes.get(source_id) if self.queue.is_queued(source_id) else None
        return reason == "verify" or (waiting is not None and waiting.verify)

    def _take_requests(self) -> None:
        """What other programs asked for: the command line, or the page of the sources."""
        for action, source_id in self.store.take_requests():
            for source in self.store.sources():
                if source_id in (None, source.id):
                    self.ask(source.id, action)

    # -- running ----------------------------------------------------------------------------------

    def run_next(self) -> tuple[SourceRow, Outcome] | None:
        """Makes the next step; None when there is none to be made, or everything is paused.

        Raises `Busy` when another program works on the index.
        """
        if self.is_stopping or self.store.is_paused():
            return None
        self._take_requests()
        self._take_inbox()
        leaving = [each for each in self.store.sources() if each.is_leaving]
        if not len(self.queue) and not leaving:
            return None
        with self._turn.taken():
            if self.store.is_paused():  # since the moment before
                return None
            for each in leaving:  # whoever removes them waits, or was killed
                self.store.remove_source(each.id)
                self.forget(each.id)
            ask = self.queue.next()
            if ask is None:
                return None
            outcome = Outcome.ABORTED
            try:
                source = self.store.source(ask.source_id)
                if source is not None:
                    outcome = self._step(source, ask.reason)
            finally:
                self.queue.finished(outcome)
        return self.run_next() if source is None else (source, outcome)

    def forget(self, source_id: int) -> None:
        """Forgets all that was asked of a source that is gone."""
        self.queue.drop(source_id)
        self._passes.pop(source_id, None)
        self._broken.pop(source_id, None)

    def run_all(self) -> list[tuple[SourceRow, Outcome]]:
        """Makes steps until none is left, each source's share in its turn."""
        made = []
        while (step := self.run_next()) is not None:
            made.append(step)
        return made

    def indexer_of(self, source: SourceRow) -> SourceIndexer | None:
        """Who claims a source."""
        return next((each for each in self._indexers if each.supports(source)), None)

    def _step(self, source: SourceRow, reason: str) -> Outcome:
        indexer = self.indexer_of(source)
        if indexer is None:
            return self._refuse(
                source, f"Nothing that is installed reads sources of the kind {source.kind}"
            )
        problem = self._objection(source)
        if problem:
            return self._refuse(source, problem)
        pass_ = self._passes.setdefault(source.id, Pass())
        version = self._version(source, indexer)
        run_id = self.store.begin_run(source.id, reason)
        self._looked_at = float("-inf")  # what was said to the step before is not for this one
        run = self._run(source, indexer, version, run_id, pass_)
        outcome, said = self._process(indexer, run)
        if outcome is not Outcome.MORE_TO_DO:
            self._passes.pop(source.id, None)
        self._end(run, outcome, said)
        return outcome

    def _refuse(self, source: SourceRow, problem: str) -> Outcome:
        self._passes.pop(source.id, None)
        if problem != source.problem:
            self.tell(f"{source.name} is not indexed: {problem}")
        self.store.set_state(source.id, "refused", problem)
        return Outcome.REFUSED

    def _objection(self, source: SourceRow) -> str | None:
        """Why a run may not begin. Confidence is looked at each time, since it may change."""
        if self._embedder_problem:
            return self._embedder_problem
        if self._embedder and self._embedder.is_remote and source.confidence == "local":
            return f"Nothing of it may leave this machine, and {self._embedder.name} is remote"
        return None

    def _size(self, source: SourceRow) -> tuple[Size, str]:
        identity = self._embedder.identity if self._embedder else WITHOUT_EMBEDDER
        options = source.options
        limit = int(options.get("chunk_size", 0))
        if identity.token_limit and self._rendering != "statement":
            largest = min(identity.token_limit, DEFAULT_TOKENS) * 3 // 4  # the rest is for context
            limit = min(limit or largest, largest)
        size = effective_size(identity, limit, options.get("chunk_overlap"))
        count = self._embedder.count_tokens if self._embedder and identity.token_limit else None
        more = (f"rendering:{self._rendering}",) if self._embedder else ()
        mark = signature(identity, size, *more, *self._signature_of(source))
        return Size(size.limit, size.overlap, count), mark

    def _signature_of(self, source: SourceRow) -> tuple[str, ...]:
        indexer = self.indexer_of(source)
        return indexer.signature if indexer else ()

    def _version(self, source: SourceRow, indexer: SourceIndexer) -> Version:
        """The version to work on: the live one if it is of the current signature, else one beside
        it, which is searched once it is whole."""
        _, current = self._size(source)
        known = Versions(self.store)
        versions = {each.state: each for each in known.of(source.id)}
        live, building = versions.get("live"), versions.get("building")
        if live and live.signature == current:
            if building:
                known.drop(building.id)
            known.drop_orphan_vectors(live)
            return live
        if building and building.signature == current:
            return building
        embedder = self._embedder.identity.name if self._embedder else None
        at_once = live is None and indexer.searchable_at_once
        return known.begin(source.id, current, embedder, "live" if at_once else "building")

    def _run(
        self,
        source: SourceRow,
        indexer: SourceIndexer,
        version: Version,
        run_id: int,
        pass_: Pass,
    ) -> SourceRun:
        size, _ = self._size(source)
        share = Share(self.clock, self._share_seconds, indexer.reads_per_share)

        def progressed(counts: Counts) -> None:
            now = self.clock.monotonic()
            if now - self._noted_at >= _NOTE_SECONDS or now < self._noted_at:
                self._noted_at = now
                self.store.note_progress(run_id, counts)
            self._progressed(Progress(source, counts))

        return SourceRun(
            store=self.store,
            source=source,
            version=version,
            run_id=run_id,
            tools=Tools(
                size,
                self._embedder,
                self._rendering,
                self._known,
                lambda: self._must_stop(source.id),
            ),
            share=share,
            pass_=pass_,
            removes_later=indexer.removes_later,
            told=self.tell,
            progressed=progressed,
        )

    def _must_stop(self, source_id: int) -> bool:
        """Whether the step is to end. What other programs say is looked up a few times a second."""
        if self.is_stopping:
            return True
        now = self.clock.monotonic()
        if now - self._looked_at >= _LOOK_SECONDS or now < self._looked_at:
            self._looked_at = now
            self._is_paused = self.store.is_paused() or self.store.is_leaving(source_id)
        return self._is_paused

    def _known(self) -> ConceptMatcher:
        """Knows all names of concepts: of the index, and of the configured databases."""
        if self._names is None:
            self._learn()
        return self._matcher

    def _learn(self) -> None:
        names, problems = names_of(self._knowledge)
        for problem in problems:
            self.tell(problem)
        self.store.learn(names)
        known = frozenset(name for _, name in self.store.known_names())
        if known != self._names:
            self._names, self._matcher = known, ConceptMatcher(known)

    def _process(self, indexer: SourceIndexer, run: SourceRun) -> tuple[Outcome, str | None]:
        source = run.source
        try:
            outcome = indexer.process(run)
            if outcome is Outcome.MORE_TO_DO and self.is_stopping:
                outcome = Outcome.CANCELLED
            return outcome, _said(run, outcome)
        except (SourceUnreachable, DocumentFailure) as error:
            if source.id in self.rounds:
                self.rounds[source.id].unreachable(self.clock.now())
            return Outcome.UNREACHABLE, str(error)
        except (StoreUnavailable, sqlite3.DatabaseError) as error:
            if _is_damage(error):
                self._broken[source.id] = str(error)
            self.tell(f"The index of {source.name} is left as it is: {error}")
            return Outcome.ABORTED, str(error)
        except Exception as error:  # whatever the code of another plugin raises
            log.exception("The indexer of %s broke", source.name)
            problem = f"Its indexer broke: {type(error).__name__}: {error}"
            self.tell(f"{source.name}: {problem}")
            return Outcome.ABORTED, problem

    def _end(self, run: SourceRun, outcome: Outcome, said: str | None) -> None:
        source = run.source
        if self.store.is_leaving(source.id):
            return
        try:
            if outcome in _THROUGH:
                if source.id in self.rounds:
                    self.rounds[source.id].reached()
                self._finish(run)
            state: State = "broken" if source.id in self._broken else _STATES[outcome]
            self.store.end_run(run.run_id, run.counts, outcome.value)
            self.store.set_state(source.id, state, said)
        except (StoreUnavailable, sqlite3.DatabaseError) as error:
            self.tell(f"The end of a run could not be noted: {error}")

    def _finish(self, run: SourceRun) -> None:
        """After a run that got through: the built version is shown, and new names are linked."""
        if run.version.state == "building":
            Versions(self.store).flip(run.version)
        if self._knowledge:
            self._learn()
        for source in self.store.sources():
            if source.id == run.source.id:
                link_new_names(self.store, source, lambda: self.is_stopping)
        changed = run.counts.indexed + run.counts.removed
        if changed:
            Documents(self.store).tidy(changed)
            self._names = None  # to be read again, with what was learned


def _said(run: SourceRun, outcome: Outcome) -> str | None:
    """What there is to say of a run that came to its end."""
    said = list(run.problems[:5])
    if outcome is Outcome.HELD:
        source = run.store.source(run.source.id)
        count = source.held_removals if source else 0
        said.append(f"{count} documents are gone; they are kept until the removal is approved")
    if outcome is Outcome.ABORTED:
        said.append(f"{run.counts.failed} documents failed, so the run was given up")
    elif run.counts.failed:
        said.append(f"{run.counts.failed} documents could not be indexed; they are tried again")
    return "; ".join(said) or None


def _is_damage(error: Exception) -> bool:
    return any(word in str(error) for word in ("malformed", "not a database", "disk image"))
