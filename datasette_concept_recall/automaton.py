"""Finds many long sequences at once, in time that follows the text alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence


class SequenceAutomaton:
    """Tells which of many sequences of strings occur in a longer one.

    The pattern matching machine of A. V. Aho and M. J. Corasick, "Efficient string matching: an
    aid to bibliographic search", Communications of the ACM 18(6), 1975, over strings in place of
    characters. State 0 is the root; a state stands for a prefix of a sequence.
    """

    def __init__(self, sequences: Iterable[Sequence[str]]) -> None:
        self._next: list[dict[str, int]] = [{}]
        self._ends: list[int] = [-1]  # position of the sequence that a state completes, or -1
        for position, sequence in enumerate(sequences):
            self._ends[self._state_of(sequence)] = position
        self._fail = [0] * len(self._next)
        self._shorter = [0] * len(self._next)  # the longest proper suffix that is a sequence
        self._connect()

    def _state_of(self, sequence: Sequence[str]) -> int:
        state = 0
        for item in sequence:
            following = self._next[state].get(item)
            if following is None:
                following = self._next[state][item] = len(self._next)
                self._next.append({})
                self._ends.append(-1)
            state = following
        return state

    def _connect(self) -> None:
        """Links every state, shallow ones first, to the longest suffix that is a state."""
        waiting = deque(self._next[0].values())
        while waiting:
            state = waiting.popleft()
            for item, following in self._next[state].items():
                fail = self._step(self._fail[state], item)
                self._fail[following] = fail
                self._shorter[following] = fail if self._ends[fail] >= 0 else self._shorter[fail]
                waiting.append(following)

    def _step(self, state: int, item: str) -> int:
        while state and item not in self._next[state]:
            state = self._fail[state]
        return self._next[state].get(item, 0)

    def occurring(self, items: Iterable[str]) -> set[int]:
        """The positions of the sequences that occur, as given when the automaton was made."""
        found: set[int] = set()
        state = 0
        for item in items:
            state = self._step(state, item)
            ending = state if self._ends[state] >= 0 else self._shorter[state]
            # Where one was found before, so were all that are its suffixes.
            while ending and self._ends[ending] not in found:
                found.add(self._ends[ending])
                ending = self._shorter[ending]
        return found
