"""The kinds of sources that come with the plugin."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

from ..index_mapping import is_index
from ..opening import opened
from ..reading import reading
from ..schema import read_schema
from .failures import SourceUnreachable
from .passes import MAILS_PER_SHARE
from .sources.base import AskForRun, SourceIndexer
from .sources.folder import FolderSource
from .sources.mailbox import MailboxSource
from .sources.rows import RowSource
from .store import SourceRow
from .watching import Watch

ROUND_OF_MAILBOXES = 16 * 60.0


class FolderIndexer(SourceIndexer):
    """Folders of files, which are watched. Options: lists ``include`` and ``exclude``."""

    kind = "folder"

    def __init__(self) -> None:
        self._watches: dict[int, Watch] = {}

    def open(self, source: SourceRow) -> FolderSource:
        """The files of the folder."""
        options = source.options
        return FolderSource(
            Path(source.origin),
            tuple(options.get("include", ())),
            tuple(options.get("exclude", ())),
        )

    def track_changes(self, source: SourceRow, ask: AskForRun) -> None:
        """Watches the folder. Raises `Unusable` without watchfiles."""
        self.stop_tracking(source.id)
        self._watches[source.id] = Watch(Path(source.origin), ask)

    def stop_tracking(self, source_id: int) -> None:
        """Ends the watch."""
        watch = self._watches.pop(source_id, None)
        if watch:
            watch.stop()


class MailboxIndexer(SourceIndexer):
    """Mailboxes in files: mbox, Maildir, and folders of them."""

    kind = "mailbox"
    searchable_at_once = True
    removes_later = True
    reads_per_share = MAILS_PER_SHARE
    interval = ROUND_OF_MAILBOXES
    signature = ("mail:1",)

    def open(self, source: SourceRow) -> MailboxSource:
        """The mails of the mailbox."""
        return MailboxSource(Path(source.origin))


class RowIndexer(SourceIndexer):
    """Rows of the tables of a SQLite database. Option: a list ``tables``."""

    kind = "rows"
    signature = ("rows:2",)

    def open(self, source: SourceRow) -> RowSource:
        """The rows of the tables."""
        tables = source.options.get("tables")
        return RowSource(Path(source.origin), dict.fromkeys(tables, "") if tables else None)


def built_in() -> list[SourceIndexer]:
    """One indexer of each kind."""
    return [FolderIndexer(), MailboxIndexer(), RowIndexer()]


class Added(NamedTuple):
    """A source as it is added: an absolute origin, and a name where none was given."""

    name: str
    origin: str
    options: dict[str, Any]


def _check_tables(path: Path, names: Iterable[str]) -> None:
    with opened(path) as conn, reading(conn) as reader:
        if is_index(reader):
            raise SourceUnreachable(f"{path} is an index itself; its sources are what can be added")
        schema = read_schema(reader)
        for name in names:
            if schema.get(name) is None:
                raise SourceUnreachable(f"There is no table {name} in {path}")


def described(kind: str, path: Path, name: str | None, options: dict[str, Any]) -> Added:
    """What is added for a path, which is looked at once, so that a slip of the pen is noticed now.

    Raises `RecallError` when it is not what this kind reads.
    """
    origin = path.expanduser().resolve()
    if not origin.exists():
        raise SourceUnreachable(f"There is nothing at {path}")
    if kind == "folder" and not origin.is_dir():
        raise SourceUnreachable(f"{path} is no folder")
    if kind == "rows":
        _check_tables(origin, options.get("tables", ()))
    if kind == "mailbox":
        MailboxSource(origin).listing()
    return Added(name or origin.stem or origin.name, str(origin), options)
