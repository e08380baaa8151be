"""When a source is looked at by itself, by the wall clock."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

FIRST_ROUND_SECONDS = 60.0
RETRY_SECONDS = (60.0, 120.0, 240.0, 480.0)
"""After a source could not be reached it is tried again so much later, then only in its rounds."""
SLEPT_SECONDS = 660.0
"""A longer time between two checks is no step of another source any more."""
EARLY_SECONDS = 1.0
"""A check that comes so much too early counts as in time."""


@dataclass
class Rounds:
    """The rounds of one source: every ``interval`` seconds, ``check_period`` apart at most asked.

    `is_due` is asked regularly. A clock that is set back delays a round by one interval at most,
    and after a gap in the asking (the machine slept) retries begin anew.
    """

    interval: float
    began: datetime
    check_period: float = 1.0

    def __post_init__(self) -> None:
        self._next = self.began + timedelta(seconds=min(self.interval, FIRST_ROUND_SECONDS))
        self._retry: datetime | None = None
        self._retries = 0
        self._asked = self.began

    @property
    def next(self) -> datetime:
        """When the source is looked at next."""
        return min(self._next, self._retry) if self._retry else self._next

    def is_due(self, now: datetime) -> bool:
        """Whether it is time for a round or a retry, which begins the time to the next one."""
        if abs((now - self._asked).total_seconds()) > max(2 * self.check_period, SLEPT_SECONDS):
            self._retries = 0
        self._asked = now
        interval = timedelta(seconds=self.interval)
        self._next = min(self._next, now + interval)  # the clock was set back
        early = timedelta(seconds=EARLY_SECONDS)
        if self._next <= now + early:
            while self._next <= now + early:
                self._next += interval
            self._retry = None
            return True
        if self._retry and self._retry <= now + early:
            self._retry = None
            return True
        return False

    def reached(self) -> None:
        """The source was read, so that the next failure is the first again."""
        self._retry, self._retries = None, 0

    def unreachable(self, now: datetime) -> None:
        """The source could not be reached."""
        if self._retries < len(RETRY_SECONDS):
            self._retry = now + timedelta(seconds=RETRY_SECONDS[self._retries])
            self._retries += 1
        else:
            self._retry = None
