"""A replica whose metrics the others contradict removes nothing, adds nothing, and is named."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import pytest

from fakes_scaling import Service, policy, served_sample
from headroom.scaling import (
    CostModel,
    Decision,
    LatencyCounts,
    Observation,
    Pod,
    PodSample,
    PodState,
    Routing,
    State,
    decide,
)
from headroom.scaling.values.decision import Reason
from headroom.scaling.windows.leaps import overlong

COST = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
START_S, TICK_S = 10_000.0, 2.0
Lie = Callable[[PodSample], PodSample]


class Fleet:
    """Replicas with nearly the same requests each, of which the first may report anything."""

    def __init__(
        self, rate_rps: float = 18.0, replicas: int = 3, routing: Routing = Routing.RANDOM
    ) -> None:
        self.policy = policy(
            min_replicas=1,
            max_replicas=20,
            latency_target_s=1.5,
            scale_down_stabilization_s=10.0,
            routing=routing,
        )
        self.state, self.tick = State.initial(), 0
        self.replicas, self.share = replicas, rate_rps * TICK_S / replicas
        self.shares = [1.0 + 0.02 * number for number in range(replicas)]
        self.served = [0.0] * replicas
        self.lie: Lie | None = None
        self.current = replicas

    def next(self) -> Decision:
        self.tick += 1
        now_s = START_S + TICK_S * self.tick
        for number, share in enumerate(self.shares):
            self.served[number] += self.share * share
        samples = [self._sample(number, now_s) for number in range(self.replicas)]
        if self.lie is not None:
            samples[0] = self.lie(samples[0])
        pods = tuple(
            Pod(uid=f"pod-{number}", state=PodState.READY, created_s=1.0, ready_s=2.0)
            for number in range(self.replicas)
        )
        observation = Observation(
            now_s=now_s, current=self.current, pods=pods, samples=tuple(samples)
        )
        decision, self.state = decide(self.policy, self.state, observation)
        return decision

    def run(self, ticks: int, lie: Lie | None = None) -> list[Decision]:
        self.lie = lie
        decisions = [self.next() for _ in range(ticks)]
        self.lie = None
        return decisions

    def _sample(self, number: int, now_s: float) -> PodSample:
        served = float(int(self.served[number]))
        return served_sample(f"pod-{number}", now_s, served)


def scaled(factor: float) -> Lie:
    def lie(true: PodSample) -> PodSample:
        served = float(int(true.arrivals * factor))
        return replace(
            true,
            arrivals=served,
            latency=LatencyCounts(bounds_s=true.latency.bounds_s, counts=(served, served)),
            running=true.running if factor else 0,
            batches=served,
            batch_items=served,
            batch_seconds=0.21 * served,
        )

    return lie


def frozen() -> Lie:
    """The first page, again and again, as if it were new."""
    first: list[PodSample] = []

    def lie(true: PodSample) -> PodSample:
        first.append(true)
        return replace(first[0], time_s=true.time_s)

    return lie


def batches(factor: float) -> Lie:
    return lambda true: replace(
        true, batches=true.batches * factor, batch_items=true.batch_items * factor
    )


def seconds(factor: float) -> Lie:
    return lambda true: replace(true, batch_seconds=true.batch_seconds * factor)


def claiming(factor: float) -> Lie:
    cost = replace(COST, fixed_s=0.15 * factor, per_item_s=0.06 * factor)
    return lambda true: replace(true, cost=cost)


def late() -> Lie:
    """All requests in the slowest bucket."""
    return lambda true: replace(
        true,
        latency=LatencyCounts(bounds_s=true.latency.bounds_s, counts=(0.0, true.arrivals)),
    )


def silent() -> Lie:
    return lambda true: replace(true, time_s=1.0)


def back_and_forth() -> Lie:
    ticks = [0]

    def lie(true: PodSample) -> PodSample:
        ticks[0] += 1
        return scaled((0.5, 1.0, 0.9)[ticks[0] % 3])(true)

    return lie


LIES: dict[str, Callable[[], Lie]] = {
    "other server, idle": lambda: scaled(0.0),
    "a hundredth": lambda: scaled(0.01),
    "half": lambda: scaled(0.5),
    "ten times": lambda: scaled(10.0),
    "a million times": lambda: scaled(1e6),
    "frozen": frozen,
    "back and forth": back_and_forth,
    "a thousand times the batches": lambda: batches(1e3),
    "a billion times the batches": lambda: batches(1e9),
    "executions in ms": lambda: seconds(1e-3),
    "executions in hours": lambda: seconds(1e4),
    "dear": lambda: claiming(1000.0),
    "free": lambda: claiming(0.001),
}


@pytest.mark.parametrize(
    ("replicas", "routing"),
    [(2, Routing.RANDOM), (3, Routing.STICKY), (3, Routing.LEAST_IN_FLIGHT)],
)
@pytest.mark.parametrize("lie", LIES)
def test_lie_of_one_replica_removes_none_and_adds_at_most_one(
    lie: str, replicas: int, routing: Routing
) -> None:
    fleet = Fleet(6.0 * replicas, replicas, routing)
    fleet.run(36)
    decisions = fleet.run(24, LIES[lie]()) + fleet.run(36)
    assert min(one.replicas for one in decisions) == replicas
    assert max(one.replicas for one in decisions) <= replicas + 1


@pytest.mark.parametrize(
    "lie",
    ["other server, idle", "ten times", "a million times", "frozen", "back and forth"],
)
def test_contradicting_replica_is_named(lie: str) -> None:
    fleet = Fleet()
    fleet.run(40)
    last = fleet.run(12, LIES[lie]())[-1]
    assert [one.pod for one in last.left_out] == ["pod-0"]
    assert last.left_out[0].why


def test_reason_says_that_a_replica_contradicts() -> None:
    fleet = Fleet(3.0)
    fleet.current = 4
    fleet.run(3)
    last = fleet.run(30, scaled(0.0))[-1]
    assert last.replicas == 4
    assert last.reason is Reason.REPLICA_CONTRADICTS


def test_replicas_that_all_count_little_are_removed() -> None:
    fleet = Fleet()
    fleet.run(40)
    fleet.share = 0.5
    assert min(one.replicas for one in fleet.run(400)) < 3
    assert all(not one.left_out for one in fleet.run(5))


@pytest.mark.parametrize("shares", [(0.6, 1.0, 1.4), (0.2, 0.8, 2.0)])
def test_uneven_shares_of_kept_connections_are_no_contradiction(
    shares: tuple[float, ...],
) -> None:
    fleet = Fleet(routing=Routing.STICKY)
    fleet.shares = list(shares)
    decisions = fleet.run(300)
    assert all(not one.left_out for one in decisions[100:])


def test_busy_replica_with_few_requests_is_no_contradiction_where_routing_sees_load() -> None:
    fleet = Fleet(routing=Routing.LEAST_IN_FLIGHT)
    fleet.shares = [0.2, 1.28, 1.52]
    busy = Fleet(routing=Routing.LEAST_IN_FLIGHT)
    busy.shares = fleet.shares
    assert any(one.left_out for one in fleet.run(60))
    assert all(not one.left_out for one in busy.run(60, seconds(6.0)))


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


def test_restart_of_one_process_is_believed() -> None:
    fleet = Fleet()
    fleet.run(40)
    fleet.served[0] = 0.0
    assert all(not one.left_out for one in fleet.run(30))


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


Course = list[tuple[int, Lie | None]]
"""For how many ticks which lie."""

COURSES: dict[str, tuple[float, int, Routing, Course]] = {
    "counters that fall to half, after a page that is missing": (
        *(12.2, 2, Routing.RANDOM),
        [(12, None), (1, silent()), (8, scaled(0.5))],
    ),
    "executions in ms, then none, then those of all the time": (
        *(19.8, 3, Routing.STICKY),
        [(1, None), (4, seconds(1e-3)), (4, silent()), (12, None)],
    ),
    "twice the time of each batch": (
        *(11.2, 2, Routing.STICKY),
        [(9, None), (40, seconds(2.0))],
    ),
    "a cost of 19 minutes before ten batches": (
        *(0.76, 2, Routing.STICKY),
        [(8, silent()), (12, claiming(7000.0))],
    ),
    "a cost of 19 minutes before any batch": (
        *(0.3, 2, Routing.STICKY),
        [(20, claiming(7000.0))],
    ),
    "parts of the cost swapped": (
        *(14.7, 2, Routing.ROUND_ROBIN),
        [(20, lambda true: replace(true, cost=replace(COST, fixed_s=0.06, per_item_s=0.15)))],
    ),
    "late answers alone": (
        *(21.4, 3, Routing.RANDOM),
        [(9, None), (60, late()), (60, None)],
    ),
    "late answers alone from the first page on": (
        *(21.4, 3, Routing.RANDOM),
        [(90, late()), (60, None)],
    ),
    "silence after the first pages": (
        *(14.4, 2, Routing.STICKY),
        [(3, None), (70, silent())],
    ),
}
"""Requests per second, replicas, their routing, and what one of them does."""


@pytest.mark.parametrize("course", COURSES)
def test_course_of_one_replica_adds_at_most_one(course: str) -> None:
    rate_rps, replicas, routing, steps = COURSES[course]
    fleet = Fleet(rate_rps, replicas, routing)
    decisions = [decision for ticks, lie in steps for decision in fleet.run(ticks, lie)]
    assert max(one.replicas for one in decisions) <= replicas + 1


def test_fleet_without_contradictions_changes_no_state() -> None:
    fleet = Fleet()
    fleet.run(40)
    before = fleet.state.contradictions
    fleet.run(1)
    assert fleet.state.contradictions is before
    assert before.found == {}


class TwoProcesses(Service):
    """Behind each port answer two processes in turn, with pages of their own: 60 and 40 %."""

    def samples(self) -> tuple[PodSample, ...]:
        turn = int(self.now_s / self.tick_s)
        return tuple(
            _part(one, 0.6 if (turn // 3 + number) % 2 else 0.4)
            for number, one in enumerate(super().samples())
        )


def _part(one: PodSample, share: float) -> PodSample:
    counts = tuple(math.floor(share * count) for count in one.latency.counts)
    latency = replace(one.latency, counts=counts)
    return replace(one, arrivals=math.floor(share * one.arrivals), latency=latency)


def test_two_processes_behind_one_port_are_no_burst_of_requests() -> None:
    service = TwoProcesses(rate_rps=20.0, replicas=3)
    service.run(600)
    assert {decision.replicas for decision in service.decisions} == {3}
