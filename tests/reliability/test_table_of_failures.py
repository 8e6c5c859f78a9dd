"""The table of failures: every row is there, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "operator" / "RELIABILITY.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \|", line)
]
FAILURES = 108


def test_every_failure_has_a_row_and_each_row_says_what_shows_it() -> None:
    assert [int(row[0]) for row in ROWS] == list(range(1, FAILURES + 1))
    assert all(len(row) == 4 and all(row) for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_the_tests_of_a_row_exist(row: list[str]) -> None:
    for name in re.findall(r"`([\w/]+\.py)`", row[3]):
        folder, depth = ("tests", "") if "/" in name else ("e2e/scenarios", "**/")
        assert len([*(ROOT / folder).glob(f"{depth}{name}")]) == 1, name
    parts = re.findall(r"\*(telemetry|crashes|outages|leaders|scale-1000|soak)\*", row[3])
    assert "`" in row[3] or parts or "not covered yet" in row[3] or row[3] == "cannot occur"
