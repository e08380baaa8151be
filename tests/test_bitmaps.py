"""Sets of positions as bits: everything as with Python's own sets."""

from __future__ import annotations

from array import array
from collections import Counter
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datasette_concept_recall import bitmaps
from datasette_concept_recall.bitmaps import (
    Positions,
    Tally,
    common,
    listed,
    members,
    members_counter,
    pack,
    to_bytes,
    to_int,
    united,
    unpack,
)

SIZE = 300
positions = st.sets(st.integers(0, SIZE - 1))


def bitmap(found: set[int], size: int = SIZE) -> int:
    """The set as a number."""
    return to_int(to_bytes(found, size))


@given(positions)
def test_the_members_of_a_set_come_back_in_order(found: set[int]) -> None:
    """What goes into a bitmap comes out, ascending, and its size is the number of bits."""
    assert list(members(bitmap(found))) == sorted(found)
    assert bitmap(found).bit_count() == len(found)


@given(positions, positions)
def test_sets_are_united_cut_and_taken_away_as_numbers(one: set[int], other: set[int]) -> None:
    """The operators of numbers mean what they mean for sets."""
    assert set(members(bitmap(one) | bitmap(other))) == one | other
    assert set(members(bitmap(one) & bitmap(other))) == one & other
    assert set(members(bitmap(one) & ~bitmap(other))) == one - other


@given(positions, st.integers(0, SIZE))
def test_the_first_members_behind_a_place_are_found(found: set[int], start: int) -> None:
    """Shifting out what is before a place leaves the rest where it is."""
    rest = members(bitmap(found) >> start << start)
    assert list(islice(rest, 3)) == sorted(p for p in found if p >= start)[:3]


@given(positions, positions.filter(len))
def test_the_members_among_given_positions_are_counted(found: set[int], asked: set[int]) -> None:
    """Of some positions those in a set are counted without a bitmap of them."""
    assert members_counter(bitmap(found), SIZE)(sorted(asked)) == len(found & asked)


@given(st.integers(1, SIZE), positions)
def test_a_stored_set_is_read_back(size: int, every: set[int]) -> None:
    """Stored one by one or as bits, if it is dense, a set is the same when read."""
    found = {position for position in every if position < size}
    data = pack(sorted(found), size)
    stored = unpack(data, len(found), size)
    assert set(listed(stored)) == found
    assert len(data) == ((size + 7) // 8 if isinstance(stored, int) else 4 * len(found))


def either(found: set[int], as_bits: bool) -> Positions:
    """The set in one of its two forms."""
    return bitmap(found) if as_bits else array("I", sorted(found))


@given(positions, positions, st.booleans(), st.booleans())
def test_sets_in_either_form_are_united_and_looked_into(
    one: set[int], other: set[int], one_as_bits: bool, other_as_bits: bool
) -> None:
    """Whether sets are bits or lists, their union and what they have in common are the same."""
    first, second = either(one, one_as_bits), either(other, other_as_bits)
    assert list(listed(united(first, second, SIZE))) == sorted(one | other)
    assert set(common(one, second)) == one & other


@given(st.lists(st.tuples(positions, st.booleans()), max_size=20), positions)
def test_a_tally_groups_positions_by_how_many_sets_hold_them(
    forms: list[tuple[set[int], bool]], within: set[int]
) -> None:
    """Groups come highest count first, each position is in the group of its count."""
    sets = [found for found, _ in forms]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bitmaps, "_SHORT", 20)  # some are counted one by one, and some are not
        tally = Tally((either(*form) for form in forms), SIZE)
    groups = [(count, set(members(group))) for count, group in tally.groups(bitmap(within))]
    counts = Counter(position for found in sets for position in found if position in within)
    expected = {n: {p for p, count in counts.items() if count == n} for n in counts.values()}
    assert groups == sorted(expected.items(), reverse=True)
    assert tally.union == bitmap(set().union(*sets))
