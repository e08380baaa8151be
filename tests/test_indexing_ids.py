"""What tells documents and indexes apart is pinned: another form rebuilds every index."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_concept_recall.indexing import ids
from datasette_concept_recall.indexing.ids import EffectiveSize, EmbedderIdentity, effective_size

MODEL = EmbedderIdentity(
    provider="p", vendor="v", model="m", host_kind="local", hostname="h", sub_provider="s",
    tokenizer="t", token_limit=512,
)  # fmt: skip


def test_the_forms_of_hashes_are_pinned() -> None:
    """These literals may only change together with the version of the metadata."""
    assert ids.METADATA_VERSION == "2"
    assert ids.fingerprint("file", b"a.md", "1", "2") == (
        "09512c569751134f3598baa2f7671a4f1ef321a61b390ecf0dba08828684f071"
    )
    assert ids.content_hash(b"bread") == (
        "985604c2b60243122c24d4e18363e6434c535923be05f760204a1aef023aae9b"
    )
    assert ids.text_hash("bread").hex() == ids.content_hash(b"bread")


def test_the_signature_is_pinned() -> None:
    """Its parts, in their order, with a bar between them."""
    assert ids.signature(MODEL, EffectiveSize(512, 300)) == "2|p|v|m|local|h|s|t|512|512|300"
    assert ids.signature(MODEL, EffectiveSize(512, 300), "mail:1").endswith("|512|300|mail:1")
    without = ids.signature(ids.WITHOUT_EMBEDDER, EffectiveSize(2000, 200))
    assert without == "2|none||||||characters|0|2000|200"


@pytest.mark.parametrize(
    "field", ["provider", "vendor", "model", "host_kind", "hostname", "sub_provider", "tokenizer"]
)
def test_every_part_of_an_embedder_that_decides_its_vectors_is_in_the_signature(field: str) -> None:
    """Another one of any of them is another index."""
    size = EffectiveSize(512, 300)
    other = replace(MODEL, **{field: "other"})
    assert ids.signature(other, size) != ids.signature(MODEL, size)


@given(st.lists(st.binary(max_size=4), max_size=4), st.lists(st.binary(max_size=4), max_size=4))
def test_parts_never_run_together(one: list[bytes], other: list[bytes]) -> None:
    """Two lists of parts have the same fingerprint only when they are the same list."""
    assert (ids.fingerprint(*one) == ids.fingerprint(*other)) == (one == other)


def test_the_limit_of_the_provider_typed_in_is_the_same_as_none() -> None:
    """0 follows the provider, so typing the number that it has changes nothing."""
    assert effective_size(MODEL, 0, None) == effective_size(MODEL, 512, None)
    assert effective_size(MODEL, 0, None) == EffectiveSize(512, 300)


def test_an_overlap_above_its_cap_is_the_cap() -> None:
    """An overlap leaves at least one token of each chunk to itself."""
    assert effective_size(MODEL, 100, 99) == effective_size(MODEL, 100, 5_000)
    assert effective_size(MODEL, 100, None).overlap == 99
    assert effective_size(MODEL, 100, -3).overlap == 0


def test_a_limit_above_that_of_the_provider_is_cut_down_to_it() -> None:
    """Nothing is sent that would be cut off."""
    assert effective_size(MODEL, 9_999, 0).limit == 512
    assert effective_size(replace(MODEL, token_limit=100_000), 0, 0).limit == ids.DEFAULT_TOKENS


def test_without_an_embedder_sizes_are_in_characters() -> None:
    """There is a default, and any other size may be asked for."""
    assert effective_size(ids.WITHOUT_EMBEDDER, 0, None) == EffectiveSize(2_000, 200)
    assert effective_size(ids.WITHOUT_EMBEDDER, 9_000, 0) == EffectiveSize(9_000, 0)
