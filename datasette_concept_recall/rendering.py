"""The text that stands for a record where it is embedded or searched word by word.

The statement comes first; what surrounds it follows in lines of prose, one for each field that is
there. How much of it is wanted is named by a `Rendering`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

Rendering = Literal["statement", "predicate", "frontmatter", "aliases", "full"]

RENDERINGS: tuple[Rendering, ...] = get_args(Rendering)

DEFAULT_RENDERING: Rendering = "full"
"""What the small default embedder finds most by; a larger one may do better with less."""

_TEXTS = ("subject", "kind", "predicate", "location", "qualifier", "temporal_scope")
_LISTS = ("entities", "tags", "aliases")


@dataclass(frozen=True)
class RecordText:
    """What a record says, and the fields around it. Empty, blank and None all mean absent."""

    statement: str | None
    subject: str | None = ""
    kind: str | None = ""
    predicate: str | None = ""
    entities: tuple[str, ...] = ()
    location: str | None = ""
    qualifier: str | None = ""
    temporal_scope: str | None = ""
    tags: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()


def predicate_line(record: RecordText) -> str:
    """``Kind: <kind> <predicate>``, only the one that is there, or ``""`` without both.

    Underscores become spaces in the predicate and nowhere else: a predicate is a phrase spelled as
    an identifier, all other fields are names that are kept as they are written.
    """
    phrase = (record.predicate or "").replace("_", " ")
    return _line("Kind", f"{record.kind or ''} {phrase}")


def frontmatter_prose(record: RecordText) -> str:
    """About, Kind, Mentions, Place, When, Holds: a line for each that is there, ``""`` for none."""
    return _lines(
        _line("About", record.subject),
        predicate_line(record),
        _list_line("Mentions", record.entities),
        _line("Place", record.location),
        _line("When", record.qualifier),
        _line("Holds", record.temporal_scope),
    )


def names_and_tags(record: RecordText) -> str:
    """``Also called: <aliases>`` and ``Tags: <tags>``, each only when there are any."""
    return _lines(_list_line("Also called", record.aliases), _list_line("Tags", record.tags))


def context_text(record: RecordText) -> str:
    """Everything but the statement."""
    return _lines(frontmatter_prose(record), names_and_tags(record))


def search_text(record: RecordText) -> str:
    """What lexical search reads besides the statement and the subject: the values without the words
    that stand before them, which would be found in every record. Kind and temporal scope are left
    out for the same reason: "which decision" would find every decision."""
    predicate = (record.predicate or "").replace("_", " ")
    texts = map(_one_line, (predicate, record.location, record.qualifier))
    lists = (", ".join(_distinct(n)) for n in (record.entities, record.aliases, record.tags))
    return _lines(*texts, *lists)


def subject_text(record: RecordText) -> str:
    """The subject on one line; it stands apart since not everybody may see it."""
    return _one_line(record.subject)


def names_of(record: RecordText) -> list[str]:
    """The names by which a question may call what a record is about: its subject, entities and
    aliases, each once."""
    return _distinct([record.subject or "", *record.entities, *record.aliases])


_ADDED: dict[Rendering, Callable[[RecordText], str]] = {
    "statement": lambda record: "",
    "predicate": predicate_line,
    "frontmatter": frontmatter_prose,
    "aliases": names_and_tags,
    "full": context_text,
}


def embedding_text(record: RecordText, rendering: Rendering = DEFAULT_RENDERING) -> str:
    """The statement as it is written, then what the rendering adds, beginning on a new line.

    Nothing is added to a blank statement: a record that says nothing must not be found by what is
    around it, and whoever embeds can tell by the blank text. A name that is none of `RENDERINGS`
    is a KeyError.
    """
    statement, added = record.statement or "", _ADDED[rendering](record)
    if not added or not statement.strip():
        return statement
    return statement + ("" if statement.endswith("\n") else "\n") + added


def as_json(record: RecordText) -> str:
    """The fields but the statement as compact JSON, with neither blanks nor repeated names.

    Absent fields have no key, and a record without any is ``""``. What `from_json` makes of it
    renders as this record does. Text is not escaped, so a lone surrogate stays one.
    """
    texts = {name: _one_line(getattr(record, name)) for name in _TEXTS}
    lists = {name: _distinct(getattr(record, name)) for name in _LISTS}
    held = {name: value for name, value in {**texts, **lists}.items() if value}
    return json.dumps(held, ensure_ascii=False, separators=(",", ":")) if held else ""


def from_json(text: str) -> RecordText:
    """The record, without its statement, that `as_json` wrote.

    Whatever it cannot have written counts as absent: broken JSON and what is not an object give an
    empty record, a field of another shape or an unknown key is left out. So an index that another
    version wrote is poorer by that, and still read.
    """
    empty = RecordText("")
    try:
        held = json.loads(text)
    except (ValueError, RecursionError):
        return empty
    if not isinstance(held, dict):
        return empty
    fields: dict[str, Any] = {name: held[name] for name in _TEXTS if _is_text(held.get(name))}
    for name in _LISTS:
        if isinstance(names := held.get(name), list):
            fields[name] = tuple(filter(_is_text, names))
    return replace(empty, **fields)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _one_line(text: str | None) -> str:
    return " ".join((text or "").split())


def _distinct(names: Iterable[str]) -> list[str]:
    """The names on one line each, without blank ones, at their first place only."""
    return [name for name in dict.fromkeys(map(_one_line, names)) if name]


def _line(label: str, text: str | None) -> str:
    value = _one_line(text)
    return f"{label}: {value}" if value else ""


def _list_line(label: str, names: Iterable[str]) -> str:
    return _line(label, ", ".join(_distinct(names)))


def _lines(*parts: str) -> str:
    return "\n".join(filter(None, parts))
