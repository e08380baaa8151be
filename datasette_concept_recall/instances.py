"""What is kept per Datasette instance: one vocabulary for each of its databases."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from .vocabulary import Vocabulary

if TYPE_CHECKING:
    from datasette.app import Datasette

_vocabularies: WeakKeyDictionary[Datasette, dict[str, Vocabulary]] = WeakKeyDictionary()
_lock = Lock()


def vocabulary_for(datasette: Datasette, database: str) -> Vocabulary:
    """The vocabulary of a database of this instance, which all its threads share."""
    with _lock:
        return _vocabularies.setdefault(datasette, {}).setdefault(database, Vocabulary())
