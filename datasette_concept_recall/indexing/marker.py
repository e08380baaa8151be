"""Which document is being read, noted beside the index: what ends the process leaves the note.

A file can end the process that reads it, by a fault in a library or by all the memory it takes.
Read again and again it would keep its source from ever getting further.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple


class Left(NamedTuple):
    """The document that was being read when a process ended."""

    source_id: int
    key: bytes


def is_left(index: Path) -> bool:
    """Whether a process ended while it was reading a document for this index."""
    try:
        return _beside(index).stat().st_size > 0
    except FileNotFoundError:
        return False


def _beside(index: Path) -> Path:
    return index.with_name(f"{index.name}-reading")


class Marker:
    """The note beside one index; for whoever has its turn."""

    def __init__(self, index: Path) -> None:
        self._file = os.open(_beside(index), os.O_RDWR | os.O_CREAT, 0o644)

    def left(self) -> Left | None:
        """What an earlier process was reading when it ended, if it ended in the middle."""
        note, _, _ = os.pread(self._file, 1 << 20, 0).partition(b"\n")  # an earlier one was longer
        source, _, key = note.partition(b":")
        try:
            return Left(int(source), bytes.fromhex(key.decode()))
        except ValueError:  # nothing, or not all of it
            return None

    def set(self, source_id: int, key: bytes) -> None:
        """A document is about to be read."""
        os.pwrite(self._file, f"{source_id}:{key.hex()}\n".encode(), 0)

    def close(self) -> None:
        """Nothing is being read any more."""
        os.ftruncate(self._file, 0)
        os.close(self._file)
