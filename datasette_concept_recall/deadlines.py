"""Calls of code that may take for ever, for those who cannot wait so long."""

from __future__ import annotations

import threading
from collections.abc import Callable
from time import perf_counter
from typing import Generic, TypeVar

T = TypeVar("T")

AT_ONCE = 4
"""So many calls are under way at once; others wait for their turn as long as they have time."""


class TooLate(Exception):
    """A call took longer than it had, or was not made since earlier ones did; it may still end."""


class InTime(Generic[T]):
    """Calls functions in threads of their own, and waits no longer than it is told to."""

    def __init__(self) -> None:
        self._running = threading.Semaphore(AT_ONCE)

    def call(self, function: Callable[[], T], seconds: float) -> T:
        """What a function returns or raises. Raises `TooLate`."""
        returned: list[T] = []
        raised: list[BaseException] = []
        done = threading.Event()

        def run() -> None:
            try:
                returned.append(function())
            except BaseException as error:
                raised.append(error)
            finally:
                self._running.release()
                done.set()

        started = perf_counter()
        if not self._running.acquire(timeout=seconds):
            raise TooLate("it has not answered earlier questions yet")
        try:
            threading.Thread(target=run, name="concept-recall-in-time", daemon=True).start()
        except RuntimeError as error:  # the machine has no thread left
            self._running.release()
            raise TooLate(str(error)) from error
        if not done.wait(seconds - (perf_counter() - started)):
            raise TooLate(f"it took longer than {seconds * 1000:.0f} ms")
        if raised:
            raise raised[0]
        return returned[0]
