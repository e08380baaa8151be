"""Concepts that became known after a text was indexed: they are looked for in it afterwards."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path

from ..errors import RecallError
from ..folding import canonical_name
from ..matching import ConceptMatcher, can_match, spans
from ..opening import opened
from ..pieces import joined
from ..vocabulary import stored_names
from .carried import Carried
from .document_concepts import positions_of
from .links import mentioned
from .store import SourceRow, Store


def names_of(databases: Iterable[Path]) -> tuple[set[str], list[str]]:
    """The names of concepts that knowledge databases hold, and for each that cannot be read a
    sentence that says why."""
    names: set[str] = set()
    problems: list[str] = []
    for path in databases:
        try:
            with opened(path) as conn:
                names.update(stored_names(conn))
        except RecallError as error:
            problems.append(str(error))
    return {name for name in names if can_match(name)}, problems


def link_new_names(
    store: Store, source: SourceRow, stop: Callable[[], bool] = lambda: False
) -> int:
    """Links the searched documents of a source to names that became known since it was done the
    last time; how many documents got one. A stop leaves the rest for the next time."""
    fresh = store.known_names(after=source.linked_up_to)
    if not fresh:
        return 0
    carried = Carried(store)
    candidates: dict[int, dict[str, str]] = {}
    for _, name in fresh:
        if stop():
            return 0
        canonical = canonical_name(name)
        for document_id in carried.mentioning(source.id, name):
            candidates.setdefault(document_id, {})[name] = canonical
    linked = 0
    waiting = list(candidates.items())
    for first in range(0, len(waiting), _AT_ONCE):
        found = {}
        for document_id, names in waiting[first : first + _AT_ONCE]:
            if stop():
                return linked
            found[document_id] = _found(carried, document_id, names)
        with store.writing():
            for document_id, concepts in found.items():
                carried.link(document_id, concepts)
                linked += bool(concepts)
    store.set_linked_up_to(source.id, fresh[-1][0])
    return linked


_AT_ONCE = 100
"""So many documents are linked in one transaction."""


_FEW = 50
"""So many names are counted one by one before a matcher is made of those that are there twice."""


def _found(carried: Carried, document_id: int, names: dict[str, str]) -> dict[str, list[int]]:
    """Which of the names, given with their canonical form, a document mentions often enough, with
    the positions of its chunks."""
    text, places = joined(carried.chunks_of(document_id))
    likely = list(names)
    if len(names) <= _FEW:
        folded = canonical_name(text)
        likely = [name for name, canonical in names.items() if _is_there_twice(canonical, folded)]
    return positions_of(mentioned(text, ConceptMatcher(likely)), places) if likely else {}


def _is_there_twice(canonical: str, folded: str) -> bool:
    """Whether a text mentions a name twice; most in which it merely occurs are told quickly."""
    return folded.count(canonical) > 1 and any(islice(spans(canonical, folded), 1, None))
