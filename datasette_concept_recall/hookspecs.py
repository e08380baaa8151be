"""The hooks by which other plugins bring in more of what the index is made with."""

from __future__ import annotations

from typing import Any

from pluggy import HookspecMarker

hookspec = HookspecMarker("datasette")


@hookspec
def register_source_indexers(datasette: Any) -> list[Any]:
    """Kinds of sources: a list of `indexing.sources.base.SourceIndexer`."""
    return []


@hookspec
def register_semantic_fallbacks(datasette: Any) -> list[Any]:
    """Who searches by meaning in place of the index: a list of `fallbacks.SemanticFallback`, which
    is asked for once for each Datasette."""
    return []


@hookspec
def register_embedders(datasette: Any) -> list[Any]:
    """What turns texts into vectors: a list of `indexing.embedding.Embedder`."""
    return []
