"""What is hashed and joined to tell documents, contents and indexes apart.

The forms are pinned by tests with literal values: a changed one makes every index be built anew.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

METADATA_VERSION = "2"
"""To be raised when chunks of an older plugin should not stand beside those of this one."""


def fingerprint(*parts: str | bytes) -> str:
    """SHA-256 in hex over parts that are each preceded by their length, so that ``("ab", "c")``
    is not ``("a", "bc")``."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        digest.update(len(data).to_bytes(8, "big"))
        digest.update(data)
    return digest.hexdigest()


def content_hash(data: bytes) -> str:
    """SHA-256 of a content in hex."""
    return hashlib.sha256(data).hexdigest()


def text_hash(text: str) -> bytes:
    """SHA-256 of exactly the text that an embedder is given."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


@dataclass(frozen=True)
class EmbedderIdentity:
    """What of an embedder decides whether two vectors may be compared.

    ``tokenizer`` is a hash of what counts its tokens, ``token_limit`` how many it takes.
    """

    provider: str
    vendor: str = ""
    model: str = ""
    host_kind: str = ""
    hostname: str = ""
    sub_provider: str = ""
    tokenizer: str = ""
    token_limit: int = 0

    @property
    def name(self) -> str:
        """The identity as one text, without what only decides how a text is cut."""
        parts = (self.provider, self.vendor, self.model)
        return "|".join((*parts, self.host_kind, self.hostname, self.sub_provider))


WITHOUT_EMBEDDER = EmbedderIdentity("none", tokenizer="characters")

DEFAULT_CHARACTERS = 2_000
"""The size of chunks where no embedder sets a limit: about a screen, so that a place is exact."""
DEFAULT_TOKENS = 8_192
DEFAULT_OVERLAP_CHARACTERS = 200
DEFAULT_OVERLAP_TOKENS = 300


@dataclass(frozen=True)
class EffectiveSize:
    """The size of chunks after everything that caps it, in characters or tokens."""

    limit: int
    overlap: int


def effective_size(identity: EmbedderIdentity, limit: int, overlap: int | None) -> EffectiveSize:
    """The size that is used when ``limit`` (0: as large as it gets) and ``overlap`` (None: the
    default) are configured. The overlap is at most one less than the limit."""
    by_tokens = identity.token_limit > 0
    cap = min(identity.token_limit, DEFAULT_TOKENS) if by_tokens else DEFAULT_CHARACTERS
    largest = identity.token_limit if by_tokens else limit or cap
    limit = min(limit, largest) if limit > 0 else cap
    wanted = DEFAULT_OVERLAP_TOKENS if by_tokens else DEFAULT_OVERLAP_CHARACTERS
    overlap = wanted if overlap is None else overlap
    return EffectiveSize(limit, max(0, min(overlap, limit - 1)))


def signature(identity: EmbedderIdentity, size: EffectiveSize, *more: str) -> str:
    """What an index was built with; another one is built beside it when this differs.

    ``more`` is what a kind of source adds, such as the version of the text of mails.
    """
    parts = (
        METADATA_VERSION,
        *(identity.provider, identity.vendor, identity.model, identity.host_kind),
        *(identity.hostname, identity.sub_provider, identity.tokenizer),
        str(identity.token_limit),
        str(size.limit),
        str(size.overlap),
        *more,
    )
    return "|".join(parts)
