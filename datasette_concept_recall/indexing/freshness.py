"""Keeps an index fresh for as long as it is let: by watching, in rounds, and on request."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable

from ..errors import DatabaseUnreadable, RecallError
from .clock import stamp
from .rounds import Rounds
from .service import Service
from .sources.base import SourceIndexer
from .store import SourceRow, StoreUnavailable
from .turns import Busy

LOOK_SECONDS = 0.5
_BUSY_SECONDS = 1.0


def keep(
    service: Service, *, watch: bool = True, until: Callable[[], bool] = lambda: False
) -> None:
    """Looks at every source, then keeps all fresh until the service is told to `stop`, or between
    two steps ``until`` says that it is over.

    Trackers begin when every source was looked at once. Raises `DatabaseUnreadable` when the file
    of the index is another one or gone, and nothing that ends by itself.
    """
    _Freshness(service, watch, until).keep()


class _Freshness:
    def __init__(self, service: Service, watch: bool, until: Callable[[], bool]) -> None:
        self._service, self._watch, self._until = service, watch, until
        self._tracked: dict[int, SourceIndexer] = {}

    def keep(self) -> None:
        service = self._service
        self._guarded(lambda: service.ask_all("start"))
        self._work()
        try:
            while not self._is_over():
                if service.store.is_replaced():
                    raise DatabaseUnreadable(f"{service.store.path} is another file now, or gone")
                self._guarded(self._track)
                self._work()
                service.wait(LOOK_SECONDS)
        finally:
            for source_id, indexer in self._tracked.items():
                indexer.stop_tracking(source_id)

    def _work(self) -> None:
        """Makes steps until there is none to be made."""
        while not self._is_over():
            try:
                self._ask_due()
                self._ask_added()
                if self._service.run_next() is None:
                    return
            except Busy:
                self._service.wait(_BUSY_SECONDS)
            except (StoreUnavailable, sqlite3.DatabaseError) as error:
                self._unusable(error)
                return

    def _is_over(self) -> bool:
        return self._service.is_stopping or self._until()

    def _guarded(self, action: Callable[[], None]) -> None:
        try:
            action()
        except (StoreUnavailable, sqlite3.DatabaseError) as error:
            self._unusable(error)

    def _unusable(self, error: Exception) -> None:
        self._service.tell(f"The index cannot be used at the moment: {error}")
        self._service.wait(_BUSY_SECONDS)

    def _track(self) -> None:
        """Begins to track sources that were added, and ends it for those that were removed."""
        service = self._service
        sources = {each.id: each for each in service.store.sources() if not each.is_leaving}
        for source_id in [each for each in self._tracked if each not in sources]:
            self._tracked.pop(source_id).stop_tracking(source_id)
            service.rounds.pop(source_id, None)
            service.forget(source_id)
        for source in sources.values():
            indexer = service.indexer_of(source)
            if source.id in self._tracked or indexer is None:
                continue
            self._tracked[source.id] = indexer
            now = service.clock.now()
            service.rounds[source.id] = Rounds(indexer.interval, now, check_period=LOOK_SECONDS)
            if self._watch:
                self._begin_tracking(indexer, source)

    def _begin_tracking(self, indexer: SourceIndexer, source: SourceRow) -> None:
        try:
            indexer.track_changes(source, lambda reason: self._service.ask(source.id, reason))
        except RecallError as error:
            self._service.tell(f"{source.name} is looked at in rounds only: {error}")

    def _ask_added(self) -> None:
        """Asks for sources that were added since the last step: what another has more to do comes
        behind them."""
        for source in self._service.store.sources():
            if source.state == "new":
                self._service.ask(source.id, "added")

    def _ask_due(self) -> None:
        service = self._service
        for source_id, rounds in service.rounds.items():
            if rounds.is_due(service.clock.now()):
                service.ask(source_id, "round")
            moment = stamp(rounds.next)
            source = service.store.source(source_id)
            if source and source.next_run_at != moment and not service.store.is_paused():
                service.store.set_next_run(source_id, moment)
