"""Where the time comes from: one clock is handed to everything that waits, counts or stamps."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import Protocol


class Clock(Protocol):
    """What the pipeline asks of a clock."""

    def now(self) -> datetime:
        """The wall clock, aware and in UTC; it may be set back."""

    def monotonic(self) -> float:
        """Seconds that only grow, from an arbitrary start."""


class SystemClock:
    """The clock of the machine."""

    def now(self) -> datetime:
        """The wall clock."""
        return datetime.now(timezone.utc)

    def monotonic(self) -> float:
        """Seconds since the machine started or so."""
        return time.monotonic()


def stamp(moment: datetime) -> str:
    """A moment as the index stores it: ISO 8601 in UTC, to the second."""
    return moment.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
