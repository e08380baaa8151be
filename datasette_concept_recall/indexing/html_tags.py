"""HTML written anew as a parser likes it, since that of Python needs the square of the time for a
page of tags or comments that never end, which anyone may send in a mail."""

from __future__ import annotations

import re

_MARKUP = re.compile(
    r"""
    <!--(?:-?>|.*?(?:--!?>|\Z))                                        # comments,
    | <[!?][^>]*>?                                                     # declarations,
    | <(?P<raw>script|style)\b[^>]*>?.*?(?:</(?P=raw)\s*>|\Z)          # code,
    | </(?P<end>[a-z][^\s/<>]*)[^<>]*>                                 # ends of elements,
    | <(?P<name>[a-z][^\s/<>"']*)                                      # their beginnings,
      (?:(?P<attributes>(?:[^<>"']|"[^"]*"|'[^']*')*)>|[^<>]*>)
    | <                                                                # and what is text.
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
_ATTRIBUTE = re.compile(
    r"""([^\s"'<>/=]+)(?:\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s"'<>]*)))?""", re.DOTALL
)
_KEPT = {"href", "hidden", "aria-hidden", "style", "role", "colspan", "start"}
"""Attributes that say what is seen and how it becomes Markdown."""


def tidied(html: str) -> str:
    """The HTML without comments, declarations, scripts and styles, with each tag complete.

    Takes time in proportion to the length. Of attributes only those that matter here stay; a tag
    whose quotation marks do not match loses all.
    """
    return _MARKUP.sub(_rewritten, html)


def _rewritten(match: re.Match[str]) -> str:
    if match["end"]:
        return f"</{match['end']}>"
    if match["name"]:
        return f"<{match['name']}{_attributes(match['attributes'] or '')}>"
    return "&lt;" if match[0] == "<" else ""


def _attributes(written: str) -> str:
    kept = []
    for name, *values in _ATTRIBUTE.findall(written):
        if name.lower() in _KEPT:
            value = "".join(values).replace('"', "&quot;")
            kept.append(f' {name}="{value}"')
    return "".join(kept)
