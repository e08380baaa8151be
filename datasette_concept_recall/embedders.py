"""The embedder that comes with the plugin: WordLlama, which never leaves this machine."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import RecallError
from .indexing.ids import EmbedderIdentity

_MODEL = "l2_supercat"
_DIMENSIONS = 256


class EmbedderMissing(RecallError):
    """An embedder is configured whose library is not installed."""

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(
            f"The embedder {name} is not installed: pip install 'datasette-concept-recall[{extra}]'"
        )


class WordLlamaEmbedder:
    """Means of the vectors of tokens, 256 numbers each, from weights that are in the package.

    Loaded when the first text is embedded (some 0.5 s), from the package's own folder: by itself
    the library would look for its tokenizer elsewhere, and then in the network.
    """

    name = "wordllama"
    is_remote = False
    batch_size = 64

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The model and a hash of its tokenizer. Raises `EmbedderMissing`."""
        tokenizer = self._folder / "tokenizers" / f"{_MODEL}_tokenizer_config.json"
        mark = hashlib.sha256(tokenizer.read_bytes()).hexdigest()
        return EmbedderIdentity("wordllama", model=f"{_MODEL}-{_DIMENSIONS}", tokenizer=mark)

    @cached_property
    def _folder(self) -> Path:
        found = find_spec("wordllama")
        if found is None or not found.origin:
            raise EmbedderMissing(self.name, "semantic")
        return Path(found.origin).parent

    @cached_property
    def _model(self) -> Any:
        folder = self._folder
        from wordllama import WordLlama

        return WordLlama.load(_MODEL, cache_dir=folder, dim=_DIMENSIONS, disable_download=True)

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text; there is no limit to it."""
        return len(self._model.tokenizer.encode(text, add_special_tokens=False).ids)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """``(len(texts), 256)``, float32, each row of length 1, or of zeros without any token."""
        import numpy

        found = numpy.nan_to_num(self._model.embed(list(texts), norm=False))
        lengths = numpy.linalg.norm(found, axis=1, keepdims=True)
        return (found / numpy.where(lengths > 0, lengths, 1)).astype("float32")

    def embed_query(self, text: str) -> Any:
        """``(1, 256)``: questions are embedded as documents are."""
        return self.embed_documents([text])
