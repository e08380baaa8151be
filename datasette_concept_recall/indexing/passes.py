"""When a source has its turn and for how long: shares, passes, and the queue with its back lane."""

from __future__ import annotations

import logging
from collections import deque
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .clock import Clock

log = logging.getLogger("datasette_concept_recall.indexing")

SHARE_SECONDS = 300.0
MAILS_PER_SHARE = 500


class Outcome(Enum):
    """How a step of a source ended."""

    DONE = "done"
    """It got through everything."""
    MORE_TO_DO = "more to do"
    """The share was used up, or a pause began: the pass goes on later."""
    FAILED = "failed"
    """It got through everything, but some documents failed."""
    HELD = "held"
    """It got through everything but the removal of so many documents that it needs approval."""
    UNREACHABLE = "unreachable"
    """The source as a whole could not be read."""
    REFUSED = "refused"
    """It was not started: the embedder may not see this source, or there is none to be had."""
    ABORTED = "aborted"
    """The index could not be written, or the embedder failed for everything."""
    CANCELLED = "cancelled"
    """Somebody stopped it."""


class Share:
    """What one step may take: so many seconds, and so many documents read.

    It is asked before every document, of which the first is always allowed, so that every step
    gets on. ``seconds`` None is no limit.
    """

    def __init__(
        self, clock: Clock, seconds: float | None = SHARE_SECONDS, reads: int | None = None
    ) -> None:
        self._clock, self._seconds, self._reads = clock, seconds, reads
        self._began = self._asked = clock.monotonic()
        self._warned = self._got_on = False

    def begin(self) -> None:
        """The listing is done, which is not counted; the time begins."""
        self._began = self._asked = self._clock.monotonic()

    def allows_another(self) -> bool:
        """Whether another document may be begun."""
        now = self._clock.monotonic()
        if self._seconds is None:
            return self._reads is None or self._reads > 0
        if now - self._asked > 2 * self._seconds and not self._warned:
            self._warned = True
            log.warning("A step took %.0f seconds without asking to go on", now - self._asked)
        self._asked = now
        has_time = not self._got_on or now - self._began < self._seconds
        return has_time and (self._reads is None or self._reads > 0)

    def note_progress(self) -> None:
        """The step got on, so that it may end when its time is over."""
        self._got_on = True

    def note_read(self) -> None:
        """A document was read, with success or without."""
        self.note_progress()
        if self._reads is not None:
            self._reads -= 1


@dataclass
class Pass:
    """What the steps of one source know of each other until one of them is done.

    ``failed`` documents are not read again in it, and of each kind of failure of the embedder the
    user is ``told`` once. With ``verify`` the content of every document is compared, but for those
    that were ``seen``.
    """

    failed: dict[bytes, str] = field(default_factory=dict)
    told: set[str] = field(default_factory=set)
    verify: bool = False
    seen: set[bytes] = field(default_factory=set)


class Ask(NamedTuple):
    """A request to look at a source."""

    source_id: int
    reason: str


class Queue:
    """Which source has its turn next. One is active at a time.

    A source is queued at most once, and while it is active at most one follow-up of it is pending,
    with the reason that was given first. Follow-ups of a pass that has more to do wait in the back
    lane, behind every source that begins a pass.
    """

    def __init__(self) -> None:
        self._front: deque[Ask] = deque()
        self._back: deque[Ask] = deque()
        self._pending: dict[int, Ask] = {}
        self.active: int | None = None

    def __len__(self) -> int:
        return len(self._front) + len(self._back)

    def ask(self, source_id: int, reason: str) -> bool:
        """Asks for a run; False when one was asked for already."""
        ask = Ask(source_id, reason)
        if source_id == self.active:
            return self._pending.setdefault(source_id, ask) is ask
        if self.is_queued(source_id):
            return False
        self._front.append(ask)
        return True

    def is_queued(self, source_id: int) -> bool:
        """Whether a source waits in one of the lanes."""
        return any(each.source_id == source_id for each in (*self._front, *self._back))

    def next(self) -> Ask | None:
        """The next one, which is active from now on until it is `finished`."""
        if self.active is not None:
            return None
        lane = self._front or self._back
        if not lane:
            return None
        ask = lane.popleft()
        self.active = ask.source_id
        return ask

    def finished(self, outcome: Outcome) -> None:
        """The active step ended; a follow-up takes its place at the end of a lane."""
        source_id, self.active = self.active, None
        assert source_id is not None
        pending = self._pending.pop(source_id, None)
        if outcome is Outcome.MORE_TO_DO:
            self._back.append(pending or Ask(source_id, "continuation"))
        elif pending:
            self._front.append(pending)

    def drop(self, source_id: int) -> None:
        """Forgets all that was asked of a source."""
        self._front = deque(ask for ask in self._front if ask.source_id != source_id)
        self._back = deque(ask for ask in self._back if ask.source_id != source_id)
        self._pending.pop(source_id, None)
