"""The one pipeline: text and names to concepts, concepts to candidates, candidates to matches.

The page, the JSON API, the command line and the library functions all call `recall`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Container, Iterable

from . import ranking, recall as stages
from .errors import UnknownProject
from .mapping import Mapping
from .matching import ConceptMatcher
from .models import (
    Candidate,
    ConceptCount,
    ConceptMatch,
    ConceptMention,
    RecallRequest,
    RecallResult,
)
from .reading import Reader, reading
from .vocabulary import Vocabulary, vocabulary_of

NO_CONCEPTS = "This database has no concepts table, so no text can name a concept of it."


def recall(
    conn: sqlite3.Connection,
    request: RecallRequest,
    *,
    vocabulary: Vocabulary | None = None,
    visible: Container[str] | None = None,
) -> RecallResult:
    """Answers a request from one snapshot of the database; nothing is ever written.

    ``visible`` holds the tables the asker may see (None: all): what is in others is neither
    returned nor counted. Raises `UnknownProject` before anything else when the project to narrow
    to is not there, and `sqlite3.Error` when the database cannot be read or a time limit ends it.
    """
    with reading(conn) as reader:
        knowledge = vocabulary_of(vocabulary).knowledge(reader)
        mapping = knowledge.mapping.visible_to(visible)
        project_names = stages.read_project_names(reader, mapping)
        if request.project is not None and request.project not in project_names.values():
            raise UnknownProject(request.project)
        if not mapping.has_concepts:
            return RecallResult([], [], [], 0, warnings=[NO_CONCEPTS])
        mentions = knowledge.matcher.mentions(request.text)
        asked = _asked_names(knowledge.matcher, mentions, request.names)
        ids = stages.concept_ids(reader, asked) if asked else {}
        found = stages.find_candidates(reader, mapping, ids) if ids else []
        return _Answer(
            reader, request, mapping, asked, ids, found, project_names, mentions
        ).result()


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


class _Answer:
    """The state of one request while its parts are counted, cut and filled."""

    def __init__(
        self,
        reader: Reader,
        request: RecallRequest,
        mapping: Mapping,
        asked: list[stages.AskedName],
        ids: dict[int, int],
        found: list[Candidate],
        project_names: dict[int, str],
        mentions: list[ConceptMention],
    ) -> None:
        self._reader, self._request, self._mapping = reader, request, mapping
        self._asked, self._ids, self._found = asked, ids, found
        self._project_names, self._mentions = project_names, mentions

    def result(self) -> RecallResult:
        request = self._request
        of_project = [c for c in self._found if self._in_project(c)]
        of_type = [c for c in self._found if self._of_type(c)]
        chosen = [c for c in of_project if self._of_type(c)]
        limit = request.limit if request.limit and request.limit > 0 else None
        more = None if limit is None else limit + 1
        winners = ranking.best(chosen, more, request.after)
        next_key = None
        if limit is not None and len(winners) > limit:
            winners = winners[:limit]
            next_key = winners[-1].key
        after = request.after
        return RecallResult(
            concepts=[name.name for name in self._asked],
            matches=self._fill(winners),
            projects=self._projects(),
            total=len(chosen),
            counts=self._concept_counts(),
            mentions=self._mentions,
            type_counts=Counter(c.source_type for c in of_project),
            project_counts=Counter(self._project_of(c) for c in of_type),
            first_rank=1 + (0 if after is None else sum(c.key <= after for c in chosen)),
            next_key=next_key,
        )

    def _fill(self, winners: list[Candidate]) -> list[ConceptMatch]:
        return stages.fill(self._reader, self._mapping, winners, self._asked, self._project_names)

    def _project_of(self, candidate: Candidate) -> str | None:
        id_ = candidate.project_id
        return None if id_ is None else self._project_names.get(id_)

    def _in_project(self, candidate: Candidate) -> bool:
        project = self._request.project
        return project is None or self._project_of(candidate) == project

    def _of_type(self, candidate: Candidate) -> bool:
        return not self._request.types or candidate.source_type in self._request.types

    def _projects(self) -> list[str]:
        linked = stages.linked_projects(self._reader, self._mapping, self._ids)
        names = {self._project_names[id_] for id_ in linked if id_ in self._project_names}
        only = self._request.project
        return sorted(names if only is None else names & {only})

    def _concept_counts(self) -> list[ConceptCount]:
        # Case variants are mentioned at the same places, so one spelling stands for all.
        mentions = Counter(mention.concept for mention in self._mentions)
        return [
            ConceptCount(
                name=name.name,
                mentions=mentions[name.spellings[0]],
                total=sum(c.carried >> bit & 1 for c in self._found),
            )
            for bit, name in enumerate(self._asked)
        ]


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
