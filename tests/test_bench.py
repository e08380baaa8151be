"""The measurements run, at their smallest size, and say what they miss."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]

WITHOUT_PEERS = """
import runpy, sys
sys.modules.update(dict.fromkeys(["ahocorasick_rs", "ahocorasick", "flashtext"]))
sys.argv[0] = "bench.matching"
runpy.run_module("bench.matching", run_name="__main__")
"""

COMMON = """
import json, sys
from pathlib import Path
from bench.common import Report, Sizes, Timing
report = Report("trial", Sizes(smoke=True, full=False, output=Path(sys.argv[1])))
report.table("Two columns", ("name", "value"), [("long name", "1"), ("short", "22")])
report.target("half", 0.5, 1.0)
report.target("double", 2.0, 1.0)
report.target("throughput", 0.5, 0.9, at_least=True)
report.target("peer", None, 1.0)
report.data["timing"] = Timing((0.004, 0.001, 0.1, 0.002, 0.003)).as_json()
report.finish()
"""


def run(*arguments: str | Path) -> str:
    """What a fresh interpreter prints, which has to succeed; all of it when it does not."""
    command = [sys.executable, *map(str, arguments)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


def result_in(folder: Path) -> Any:
    """The one JSON file that a measurement wrote."""
    (file,) = folder.iterdir()
    return json.loads(file.read_text(encoding="utf-8"))


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["matching", "near_misses", "recall", "indexing", "semantic", "http"]
)
def test_a_measurement_runs_at_its_smallest_size(name: str, tmp_path: Path) -> None:
    """Each measurement ends, prints tables, and writes the machine, tables and targets as JSON."""
    printed = run("-m", f"bench.{name}", "--smoke", "--output", tmp_path)
    result = result_in(tmp_path)
    assert result["smoke"] is True
    assert result["machine"]["Python"] in printed
    assert result["tables"] != []
    assert [table["title"] for table in result["tables"] if table["title"] not in printed] == []
    assert {target["verdict"] for target in result["targets"]} <= {"met", "MISSED", "not measured"}


@pytest.mark.slow
def test_matching_is_measured_without_any_peer(tmp_path: Path) -> None:
    """Where no peer is installed the measurement of matching says so and goes on."""
    printed = run("-c", WITHOUT_PEERS, "--smoke", "--output", tmp_path)
    assert "Not installed, so left out: ahocorasick_rs, flashtext, pyahocorasick." in printed
    rows = [row for table in result_in(tmp_path)["tables"] for row in table["rows"]]
    assert [row for row in rows if "ahocorasick_rs" in row] == []
    assert [row for row in rows if "ours" in row] != []


def test_a_report_holds_medians_tables_and_verdicts(tmp_path: Path) -> None:
    """A table is printed in columns, targets get their verdicts, and timings their quartiles."""
    printed = run("-c", COMMON, tmp_path)
    assert "| name      | value |\n|-----------|-------|\n| long name | 1     |" in printed
    assert re.findall(r"\| (half|double|throughput|peer) .*\| (\w[\w ]*?) +\|\n", printed) == [
        ("half", "met"),
        ("double", "MISSED"),
        ("throughput", "MISSED"),
        ("peer", "not measured"),
    ]
    timing = {"median": 0.003, "q1": 0.002, "q3": 0.004, "samples": 5}
    assert result_in(tmp_path)["data"] == {"timing": timing}


PEERS = """
import json
from bench import corpus, peers
names = [*corpus.names(300), "C++", "a", "RAG", "rag", "技术", "서버", "!", "\\u0301"]
text = corpus.prose(5_000, names, every=3) + " RAG技术 API서버 C++17 (C++) a"
ours = peers.ConceptMatcher(names).names(text)
matchers = [peers.MATCHERS[label] for label in peers.available()] + [peers.RegexMatcher]
answers = {matcher.__name__: matcher(names).names(text) for matcher in matchers}
answers.pop("FlashMatcher", None)
print(json.dumps([len(ours), [label for label in answers if answers[label] != ours]]))
"""


def test_the_peers_compared_with_give_the_same_answer() -> None:
    """Every peer that can find overlapping names finds exactly what the matcher finds."""
    found, differing = json.loads(run("-c", PEERS))
    assert found > 100
    assert differing == []
