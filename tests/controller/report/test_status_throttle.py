"""Frequency of status writes."""

from __future__ import annotations

import math

import pytest

from headroom.controller.report.status_throttle import LastWrite, StatusKey, is_due

FRESH = StatusKey(urgent=3, other="fresh")
STALE, MOVED = StatusKey(urgent=3, other="stale"), StatusKey(urgent=4, other="fresh")


@pytest.mark.parametrize(
    ("said", "services", "after_s", "due"),
    [
        (STALE, 1, 0.1, True),
        (STALE, 100, 4.9, False),
        (STALE, 100, 5.0, True),
        (STALE, 1000, 49.0, False),
        (STALE, 1000, 50.0, True),
        (MOVED, 1000, 0.0, True),
        (FRESH, 1000, -1.0, True),  # the clock went back
    ],
)
def test_status_when_replicas_move_is_due_at_once_and_otherwise_in_turn(
    said: StatusKey, services: int, after_s: float, due: bool
) -> None:
    last = LastWrite(key=FRESH, written_s=100.0, known_s=0.0)
    assert is_due(said, last, now_s=100.0 + after_s, services=services, phase=0.5) is due


@pytest.mark.parametrize(
    ("services", "phase", "written_s", "due_s"),
    [
        (1, 0.0, 600.0, 660.0),
        (1, 0.25, 615.0, 675.0),
        (1, 0.5, 615.0, 690.0),  # its moment is 30 s past the minute, and half a minute is too soon
        (1000, 0.0, 1000.0, 1250.0),
        (1000, 0.9, 1000.0, 1225.0),
    ],
)
def test_status_when_unchanged_is_due_at_the_services_own_moment(
    services: int, phase: float, written_s: float, due_s: float
) -> None:
    last = LastWrite(key=FRESH, written_s=written_s, known_s=0.0)
    for now_s, due in ((due_s - 0.1, False), (due_s, True)):
        assert is_due(FRESH, last, now_s=now_s, services=services, phase=phase) is due


@pytest.mark.parametrize(
    ("said", "services", "after_s", "due"),
    [
        (MOVED, 1000, 0.0, True),
        (STALE, 1000, 24.0, False),
        (STALE, 1000, 25.0, True),
        (FRESH, 1000, 24.0, False),  # it may have changed and come back, unseen
        (FRESH, 100, 2.5, True),
        (FRESH, 1000, -1.0, True),
    ],
)
def test_new_process_writes_status_in_turn(
    said: StatusKey, services: int, after_s: float, due: bool
) -> None:
    last = LastWrite(key=FRESH, written_s=None, known_s=100.0)
    assert is_due(said, last, now_s=100.0 + after_s, services=services, phase=0.5) is due


def test_status_before_the_first_write_is_due() -> None:
    assert is_due(FRESH, None, now_s=0.0, services=1000, phase=0.9)


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        ((0.2, 16.0, 0.5), (0.219, 16.9, 0.54), False),
        ((0.2, 16.0, 0.5), (0.23, 16.0, 0.5), True),
        ((0.2, 16.0, 0.5), (0.2, 14.0, 0.5), True),
        ((None, 0.0, None), (None, 0.0, None), False),
        ((None, 0.0, None), (0.2, 0.0, None), True),
        ((math.inf,), (math.inf,), False),
        ((math.inf,), (0.2,), True),
    ],
)
def test_figures_move_by_a_tenth_or_when_they_become_known(
    before: tuple[float | None, ...], after: tuple[float | None, ...], moved: bool
) -> None:
    old, new = StatusKey(urgent=1, figures=before), StatusKey(urgent=1, figures=after)
    assert old == new
    assert new.figures_moved(old) is moved


@pytest.mark.parametrize(
    ("services", "after_s", "due"),
    [
        (1, 14.9, False),
        (1, 15.0, True),
        (60, 15.0, True),
        (1000, 249.0, False),
        (1000, 250.0, True),
    ],
)
def test_figures_that_moved_are_refreshed_within_fifteen_seconds_or_the_write_budget(
    services: int, after_s: float, due: bool
) -> None:
    """4 writes a second: 60 services every 15 s, 1000 every 250 s."""
    last = LastWrite(key=StatusKey(urgent=1, figures=(0.2,)), written_s=100.0, known_s=0.0)
    key = StatusKey(urgent=1, figures=(0.3,))
    assert is_due(key, last, now_s=100.0 + after_s, services=services, phase=0.5) is due
