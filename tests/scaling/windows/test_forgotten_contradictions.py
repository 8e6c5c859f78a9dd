"""A replica that lied for a while: its counters start again, and are never learned from."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import (
    PodSample,
    Routing,
    State,
)
from headroom.scaling.windows.plausibility.implausible_work import overlong
from scaling.windows.contradicted_fleet import COST, START_S, TICK_S, Fleet, scaled, seconds


def test_contradiction_is_forgotten_after_its_windows() -> None:
    fleet = Fleet()
    fleet.run(40)
    fleet.run(10, scaled(0.0))
    assert fleet.run(90)[-1].left_out == ()
    assert fleet.state.contradictions.found == {}


def test_counters_that_stay_where_no_server_can_be_start_again() -> None:
    fleet = Fleet()
    fleet.run(40)
    ahead = 1e6

    def lie(true: PodSample) -> PodSample:
        served = true.arrivals + ahead
        return scaled(served / true.arrivals)(true)

    decisions = fleet.run(120, lie)
    assert decisions[10].left_out
    assert decisions[-1].left_out == ()
    assert decisions[-1].signals.arrival_rps.value == pytest.approx(18.4, rel=0.05)


def test_restart_of_one_process_is_accepted() -> None:
    fleet = Fleet()
    fleet.run(40)
    fleet.served[0] = 0.0
    assert all(not one.left_out for one in fleet.run(30))


@pytest.mark.parametrize("stays_ready", [True, False])
def test_counters_fall_again_and_again_where_a_container_crashes(*, stays_ready: bool) -> None:
    """A container that restarts in its pod is unready meanwhile; a page of two servers is not."""
    fleet, decisions = Fleet(), []
    fleet.run(40)
    for _ in range(6):
        fleet.served[0] = 0.0
        if not stays_ready:
            fleet.ready_s[0] = START_S + TICK_S * fleet.tick + 1.0
        decisions += fleet.run(15)
    assert any(one.left_out for one in decisions) is stays_ready
    assert bool(fleet.state.contradictions.found) is stays_ready


@pytest.mark.parametrize(
    ("items", "batches_added", "seconds_added"),
    [(100.0, 0.0, 0.0), (1e6, 0.0, 0.0), (1e9, 1e9, 0.0), (1e12, 1e12, 1.0)],
)
def test_one_wrong_interval_removes_nothing_in_half_an_hour(
    items: float, batches_added: float, seconds_added: float
) -> None:
    fleet = Fleet()
    fleet.run(40)

    def lie(true: PodSample) -> PodSample:
        return replace(
            true,
            batch_items=true.batch_items + items,
            batches=true.batches + batches_added,
            batch_seconds=true.batch_seconds + seconds_added,
        )

    fleet.run(1, lie)
    fleet.state = State.from_checkpoint(fleet.state.to_checkpoint())
    assert min(one.replicas for one in fleet.run(900)) == 3


UNDERSTATED = [(2, 10.6), (3, 19.2), (4, 27.0)]
"""Replicas, and a rate that all of them are needed for, but not if one of them has half its share.
"""


@pytest.mark.parametrize(
    "routing",
    [Routing.RANDOM, Routing.ROUND_ROBIN, Routing.LEAST_IN_FLIGHT, Routing.STICKY],
)
@pytest.mark.parametrize(("replicas", "rate_rps"), UNDERSTATED)
def test_replica_that_hides_half_of_its_requests_from_the_first_page_on_removes_none(
    replicas: int, rate_rps: float, routing: Routing
) -> None:
    fleet = Fleet(rate_rps, replicas, routing)
    decisions = fleet.run(60, scaled(0.5))
    assert min(one.replicas for one in decisions) == replicas
    assert max(one.replicas for one in decisions) <= replicas + 1


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.LEAST_IN_FLIGHT])
def test_replicas_that_are_too_many_are_removed_though_one_hides_requests(routing: Routing) -> None:
    fleet = Fleet(6.0, 3, routing)
    assert min(one.replicas for one in fleet.run(200, scaled(0.7))) < 3


def test_slow_replica_with_half_of_the_requests_hides_none_where_routing_sees_load() -> None:
    """It works as long as the others: routing gave it fewer requests for that."""
    fleet = Fleet(14.0, 3, Routing.LEAST_IN_FLIGHT)
    fleet.shares = [0.5, 1.25, 1.25]
    fleet.run(30)
    assert fleet.state.contradictions.understated > 1.1
    busy = Fleet(14.0, 3, Routing.LEAST_IN_FLIGHT)
    busy.shares = fleet.shares
    busy.run(30, seconds(2.5))
    assert busy.state.contradictions.understated == 1.0


@pytest.mark.parametrize("rate_rps", [1.5, 6.0, 24.0])
def test_replica_whose_executions_were_in_ms_at_first_moves_no_cost_when_they_are_not(
    rate_rps: float,
) -> None:
    fleet = Fleet(rate_rps, 3)
    decisions = fleet.run(9, seconds(1e-3)) + fleet.run(30)
    assert min(one.replicas for one in decisions) >= (3 if rate_rps > 18.0 else 1)
    assert max(one.replicas for one in decisions) <= 4
    assert fleet.state.cost is not None
    assert fleet.state.cost.full_batch_rps == pytest.approx(COST.full_batch_rps, rel=0.1)


def test_batches_that_last_longer_than_their_requests_teach_nothing() -> None:
    fleet = Fleet()
    fleet.run(3)
    fleet.run(1, lambda true: replace(true, batch_seconds=true.batch_seconds + 30.0))
    assert overlong(fleet.state.windows) == {"pod-0"}
    assert "pod-0" not in fleet.state.learner.speeds.sums
    assert fleet.state.cost is not None
    assert fleet.state.cost.batch_s(1) == pytest.approx(0.21, rel=0.02)


def test_contradicting_replica_has_no_speed_of_its_own() -> None:
    fleet = Fleet()
    fleet.run(20, seconds(1.5))
    assert fleet.state.learner.speeds.factors["pod-0"] == pytest.approx(1.5, rel=0.01)
    last = fleet.run(6, scaled(0.0))[-1]
    assert [one.pod for one in last.left_out] == ["pod-0"]
    assert fleet.state.learner.speeds.factors.get("pod-0", 1.0) == 1.0
