"""A text that is stored in pieces, which may repeat the end of the one before."""

from __future__ import annotations

from collections.abc import Sequence


def joined(pieces: Sequence[tuple[str, int, int]]) -> tuple[str, list[tuple[int, int]]]:
    """The text of chunks (text, start, end) without what is said twice, and where each of them
    begins and ends in it; what was only blank between two chunks is a line break."""
    text = ""
    spans: list[tuple[int, int]] = []
    end_before = 0
    for chunk, start, end in pieces:
        repeated = max(0, end_before - start)
        if start > end_before:
            text += "\n"
        begin = len(text) - repeated
        text += chunk[repeated:]
        spans.append((begin, len(text)))
        end_before = max(end_before, end)
    return text, spans
