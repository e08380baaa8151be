"""What becomes of documents that a source does not list any more: moved, waiting, or removed."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from .documents import Known
from .failures import DocumentFailure
from .models import Entry

if TYPE_CHECKING:
    from .document_run import Reader
    from .source_run import SourceRun

MANY_GONE = 100
GONE_SHARE = 0.2
"""So many documents, and such a part of all, that are gone at once are kept until somebody approves
of their number: a folder may be on a disk that is not there."""


class Compared(NamedTuple):
    """What a run has to look at: of what is listed the ``entries``, what the index has ``known`` of
    these and of what is ``gone``, and how many documents it had before."""

    entries: dict[bytes, Entry]
    known: dict[bytes, Known]
    gone: dict[bytes, Known]
    all_known: int


def move(run: SourceRun, reader: Reader, compared: Compared) -> bool:
    """Documents whose content stands under another key now go on there as they are.

    False when the step is to end before all were looked for; the next one goes on.
    """
    entries, known, gone, _ = compared
    if not gone:
        return True
    any_moved = False
    by_size: dict[int | None, dict[str | None, Known]] = {}
    for each in gone.values():
        if each.generation_id is not None and not each.lacks_vectors:
            by_size.setdefault(each.size, {})[each.content_hash] = each
    for entry in entries.values():
        if entry.key in known or entry.size not in by_size:
            continue
        if run.tools.stop():
            return False
        if not run.share.allows_another():
            return not any_moved
        run.share.note_progress()
        try:
            content = reader.read(entry).content_hash
        except DocumentFailure:
            continue  # it is told of when it is its turn
        moved = by_size[entry.size].pop(content, None)
        if moved is None:
            continue
        run.generations.refresh(moved, run.version, entry)
        del gone[moved.key], known[moved.key]
        known[entry.key] = moved._replace(key=entry.key, fingerprint=entry.fingerprint)
        any_moved = True
    return True


def remove(run: SourceRun, compared: Compared) -> bool:
    """Removes what is gone; whether that waits for approval."""
    gone, all_known = compared.gone, compared.all_known
    removed = [each for each in gone.values() if each.is_orphaned or not run.removes_later]
    orphaned = [each.document_id for each in gone.values() if each not in removed]
    if orphaned:
        run.documents.mark(orphaned=orphaned, run_id=run.run_id)
    count = len(removed)
    is_much = count >= MANY_GONE and count >= GONE_SHARE * all_known
    if is_much and count != run.source.approved_removals:
        if count != run.source.held_removals:
            run.store.hold_removals(run.source.id, count)
        return True
    if run.source.held_removals:
        run.store.hold_removals(run.source.id, 0)
    if removed:
        run.documents.remove([each.document_id for each in removed])
        run.counts.removed += count
    return False
