"""Which concepts a text names: by links, by tags and properties of its notes, by mentions.

Code and comments name nothing. They are told apart from left to right, since either may hold what
would begin the other. All of this takes time that follows the length of the text.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import takewhile
from typing import Literal, NamedTuple
from unicodedata import category

from ..matching import ConceptMatcher, can_match
from ..models import ConceptMention

LONGEST_NAME = 200
"""Characters; what is longer is no name of a concept."""

_FRONT_MATTER_LIMIT = 64 * 1024

Origin = Literal["link", "property", "hashtag"]


class Named(NamedTuple):
    """A concept that a text names: ``text[start:end]`` is where its name stands."""

    name: str
    start: int
    end: int
    origin: Origin


def named_in(text: str, *, markdown: bool) -> list[Named]:
    """Every place in which the text names a concept on purpose, in the order of the text.

    Counted are ``[[Name]]`` with or without an alias, a heading, a folder or an embedding mark,
    and in Markdown also ``#tags`` and the tags, keywords and aliases of the front matter.
    """
    body = _front_matter_end(text) if markdown else 0
    found = [*_properties(text, body), *_links(text, 0, body)]
    for start, end in _visible(text, body):
        found += _links(text, start, end)
        if markdown:
            found += _hashtags(text, start, end)
    return sorted(found, key=lambda named: named.start)


def mentioned(
    text: str, matcher: ConceptMatcher, *, at_least: int = 2
) -> dict[str, list[tuple[int, int]]]:
    """The names of the matcher that the text mentions so many times or more, and where.

    Names come in the order of their first mentions; code, comments, addresses and the tags of
    HTML do not count.
    """
    mentions = _outside_addresses(text, matcher.mentions(text, at_least=at_least))
    if not mentions:
        return {}
    visible = _visible(text)
    since, upto = next(visible)
    found: dict[str, list[tuple[int, int]]] = {}
    for mention in mentions:
        while upto <= mention.start:  # the last stretch goes on to the end of the text
            since, upto = next(visible)
        if since <= mention.start and mention.end <= upto:
            found.setdefault(mention.concept, []).append((mention.start, mention.end))
    return {name: spans for name, spans in found.items() if len(spans) >= at_least}


_address = re.compile(
    r"\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>]*|\bwww\.[^\s<>]*|<[A-Za-z/!][^<>]*>"
).finditer


def _outside_addresses(text: str, mentions: list[ConceptMention]) -> list[ConceptMention]:
    """The mentions, in their order, that are no part of an address or of a tag of HTML."""
    if not mentions or not ("://" in text or "www." in text or "<" in text):
        return mentions
    spans = [match.span() for match in _address(text)]
    starts = [start for start, _ in spans]

    def stands_inside(mention: ConceptMention) -> bool:
        before = bisect_right(starts, mention.start) - 1
        return before >= 0 and mention.start < spans[before][1]

    return [mention for mention in mentions if not stands_inside(mention)]


# --- names ----------------------------------------------------------------------------------------

_citation_or_number = re.compile(r"dr-\d+|[+-]?\d+(?:[.,]\d+)*", re.IGNORECASE).fullmatch


_control = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]").search


def _clean(name: str) -> str | None:
    """The name as it is kept, or None where it cannot be the name of a concept."""
    name = " ".join(name.split())
    if len(name) > LONGEST_NAME or not can_match(name) or _citation_or_number(name):
        return None
    return None if _control(name) else name


def _named(text: str, start: int, end: int, origin: Origin) -> Iterator[Named]:
    """What is named by this stretch of the text without the blank space around it, if anything."""
    raw = text[start:end]
    name = _clean(raw)
    if name:
        start += len(raw) - len(raw.lstrip())
        yield Named(name, start, start + len(raw.strip()), origin)


# --- links ----------------------------------------------------------------------------------------

_LINK = r"\[\[((?:[^\[\]\n]|\n(?![^\S\n]*\n))+)\]\]"  # over lines, but not over a blank one
_link = re.compile(_LINK).finditer
_heading = re.compile(r"#(?=[^\s#])").search  # the # of ``C#`` begins none
_file = re.compile(
    r".+\.(?:apng|avif|bmp|gif|heic|ico|jpe?g|png|svg|tiff?|webp"
    r"|aac|flac|m4a|mp3|og[agv]|opus|wav|avi|m4v|mkv|mov|mp4|webm"
    r"|canvas|csv|docx?|epub|html?|json|od[st]|pdf|pptx?|rtf|txt|xlsx?|zip)\s*",
    re.IGNORECASE | re.DOTALL,
).fullmatch
_note_suffix = re.compile(r"\.(?:md|markdown)\s*\Z", re.IGNORECASE).sub


def _links(text: str, first: int, last: int) -> Iterator[Named]:
    for link in _link(text, first, last):
        start, target = link.start(1), link[1]
        target, bar, _ = target.partition("|")
        if bar:  # which in tables stands behind a backslash
            target = target.removesuffix("\\")
        heading = _heading(target)
        if heading:
            target = target[: heading.start()]
        if "://" in target:
            continue
        start, target = start + target.rfind("/") + 1, target.rpartition("/")[2]
        if not _file(target):
            yield from _named(text, start, start + len(_note_suffix("", target)), "link")


# --- hashtags -------------------------------------------------------------------------------------

# Links, their destinations, HTML tags and addresses are passed over; what stands before a tag is
# blank space or a bracket. Each alternative stops where it could begin anew, or it would be slow,
# and begins with a character of its own, for which `re` looks quickly.
_HASHTAG = r"#(?<![^\s(]#)(?<!\]\(#)(?<!\]: #)([^\s!-,.:-@\[-^`{-~]+)"
_may_be_hashtag = re.compile(_HASHTAG).search
_hashtag = re.compile(
    _LINK + r"|\]\([^()\n]*\)|<[A-Za-z/][^<>]*>|://\S*"
    rf"|{_HASHTAG}"
).finditer
_colour = re.compile(r"(?:[0-9a-f]{3}){1,2}|[0-9a-f]{8}", re.IGNORECASE).fullmatch


def _hashtags(text: str, first: int, last: int) -> Iterator[Named]:
    if not _may_be_hashtag(text, first, last):
        return
    for match in _hashtag(text, first, last):
        tag = _tag(match[2] or "").rstrip("/")
        if any(map(str.isalpha, tag)) and tag[0] != "/" and not _is_colour(tag):
            yield from _named(text, match.start(2), match.start(2) + len(tag), "hashtag")


def _tag(run: str) -> str:
    """As much from the beginning of a run as can be in a tag."""
    if run.isascii() and run.isprintable():  # without what the expression above leaves out
        return run
    return "".join(takewhile(_in_tag, run))


def _in_tag(character: str) -> bool:
    kind = category(character)
    return kind[0] in "LMN" or kind == "So" or character in "-_/\u200c\u200d"


def _is_colour(tag: str) -> bool:
    """``#1a2b3c`` and ``#fff`` are colours, while ``#facade`` is a word."""
    return bool(_colour(tag)) and (not tag.isalpha() or len(set(tag.lower())) == 1)


# --- front matter ---------------------------------------------------------------------------------

_front_matter_begin = re.compile(r"\ufeff?---[ \t]*\r?\n").match
_front_matter_close = re.compile(r"^(?:---|\.\.\.)[ \t]*\r?$\n?", re.MULTILINE).search
_key = re.compile(
    r"""^(["']?)(?:tags?|keywords|aliases|alias)\1[ \t]*:(?=\s)[ \t]*""",
    re.MULTILINE | re.IGNORECASE,
).finditer
_QUOTED = r""""(?:[^"\\\n]|\\[^\n])*"|'(?:[^'\n]|'')*'"""
_quoted = re.compile(rf"({_QUOTED})\s*(?:#.*)?").fullmatch
_flow_begin = re.compile(r"(?:\r?\n[ \t]+)?\[").match
_flow_item = re.compile(rf"\s*(?:({_QUOTED})\s*([,\]])|([^,\[\]{{}}\n]*)\s*([,\]]?))").match
_line = re.compile(r"[^\n]+").finditer
_comment = re.compile(r"\s#|^#(?!\S)").search
_no_string = re.compile(r"[&*!|>%@`{[].*|.*:(?: .*)?|null|~|true|false", re.I | re.S).fullmatch
_between_commas = re.compile(r"[^,]+").finditer


def _front_matter_end(text: str) -> int:
    """Where the text behind the front matter begins: 0 where there is none, or no end of it."""
    begin = _front_matter_begin(text)
    close = _front_matter_close(text, begin.end(), _FRONT_MATTER_LIMIT) if begin else None
    return close.end() if close else 0


def _properties(text: str, last: int) -> Iterator[Named]:
    """What the few properties that hold names hold, in the few forms in which people write them.

    Nothing else of YAML is read: what begins with a mark of it (an anchor, a type) is no name.
    """
    for key in _key(text, 0, last):
        rest = text[key.end() : text.find("\n", key.end(), last)]
        if flow := _flow_begin(text, key.end(), last):
            spans = _flow_items(text, flow.end(), last)
        elif rest.strip() and not _comment(rest, 0, 2):
            spans = _one_string(text, key.end(), key.end() + len(rest))
        else:
            spans = _block_items(text, key.end(), last)
        for start, end in spans:
            yield from _scalar(text, start, end)


def _flow_items(text: str, position: int, last: int) -> Iterator[tuple[int, int]]:
    while item := _flow_item(text, position, last):
        yield item.span(1 if item[1] else 3)
        position = item.end()
        if (item[2] or item[4]) != ",":
            return


def _block_items(text: str, position: int, last: int) -> Iterator[tuple[int, int]]:
    for line in _line(text, position, last):
        item = line[0].strip()
        if item and item != "-" and item[0] != "#":
            if not item.startswith(("- ", "-\t")):
                return
            yield line.start() + line[0].index("-") + 1, line.end()


def _one_string(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of ``a, b`` or of ``"a, b"``."""
    quoted = _quoted(text[start:end])
    if quoted and "," not in quoted[1]:
        yield start, end
        return
    if quoted:
        start, end = start + 1, start + quoted.end(1) - 1
    for part in _between_commas(text, start, end):
        yield part.span()
        if not quoted and _comment(part[0].strip()):
            return


def _scalar(text: str, start: int, end: int) -> Iterator[Named]:
    """What one value names: a string in quotes or without."""
    raw = text[start:end]
    start, raw = start + len(raw) - len(raw.lstrip()), raw.strip()
    quote = raw[:1] if raw[:1] in ("'", '"') else ""
    if quote:
        quoted = _quoted(raw)
        start, raw = start + 1, quoted[1][1:-1] if quoted else ""
    elif comment := _comment(raw):
        raw = raw[: comment.start()]
    if not quote and _no_string(raw):
        return
    hash_mark = len(raw) - len(raw.removeprefix("#"))
    for named in _named(text, start + hash_mark, start + len(raw), "property"):
        name = _clean(_unescaped(named.name, quote))
        if name and "[" not in name and "]" not in name:  # of links there is told elsewhere
            yield named._replace(name=name)


def _unescaped(name: str, quote: str) -> str:
    if quote == "'":
        return name.replace("''", "'")
    if quote != '"' or "\\" not in name:
        return name
    try:
        return str(json.loads(f'"{name}"', strict=False))
    except ValueError:  # an escape that only YAML knows
        return ""


# --- code and comments ----------------------------------------------------------------------------

_INDENT = 3
_FENCE = rf"^ {{0,{_INDENT}}}(?:`{{3,}}[^`\n]*|~{{3,}}[^\n]*)$"
_may_open = re.compile("`|~~~|<!--|%%").search  # quick, since each begins with a character
_opening = re.compile(rf"({_FENCE})|(`+)|<!--|%%", re.MULTILINE).search
_fence = re.compile(_FENCE, re.MULTILINE).finditer
_backticks_or_break = re.compile(rf"{_FENCE}|^[^\S\n]*\n|(`+)", re.MULTILINE).finditer


def _visible(text: str, first: int = 0) -> Iterator[tuple[int, int]]:
    """The stretches from a place on that are neither code nor a comment; at least one.

    A fence that is never closed goes on to the end; code spans and comments that are not closed
    are text.
    """
    spans: dict[int, int] | None = None
    last_of = {"<!--": text.rfind("-->"), "%%": text.rfind("%%")}
    start = position = first
    while mark := _may_open(text, position):
        opening = _opening(text, max(position, mark.start() - _INDENT))
        if opening is None:
            break
        if opening[1]:
            end = _fence_end(text, opening)
        elif opening[2]:
            spans = _code_spans(text, first) if spans is None else spans
            end = spans.get(opening.start(), -1)
        else:
            end = _comment_end(text, opening, last_of[opening[0]])
        position = end if end > 0 else opening.end()
        if end > 0:
            yield start, opening.start()
            start = end
    yield start, len(text)


def _comment_end(text: str, opening: re.Match[str], last: int) -> int:
    """Where a comment ends, or -1. ``last`` is the last of all that could close it."""
    # The dashes of ``<!-->`` are those of its end too.
    closing, start = ("%%" if opening[0] == "%%" else "-->"), opening.start() + 2
    return text.find(closing, start) + len(closing) if start <= last else -1


def _fence_end(text: str, opening: re.Match[str]) -> int:
    mark = opening[0].strip()
    mark = mark[: len(mark) - len(mark.lstrip(mark[0]))]
    for line in _fence(text, opening.end()):
        closing = line[0].strip()
        if closing.startswith(mark) and not closing.strip(mark[0]):
            return line.end()
    return len(text)


def _code_spans(text: str, first: int) -> dict[int, int]:
    """Where the code spans end that would begin with the runs of backticks at these places: behind
    the next run of the same length in the same paragraph."""
    ends: dict[int, int] = {}
    latest: dict[int, int] = {}
    for match in reversed(list(_backticks_or_break(text, first))):
        if not match[1]:
            latest.clear()
            continue
        length = len(match[1])
        if length in latest:
            ends[match.start()] = latest[length]
        latest[length] = match.end()
    return ends
