"""A run that is killed loses nothing, wherever it is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

HARNESS = Path(__file__).with_name("kill_harness.py")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="needs fork and SIGKILL")
def test_a_run_that_is_killed_at_any_point_leaves_the_old_or_the_new_and_nothing_paid_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At every commit, and with every answer of the embedder in hand: what is searched is wholly
    the old or the new, nothing is orphaned, and the next run ends as if nothing had happened."""
    done = subprocess.run(
        [sys.executable, str(HARNESS), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    with capsys.disabled():
        print("\nKilled by SIGKILL at every commit and every answer of the embedder:")
        for each in report:
            print(
                f"  {each['scenario']:24} {each['kills']:3} kills ({each['commits']} commits,"
                f" {each['answers']} answers): {len(each['faults'])} faults, at most"
                f" {each['most_paid_again']} of {each['texts']} texts paid for again"
            )
    assert [fault for each in report for fault in each["faults"]] == []
    assert min(each["kills"] for each in report) > 0
    assert max(each["most_paid_again"] for each in report) > 0  # the harness does kill in between
