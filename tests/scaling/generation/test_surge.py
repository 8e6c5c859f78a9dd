"""Replicas for a surge of a generating service: what arrives while others work off their queues."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.generation.fleet.surge import Surge, surely_rps

CAPACITY_RPS = 84.0


def surge(
    arrival_rps: float,
    in_flight: tuple[float, ...] = (200.0,) * 4,
    left_s: tuple[float, ...] = (),
    start_s: float = 100.0,
    saturated_rps: float = 90.0,
) -> Surge:
    """Four replicas that take 90 requests a second and hold 256 each."""
    return Surge(
        arrival_rps=arrival_rps,
        in_flight=in_flight,
        left_s=left_s,
        start_s=start_s,
        most_rps=90.0,
        saturated_rps=saturated_rps,
        fit=256.0,
        target_s=1.0,
    )


def test_surge_below_what_replicas_take_needs_none() -> None:
    assert surge(350.0).replicas(CAPACITY_RPS, sees_load=True) == 0


def test_surge_is_carried_by_new_replicas_while_the_others_work_off_their_queues() -> None:
    """528/s at four replicas: 4 are behind when others come, so 528 / 84 = 6.3 more carry all."""
    found = surge(528.0)
    assert found.queue == pytest.approx(16_800)
    assert found.behind == 4
    assert found.replicas(CAPACITY_RPS, sees_load=True) == 11


def test_surge_with_its_replicas_on_their_way_requests_no_more() -> None:
    for left_s in (100.0, 50.0, 1.0):
        waited = 4 * (200.0 + (528.0 / 4 - 90.0) * (100.0 - left_s))
        found = surge(528.0, (waited / 4,) * 4, (left_s,) * 7)
        assert found.replicas(CAPACITY_RPS, sees_load=True) == 11


def test_surge_keeps_its_replicas_until_the_queues_are_worked_off() -> None:
    behind = surge(528.0, (4000.0,) * 4 + (80.0,) * 7)
    assert behind.replicas(CAPACITY_RPS, sees_load=True) == 11
    assert surge(528.0, (200.0,) * 11).replicas(CAPACITY_RPS, sees_load=True) == 0


def test_replica_with_a_queue_serves_what_a_full_memory_allows() -> None:
    """340/s at four of 90/s: no queue is to come, unless they are full and serve 60/s each."""
    assert surge(340.0, saturated_rps=60.0).replicas(CAPACITY_RPS, sees_load=True) == 0
    full = surge(340.0, (300.0,) * 4, saturated_rps=60.0)
    assert full.queue == pytest.approx(4 * 44 + (340 - 240) * 100)
    assert full.behind == 4
    assert full.replicas(CAPACITY_RPS, sees_load=True) == 8


def test_surge_that_hardly_exceeds_the_replicas_drains_its_queue_instead() -> None:
    """One request a second too many leaves 100, which one more replica works off in seconds."""
    assert surge(361.0).replicas(CAPACITY_RPS, sees_load=True) == 5


@pytest.mark.parametrize(
    ("requests", "surely"), [(0.0, 0.0), (1.0, 0.0), (15.0, 1.81), (1500.0, 355.6)]
)
def test_surge_counts_a_burst_only_beyond_chance(requests: float, surely: float) -> None:
    assert surely_rps(requests / 4.0, 4.0) == pytest.approx(surely, abs=0.05)


@given(
    arrival_rps=st.floats(0.0, 1e4),
    more_rps=st.floats(0.0, 1e4),
    in_flight=st.lists(st.floats(0.0, 1e5), max_size=20).map(tuple),
    left_s=st.lists(st.floats(0.0, 300.0), max_size=20).map(tuple),
    start_s=st.floats(1.0, 600.0),
    sees_load=st.booleans(),
)
def test_surge_of_more_arrivals_never_has_a_shorter_queue(
    arrival_rps: float,
    more_rps: float,
    in_flight: tuple[float, ...],
    left_s: tuple[float, ...],
    start_s: float,
    sees_load: bool,
) -> None:
    less = surge(arrival_rps, in_flight, left_s, start_s)
    more = surge(arrival_rps + more_rps, in_flight, left_s, start_s)
    assert more.queue >= less.queue
    assert 0 <= less.behind <= len(in_flight)
    assert less.replicas(CAPACITY_RPS, sees_load=sees_load) >= 0


@given(
    arrival_rps=st.floats(361.0, 5000.0),
    in_flight=st.lists(st.floats(0.0, 300.0), min_size=1, max_size=4),
)
def test_surge_behind_a_gateway_that_rejects_needs_no_replicas_for_a_queue(
    arrival_rps: float, in_flight: list[float]
) -> None:
    waits = surge(arrival_rps, tuple(in_flight))
    bounded = replace(waits, rejected=True)
    found = bounded.replicas(CAPACITY_RPS, sees_load=True)
    assert found == math.ceil(arrival_rps / CAPACITY_RPS - 1e-9)
