"""What building one matcher costs, in a process of its own: ``python -m bench.memory LABEL FILE``.

Prints a JSON object. With ``--trace`` memory is what Python's allocator was asked for, which sees
nothing of Rust or C, otherwise what the system says the process has.
"""

from __future__ import annotations

import contextlib
import gc
import json
import subprocess
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from sys import getsizeof
from typing import Any

from . import peers
from .common import Report, megabytes, resident


def own_size(names: Sequence[str]) -> int:
    """Bytes of the names as Python keeps them, in a list."""
    return getsizeof(names) + sum(map(getsizeof, names))


def measure(report: Report, labels: Sequence[str], names: Sequence[str]) -> float:
    """Tables what each matcher takes; our peak is returned, as a multiple of the names' size."""
    own, rows, ours = own_size(names), [], 0.0
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "names.txt"
        file.write_text("\n".join(names), encoding="utf-8")
        for label in labels:
            grown = _in_fresh_process(label, file)
            found = [grown["kept"], grown["peak"]]
            if label in (peers.OURS, peers.FLASH):
                found.append(_in_fresh_process(label, file, "--trace")["peak"])
            if label == peers.OURS:
                ours = found[-1] / own
            shown = [_multiple(size, own) for size in found]
            rows.append((label, *shown, *["–"] * (3 - len(shown))))
    header = ("matcher", "process grows by", "at the peak", "peak as Python counts it")
    title = f"Memory of building, {len(names):,} names of {megabytes(own)} MB: MB and ×"
    report.table(title, header, rows)
    return ours


def _multiple(size: int | None, own: int) -> str:
    return "–" if size is None else f"{megabytes(size)} = {size / own:.2f} ×"


def _in_fresh_process(label: str, file: Path, *options: str) -> dict[str, Any]:
    """What `main` prints."""
    command = [sys.executable, "-m", "bench.memory", label, str(file), *options]
    root = Path(__file__).parents[1]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, cwd=root)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def main(arguments: Sequence[str]) -> None:
    label, file, *trace = arguments
    names = Path(file).read_text(encoding="utf-8").split("\n")
    peers.available()  # imported before anything is measured
    gc.collect()
    measured = _traced if trace else _resident
    print(json.dumps(measured(lambda: peers.MATCHERS[label](names))))


def _traced(build: Callable[[], object]) -> dict[str, Any]:
    tracemalloc.start()
    built = build()
    kept, peak = tracemalloc.get_traced_memory()
    return {"kept": kept, "peak": peak, "built": type(built).__name__}


def _resident(build: Callable[[], object]) -> dict[str, Any]:
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak begins anew
    before, began = resident(), time.perf_counter()
    built = build()
    seconds, kept, peak = time.perf_counter() - began, resident(), resident(peak=True)
    grown = {"kept": kept, "peak": peak}
    return {
        **{key: None if size is None else size - (before or 0) for key, size in grown.items()},
        "built": type(built).__name__,
        "seconds": seconds,
    }


if __name__ == "__main__":
    main(sys.argv[1:])
