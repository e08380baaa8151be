"""Near misses of names in texts: ours beside comparing every run of words with every name.

    python -m bench.near_misses [--smoke | --full] [--output FOLDER]

The peer is what one would write first with rapidfuzz: each different run of one to four words of
the text, in canonical form, goes to ``process.extract`` with all names and the same number of
edits. It knows nothing of our other rules, so it finds more; what it must not miss is what we
offer. Both are given the mentions of the text. Times are processor time.
"""

from __future__ import annotations

import random
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from functools import partial

from rapidfuzz import process
from rapidfuzz.distance import OSA

from datasette_concept_recall import ConceptMatcher
from datasette_concept_recall.folding import canonical_name
from datasette_concept_recall.near_misses import NearMisses
from datasette_concept_recall.near_names import LEAST, ONE_EDIT, words_of

from . import corpus
from .common import Report, Sizes, Timing, interleaved, ratio, read_arguments

OURS, PEER, MATCHER = "ours", "rapidfuzz, all names", "the matcher"
_LIMIT = 1_000_000
_MOST_WORDS = 4
_TEXTS = {1_000: "1 KB", 10_000: "10 KB", 100_000: "100 KB"}


def main(arguments: Sequence[str] | None = None) -> None:
    sizes, _ = read_arguments(__doc__, arguments)
    report = Report("near_misses", sizes)
    rows: list[tuple[str, ...]] = []
    times: dict[tuple[int, int], dict[str, Timing]] = {}
    missed = 0
    for size in sizes.pick((300,), (1_000, 10_000), (1_000, 10_000, 100_000)):
        names = corpus.names(size)
        for length in sizes.pick((1_000,), tuple(_TEXTS)):
            times[size, length], found, more, lost = _measure(names, length, sizes)
            missed += lost
            shown = (str(times[size, length].get(label, "–")) for label in (OURS, MATCHER, PEER))
            rows.append((f"{size:,}", _TEXTS[length], *shown, str(found), more))
            print(".", end="", file=sys.stderr, flush=True)
    header = ("names", "text", OURS, MATCHER, PEER, "offers", "more that the peer finds")
    report.table("Finding, CPU ms (quartiles)", header, rows)
    report.data["find"] = {
        f"{size} names, {_TEXTS[length]}": {label: each.as_json() for label, each in timed.items()}
        for (size, length), timed in times.items()
    }
    _builds(report, sizes)
    worst = _adversaries(report, sizes)
    asked = times.get((10_000, 10_000), {})
    report.target("10 KB, 10,000 names: ms", asked[OURS].median * 1e3 if asked else None, 10)
    faster = ratio(asked.get(PEER), asked.get(OURS))
    report.target("10 KB, 10,000 names: the peer × ours", faster, 50, at_least=True)
    report.target("adversarial 10 KB, 10,000 names: ms, the worst", worst, 30)
    report.target("offers that the peer does not find", missed, 0)
    print(f"\nWritten to {report.finish()}")


def _slips(names: Sequence[str]) -> list[str]:
    """The names, with two neighbours of each swapped somewhere behind its beginning."""
    rng = random.Random("slips")
    slips = []
    for name in names:
        at = rng.randrange(1, max(2, len(name) - 1))
        slips.append(name[:at] + name[at : at + 2][::-1] + name[at + 2 :])
    return slips


def _measure(
    names: tuple[str, ...], length: int, sizes: Sizes
) -> tuple[dict[str, Timing], int, str, int]:
    """Times, how many offers there are, how many more the peer has, and how many it misses."""
    mentioned = [*names[:50], *_slips(names[50:100])]
    text = corpus.prose(length, mentioned, every=25 if length > 1_000 else 8)
    matcher, index = ConceptMatcher(names), NearMisses(names)
    mentions = matcher.mentions(text)
    ours = {miss.concept for miss in index.find(text, mentions, limit=_LIMIT)}
    calls: dict[str, Callable[[], object]] = {
        OURS: partial(index.find, text, mentions),
        MATCHER: partial(matcher.mentions, text),
    }
    timings = interleaved(calls, sizes.pick(0.0, 1.5, 4.0), least=sizes.pick(1, 5))
    if len(names) * length > 100_000_000:  # minutes
        return timings, len(ours), "–", 0
    peer = Peer(names)
    began = time.process_time()
    found = peer.find(text)
    timings[PEER] = Timing((time.process_time() - began,))
    return timings, len(ours), str(len(found - ours)), len(ours - found)


class Peer:
    """Every run of words with every name."""

    def __init__(self, names: Sequence[str]) -> None:
        self._spellings: dict[str, str] = {}
        for name in names:
            canonical = canonical_name(name)
            words = words_of(canonical)
            core = canonical[words[0][0] : words[-1][1]] if words else ""
            if len(core) >= LEAST:
                self._spellings[core] = min(name, self._spellings.get(core, name))
        self._short = [name for name in self._spellings if len(name) <= ONE_EDIT]
        self._long = [name for name in self._spellings if len(name) > ONE_EDIT]

    def find(self, text: str) -> set[str]:
        canonical = canonical_name(text)
        words = words_of(canonical)
        runs = {
            canonical[words[first][0] : words[last][1]]
            for first in range(len(words))
            for last in range(first, min(first + _MOST_WORDS, len(words)))
        }
        found: set[str] = set()
        for run in runs:
            for names, most in ((self._short, 1), (self._long, 2)):
                near = process.extract(
                    run, names, scorer=OSA.distance, score_cutoff=most, limit=None
                )
                found.update(self._spellings[name] for name, _, _ in near)
        return found


def _builds(report: Report, sizes: Sizes) -> None:
    rows = []
    for size in sizes.pick((300,), (1_000, 10_000, 100_000)):
        names = corpus.names(size)
        calls: dict[str, Callable[[], object]] = {
            OURS: lambda names=names: NearMisses(names).find("", []),
            MATCHER: partial(ConceptMatcher, names),
        }
        times = interleaved(calls, sizes.pick(0.0, 1.5, 4.0), least=1)
        tracemalloc.start()
        index = NearMisses(names)
        index.find("", [])
        kept = tracemalloc.get_traced_memory()[0] / size
        tracemalloc.stop()
        rows.append((f"{size:,}", str(times[OURS]), str(times[MATCHER]), f"{kept:,.0f}"))
    header = ("names", OURS, MATCHER, "bytes a name, ours")
    report.table("Building, CPU ms (quartiles)", header, rows)


def _adversaries(report: Report, sizes: Sizes) -> float:
    """Milliseconds of the slowest of some texts and vocabularies made to be slow."""
    length, count = sizes.pick((1_000, 300), (10_000, 10_000))
    letters = "abcdefghijklmnopqrstuvwxyz"
    families = [
        f"learning m{letters[i % 26]}{letters[i // 26 % 26]}{letters[i // 676]}"
        for i in range(count)
    ]
    cases = {
        "names with the same beginning and initials": (families, "learning mz "),
        "the same, each time another": (families, " ".join(f"{name}zz" for name in families)),
        "numbered names": ([f"concept number {i}" for i in range(count)], "concept numbr 77 "),
        "one letter": (["a" * n for n in range(6, 101)], "a" * 101 + " " + "a " * 99),
        "one Han character": (["字" * n for n in range(6, 101)], "字"),
        "words of one letter": (["a " * n for n in range(3, 9)], "a "),
        "empty lines": (["chunking"], "chunkng\n\n"),
    }
    rows, worst = [], 0.0
    for what, (names, part) in cases.items():
        text = (part * (length // len(part) + 1))[:length]
        mentions = ConceptMatcher(names).mentions(text)
        index = NearMisses(names)
        offers = len(index.find(text, mentions, limit=_LIMIT))
        times = interleaved({what: partial(index.find, text, mentions)}, sizes.pick(0.0, 1.0), 3)
        worst = max(worst, times[what].median * 1e3)
        rows.append((what, str(offers), str(times[what])))
    title = f"Adversarial texts of {length:,} characters, up to {count:,} names"
    report.table(title, ("names and text", "offers", "CPU ms (quartiles)"), rows)
    return worst


if __name__ == "__main__":
    main()
