"""Sets of positions as the bits of one number: unions, counts and first members in bulk.

A set of positions 0 … n-1 is an `int` whose bit p says whether p is in it. Operations on such
numbers run at the speed of memory, so that sets of a million members cost microseconds.
"""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from operator import itemgetter
from sys import byteorder
from typing import Union

Positions = Union[int, "array[int]"]
"""A set in either form: its bits, or its members ascending."""

_nonzero_bytes = re.compile(rb"[^\0]", re.DOTALL).finditer
_BITS = [[bit for bit in range(8) if byte >> bit & 1] for byte in range(256)]


def to_bytes(positions: Iterable[int], size: int) -> bytearray:
    """The set as ``(size + 7) // 8`` bytes, the lowest position in the lowest bit of the first."""
    data = bytearray((size + 7) // 8)
    for position in positions:
        data[position >> 3] |= 1 << (position & 7)
    return data


def to_int(data: bytes | bytearray) -> int:
    """The set that `to_bytes` wrote."""
    return int.from_bytes(data, "little")


def members(bitmap: int) -> Iterator[int]:
    """The positions in a set, ascending; what is not asked for is not looked at."""
    data = bitmap.to_bytes((bitmap.bit_length() + 7) // 8, "little")
    for match in _nonzero_bytes(data):
        place = match.start()
        for bit in _BITS[data[place]]:
            yield place * 8 + bit


def members_counter(bitmap: int, size: int) -> Callable[[Sequence[int]], int]:
    """A function that tells how many of one position or more are in the set."""
    digits = bin(bitmap | 1 << size)[:1:-1]  # the digit of position 0 first
    return lambda positions: itemgetter(*positions)(digits).count("1")


_DENSE = 128
"""Of a set with one in so many positions or more a bit of every position is stored.

That takes up to four times the room of 4 bytes for each, and a tenth of the time to read.
"""


def pack(positions: Sequence[int], size: int) -> bytes:
    """A set as it is stored: 4 bytes for each position, or a bit of every one if it is dense."""
    if _DENSE * len(positions) < size:
        return _little(array("I", positions)).tobytes()
    return bytes(to_bytes(positions, size))


def unpack(data: bytes, count: int, size: int) -> Positions:
    """The set of so many positions that `pack` wrote."""
    if _DENSE * count >= size:
        return to_int(data)
    positions = array("I")
    positions.frombytes(data)
    return _little(positions)


def _little(positions: array[int]) -> array[int]:
    if byteorder == "big":
        positions.byteswap()
    return positions


def listed(positions: Positions) -> Iterable[int]:
    """The members of a set in either form, ascending."""
    return members(positions) if isinstance(positions, int) else positions


def as_bitmap(positions: Positions, size: int) -> int:
    """The bits of a set in either form."""
    return positions if isinstance(positions, int) else to_int(to_bytes(positions, size))


def united(one: Positions, other: Positions, size: int) -> Positions:
    """The union of two sets."""
    if isinstance(one, int) or isinstance(other, int):
        return as_bitmap(one, size) | as_bitmap(other, size)
    return array("I", sorted({*one, *other}))


def common(few: Iterable[int], positions: Positions) -> Iterable[int]:
    """Which of a few positions are in a set."""
    if not isinstance(positions, int):
        return set(few).intersection(positions)
    data = positions.to_bytes((positions.bit_length() + 7) // 8, "little")
    end = len(data) * 8
    return [p for p in few if p < end and data[p >> 3] >> (p & 7) & 1]


_SHORT = 1000
"""Sets of so few members are counted one by one: a bitmap of each would cost more."""


class Tally:
    """In how many of several sets each position is: counters held as slices of bits.

    Slice k is the set of positions whose counter has bit k. Adding a set is the ripple-carry
    addition of D. Rinfret, P. O'Neil and E. O'Neil, "Bit-sliced index arithmetic", SIGMOD 2001.
    """

    def __init__(self, sets: Iterable[Positions], size: int) -> None:
        self._slices: list[int] = []
        self.union = 0
        short: Counter[int] = Counter()
        for positions in sets:
            if isinstance(positions, int) or len(positions) > _SHORT:
                self._add(as_bitmap(positions, size), 0)
            else:
                short.update(positions)
        for k in range(max(short.values(), default=0).bit_length()):
            counted = (position for position, count in short.items() if count >> k & 1)
            self._add(to_int(to_bytes(counted, size)), k)

    def _add(self, bitmap: int, k: int) -> None:
        """Adds ``1 << k`` to the counters of a set."""
        self.union |= bitmap
        self._slices += [0] * (k - len(self._slices))
        for place in range(k, len(self._slices)):
            bits = self._slices[place]
            self._slices[place], bitmap = bits ^ bitmap, bits & bitmap
            if not bitmap:
                return
        if bitmap:
            self._slices.append(bitmap)

    def groups(self, within: int) -> Iterator[tuple[int, int]]:
        """``(count, positions)`` of every count from 1, highest first, that occurs ``within``."""
        yield from self._groups(within & self.union, len(self._slices) - 1, 0)

    def _groups(self, within: int, k: int, count: int) -> Iterator[tuple[int, int]]:
        if not within:
            return
        if k < 0:
            yield count, within
            return
        high = within & self._slices[k]
        yield from self._groups(high, k - 1, count + (1 << k))
        yield from self._groups(within ^ high, k - 1, count)
