"""What the commands of the index print: how far a run is, and what is known of the sources."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from .indexing.looking import SourceView
from .indexing.service import Progress
from .indexing.turns import Turn
from .printing import terminal_line
from .source_page import NO_EMBEDDER, built_with, run_in_words, state_in_words

_LINE_SECONDS = 10.0
_BAR = 24


class Meter:
    """How far a run is: a bar that moves on a terminal, else a line every ten seconds."""

    def __init__(self, *, is_silent: bool = False) -> None:
        self._is_silent = is_silent
        self._is_terminal = sys.stderr.isatty()
        self._began: dict[int, tuple[float, int]] = {}
        self._said = time.monotonic()
        self._is_open = False

    def show(self, progress: Progress) -> None:
        """A document was begun or done."""
        if self._is_silent:
            return
        now = time.monotonic()
        if now - self._said < (0.1 if self._is_terminal else _LINE_SECONDS):
            self._began.setdefault(progress.source.id, _begun(now, progress))
            return
        self._said = now
        line = self._line(progress, now)
        if self._is_terminal:
            width = max(20, shutil.get_terminal_size().columns)
            click.echo("\r\x1b[K" + line[: width - 1], nl=False, err=True)
            self._is_open = True
        else:
            click.echo(line, err=True)

    def tell(self, message: str) -> None:
        """A message between the lines."""
        self.end()
        click.echo(terminal_line(message), err=True)

    def end(self) -> None:
        """Leaves the line of the bar."""
        if self._is_open:
            click.echo("\r\x1b[K", nl=False, err=True)
            self._is_open = False

    def _line(self, progress: Progress, now: float) -> str:
        counts = progress.counts
        began, before = self._began.setdefault(progress.source.id, _begun(now, progress))
        part = counts.done / counts.known if counts.known else 0.0
        bar = "█" * int(part * _BAR) + "·" * (_BAR - int(part * _BAR))
        words = [f"{terminal_line(progress.source.name)} {bar} {counts.done}/{counts.known}"]
        read = counts.done - counts.unchanged - before
        if read > 0 and now - began > 1.0:
            words.append(_duration((now - began) / read * (counts.known - counts.done)) + " left")
        if counts.current:
            words.append(terminal_line(counts.current))
        return " · ".join(words)


def _begun(now: float, progress: Progress) -> tuple[float, int]:
    counts = progress.counts
    return now, counts.done - counts.unchanged


def _duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def print_sources(found: Sequence[SourceView], index: Path) -> None:
    """What is known of each source."""
    if not found:
        click.echo("There are no sources yet; 'datasette concept-recall index add' brings some in.")
    # Not asked without need: whoever begins at that moment would find the turn taken.
    is_working = any(each.state == "running" for each in found) and Turn(index).is_taken()
    for each in found:
        state = state_in_words(each, is_working)
        click.echo(f"{terminal_line(each.name)} ({each.kind}): {state}")
        for line in _about(each, index):
            click.echo(f"  {terminal_line(line)}")


def _about(source: SourceView, index: Path) -> Iterator[str]:
    yield source.origin
    yield f"{source.documents or 0:,} documents are searched"
    if source.versions is not None and "building" in source.versions:
        is_first = "live" not in source.versions
        yield "not searched yet" if is_first else "is being built anew; the old is searched"
    if source.versions is not None and "live" in source.versions and source.documents:
        built = built_with(source.versions["live"])
        yield f"{'without' if built == NO_EMBEDDER else 'with'} vectors: {built}"
    if source.last_run:
        yield f"last run {source.last_run.ended_at} {run_in_words(source.last_run)}"
    if source.problem:
        yield source.problem
    if source.held_removals:
        command = ["datasette", "concept-recall", "index", "approve", str(index), source.name]
        yield f"to approve: {shlex.join(command)} {source.held_removals}"
    for group in source.skipped or ():
        path, message = group.examples[0]
        others = f" and {group.count - 1} more" if group.count > 1 else ""
        yield f"skipped ({group.code}): {path}{others}: {message}"
    if source.failed:
        for path, message in source.failed.examples:
            yield f"failed: {path}: {message}"
