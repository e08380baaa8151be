"""What the stages of the pipeline hand to each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, NamedTuple

SOURCE_TYPES = ("observation", "record", "document_gist", "document_section")
"""Every ``source_type`` of a knowledge database, in the order that breaks ties of rank (documents
as one). Other databases have a type for each of their sources."""

Layer = Literal["concept", "lexical", "semantic"]
"""What finds items: the concepts that they carry, their words, or the meaning of their text."""

Mode = Literal["auto", "concept", "lexical", "semantic"]
"""Which layers are asked; ``auto``: the concepts, and the others when these found too little."""

MODES: tuple[Mode, ...] = ("auto", "concept", "lexical", "semantic")

Key = int | str
"""What tells the items of a source, the projects or the concepts of a database apart."""


@dataclass(frozen=True)
class ConceptMention:
    """One place where a text names a concept.

    ``concept`` is the stored spelling; ``text[start:end]`` of the original text is what was read.
    """

    concept: str
    start: int
    end: int


class NearMiss(NamedTuple):
    """A concept that a text does not name, and words of the text that nearly do.

    ``text[start:end]`` of the original text is ``text`` here; ``distance`` (1 or 2) is the number
    of edits between the two, after folding.
    """

    concept: str
    text: str
    start: int
    end: int
    distance: int


class LayerHit(NamedTuple):
    """Why an item was found: the place (from 1) that a layer gave it.

    ``words`` are the words of its text that the question has too, ``similarity`` the cosine between
    it and the question (-1 to 1), None of the layers that know none.
    """

    layer: Layer
    rank: int
    words: tuple[str, ...] = ()
    similarity: float | None = None


@dataclass(frozen=True)
class ConceptMatch:
    """One item that was found, nearly always by the concepts that it is tagged with.

    ``source_type`` is that of its source and ``kind`` what a person calls it. ``key`` are the
    values by which the row of ``item_table`` is addressed (in the spelling of the database), and
    ``id`` is the only one of them, or all as a text. ``match_count`` is the length of ``concepts``,
    which are in the order asked: 0 of what only other layers found, which ``layers`` names.
    ``body`` is empty for a document whose summary is not reviewed. ``created_at`` is aware and in
    UTC, or None when missing or unreadable. ``summary_status`` and ``summary_stale`` are None
    except for documents, ``status`` except for records. ``superseded_by`` holds references such as
    ``"record:12"``. Of a document in an index ``body`` is the chunk that carries most of the
    concepts, ``passage`` its number and ``place`` where in the document it stands, such as ``page
    3``; both are None of other items.
    """

    source_type: str
    id: Key
    project_id: Key | None
    project: str | None
    title: str
    body: str
    match_count: int
    concepts: tuple[str, ...]
    created_at: datetime | None
    summary_status: str | None = None
    summary_stale: bool | None = None
    status: str | None = None
    superseded_by: tuple[str, ...] = ()
    kind: str = ""
    item_table: str = ""
    key: tuple[object, ...] = ()
    place: str | None = None
    passage: int | None = None
    layers: tuple[LayerHit, ...] = ()

    @property
    def ref(self) -> str:
        """A short name of the item, unique in its database: ``record:12``."""
        return f"{self.source_type}:{self.id}"


class RankKey(NamedTuple):
    """The place of an item in the total order of a recall; smaller comes first.

    ``fewness`` is minus the number of concepts carried, ``age`` minus the microseconds since the
    year 1 (`NO_INSTANT` when the time is unreadable), ``source`` the position of its source, all of
    whose items have a whole number as ``id`` or all a text. What only other layers found has a
    ``fewness`` of 0, and as ``age`` its rank (from 1) among that.
    """

    fewness: int
    age: int
    source: int
    id: Key


NO_INSTANT = 1
"""The ``age`` of an item without a readable time: after every real one, which is 0 or less."""


class Candidate(NamedTuple):
    """An item found through its links, before anything but its time was read.

    Bit n of ``carried`` is set when the item carries the n-th asked name.
    """

    key: RankKey
    source_type: str
    project_id: Key | None
    carried: int


@dataclass(frozen=True)
class Item:
    """A match with its place in the order of a recall and the rank (from 1) that this gives it.

    ``database`` is the name of its database where there are several.
    """

    match: ConceptMatch
    place: RankKey
    rank: int
    database: str | None = None


@dataclass(frozen=True)
class Used:
    """An item of a context, there with its ``whole`` text or with an excerpt."""

    item: Item
    whole: bool


@dataclass(frozen=True)
class Context:
    """The Markdown that fits a budget, empty or ending in a line break, and what it was made of.

    ``tokens`` is its size. All items are in rank order: ``used`` are those in it, ``skipped``
    those that did not fit, and ``looked_at`` all of both and those with nothing to say.
    """

    text: str
    tokens: int
    used: tuple[Used, ...]
    skipped: tuple[Item, ...]
    looked_at: tuple[Item, ...]


@dataclass(frozen=True)
class ConceptCount:
    """A concept that is asked for: how often the text names it, how many items carry it.

    ``total`` counts every item the asker may see, whatever kinds or project it is narrowed to.
    """

    name: str
    mentions: int
    total: int


@dataclass(frozen=True)
class RecallRequest:
    """What is asked: the names found in ``text`` together with ``names``.

    ``types`` (source types; empty: all) and ``project`` narrow the answer, ``limit`` cuts it
    (None or less than 1: not at all) and ``after`` starts it behind that place. ``facets`` asks
    for the counts by type and project as well. With a ``budget`` (tokens, 1 or more) the answer
    is what of it fits into a context of that size. Without ``near_misses`` none are looked for.
    ``mode`` says which layers answer.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    project: str | None = None
    types: frozenset[str] = frozenset()
    limit: int | None = None
    after: RankKey | None = None
    facets: bool = False
    budget: int | None = None
    near_misses: bool = True
    mode: Mode = "concept"


@dataclass(frozen=True)
class RecallResult:
    """The answer to a `RecallRequest`.

    ``concepts`` are the names used, ``matches`` the ranked items and ``places`` their ranks,
    ``projects`` the names of projects tagged with one of the concepts, ``total`` how many items
    there are before the limit.
    ``type_counts`` and ``project_counts`` say, when asked for, how many items each narrowing
    would leave, the project None standing for items of no project. ``first_rank`` is the rank
    (from 1) of the first match, ``next_key`` the place to go on from, None at the end.
    ``unknown`` are the names given that are no concepts, ``near_misses`` those that the text nearly
    names; nothing is recalled for them. With a budget, ``context`` is there, the
    matches are those in it, and the place to go on from is behind the last item looked at.
    ``wants_layers`` tells that concepts found less than was asked for, and that the request lets
    the other layers answer, which were not asked yet.
    """

    concepts: list[str]
    matches: list[ConceptMatch]
    projects: list[str]
    total: int
    counts: list[ConceptCount] = field(default_factory=list)
    mentions: list[ConceptMention] = field(default_factory=list)
    type_counts: dict[str, int] = field(default_factory=dict)
    project_counts: dict[str | None, int] = field(default_factory=dict)
    first_rank: int = 1
    places: list[RankKey] = field(default_factory=list)
    next_key: RankKey | None = None
    unknown: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    context: Context | None = None
    near_misses: list[NearMiss] = field(default_factory=list)
    wants_layers: bool = False
