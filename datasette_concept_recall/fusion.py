"""How what several layers found becomes one order, as it is configured."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from .question_words import NOT_TOPICAL
from .ranking import RANK_CONSTANT
from .topical import Question, question_of


@dataclass(frozen=True)
class Fusion:
    """How the lists of layers become one: ``k`` as in `ranking.reciprocal_rank_fusion`, and what
    the ranks of each layer count (0 or more). ``not_topical`` are the words that admit nothing."""

    k: float = RANK_CONSTANT
    lexical: float = 1.0
    semantic: float = 1.0
    not_topical: Container[str] = NOT_TOPICAL

    def question(self, text: str) -> Question:
        """What is asked by a text."""
        return question_of(text, self.not_topical)
