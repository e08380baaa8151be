"""The one pipeline: text and names to concepts, concepts to candidates, candidates to matches.

Where concepts find less than was asked for the other layers are asked, and what these found comes
behind. They may have to look into another database, so that is done between two calls. The page,
the JSON API, the command line and the library functions all call `recall`.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

from . import recall as stages
from .beside import Beside, Looked, beside
from .budgeting import fit
from .candidates import Behind, CandidateList, Candidates, Narrowing
from .errors import NO_TOKEN, BadParameter
from .layered import Layers
from .mapping import Mapping
from .matching import ConceptMatcher
from .models import (
    Candidate,
    ConceptCount,
    ConceptMatch,
    ConceptMention,
    Context,
    Item,
    NearMiss,
    RankKey,
    RecallRequest,
    RecallResult,
)
from .question_words import NOT_TOPICAL
from .ranking import RANK_CONSTANT
from .reading import Reader, reading
from .recall_index import find_in_index
from .topical import Question, question_of
from .vocabulary import Knowledge, Vocabulary, vocabulary_of

_SLOW_SECONDS = 0.25
"""When finding the candidates takes longer, the answer says what would help."""

_MOST_LOOKED_AT = 2_000
"""So many items are looked at to fill one context; the place to go on from is behind them."""

_FIRST_READ = 20
"""So many items are read at first to fill a context, then twice as many each time."""

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

        def answered(mapping: Mapping) -> _Answer:
            tagged = _find(reader, mapping, keys, warnings)
            answer = _Answer(request, asked, tagged, projects)
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


@dataclass(frozen=True)
class Fusion:
    """How the lists of layers become one: ``k`` as in `ranking.reciprocal_rank_fusion`, and what
    the ranks of each layer count (0 or more). ``not_topical`` are the words that admit nothing."""

    k: float = RANK_CONSTANT
    lexical: float = 1.0
    semantic: float = 1.0
    not_topical: Container[str] = NOT_TOPICAL

    def question(self, text: str) -> Question:
        """What is asked by a text."""
        return question_of(text, self.not_topical)


_Fill = Callable[[Sequence[Candidate]], list[ConceptMatch]]


class _Answer:
    """One request while what was found for it is counted, cut and filled.

    `read` fills the matches with their places, and what goes with them.
    """

    matches: list[ConceptMatch]
    places: list[RankKey]
    next_key: RankKey | None = None
    context: Context | None = None

    def __init__(
        self,
        request: RecallRequest,
        asked: list[stages.AskedName],
        found: Candidates,
        projects: stages.ProjectNames,
    ) -> None:
        self._request, self._asked, self._tagged = request, asked, found
        is_shown = request.mode in ("auto", "concept")
        self._found: Candidates = found if is_shown else CandidateList([])
        self._projects = projects
        project = request.project
        project_ids = None if project is None else projects.ids(project)
        self._narrowing = Narrowing(request.types, project_ids)
        self._beside = Beside()

    def add(self, reader: Reader, mapping: Mapping, layers: Layers, fusion: Fusion) -> None:
        """Puts what other layers found behind what concepts found."""
        taken = {found.key[2:] for found in self._found.best(self._narrowing, None, None)}
        question = fusion.question(self._request.text)
        looked = Looked(reader, mapping, question, self._narrowing, taken)
        self._beside = beside(looked, layers, fusion.k)
        self._found = Behind(self._found, CandidateList(self._beside.candidates))

    def wants_layers(self) -> bool:
        """Whether there is room for what other layers would find, and the request asks them."""
        request, limit = self._request, self._request.limit
        if request.mode == "concept" or not request.text.strip():
            return False
        if request.mode != "auto" or limit is None or limit < 1:
            return True
        if self.context is not None and (self.next_key or self.context.skipped):
            return False
        return self.total() < limit

    def filled(
        self, reader: Reader, mapping: Mapping, some: Sequence[Candidate]
    ) -> list[ConceptMatch]:
        """The matches of some candidates. What other layers found says so, and shows the piece of
        its text that they found."""
        matches = stages.fill(reader, mapping, some, self._asked, self._projects)
        places = [candidate.key[2:] for candidate in some]
        pieces = self._beside.pieces
        shown = stages.passages_of(
            reader, mapping, [pieces[place] for place in places if place in pieces]
        )
        hits = self._beside.hits
        return [
            replace(match, layers=hits[place], **shown.get(place[1], {}))
            if place in hits
            else match
            for match, place in zip(matches, places, strict=True)
        ]

    def names(self) -> list[str]:
        return [name.name for name in self._asked]

    def read(self, fill: _Fill) -> None:
        """Fills what is shown, and finds the place to go on from when there is more."""
        limit, budget = self._request.limit, self._request.budget
        limit = None if limit is None or limit < 1 else limit
        most = limit if budget is None else _MOST_LOOKED_AT
        more = None if most is None else most + 1
        winners = self._found.best(self._narrowing, more, self._request.after)
        places = [winner.key for winner in winners]
        if budget is None:
            self.matches = fill(winners[:most])
            self.places = places[:most]
            shown = len(self.matches)
        else:
            items = _one_by_one(winners[:most], self.first_rank(), fill)
            self.context = fit(items, budget, ConceptMatcher(self.names()), limit)
            self.matches = [used.item.match for used in self.context.used]
            self.places = [used.item.place for used in self.context.used]
            shown = len(self.context.looked_at)
        if shown < len(winners):
            self.next_key = places[shown - 1]

    def total(self) -> int:
        return self._found.total(self._narrowing)

    def first_rank(self) -> int:
        after = self._request.after
        return 1 if after is None else 1 + self._found.number_until(self._narrowing, after)

    def type_counts(self) -> dict[str, int]:
        """What each choice of a type would leave of the chosen project."""
        if not self._request.facets:
            return {}
        return dict(self._found.type_counts(replace(self._narrowing, types=frozenset())))

    def project_counts(self) -> dict[str | None, int]:
        """What each choice of a project would leave of the chosen types."""
        if not self._request.facets:
            return {}
        counts: Counter[str | None] = Counter()
        of_ids = self._found.project_counts(replace(self._narrowing, project_ids=None))
        for id_, count in of_ids.items():
            counts[self._projects.of(id_)] += count
        return dict(counts)

    def concept_counts(self, mentions: list[ConceptMention]) -> list[ConceptCount]:
        # Case variants are mentioned at the same places, so any of them stands for all.
        mentioned = Counter(mention.concept for mention in mentions)
        return [
            ConceptCount(
                name=name.name,
                mentions=max(mentioned[spelling] for spelling in name.spellings),
                total=self._tagged.total_of(position),
            )
            for position, name in enumerate(self._asked)
        ]

    def projects(self, linked: set[int]) -> list[str]:
        """The names of the linked projects, of the chosen one alone when one is chosen."""
        names = set(filter(None, map(self._projects.of, linked)))
        only = self._request.project
        return sorted(names if only is None else names & {only})


def _one_by_one(winners: Sequence[Candidate], first_rank: int, fill: _Fill) -> Iterator[Item]:
    """The winners as items, read in ever longer pieces, and no piece before it is needed."""
    start, length = 0, _FIRST_READ
    while start < len(winners):
        some = winners[start : start + length]
        for rank, (winner, match) in enumerate(zip(some, fill(some), strict=True), first_rank):
            yield Item(match, winner.key, start + rank)
        start, length = start + length, 2 * length


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
