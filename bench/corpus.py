"""Names and texts that look like language, the same ones every time.

Words are drawn from a generated lexicon by a Zipf-like law (frequency falls with rank), short ones
are the frequent ones, and a vocabulary of n names is the beginning of every larger one.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import accumulate

LEXICON = 50_000
_CONTENT = 200  # the most frequent words are no part of names, as "the" and "of" would be none
_ONSETS = (*"bcdfghjklmnprstvwz", "br", "cl", "cr", "dr", "fl", "gr", "pl", "sh", "st", "th", "tr")
_VOWELS = (*"aeiouaeio", "ai", "ea", "ee", "ou")
_CODAS = ("", "", "", "", *"nrstlmd", "ck", "nd", "ng", "rt", "st")
_PUNCTUATED: tuple[Callable[[str, str], str], ...] = (
    lambda name, more: f"{name}++",
    lambda name, more: f"{name}#",
    lambda name, more: f".{name}",
    lambda name, more: f"@{more}/{name}",
    lambda name, more: f"{name}.{more}",
    lambda name, more: f"{name}-{more}",
    lambda name, more: f"{name}/{more}",
    lambda name, more: f"{name} ({more})",
    lambda name, more: f"{name}'s {more}",
    lambda name, more: f"{name}: {more}",
)
_ACCENTED = str.maketrans("aeioucn", "áéïöüçñ")
_GREEK = str.maketrans("abcdefghijklmnopqrstuvwz", "αβκδεφγηιξκλμνοπθρστυωςζ")
_CYRILLIC = str.maketrans("abcdefghijklmnopqrstuvwz", "абцдефгхийклмнопярстувшз")


def _word(rng: random.Random, syllables: int) -> str:
    parts = (rng.choice(_ONSETS) + rng.choice(_VOWELS) + rng.choice(_CODAS) for _ in range(99))
    return "".join(next(parts) for _ in range(syllables))


@cache
def lexicon() -> tuple[str, ...]:
    """The words by rank, the most frequent first."""
    rng = random.Random("lexicon")
    words: set[str] = set()
    while len(words) < LEXICON:
        words.add(_word(rng, rng.choices((1, 2, 3, 4), (5, 45, 40, 10))[0]))
    return tuple(sorted(sorted(words), key=lambda word: len(word) + rng.random() * 5))


def _drawn(rng: random.Random, words: Sequence[str], offset: int) -> Iterator[str]:
    """Words without end, by the law of Zipf and Mandelbrot: frequency ~ 1 / (rank + offset)."""
    weights = list(accumulate(1 / (rank + offset) for rank in range(len(words))))
    while True:
        yield from rng.choices(words, cum_weights=weights, k=10_000)


@cache
def names(count: int) -> tuple[str, ...]:
    """That many different names of one to four words.

    A tenth has punctuation, a twentieth is beyond ASCII, and half are written with capitals.
    """
    rng = random.Random("names")
    words = _drawn(rng, lexicon()[_CONTENT:], 50)
    found: dict[str, str] = {}
    while len(found) < count:
        name = _name(rng, words)
        found.setdefault(name.casefold(), name)
    return tuple(found.values())


def _name(rng: random.Random, words: Iterator[str]) -> str:
    length = rng.choices((1, 2, 3, 4), (30, 45, 18, 7))[0]
    if length == 1 and rng.random() < 0.6:  # a coined word, as the names of products are
        name = _word(rng, rng.randint(2, 4))
    else:
        name = " ".join(next(words) for _ in range(length))
    kind = rng.random()
    if kind < 0.10:
        name = rng.choice(_PUNCTUATED)(name, next(words))
    elif kind < 0.15:
        name = _beyond_ascii(rng, name)
    return name.title() if rng.random() < 0.5 else name


def _beyond_ascii(rng: random.Random, name: str) -> str:
    script = rng.randrange(5)
    if script < 3:
        return name.translate((_ACCENTED, _GREEK, _CYRILLIC)[script])
    first, last = (0x4E00, 0x5200) if script == 3 else (0xAC00, 0xB000)  # Han, Hangul
    return "".join(chr(rng.randrange(first, last)) for _ in range(rng.randint(2, 5)))


def prose(size: int, mentioned: Sequence[str], every: int = 25) -> str:
    """Sentences of about so many bytes, every so many words a name in place of a word."""
    rng = random.Random(f"prose {size}")
    words = _drawn(rng, lexicon(), 3)
    sentences: list[str] = []
    length = 0
    while length < size:
        sentence = _sentence(rng, words, mentioned, every)
        sentences.append(sentence + ("\n\n" if rng.random() < 0.15 else " "))
        length += len(sentences[-1].encode())
    return "".join(sentences).encode()[:size].decode(errors="ignore")


def _sentence(
    rng: random.Random, words: Iterator[str], mentioned: Sequence[str], every: int
) -> str:
    chosen = []
    for _ in range(rng.randint(5, 20)):
        word = rng.choice(mentioned) if rng.randrange(every) == 0 else next(words)
        chosen.append(word + ("," if rng.random() < 0.08 else ""))
    sentence = " ".join(chosen)
    return sentence[:1].upper() + sentence[1:] + "."


def adversaries(size: int) -> dict[str, tuple[list[str], str]]:
    """Names and a text of that size that make careless matchers slow, by what they are."""
    lengths = range(1, 201)
    return {
        "a a a …, names a, a a, … of 1–200 words": (
            [" ".join("a" * length) for length in lengths],
            "a " * (size // 2),
        ),
        "one letter, names of 1–200 of it, and of 5,000": (
            ["a" * length for length in (*lengths, 5_000)],
            "a" * size,
        ),
        "x x x …, 200 names x … x yN of 201 words": (
            ["x " * 200 + f"y{number}" for number in lengths],
            "x " * (size // 2),
        ),
        "x x x …, names x … x y of 2–201 words": (
            ["x " * length + "y" for length in lengths],
            "x " * (size // 2),
        ),
        "full stops, names of 1–200 of them and an a": (
            ["." * length + "a" for length in lengths],
            "." * size,
        ),
        "one Han character, names of 1–200 of it": (
            ["字" * length for length in lengths],
            "字" * (size // 3),
        ),
    }
