"""Where ``[[Name]]`` in a text may be a link: every rule, hostile input, and a plain definition."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from datasette_concept_recall.wikilinks import Piece, pieces

FOUND = [
    ("plain [[RAG]] text", [("RAG",)]),
    ("[[RAG]]", [("RAG",)]),
    ("[[a]][[b]]", [("a",), ("b",)]),
    ("[[ two\n  lines ]]", [("two lines",)]),
    ("[[[RAG]]]", [("RAG",)]),
    ("[[a]b]] [[c]]", [("c",)]),
    ("[[a [[b]]", [("b",)]),
    ("[[<script>]]", [("<script>",)]),
    ("[[C#]] [[a/b]] [[.NET]]", [("C#",), ("a/b",), (".NET",)]),
    ("[[RAG|retrieval]]", [("RAG|retrieval", "RAG")]),
    ("[[a|b|c]]", [("a|b|c", "a")]),
    ("[[|b]] [[a| ]]", [("|b",), ("a|", "a")]),
    ("[[RAG]] `code`", [("RAG",)]),
    ("an open ` tick [[RAG]]", [("RAG",)]),
    ("`` two [[a]] and one ` [[b]]", [("a",), ("b",)]),
    ("one ` here\n\nand ` there [[RAG]]", [("RAG",)]),
    ("```\ncode\n```\n[[RAG]]", [("RAG",)]),
    ("~~~ text\n``` [[a]]\n~~~\n[[b]]", [("b",)]),
    ("    ```\n[[RAG]]", [("RAG",)]),
]

NOT_FOUND = [
    "",
    "[[]]",
    "[[  ]]",
    "[RAG]",
    "[[RAG]",
    "[[RAG",
    "RAG]]",
    "[[a\n\nb]]",
    "`[[RAG]]`",
    "``[[RAG]] ` ``",
    "`a\n[[RAG]]\nb`",
    "[[a`b`c]]",
    "[[a `b]] c`",
    "```\n[[RAG]]\n```",
    "```\r\n[[RAG]]\r\n```\r\n",
    "~~~\n[[RAG]]\n~~~~",
    "  ```python title\n[[RAG]]\n```",
    "````\n```\n[[RAG]]\n````",
    "```\n\n[[RAG]]\n\n``` no end\n[[RAG]]",
    "```\nnever closed [[RAG]]",
]


def names(text: str) -> list[tuple[str, ...]]:
    """The names of every piece that may be a link."""
    return [piece.names for piece in pieces(text) if piece.names]


@pytest.mark.parametrize(("text", "expected"), FOUND)
def test_brackets_in_prose_are_found(text: str, expected: list[tuple[str, ...]]) -> None:
    """What stands in double brackets outside code is a name, and before a bar perhaps one too."""
    assert names(text) == expected


@pytest.mark.parametrize("text", NOT_FOUND)
def test_code_and_half_brackets_are_left_alone(text: str) -> None:
    """Within code, and where brackets hold nothing or are not closed, there is no name."""
    assert names(text) == []


def test_a_link_is_what_stands_between_the_brackets() -> None:
    """The brackets themselves belong to the text around a link."""
    assert pieces("see [[ RAG ]].") == [
        Piece("see [["),
        Piece(" RAG ", ("RAG",)),
        Piece("]]."),
    ]


# --- the same rules said plainly, without care for time ------------------------------------------


def is_code(text: str) -> list[bool]:
    """For each character whether it stands within code or its marks."""
    code = [False] * len(text)
    opened = ""
    position = 0
    for line in re.split(r"(?<=\n)", text):
        end = position + len(line)
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        rest = line[mark.end() :].rstrip("\r\n") if mark else ""
        if opened:
            code[position:end] = [True] * len(line)
            if mark and mark[1].startswith(opened) and not rest.strip():
                opened = ""
        elif mark and (mark[1][0] == "~" or "`" not in rest):
            code[position:end] = [True] * len(line)
            opened = mark[1]
        position = end
    position = 0
    while position < len(text):
        run = len(text) - position - len(text[position:].lstrip("`"))
        if not run or code[position]:
            position += 1
            continue
        stop = position + run
        while stop < len(text) and not code[stop] and not re.match(r"\n[^\S\n]*\n", text[stop:]):
            length = len(text) - stop - len(text[stop:].lstrip("`"))
            if length == run:
                code[position : stop + run] = [True] * (stop + run - position)
                run += stop - position
                break
            stop += length or 1
        position += run
    return code


def plain_names(text: str) -> list[str]:
    """The names of a text, read off character by character."""
    code = is_code(text)
    found = []
    for start in range(len(text)):
        end = text.find("]]", start)
        inside = text[start + 2 : end] if end > 0 else ""
        if (
            text[start : start + 2] == "[["
            and inside.strip()
            and not set("[]") & set(inside)
            and not re.search(r"\n[^\S\n]*\n", inside)
            and not any(code[start : end + 2])
        ):
            found.append(" ".join(inside.split()))
    return found


fragments = st.sampled_from(
    [
        *("[[", "]]", "[", "]", "`", "``", "```", "````", "~~~", "~~~~", "\n", "\n\n"),
        *("\n```\n", "\n~~~\n", "    ", " ", "a", "RAG", "[[x]]", "|", "\r\n"),
        *("\u2028", "\x0b"),
    ]
)
texts = st.lists(fragments, max_size=25).map("".join)


@given(texts)
@settings(max_examples=600, deadline=None)
@example("`\n \n`[[x]]`")
@example("\n```\n[[x]]\n~~~\n```\n[[x]]")
def test_names_are_those_of_the_plain_definition(text: str) -> None:
    """The names found, in order, are those that the rules of code and brackets leave."""
    assert [found[0] for found in names(text)] == plain_names(text)


@settings(deadline=None)
@given(st.one_of(texts, st.text()))
def test_pieces_put_together_are_the_text(text: str) -> None:
    """Nothing is lost, moved or added, and no piece is empty."""
    cut = pieces(text)
    assert "".join(piece.text for piece in cut) == text
    assert all(piece.text for piece in cut)


@pytest.mark.parametrize(
    "text",
    [
        "`" * 200_000 + "[[x]]",
        "[[" * 200_000,
        "[[a" * 200_000,
        "]]" * 200_000 + "[[x",
        "[[" + "x" * 500_000,
        "".join("`" * (n % 600 + 1) + " " for n in range(2_000)) + "[[a",
        "` `` " * 100_000,
        "[[x\n" * 100_000 + "`",
        "\n" + " " * 400_000 + "` [[",
        ("\n" + " " * 50) * 5_000 + "`[[",
        "~~~\n" * 100_001 + "[[x]]",
        "```a\n" * 100_000,
        "[[\n \n" * 50_000 + "]]`",
        "[[x|" + "|" * 300_000,
    ],
    ids=range(14),
)
def test_hostile_text_takes_no_longer_than_other_text(text: str) -> None:
    """Hundreds of thousands of marks that are never closed are read once, not once for each."""
    assert names(text) in ([], [("x",)])
