"""How often status is written."""

from __future__ import annotations

import pytest

from headroom.controller.reports.cadence import Said, is_due

LAST = Said(moved=3, rest="fresh")


@pytest.mark.parametrize(
    ("said", "services", "after_s", "due"),
    [
        (LAST, 1, 59.0, False),
        (LAST, 1, 60.0, True),
        (LAST, 1000, 249.0, False),
        (LAST, 1000, 250.0, True),
        (Said(moved=3, rest="stale"), 1, 0.1, True),
        (Said(moved=3, rest="stale"), 100, 4.9, False),
        (Said(moved=3, rest="stale"), 100, 5.0, True),
        (Said(moved=3, rest="stale"), 1000, 49.0, False),
        (Said(moved=3, rest="stale"), 1000, 50.0, True),
        (Said(moved=4, rest="fresh"), 1000, 0.0, True),
        (LAST, 1000, -1.0, True),  # the clock went back
    ],
)
def test_what_moves_is_written_at_once_and_the_rest_in_its_turn(
    said: Said, services: int, after_s: float, due: bool
) -> None:
    assert is_due(said, LAST, written_s=100.0, now_s=100.0 + after_s, services=services) is due


def test_a_new_process_writes_once() -> None:
    assert is_due(LAST, None, written_s=None, now_s=0.0, services=1000)
