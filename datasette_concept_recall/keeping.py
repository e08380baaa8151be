"""Keeps an index fresh while Datasette runs: in a process of its own, so that no request waits.

The process is the command ``index run --watch``, which can be killed at any moment. It ends when
its standard input does, so it never outlives Datasette, whatever ends that.
"""

from __future__ import annotations

import atexit
import logging
import subprocess
import sys
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import compat
from .instances import index_config

if TYPE_CHECKING:
    from datasette.app import Datasette

log = logging.getLogger("datasette_concept_recall.indexing")

_PATIENCE_SECONDS = 10.0
"""So long the process has for ending its step before it is killed, which loses nothing."""
_PAUSES_SECONDS = (1.0, 5.0, 30.0, 60.0)
"""After the process ended by itself it is started again so much later."""


class Keeper:
    """A process that keeps one index fresh, and a thread that starts it again when it ends."""

    def __init__(
        self, index: Path, knowledge: Sequence[Path] = (), options: Sequence[str] = ()
    ) -> None:
        self._command = [
            *(sys.executable, "-m", "datasette", "concept-recall", "index", "run"),
            *(str(index), "--watch", "--parent"),
            *(part for path in knowledge for part in ("--concepts-of", str(path))),
            *options,
        ]
        self._stopping = threading.Event()
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="concept-recall-index", daemon=True)

    def start(self) -> None:
        """Starts the process."""
        self._thread.start()

    def stop(self) -> None:
        """Ends the process, and returns when it has ended."""
        self._stopping.set()
        with self._lock:
            process = self._process
        if process is not None:
            _end(process)
        if self._thread.is_alive() and threading.current_thread() is not self._thread:
            self._thread.join(_PATIENCE_SECONDS)

    def _run(self) -> None:
        tries = 0
        while not self._stopping.is_set():
            with self._lock:
                if self._stopping.is_set():
                    return
                self._process = subprocess.Popen(
                    self._command,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE,
                )
            said = self._listen(self._process)
            if self._stopping.is_set():
                return
            log.warning("What keeps the index fresh ended (%s) and is started again", said)
            self._stopping.wait(_PAUSES_SECONDS[min(tries, len(_PAUSES_SECONDS) - 1)])
            tries += 1

    def _listen(self, process: subprocess.Popen[bytes]) -> str:
        """Passes on what the process says until it ends; how it ended, and an error in the end."""
        last = ""
        assert process.stderr is not None
        with process.stderr as lines:
            for line in lines:
                last = line.decode("utf-8", "replace").strip() or last
                log.info("%s", last)
        process.wait()
        if process.stdin is not None:
            process.stdin.close()
        error = f": {last}" if last.startswith("Error") else ""
        return f"exit code {process.returncode}{error}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(_PATIENCE_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()


def begin(datasette: Datasette) -> None:
    """Keeps the configured index fresh from now on, if one is to be watched."""
    config = index_config(datasette)
    if config is None or not config.watch:
        return
    served = datasette.databases
    index = served[config.database]
    names = [name for name in served if name != config.database]
    knowledge = [
        Path(served[name].path)
        for name in (names if config.concepts_of is None else config.concepts_of)
        if served[name].path
    ]
    chosen = {"--embedder": config.embedder, "--rendering": config.rendering}
    options = [part for option in chosen.items() if option[1] is not None for part in option]
    keeper = Keeper(Path(index.path), knowledge, [*map(str, options)])
    if not compat.add_background_task(datasette, keeper.start, keeper.stop, "concept-recall-index"):
        keeper.start()
        atexit.register(weakref.finalize(datasette, keeper.stop))
