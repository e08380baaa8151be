"""What a kind of source is: the class that other plugins extend to bring in more."""

from __future__ import annotations

from collections.abc import Callable

from ..document_run import Reader
from ..passes import Outcome
from ..source_run import SourceRun
from ..store import SourceRow

AskForRun = Callable[[str], None]
"""Called with a reason when a source may have changed; from any thread, as often as it likes."""


class SourceIndexer:
    """Indexes all sources of one kind. The service decides when, an indexer how.

    A subclass names its ``kind`` and says in `open` how to read one; that is all that most need.
    ``searchable_at_once`` is for sources of which a part is of use: what is done is found before
    the first pass is through. With ``removes_later`` what is gone is removed one run later.
    ``reads_per_share`` limits how many documents a step reads, ``interval`` is how often a source
    is looked at (seconds, by the wall clock), ``signature`` what besides size and embedder decides
    what its index holds.
    """

    kind = ""
    searchable_at_once = False
    removes_later = False
    reads_per_share: int | None = None
    interval = 600.0
    signature: tuple[str, ...] = ()

    def supports(self, source: SourceRow) -> bool:
        """Whether this indexer claims a source."""
        return source.kind == self.kind

    def open(self, source: SourceRow) -> Reader:
        """What reads the documents of a source. Raises `SourceUnreachable`."""
        raise NotImplementedError

    def process(self, run: SourceRun) -> Outcome:
        """Makes one step. It asks ``run.share`` before every document, and ``run.tools.stop``."""
        return run.work_through(self.open(run.source))

    def track_changes(self, source: SourceRow, ask: AskForRun) -> None:
        """Begins to tell of changes between the intervals, if that is possible."""

    def stop_tracking(self, source_id: int) -> None:
        """Ends that; returns when nothing will be told any more."""
