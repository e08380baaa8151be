"""Watching a folder: what happens in it only says that a run should be made soon.

A moved folder gives one event, a removed root none, and a missing one an error, so a watch is
begun anew whenever the root is not what it was, and the service rescans by itself besides.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

from .failures import missing

log = logging.getLogger("datasette_concept_recall.indexing")

DEBOUNCE_MILLISECONDS = 2_000
LOOK_MILLISECONDS = 2_000
RETRY_SECONDS = 10.0


class Watch:
    """A thread that calls ``ask`` with a reason after something changed below a folder."""

    def __init__(
        self,
        root: Path,
        ask: Callable[[str], None],
        *,
        debounce: int = DEBOUNCE_MILLISECONDS,
        look: int = LOOK_MILLISECONDS,
        retry: float = RETRY_SECONDS,
    ) -> None:
        """Times in milliseconds, ``retry`` in seconds. Raises `Unusable` without watchfiles."""
        try:
            import watchfiles  # noqa: F401
        except ImportError as error:
            raise missing("index", "Folders that are watched") from error
        self._root, self._ask = root, ask
        self._debounce, self._look, self._retry = debounce, look, retry
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"watch {root.name}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Ends the watch; nothing is asked after this."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        was_lost = False
        while not self._stop.is_set():
            try:
                if was_lost and self._root.exists():
                    self._ask("watch begun anew")
                was_lost = False
                self._watch()
            except (OSError, RuntimeError) as error:
                log.info("A folder cannot be watched at the moment: %s", error)
            was_lost = True
            self._stop.wait(self._retry)

    def _watch(self) -> None:
        """Returns when the root is another folder than the one that is watched."""
        from watchfiles import watch

        watched = _identity(self._root)
        for changes in watch(
            self._root,
            debounce=self._debounce,
            stop_event=self._stop,
            rust_timeout=self._look,
            yield_on_timeout=True,
            raise_interrupt=False,
        ):
            if self._stop.is_set():
                return
            if any(is_relevant(path, self._root) for _, path in changes):
                self._ask("changed")
            if _identity(self._root) != watched:
                return


def is_relevant(path: str, root: Path = Path("/")) -> bool:
    """Whether a change of a file may matter: hidden and temporary ones do not."""
    found = Path(path)
    parts = found.relative_to(root).parts if found.is_relative_to(root) else (found.name,)
    if any(part.startswith(".") for part in parts):
        return False
    return not found.name.startswith("~$") and not found.name.endswith(
        ("~", ".tmp", ".swp", ".part")
    )


def _identity(root: Path) -> tuple[int, int]:
    status = root.stat()
    return status.st_dev, status.st_ino
