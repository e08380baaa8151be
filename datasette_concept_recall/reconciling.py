"""Keeps what other plugins hold of a database in line with it, in the background.

A thread for each `SemanticFallback` looks a few times a minute whether anything was committed, on a
connection of its own, and then lets it compare what it holds with all items that hold.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from . import compat
from .fallbacks import ActiveRecord, SemanticFallback, active_records
from .instances import vocabulary_for
from .opening import read_only_uri
from .registered import semantic_fallbacks

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .vocabulary import Vocabulary

log = logging.getLogger("datasette_concept_recall")

LOOK_SECONDS = 5.0
"""How often it is looked whether anything was committed."""

_MOST_DOUBLED = 7
"""After each failure in a row it waits twice as long, so many times: about ten minutes at most."""


class Reconciler:
    """Keeps one fallback in line with the file of its database."""

    def __init__(
        self, fallback: SemanticFallback, path: Path, vocabulary: Vocabulary, immutable: bool
    ) -> None:
        self._fallback, self._vocabulary = fallback, vocabulary
        self._path, self._uri = path, read_only_uri(path, immutable=immutable)
        self._failures = 0
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="concept-recall-reconcile")
        self._thread.daemon = True

    def start(self) -> None:
        """Begins with a first comparison."""
        self._thread.start()

    def stop(self) -> None:
        """Ends it after what is running."""
        self._stopping.set()

    def _run(self) -> None:
        """Goes on until it is stopped, whatever goes wrong."""
        while not self._stopping.is_set():
            try:
                self._keep()
                continue
            except (OSError, sqlite3.Error) as error:
                log.warning("A database cannot be read for its fallback: %s", error)
            except BaseException:
                log.exception("A semantic fallback could not be brought up to date")
            self._wait(succeeded=False)

    def _keep(self) -> None:
        """Compares whenever something was committed, as long as the same file is there."""
        file, version = self._file(), None
        with closing(sqlite3.connect(self._uri, uri=True)) as conn:
            while self._file() == file and not self._stopping.is_set():
                ((now,),) = conn.execute("pragma data_version").fetchall()
                if now != version:
                    version = now if self.reconcile(conn) else None
                self._wait(succeeded=version is not None)

    def _file(self) -> tuple[int, int]:
        """Which file has the path now: another one may have been put in its place."""
        found = self._path.stat()
        return found.st_dev, found.st_ino

    def _wait(self, *, succeeded: bool) -> None:
        self._failures = 0 if succeeded else min(self._failures + 1, _MOST_DOUBLED)
        self._stopping.wait(LOOK_SECONDS * 2**self._failures)

    def reconcile(self, conn: sqlite3.Connection) -> bool:
        """Compares once; whether it succeeded. A failure is logged, and tried again later. Raises
        `sqlite3.Error` when the database cannot be read."""
        mapping = self._vocabulary.mapping(conn)
        with _set_aside(active_records(conn, mapping)) as active:
            try:
                self._fallback.reconcile(active)
            except BaseException:  # whatever the code of another plugin raises, as panics of Rust
                log.exception("A semantic fallback could not be brought up to date")
                return False
        return True


@contextmanager
def _set_aside(records: Iterable[ActiveRecord]) -> Iterator[Iterator[ActiveRecord]]:
    """All records in a file of their own, until they were gone through.

    Embedding may take hours, and so long a transaction would let nobody write to the database.
    """
    with closing(sqlite3.connect("")) as aside:
        aside.execute("create table record (ref, text, text_hash)")
        aside.executemany("insert into record values (?, ?, ?)", records)
        rows = aside.execute("select ref, text, text_hash from record order by rowid")
        yield map(ActiveRecord._make, rows)


def begin(datasette: Datasette) -> None:
    """Keeps every fallback that other plugins registered in line with its database from now on."""
    for fallback in semantic_fallbacks(datasette):
        database = datasette.databases.get(fallback.database)
        if database is None or not database.path:
            log.warning("No file is served as %s, which a fallback searches", fallback.database)
            continue
        vocabulary = vocabulary_for(datasette, fallback.database)
        reconciler = Reconciler(fallback, Path(database.path), vocabulary, not database.is_mutable)
        name = f"concept-recall-reconcile-{fallback.database}"
        if not compat.add_background_task(datasette, reconciler.start, reconciler.stop, name):
            reconciler.start()
            weakref.finalize(datasette, reconciler.stop)
