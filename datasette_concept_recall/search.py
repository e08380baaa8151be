"""The one pipeline: text and names to concepts, concepts to candidates, candidates to matches.

Where concepts find less than was asked for the other layers are asked, and what these found comes
behind. They may have to look into another database, so that is done between two calls. The page,
the JSON API, the command line and the library functions all call `recall`.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Container, Iterable
from dataclasses import replace
from time import perf_counter

from . import recall as stages
from .answering import Answer
from .budgeting import fit
from .candidates import CandidateList, Candidates
from .errors import NO_TOKEN, BadParameter
from .fusion import Fusion
from .layered import Layers
from .mapping import Mapping
from .matching import ConceptMatcher
from .models import (
    ConceptMatch,
    ConceptMention,
    NearMiss,
    RankKey,
    RecallRequest,
    RecallResult,
)
from .reading import Reader, reading
from .recall_index import find_in_index
from .vocabulary import Knowledge, Vocabulary, vocabulary_of

_SLOW_SECONDS = 0.25
"""When finding the candidates takes longer, the answer says what would help."""

SLOW = (
    "Finding the items took long. On the command line, `datasette concept-recall optimize` with"
    " the file of this database makes it fast."
)
SLOW_ELSEWHERE = (
    "Finding the items took long. An index of the table of links by concept makes it faster."
)
NO_CONCEPTS = "This database has no concepts table, so no text can name a concept of it."


def recall(
    conn: sqlite3.Connection,
    request: RecallRequest,
    *,
    vocabulary: Vocabulary | None = None,
    visible: Container[str] | None = None,
    layers: Layers | None = None,
    fusion: Fusion | None = None,
) -> RecallResult:
    """Answers a request from one snapshot of the database; nothing is ever written.

    ``visible`` holds the tables the asker may see (None: all): what is in others is neither
    returned nor counted. ``layers`` are what other layers found where an answer without them wanted
    them, ``fusion`` how they become one order. Raises `UnknownProject` before anything else when
    the project to narrow to is not there, `BadParameter` when the place to go on from is of another
    database, and `sqlite3.Error` when the database cannot be read or a time limit ends it.
    """
    with reading(conn) as reader:
        knowledge = vocabulary_of(vocabulary).knowledge(reader)
        mapping = knowledge.mapping.visible_to(visible)
        projects = stages.read_projects(reader, mapping, request.project)
        if mapping.concepts is None:
            nothing = (
                None if request.budget is None else fit([], request.budget, ConceptMatcher([]))
            )
            return RecallResult([], [], [], 0, warnings=[NO_CONCEPTS], context=nothing)
        _check_place(mapping, request.after)
        mentions = knowledge.matcher.mentions(request.text)
        asked = _asked_names(knowledge.matcher, mentions, request.names)
        keys = stages.NOTHING_ASKED
        if asked:
            keys = stages.asked_keys(reader, mapping.concepts, asked, knowledge.names_are_plain)
        warnings: list[str] = [] if layers is None else list(layers.warnings)
        fusion = fusion or Fusion()

        def answered(mapping: Mapping) -> Answer:
            tagged = _find(reader, mapping, keys, warnings)
            answer = Answer(request, asked, tagged, projects)
            if layers is not None:
                answer.add(reader, mapping, layers, fusion)
            answer.read(lambda some: answer.filled(reader, mapping, some))
            return answer

        try:
            answer = answered(mapping)
        except stages.MissingRow:  # the index is wrong, whatever its triggers missed
            answer = answered(replace(mapping, is_indexed=False))
        return RecallResult(
            concepts=answer.names(),
            matches=answer.matches,
            projects=answer.projects(stages.linked_projects(reader, mapping, keys.by_key)),
            total=answer.total(),
            counts=answer.concept_counts(mentions),
            mentions=mentions,
            type_counts=answer.type_counts(),
            project_counts=answer.project_counts(),
            first_rank=answer.first_rank(),
            places=answer.places,
            next_key=answer.next_key,
            unknown=[name for name in request.names if not knowledge.matcher.resolve(name)],
            warnings=warnings,
            context=answer.context,
            wants_layers=layers is None and answer.wants_layers(),
            # At the end, since no time limit of the database should be spent on it.
            near_misses=_near_misses(knowledge, request, mentions),
        )


def _near_misses(
    knowledge: Knowledge, request: RecallRequest, mentions: list[ConceptMention]
) -> list[NearMiss]:
    if not request.text or not request.near_misses:
        return []
    return knowledge.near_misses.find(request.text, mentions, asked=request.names)


def _check_place(mapping: Mapping, place: RankKey | None) -> None:
    """Raises `BadParameter` when items could not be compared with a place."""
    for source in mapping.sources:
        if place is None or place.source != source.order:
            continue
        if isinstance(place.id, str) is not source.id_is_text:
            raise BadParameter(NO_TOKEN)


def _find(
    reader: Reader, mapping: Mapping, keys: stages.AskedKeys, warnings: list[str]
) -> Candidates:
    if not keys.by_key:
        return CandidateList([])
    started = perf_counter()
    found = (
        find_in_index(reader, mapping, keys.by_key)
        if mapping.is_indexed
        else CandidateList(stages.find_candidates(reader, mapping, keys))
    )
    if perf_counter() - started > _SLOW_SECONDS:
        warnings.append(SLOW if mapping.is_knowledge else SLOW_ELSEWHERE)
    return found


def _asked_names(
    matcher: ConceptMatcher, mentions: list[ConceptMention], names: Iterable[str]
) -> list[stages.AskedName]:
    """Names found in the text in code-point order, then the given ones; each once."""
    asked: dict[tuple[str, ...], str] = {}
    for spelling in sorted({mention.concept for mention in mentions}):
        asked.setdefault(matcher.resolve(spelling), spelling)
    for name in names:
        spellings = matcher.resolve(name)
        if spellings:
            asked.setdefault(spellings, name if name in spellings else spellings[0])
    return [stages.AskedName(name, spellings) for spellings, name in asked.items()]


def recall_by_text(
    conn: sqlite3.Connection,
    text: str,
    limit: int | None = None,
    *,
    project: str | None = None,
    vocabulary: Vocabulary | None = None,
) -> RecallResult:
    """Everything tagged with a concept that the text names, ranked.

    ``limit`` None or less than 1 means no limit. Raises `UnknownProject` and `sqlite3.Error`.
    """
    request = RecallRequest(text=text, project=project, limit=limit)
    return recall(conn, request, vocabulary=vocabulary)


def recall_by_concept_names(
    conn: sqlite3.Connection,
    names: Iterable[str],
    limit: int | None = None,
    *,
    project: str | None = None,
    vocabulary: Vocabulary | None = None,
) -> list[ConceptMatch]:
    """Everything tagged with one of the named concepts, ranked; unknown names are skipped.

    ``limit`` None or less than 1 means no limit. Raises `UnknownProject` and `sqlite3.Error`.
    """
    request = RecallRequest(names=tuple(names), project=project, limit=limit)
    return recall(conn, request, vocabulary=vocabulary).matches
