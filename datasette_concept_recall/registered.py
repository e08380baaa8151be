"""What this plugin and others registered for the index: kinds of sources, and embedders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from datasette.plugins import pm

from . import hookspecs
from .embedders import WordLlamaEmbedder
from .errors import RecallError
from .indexing.embedding import Embedder
from .indexing.kinds import built_in
from .indexing.sources.base import SourceIndexer

if TYPE_CHECKING:
    from datasette.app import Datasette


if not hasattr(pm.hook, "register_source_indexers"):
    pm.add_hookspecs(hookspecs)


class UnknownEmbedder(RecallError):
    """There is no embedder of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"There is no embedder named {name!r}; known are {', '.join(known)}")


def source_indexers(datasette: Datasette | None) -> list[SourceIndexer]:
    """The kinds of other plugins, then those that come with this one."""
    registered = pm.hook.register_source_indexers(datasette=datasette)
    return [*(each for some in registered for each in some or ()), *built_in()]


def embedder_named(datasette: Datasette | None, name: str) -> Embedder:
    """An embedder. Raises `UnknownEmbedder`, and `RecallError` when its library is missing."""
    registered = pm.hook.register_embedders(datasette=datasette)
    known: dict[str, Embedder] = {each.name: each for some in registered for each in some or ()}
    known.setdefault(WordLlamaEmbedder.name, WordLlamaEmbedder())
    if name not in known:
        raise UnknownEmbedder(name, sorted(known))
    found = known[name]
    _ = found.identity  # what is not installed is noticed here
    return found
