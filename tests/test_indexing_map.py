"""The page on the index says of every rule and fault case which test proves it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "indexing.md").read_text("utf-8")
RULES, CASES = PAGE.split("## Every rule")[1].split("Fault cases:")
ROW = re.compile(r"^\| (\d+) \| (.+?) \| (.+) \|$", re.MULTILINE)
TESTS = {
    name
    for path in (ROOT / "tests").glob("test_*.py")
    for name in re.findall(r"^(?:async )?def (test_\w+)", path.read_text("utf-8"), re.MULTILINE)
}


@pytest.mark.parametrize(("part", "number"), [(RULES, 58), (CASES, 48)], ids=["rules", "cases"])
def test_the_map_is_complete_and_every_test_in_it_exists(part: str, number: int) -> None:
    """All numbers are there once, each with tests that there are, or the reason for none."""
    rows = ROW.findall(part)
    assert [int(row[0]) for row in rows] == list(range(1, number + 1))
    for row_number, _, proof in rows:
        named = re.findall(r"`(\w+)`", proof)
        assert named or proof.startswith("does not apply: "), row_number
        assert set(named) <= TESTS, (row_number, set(named) - TESTS)


def test_little_of_it_does_not_apply() -> None:
    """What is left out is what a server would need, and the two levels of sources."""
    left_out = [row for row in ROW.findall(RULES + CASES) if row[2].startswith("does not apply")]
    assert len(left_out) <= 7
