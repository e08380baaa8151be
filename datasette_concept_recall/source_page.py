"""The sources of all indexes, as a page and as JSON, and the words for what is known of them."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from datasette.utils import to_css_class

from .embedders import LLM_PREFIX
from .indexing.ids import WITHOUT_EMBEDDER
from .indexing.looking import IndexView, RunView, SourceView
from .instances import index_config
from .paths import sources_path

if TYPE_CHECKING:
    from datasette.app import Datasette

TEMPLATE = "concept_recall_sources.html"

_STATES = {
    "new": "not indexed yet",
    "queued": "waits for its turn",
    "running": "being indexed",
    "waiting": "goes on when others had their turn",
    "done": "up to date",
    "failed": "some documents failed",
    "held": "a removal waits for approval",
    "unreachable": "cannot be reached",
    "refused": "refused",
    "broken": "needs repair",
}
_INTERRUPTED = "was interrupted"

_BAD = frozenset({"failed", "unreachable", "refused", "broken"})
_WAITING = frozenset({"held"})

_CODES = {
    "no_text": "No text in it",
    "not_text": "Not a text",
    "invalid": "Damaged",
    "encrypted": "Encrypted",
    "unknown_format": "Unknown format",
    "executable": "A program",
    "unsupported": "Not supported",
    "too_large": "Too large",
    "missing_extra": "Needs something to be installed",
}

_OUTCOMES = {
    "done": "got through everything",
    "more to do": "goes on later",
    "failed": "got through everything, some documents failed",
    "held": "got through everything but a removal that waits for approval",
    "unreachable": "could not reach it",
    "refused": "was refused",
    "aborted": "was given up",
    "cancelled": "was stopped",
    "interrupted": "was interrupted",
}

_COUNTS = ("indexed", "unchanged", "skipped", "failed", "removed")

ASKED = {
    "run": "a run",
    "retry": "another try",
    "verify": "a run that compares every document",
    "approve": "the removal of what is gone",
}
"""What can be asked of a source, as it goes on after "Asked for"."""


@dataclass(frozen=True)
class SeenIndex:
    """An index database and what the actor sees of it; ``is_mutable`` is as Datasette serves it."""

    database: str
    path: str | None
    is_mutable: bool
    found: IndexView

    @property
    def is_busy(self) -> bool:
        """Whether what is to be seen changes by itself soon."""
        return any(
            _is_running(self.found, source)
            or (self.found.is_kept and not self.found.is_paused and _is_about_to_run(source))
            for source in self.found.sources
        )


def _is_running(index: IndexView, source: SourceView) -> bool:
    return source.state == "running" and index.is_working


def _is_about_to_run(source: SourceView) -> bool:
    return bool(source.asked) or source.state in ("queued", "running", "waiting")


def _is_starting(datasette: Datasette, seen: SeenIndex) -> bool:
    """Whether the instance is to keep an index fresh, and that has not begun yet."""
    config = index_config(datasette)
    is_watched = config is not None and config.watch and config.database == seen.database
    return is_watched and not seen.found.is_kept


# --- words ----------------------------------------------------------------------------------------


def state_in_words(source: SourceView, is_working: bool) -> str:
    """How a source is; ``is_working`` tells that a program is at work on its index."""
    if source.is_leaving:
        return "is being removed"
    if source.state == "running" and not is_working:
        return _INTERRUPTED
    return _STATES.get(source.state, source.state)


def run_in_words(run: RunView) -> str:
    """How a run ended and what it did, without what it did not."""
    outcome = _OUTCOMES.get(run.outcome or "", run.outcome or "")
    counts = ((name, getattr(run, name)) for name in _COUNTS)
    did = ", ".join(f"{count:,} {name}" for name, count in counts if count)
    return f"{outcome}: {did}" if did else outcome


NO_EMBEDDER = "no embedder"
"""What an index is built with that has no vectors."""


def built_with(signature: str) -> str:
    """The embedder and the rendering that a signature of `indexing.ids` tells of; a signature of
    another form as it is."""
    _, provider, _, model, *more = [*signature.split("|"), "", "", ""]
    if not provider:
        return signature
    if provider == WITHOUT_EMBEDDER.provider:
        return NO_EMBEDDER
    is_of_llm = f"{provider}:" == LLM_PREFIX
    renderings = [part.partition(":")[2] for part in more if part.startswith("rendering:")]
    name = f"{LLM_PREFIX}{model}" if is_of_llm else provider
    return ", rendering ".join([f"embedder {name}", *renderings])


def _searchable(source: SourceView) -> str | None:
    """What stands between a source and being searched as it is configured, None for nothing."""
    if source.versions is None or ("live" in source.versions and "building" not in source.versions):
        return None
    return "awaiting rebuild" if "live" in source.versions else "not yet searchable"


# --- JSON -----------------------------------------------------------------------------------------


def sources_json(seen: list[SeenIndex], now: datetime) -> dict[str, Any]:
    """All sources as an object; what the actor may not see is null."""
    return {
        "ok": True,
        "indexes": [
            {
                "database": each.database,
                "is_paused": each.found.is_paused,
                "is_kept": each.found.is_kept,
                "sources": [_source_json(each.found, s, now) for s in each.found.sources],
            }
            for each in seen
        ],
    }


def _source_json(index: IndexView, source: SourceView, now: datetime) -> dict[str, Any]:
    versions = source.versions
    return {
        "id": source.id,
        "name": source.name,
        "kind": source.kind,
        "origin": source.origin,
        "state": source.state,
        "state_in_words": state_in_words(source, index.is_working),
        "problem": source.problem,
        "is_searchable": None if versions is None else "live" in versions,
        "awaits_rebuild": None if versions is None else {"live", "building"} <= set(versions),
        "signature": versions.get("live") if versions else None,
        "documents": source.documents,
        "progress": _progress_json(source.running, now) if _is_running(index, source) else None,
        "last_run": _run_json(source.last_run),
        "next_run_at": source.next_run_at,
        "skipped": None
        if source.skipped is None
        else [
            {"code": group.code, "count": group.count, "examples": _examples(group.examples)}
            for group in source.skipped
        ],
        "failed": None
        if source.failed is None
        else {"count": source.failed.count, "examples": _examples(source.failed.examples)},
        "held_removals": source.held_removals,
        "asked": source.asked,
    }


def _progress_json(run: RunView | None, now: datetime) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "started_at": run.started_at,
        "known": run.known,
        "done": run.done,
        "current": run.current,
        "seconds_left": run.seconds_left(now),
    }


def _run_json(run: RunView | None) -> dict[str, Any] | None:
    if run is None:
        return None
    return {
        "reason": run.reason,
        "started_at": run.started_at,
        "ended_at": run.ended_at,
        "outcome": run.outcome,
        **{name: getattr(run, name) for name in _COUNTS},
    }


def _examples(rows: list[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"path": path, "message": message} for path, message in rows]


# --- the page -------------------------------------------------------------------------------------


def sources_context(
    datasette: Datasette, seen: list[SeenIndex], now: datetime, may_ask: bool
) -> dict[str, Any]:
    """All sources as the context of the template."""
    return {
        "heading": "Sources of the index" if len(seen) == 1 else "Sources of the indexes",
        "indexes": [_index(datasette, each, now, may_ask) for each in seen],
        "is_busy": any(each.is_busy or _is_starting(datasette, each) for each in seen),
        "is_kept": any(each.found.is_kept for each in seen),
        "path": sources_path(datasette),
        "json_link": sources_path(datasette, ".json"),
    }


def _index(datasette: Datasette, seen: SeenIndex, now: datetime, may_ask: bool) -> dict[str, Any]:
    found = seen.found
    return {
        "database": seen.database,
        "link": datasette.urls.database(seen.database),
        "is_mutable": seen.is_mutable,
        "is_paused": found.is_paused,
        "is_kept": found.is_kept,
        "is_starting": _is_starting(datasette, seen),
        "command": f"datasette concept-recall index run {shlex.quote(seen.path or '')}",
        "may_ask": may_ask and seen.is_mutable,
        "id": index_id(seen.database),
        "sources": [_source(seen, source, now) for source in found.sources],
    }


def _source(seen: SeenIndex, source: SourceView, now: datetime) -> dict[str, Any]:
    is_running = _is_running(seen.found, source)
    running = source.running if is_running else None
    will_run = seen.found.is_kept and not seen.found.is_paused and not is_running
    live = (source.versions or {}).get("live")
    seconds = running.seconds_left(now) if running else None
    return {
        "source": source,
        "id": source_id(seen.database, source.id),
        "state": state_in_words(source, seen.found.is_working),
        "class": _class(seen.found, source),
        "searchable": _searchable(source),
        "running": running,
        "left": None if seconds is None else duration(seconds),
        "built_with": None if live is None else built_with(live),
        "last_run": None if source.last_run is None else run_in_words(source.last_run),
        "next_run_at": source.next_run_at if will_run else None,
        "skipped": [(_CODES.get(group.code, group.code), group) for group in source.skipped or ()],
        "asked": [ASKED.get(action, action) for action in source.asked or ()],
    }


def _class(index: IndexView, source: SourceView) -> str:
    """How urgent the state of a source is: ``bad``, ``waiting`` or ``plain``."""
    if source.state in _BAD:
        return "bad"
    is_interrupted = state_in_words(source, index.is_working) == _INTERRUPTED
    is_waiting = source.state in _WAITING or is_interrupted
    return "waiting" if is_waiting else "plain"


def index_id(database: str) -> str:
    """The id of the part of the page about an index."""
    return f"index-{to_css_class(database)}"


def source_id(database: str, number: int) -> str:
    """The id of the part of the page about a source."""
    return f"source-{to_css_class(database)}-{number}"


def duration(seconds: int) -> str:
    """A time as people say it: ``less than a minute``, ``12 minutes``, ``3 hours``."""
    if seconds < 60:
        return "less than a minute"
    unit, size = ("minute", 60) if seconds < 90 * 60 else ("hour", 3600)
    count = round(seconds / size)
    return f"{count:,} {unit}{'' if count == 1 else 's'}"
