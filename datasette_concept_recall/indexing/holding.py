"""What waits for the running step to end: a pause, and the removal of a source."""

from __future__ import annotations

from ..errors import RecallError
from .store import SourceRow, Store
from .turns import Busy, Turn

PATIENCE_SECONDS = 60.0
"""How long is waited for a running step; it stops between two chunks."""


def pause(store: Store, seconds: float = PATIENCE_SECONDS) -> None:
    """Holds everything that would write the index, when what is running has stopped. Raises `Busy`
    when that takes longer, and then nothing is paused."""
    store.set_setting("paused", True)
    try:
        with Turn(store.path).taken(seconds):
            pass
    except BaseException:
        store.set_setting("paused", False)
        raise


def resume(store: Store) -> None:
    """Ends a pause."""
    store.set_setting("paused", False)


def remove_source(store: Store, source: SourceRow, seconds: float = PATIENCE_SECONDS) -> None:
    """Removes a source with everything of it, after the end of a run that is under way.

    Raises `RecallError` during a pause, and `Busy` when the run does not end.
    """
    _refuse_while_paused(store)
    store.announce_removal(source.id)
    try:
        with Turn(store.path).taken(seconds, lambda: store.source(source.id) is None):
            _refuse_while_paused(store)
            store.remove_source(source.id)
    except Busy:
        if store.source(source.id) is not None:
            raise


def _refuse_while_paused(store: Store) -> None:
    if store.is_paused():
        raise RecallError("The index is paused; resume it before a source is removed")
