"""Records that a caller has at hand, as documents: what an index is built of to try something."""

from __future__ import annotations

import hashlib
from collections.abc import Container, Mapping

from ...rendering import RecordText, as_json
from ..failures import Unavailable, Unusable
from ..models import Entry, Extracted, Listing, Opened, Segment
from ..passes import Outcome
from ..source_run import SourceRun
from ..store import SourceRow
from .base import SourceIndexer

_LONGEST_TITLE = 200


class RecordSource:
    """Records by reference, one document each, in the order in which they are given.

    Those that are not ``active`` (None: all are) hold no longer. Nothing is copied, so what the
    caller changes in the mapping is seen by the next listing.
    """

    def __init__(
        self, records: Mapping[str, RecordText], active: Container[str] | None = None
    ) -> None:
        self._records, self._active = records, active

    def listing(self) -> Listing:
        """All records."""
        return Listing([self._entry(ref) for ref in self._records])

    def read(self, entry: Entry) -> Opened:
        """A record as it is now. Raises `Unavailable` when it is gone."""
        record = self._records.get(entry.path)
        if record is None:
            raise Unavailable("not_found", f"The record {entry.path} is not there any more")
        return Opened(_content_hash(record), "row", lambda: _extracted(record), record=record)

    def fingerprint(self, entry: Entry) -> str | None:
        """That of a record as it is now; None when it is gone."""
        return self._entry(entry.path).fingerprint if entry.path in self._records else None

    def _entry(self, ref: str) -> Entry:
        record = self._records[ref]
        is_active = self._active is None or ref in self._active
        statement = (record.statement or "").strip()
        return Entry(
            key=ref.encode(),
            title=statement.partition("\n")[0][:_LONGEST_TITLE] or ref,
            fingerprint=f"{_content_hash(record)} {is_active}",
            path=ref,
            size=len(statement.encode("utf-8", "replace")),
            is_active=is_active,
        )


class RecordIndexer(SourceIndexer):
    """Indexes one set of records, whatever the origin of the source says.

    What is gone is removed without approval: who gives the records says what there is.
    """

    kind = "records"

    def __init__(self, source: RecordSource) -> None:
        self._source = source

    def open(self, source: SourceRow) -> RecordSource:
        """The records."""
        return self._source

    def process(self, run: SourceRun) -> Outcome:
        """Removes what is gone, then indexes what is new or changed."""
        reader = self.open(run.source)
        there = reader.listing().keys()
        stored = run.documents.fingerprints(run.version, run.documents.latest())
        known = run.documents.known(run.version, stored.keys() - there)
        gone = [each.document_id for each in known.values()]
        run.documents.remove(gone)
        run.counts.removed += len(gone)
        return run.work_through(reader)


def _extracted(record: RecordText) -> Extracted:
    statement = record.statement or ""
    if not statement.strip():
        raise Unusable("no_text", "The record says nothing")
    return Extracted("record", "plain", iter([Segment(statement)]))


def _content_hash(record: RecordText) -> str:
    """Of all that may be embedded of a record."""
    digest = hashlib.sha256()
    for part in (record.statement or "", as_json(record)):
        content = part.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "big"))
        digest.update(content)
    return digest.hexdigest()
