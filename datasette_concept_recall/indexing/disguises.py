"""How texts are read that may be spelt so that they are overlooked: in small letters, as they look.

Letters of other scripts that pass for Latin ones become those, accents and what is unseen go, and
a few words are read with their inner letters in order and without digits for letters.
"""

from __future__ import annotations

import re
from unicodedata import category, normalize

_LOOKALIKES = dict(
    zip(
        "аеорсухіјѕһԁԛԝкмтвнαορνυικτχεıɡɑᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀꜱᴛᴜᴠᴡʏᴢ",
        "aeopcyxijshdqwkmtbhaopvuiktxeigaabcdefghijklmnoprstuvwyz",
        strict=True,
    )
)
"""Small letters of other scripts that pass for Latin ones, small capitals, and the Latin ones."""


class _Fold(dict[str, str]):
    """A character as it looks, in small letters without accents; empty for what is not seen."""

    def __missing__(self, character: str) -> str:
        code = ord(character)
        if 0xE0020 <= code <= 0xE007E:  # tags: a second, invisible ASCII
            folded = chr(code - 0xE0000).lower()
        elif 0x1F150 <= code <= 0x1F169 or 0x1F170 <= code <= 0x1F189:  # white on black
            folded = chr((code - 0x1F150) % 32 + ord("a"))
        elif character in "\u115f\u1160\u2800\u3164\uffa0":  # letters that look like a space
            folded = " "
        else:
            folded = _bare(normalize("NFKD", character))
        self[character] = folded
        return folded


def _bare(characters: str) -> str:
    seen = (c for c in characters.casefold() if category(c) not in ("Mn", "Cf"))
    return "".join(_LOOKALIKES.get(c, c) for c in seen)


FOLD = _Fold()


def disguised(text: str) -> bool:
    """Whether a letter of the text is not what it looks like, or something in it is unseen."""
    return not text.isascii() and any(
        FOLD[c] != _unaccented(c) and (not FOLD[c] or (FOLD[c].isascii() and FOLD[c].isalnum()))
        for c in set(text)
    )


def _unaccented(character: str) -> str:
    return "".join(c for c in normalize("NFD", character.casefold()) if category(c) != "Mn")


_beyond_ascii = re.compile(r"[^\x00-\x7f]+").sub


def folded(text: str) -> str:
    """The text in small letters, as they look, without accents and without what is unseen."""
    if text.isascii():
        return text.lower()
    return _beyond_ascii(lambda run: "".join(map(FOLD.__getitem__, run[0])), text).lower()


_SHUFFLED = [
    "ignore",
    "disregard",
    "forget",
    "override",
    "reveal",
    "previous",
    "prior",
    "instructions",
    "instruction",
    "system",
    "prompt",
]
"""Words that are recognised with their inner letters in any order."""

_INNER = {(word[0], word[-1], *sorted(word)): word for word in _SHUFFLED}


def _any_order(words: list[str]) -> str:
    forms = (f"{w[0]}[{''.join(sorted(set(w[1:-1])))}]{{{len(w) - 2}}}{w[-1]}" for w in words)
    return f"(?!{'|'.join(words)})(?:{'|'.join(forms)})(?![a-z0-9])"


_SHUFFLED_WORD = re.compile("(?<![a-z0-9])" + _any_order(_SHUFFLED))


_LETTERS_OF_DIGITS = str.maketrans("013457", "oieast")
_WORD_WITH_DIGITS = re.compile("(?<![a-z0-9])(?=[a-z]*[013457])[a-z013457]{5,12}(?![a-z0-9])")


def _without_digits(word: re.Match[str]) -> str:
    spelt = word[0].translate(_LETTERS_OF_DIGITS)
    return spelt if spelt in _SHUFFLED else word[0]


def unshuffled(text: str) -> str:
    """The folded text with known words as they are spelt, not with their inner letters in another
    order or digits for letters; as long as before."""
    return _SHUFFLED_WORD.sub(
        lambda word: _INNER.get((word[0][0], word[0][-1], *sorted(word[0])), word[0]),
        _WORD_WITH_DIGITS.sub(_without_digits, text),
    )
