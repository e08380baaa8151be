"""What of a recall fits into a prompt: Markdown within a budget of tokens.

Every item is a heading, a list of what is known about it, and its text as a block quote::

    ## Record: Use honey
    - ref: record:12
    - date: 2026-01-15
    - status: superseded by record:14
    - project: Breakfast
    - concepts: honey, toast

    > The text, every line of it behind a sign.

So no text can be taken for another item's heading: a line that begins otherwise than with ``>`` is
none of the text, and titles and names, which stand outside of it, have no line break.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from .excerpts import ELLIPSIS, first_line
from .matching import ConceptMatcher
from .models import ConceptMatch, Context, Item, Used

BYTES_PER_TOKEN = 4
"""A token counts as so many bytes of UTF-8: near enough for every tokenizer, and needs none."""

LARGEST_BUDGET = 100_000
"""The most tokens that may be asked for."""

_MOST_SKIPPED = 50
"""After so many items that did not fit no more are tried for the room that is left."""

_SHORTEST_EXCERPT = 120
"""An excerpt of fewer bytes says too little to be worth its heading."""

_FIRST_EXCERPT = 600
"""An excerpt has at most so many bytes until it is known that nothing else needs the room."""

_SEARCHED = (2_000, 10_000, 50_000)
"""So many characters of a text are searched for a mention; more only if there is none in fewer."""

_NEAR = 60
"""Excerpts are cut between words where there is a space so many characters near."""

_LONGEST_VALUE = 200

# What a terminal would obey, and what would show the rest of its line in another order.
_UNSEEN = "\x00-\x08\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069"
_without_unseen = re.compile(f"[{_UNSEEN}]").sub
_visible = re.compile(rf"[^\s{_UNSEEN}]").search
_space = re.compile(r"\s").search


def tokens_of(text: str) -> int:
    """The tokens of a text: its bytes in UTF-8, divided by four, rounded up."""
    return -(-_size(text) // BYTES_PER_TOKEN)


def fit(
    items: Iterable[Item], budget: int, matcher: ConceptMatcher, limit: int | None = None
) -> Context:
    """The context of at most ``budget`` tokens and ``limit`` items (1 or more, None: any number).

    ``items`` come in rank order, of one database or several, and are taken one by one: each with
    its whole text when that fits into what is left, else with an excerpt around the first mention
    of one of the matcher's names, or of the words it was found by, else not at all. No more are
    taken when the limit is reached,
    when not even the smallest item would fit, and when 50 did not. Room that is left then makes
    excerpts longer, the first in rank first. An item with nothing to say is passed over.
    """
    room = BYTES_PER_TOKEN * budget + 1  # each part is counted with an empty line before it
    parts: list[_Part] = []
    skipped: list[Item] = []
    looked_at: list[Item] = []
    for item in items:
        looked_at.append(item)
        if _says_something(item.match):
            part = _part(item, room, matcher, _FIRST_EXCERPT)
            if part is None:
                skipped.append(item)
            else:
                parts.append(part)
                room -= part.size
        if len(parts) == limit or len(skipped) == _MOST_SKIPPED or room < _SMALLEST:
            break
    text = "\n".join(part.markdown for part in _lengthened(parts, room, matcher))
    used = tuple(Used(part.item, part.whole) for part in parts)
    return Context(text, tokens_of(text), used, tuple(skipped), tuple(looked_at))


@dataclass(frozen=True)
class _Part:
    """One item as it stands in a context."""

    item: Item
    markdown: str
    whole: bool

    @property
    def size(self) -> int:
        """Its bytes, with those of the empty line before it."""
        return _size(self.markdown) + 1


def matcher_for(match: ConceptMatch, names: ConceptMatcher) -> ConceptMatcher:
    """What knows the places of a text that show why it was found: those of the concepts asked for,
    or where other layers found it of its words that the question has."""
    words = {word for hit in match.layers for word in hit.words}
    return ConceptMatcher(words) if match.layers else names


def _part(item: Item, room: int, matcher: ConceptMatcher, longest: int) -> _Part | None:
    """The item in at most so many bytes, an excerpt in at most ``longest``; None for no room."""
    head = _head(item)
    room -= _size(head) + 1
    body = item.match.body.strip()
    if not _visible(body):
        return _Part(item, head, True) if room >= 0 else None
    room -= 2  # the line breaks around the text
    if len(body) <= 2 * room:  # a longer one does not fit, unless it is mostly blanks
        quote = _quoted(_clean(body))
        if _size(quote) <= room:
            return _Part(item, f"{head}\n{quote}\n", True)
    quote = _excerpt(body, matcher_for(item.match, matcher), min(room, longest))
    return _Part(item, f"{head}\n{quote}\n", False) if quote else None


def _lengthened(parts: Sequence[_Part], room: int, matcher: ConceptMatcher) -> Iterator[_Part]:
    """The parts, their excerpts longer where there is room left."""
    for part in parts:
        shown = part
        if not part.whole and room >= _SHORTEST_EXCERPT:
            room += part.size
            shown = _part(part.item, room, matcher, room) or part
            room -= shown.size
        yield shown


def _says_something(match: ConceptMatch) -> bool:
    """Whether there is a text, or a title that is more than that of a document to be reviewed."""
    if _visible(match.body):
        return True
    return match.summary_status is None and _visible(match.title) is not None


def _head(item: Item) -> str:
    """The heading of an item and the list of what is known about it, a line each."""
    match = item.match
    title, kind = _value(match.title), _value(match.kind)
    fields = {
        "ref": match.ref,
        "database": item.database,
        "date": match.created_at.date().isoformat() if match.created_at else None,
        "status": _status(match),
        "project": match.project,
        "place": match.place,
        "concepts": _listed(match.concepts),
        "found by": ", ".join(_found_by(match)),
    }
    lines = [f"## {kind}: {title}" if title else f"## {kind}"]
    lines += [f"- {name}: {_value(value)}" for name, value in fields.items() if value]
    return "\n".join(lines) + "\n"


_SMALLEST = len("\n## K: t\n- ref: r\n- concepts: c\n")
"""Nothing fits into fewer bytes: every item has a kind, a ref, a concept (or what it was found by,
which is longer), and a title or a text."""


def _status(match: ConceptMatch) -> str:
    """Whether the item still holds, and whether its text is what its document says."""
    words = []
    if match.superseded_by:
        words.append("superseded by " + _listed(match.superseded_by))
    if match.status and not (match.superseded_by and match.status in ("accepted", "superseded")):
        words.append(match.status)
    if match.summary_status:
        words.append(f"{match.summary_status} summary")
    if match.summary_stale:
        words.append("out of date")
    return ", ".join(words)


def _found_by(match: ConceptMatch) -> Iterator[str]:
    """Which layers found an item that carries none of the concepts."""
    for hit in match.layers:
        words = f" ({_listed(hit.words)})" if hit.words and hit.layer == "lexical" else ""
        yield {"lexical": "words", "semantic": "meaning"}.get(hit.layer, hit.layer) + words


def _listed(names: Sequence[str]) -> str:
    """As many of the names as fit into a value, each whole or cut, and how many more there are."""
    shown = [first_line(_clean(name), 60) for name in names]
    count, length = 0, 0
    while count < len(shown) and length + len(shown[count]) <= _LONGEST_VALUE - _NEAR:
        length += len(shown[count]) + 2
        count += 1
    more = [f"{len(names) - count} more"] if count < len(names) else []
    return ", ".join([*shown[:count], *more])


def _value(text: str) -> str:
    """A title or name on one line, cut when it is long."""
    return first_line(_clean(text), _LONGEST_VALUE)


def _clean(text: str) -> str:
    """The text with one kind of line break, and without what cannot be seen."""
    lines = (_without_unseen(" ", line).rstrip() for line in text.splitlines())
    return "\n".join(lines).strip("\n")


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" if line else ">" for line in text.split("\n"))


def _excerpt(body: str, matcher: ConceptMatcher, room: int) -> str:
    """As much of a text as fits around its first mention, quoted; empty if too little does.

    A text that mentions none of the names is shown from its beginning.
    """
    room -= len(_quoted("")) + 1 + 2 * _size(ELLIPSIS)
    if room < _SHORTEST_EXCERPT:
        return ""
    reach = _SEARCHED[-1] + room  # nothing behind it could be shown, wherever the mention is
    text, is_all = _clean(body[:reach]), len(body) <= reach
    first, last = _first_mention(text, is_all, matcher)
    start = _start(text, first, first, room // 4)
    end = _end(text, start, last, room)
    if end == len(text):  # it ends sooner than the room, so it may begin sooner as well
        start = _start(text, start, end, room)
    shown = text[start:end].strip()
    before = ELLIPSIS if start else ""
    after = "" if is_all and end == len(text) else ELLIPSIS
    return _quoted(before + shown + after) if shown else ""


def _first_mention(text: str, is_all: bool, matcher: ConceptMatcher) -> tuple[int, int]:
    """From where to where the first mention is, at the beginning if there is none."""
    for length in _SEARCHED:
        searched = text[:length]
        for mention in matcher.mentions(searched):
            # What ends where the search ends may go on as another word.
            if mention.end < len(searched) or (is_all and len(searched) == len(text)):
                return mention.start, mention.end
        if length >= len(text):
            break
    return 0, 0


def _start(text: str, latest: int, end: int, room: int) -> int:
    """Where the longest stretch up to ``end`` begins that fits, at a word if one begins nearby."""
    earliest = max(0, end - room)
    start = _first_place(earliest, latest, lambda at: _cost(text[at:end]) <= room)
    if start == 0:
        return 0
    space = _space(text, start - 1, min(start + _NEAR, latest))
    return space.end() if space else start


def _end(text: str, start: int, earliest: int, room: int) -> int:
    """Where the longest stretch from ``start`` ends that fits, behind a word if one ends nearby."""
    beyond = min(len(text), start + room) + 1
    end = _first_place(start, beyond, lambda at: _cost(text[start:at]) > room) - 1
    if end == len(text) or text[end].isspace():
        return end
    near = max(start, earliest if earliest <= end else 0, end - _NEAR)
    cut = next((at for at in range(end - 1, near - 1, -1) if text[at].isspace()), end)
    return cut if _visible(text, start, cut) else end


def _first_place(start: int, end: int, holds: Callable[[int], bool]) -> int:
    """The first place from ``start`` on where something holds that holds from there on.

    It is ``end`` when there is none before.
    """
    return start + bisect_left(range(start, end), True, key=holds)


def _cost(text: str) -> int:
    """How many bytes a text takes when it is quoted, but for the sign before its first line."""
    return _size(text) + 2 * text.count("\n")


def _size(text: str) -> int:
    return len(text.encode())
