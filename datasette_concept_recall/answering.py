"""The answer to one request: what was found for it is put in order, counted, cut and filled."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from . import recall as stages
from .beside import Beside, Looked, beside
from .budgeting import fit
from .candidates import Behind, CandidateList, Candidates, Narrowing
from .fusion import Fusion
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
    RankKey,
    RecallRequest,
)
from .reading import Reader

_MOST_LOOKED_AT = 2_000
"""So many items are looked at to fill one context; the place to go on from is behind them."""

_FIRST_READ = 20
"""So many items are read at first to fill a context, then twice as many each time."""

Fill = Callable[[Sequence[Candidate]], list[ConceptMatch]]
"""Reads the matches of some candidates, in their order."""


class Answer:
    """One request while what was found for it is counted, cut and filled.

    It begins with what concepts ``found``, for the names that were ``asked``; `add` puts behind it
    what other layers did. Then `read` fills ``matches`` with their ``places``, ``next_key`` where
    there is more behind them, and ``context`` where the request has a budget.
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
        if self.context is not None and (self.next_key or self.context.skipped):
            return False
        if request.mode != "auto" or limit is None or limit < 1:
            return True
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
        """The names of the concepts that were asked for, in the order of ``asked``."""
        return [name.name for name in self._asked]

    def read(self, fill: Fill) -> None:
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
        """How many items there are of the chosen types and project, on whatever page."""
        return self._found.total(self._narrowing)

    def first_rank(self) -> int:
        """The rank of the first match, from 1, counted from the beginning of the order."""
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
        """For each name that was asked how often the text has it, and how many items are tagged
        with it; no narrowing counts there."""
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


def _one_by_one(winners: Sequence[Candidate], first_rank: int, fill: Fill) -> Iterator[Item]:
    """The winners as items, read in ever longer pieces, and no piece before it is needed."""
    start, length = 0, _FIRST_READ
    while start < len(winners):
        some = winners[start : start + length]
        for rank, (winner, match) in enumerate(zip(some, fill(some), strict=True), first_rank):
            yield Item(match, winner.key, start + rank)
        start, length = start + length, 2 * length
