"""The two files that `bench.recall` measures on, and what is asked of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from datasette_concept_recall.models import RecallRequest, RecallResult
from datasette_concept_recall.search import recall
from datasette_concept_recall.vocabulary import Vocabulary

from .generated import HOT, Made

RARE, MIDDLING, ONE_HOT, HOTS = "rare", "five middling", "hot", "three hot"

Ask = Callable[[RecallRequest], RecallResult]


@dataclass
class Bed:
    """The two files, and what is asked of them."""

    plain: Path
    optimized: Path
    made: Made
    queries: dict[str, list[str]] = field(init=False)

    def __post_init__(self) -> None:
        self.queries = {
            RARE: self.made.about(5, 1),
            MIDDLING: self.made.about(2_000, 5),
            ONE_HOT: self.made.hot()[:1],
            HOTS: self.made.hot()[:HOT],
        }


def open_database(file: Path, mode: str = "ro") -> sqlite3.Connection:
    return sqlite3.connect(f"{file.as_uri()}?mode={mode}", uri=True)


def recall_call(conn: sqlite3.Connection) -> Ask:
    """Recall from this connection, the vocabulary being known."""
    vocabulary = Vocabulary()
    vocabulary.matcher(conn)
    return partial(recall, conn, vocabulary=vocabulary)
