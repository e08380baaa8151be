"""The words of a question, and which of them say what it is about.

Every word of a question ranks what is found, but only topical words admit anything: a text that
shares no more than "what does the user" with a question is no answer to it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .folding import fold
from .question_words import GENERAL_VERBS, NOT_TOPICAL

MOST_WORDS = 64
"""So many topical words of a text are looked for, and as many others: those it has most often."""

MOST_IN_NAME = 5
"""Names of more words are not looked for in a question."""

_SEARCHED = 200_000
_NAMED = 200

_words = re.compile("[^\\W_](?:[^\\W_]|[\u0300-\u036f])*").findall
"""Marks that stay where there is no composed letter belong to the word, as full text has it."""


@dataclass(frozen=True)
class Question:
    """The words of a text, folded, each once: ``topical`` ones and ``others``, both in the order of
    the text. ``names`` are all runs of words that may be names in it, as `in_words` has them."""

    topical: tuple[str, ...]
    others: tuple[str, ...]
    names: frozenset[str]


def question_of(
    text: str,
    not_topical: Container[str] = NOT_TOPICAL,
    general: Container[str] = GENERAL_VERBS,
) -> Question:
    """What is asked by a text of any length.

    ``not_topical`` are the folded words that admit nothing; those of them that are ``general`` do
    when the text has no other word.
    """
    text = text[:_SEARCHED]
    words = _words(fold(text))
    counted = Counter(words)
    topical = [word for word in counted if word not in not_topical]
    topical = topical or [word for word in counted if word in general]
    admitting = set(topical)
    spelled = dict.fromkeys(() if text.isascii() else _words(text.lower()))
    # Full text folds letter by letter: "ß" is not "ss" there.
    topical += [word for word in spelled if word not in counted and fold(word) in admitting]
    return Question(
        _most_used(topical, counted),
        _most_used((word for word in counted if word not in admitting), counted),
        frozenset(_runs(words[:_NAMED])),
    )


def _runs(words: Sequence[str]) -> Iterator[str]:
    """All runs of so many words as a name may have."""
    for start in range(len(words)):
        for length in range(1, MOST_IN_NAME + 1):
            yield " ".join(words[start : start + length])


def _most_used(words: Iterable[str], counted: Counter[str]) -> tuple[str, ...]:
    chosen = list(words)
    if len(chosen) > MOST_WORDS:
        kept = set(sorted(chosen, key=lambda word: -counted[word])[:MOST_WORDS])
        chosen = [word for word in chosen if word in kept]
    return tuple(chosen)


def in_words(text: str) -> str:
    """The words of a text, folded, with one space between them."""
    return " ".join(_words(fold(text)))


def singular(word: str) -> str:
    """An English word without the ending of its plural.

    The three rules of the S stemmer: D. Harman, "How effective is suffixing?", JASIS 42(1), 1991.
    """
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")):
        return word[:-1]
    return word
