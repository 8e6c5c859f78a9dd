"""The queue rules: the shared queue, the standing queue and backlogs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling import (
    CostModel,
    DemandKnown,
    Freshness,
    Observation,
    Pod,
    PodSample,
    PodState,
    Reason,
    ReplicaCounts,
    Routing,
    Signal,
    Signals,
)
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.queue_rules import for_backlog, for_queue
from headroom.scaling.rules.rate_rules import replicas_for_latency
from headroom.scaling.values.tuning import Tuning
from headroom.scaling.windows.signals import backlogs, old_queues, shared_queue
from headroom.scaling.windows.sliding_windows import Windows
from support.fakes_scaling import Service, policy, ready_pod, sample

UNIT = CostModel(fixed_s=0.1, per_item_s=0.0, max_batch=1)
"""One request each 0.1 s; far above its target, 10 requests per second per replica."""
TAIL = TailLatency(cost=UNIT, percentile=0.95)
TARGET_S = 1.5


def scraped(*waiting: int) -> tuple[Windows, Observation]:
    pods = tuple(ready_pod(f"pod-{number}") for number in range(len(waiting)))
    samples = tuple(
        sample(pod.uid, 10.0, 0.0, waiting=queued)
        for pod, queued in zip(pods, waiting, strict=True)
    )
    observation = Observation(now_s=10.0, current=len(pods), pods=pods, samples=samples)
    return Windows().absorb(observation), observation


@pytest.mark.parametrize(
    ("waiting", "shared"),
    [
        ((), None),
        ((7,), 7),
        ((0, 0, 500), 0),  # one stuck replica: no other can work that off
        ((10, 10, 10), 30),
        ((10, 12, 500), 36),
        ((10, 20), 20),  # the lower of the two in the middle
        ((0, 0, 9, 9), 0),
        ((0, 9, 9, 9), 36),
    ],
)
def test_shared_queue_is_replicas_times_the_median(
    waiting: tuple[int, ...], shared: int | None
) -> None:
    assert shared_queue(*scraped(*waiting)) == shared


@given(st.lists(st.integers(0, 1000), min_size=1, max_size=9), st.data())
def test_shared_queue_ignores_long_queues_of_a_minority(
    waiting: list[int], data: st.DataObject
) -> None:
    stuck = data.draw(st.lists(st.integers(0, 10**9), max_size=len(waiting) - 1))
    shared = shared_queue(*scraped(*stuck, *waiting))
    assert shared is not None
    assert shared <= (len(stuck) + len(waiting)) * max(waiting)


def test_shared_queue_counts_only_scraped_ready_pods() -> None:
    windows, observation = scraped(10, 20, 30)
    first, second, third = observation.pods
    gone = Pod(uid=first.uid, state=PodState.TERMINATING, created_s=0.0)
    silent = ready_pod("silent")
    now = Observation(now_s=12.0, current=3, pods=(gone, second, third, silent))
    assert shared_queue(windows, now) == 40


def fresh(value: float | None) -> Signal:
    if value is None:
        return Signal(freshness=Freshness.MISSING)
    return Signal(freshness=Freshness.FRESH, value=value, age_s=0.0)


@pytest.mark.parametrize(
    ("standing_queue", "rate_rps", "warming", "replicas"),
    [
        (96.0, 17.8, 0, 3),
        (96.0, 17.8, 1, None),  # those on their way come first
        (16.0, 17.8, 0, None),  # 2 x 8 may wait
        (17.0, 17.8, 0, 2),
        (None, 17.8, 0, None),
        (96.0, None, 0, 3),  # no rate yet: taken to be at capacity
        (96.0, 0.0, 0, 1),
        (16.0 + 180.0 * 10.0, 10.0, 0, 3),  # 10/s beyond the arrivals: twice as many
    ],
)
def test_standing_queue_above_the_bound_is_worked_off_in_time(
    standing_queue: float | None, rate_rps: float | None, warming: int, replicas: int | None
) -> None:
    # capacity c; 17.8/s <= 2 c, and with 80 / 180 s = 0.44/s more it is not
    capacity_rps = TAIL.capacity_rps(TARGET_S, 2)
    assert 17.8 <= 2 * capacity_rps < 18.24
    signals = Signals(standing_queue=fresh(standing_queue), arrival_rps=fresh(rate_rps))
    wanted = for_queue(
        policy(queue_depth=8),
        TAIL,
        signals,
        counts=ReplicaCounts(ready=2, warming=warming),
        target_s=TARGET_S,
    )
    assert (wanted and wanted.replicas) == replicas


def test_standing_queue_drain_time_comes_from_the_tuning() -> None:
    signals = Signals(standing_queue=fresh(96.0), arrival_rps=fresh(10.0))
    counts = ReplicaCounts(ready=2)
    # 80 within 2 s: 40/s more
    hasty = for_queue(
        policy(queue_depth=8, tuning=Tuning(drain_s=2.0)),
        TAIL,
        signals,
        counts=counts,
        target_s=TARGET_S,
    )
    assert hasty is not None
    assert hasty.replicas == TAIL.replicas_for(50.0, TARGET_S, 1.0)
    assert hasty.rule is Reason.QUEUE_DEPTH


def test_queue_bound_by_default_is_the_largest_batch() -> None:
    counts, batch = ReplicaCounts(ready=2), CostModel(fixed_s=0.1, per_item_s=0.0, max_batch=8)
    tail = TailLatency(cost=batch, percentile=0.95)
    for standing_queue, asks in ((16.0, False), (17.0, True)):
        signals = Signals(standing_queue=fresh(standing_queue), arrival_rps=fresh(1.0))
        wanted = for_queue(policy(), tail, signals, counts=counts, target_s=TARGET_S)
        assert (wanted is not None) == asks


@pytest.mark.parametrize(
    ("depth", "parallel_requests", "ready", "queue", "replicas"),
    [
        (8, None, 2, 96.0, 6),  # 12 would have room; the next step follows when 6 are ready
        (None, None, 2, 96.0, None),  # nothing says what a queue is
        (None, 4, 1, 12.0, 2),  # 12 wait and 4 run: two execute 8, and 8 may wait
        (None, 4, 1, 4.0, None),  # within the bound
        (2, 4, 2, 5.0, 3),
        (None, 4, 2, 0.0, None),
    ],
)
def test_queue_rule_without_a_cost_spreads_the_standing_queue(
    depth: int | None,
    parallel_requests: int | None,
    ready: int,
    queue: float,
    replicas: int | None,
) -> None:
    wanted = for_queue(
        policy(queue_depth=depth),
        None,
        Signals(standing_queue=fresh(queue), arrival_rps=fresh(10.0)),
        counts=ReplicaCounts(ready=ready),
        target_s=TARGET_S,
        parallel_requests=parallel_requests,
    )
    assert (wanted and wanted.replicas) == replicas


@pytest.mark.parametrize(
    ("queues", "drain_s", "arrival_rps", "replicas"),
    [
        ((), 180.0, 95.0, None),
        ((900,), 180.0, 95.0, 19),  # 5/s of 10 are needed, the most: 95 / 5
        ((360,), 180.0, 95.0, 12),  # 2/s: 95 / 8
        ((400, 320), 180.0, 95.0, 12),  # the mean
        ((360,), 360.0, 95.0, 11),  # 1/s: 95 / 9
        ((360,), 180.0, 0.0, 0),
    ],
)
def test_backlog_is_worked_off_with_smaller_shares(
    queues: tuple[int, ...], drain_s: float, arrival_rps: float, replicas: int | None
) -> None:
    tuning = Tuning(drain_s=drain_s)
    wanted = for_backlog(policy(tuning=tuning), TAIL, arrival_rps, queues, 1.0)
    assert (wanted and wanted.replicas) == replicas


@pytest.mark.parametrize("routing", [Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO])
def test_replicas_that_routing_passes_are_added_to_those_for_the_arrivals(routing: Routing) -> None:
    seeing, target_s = policy(routing=routing), 1.0
    carrying = replicas_for_latency(seeing, TAIL, 95.0, target_s)
    wanted = for_backlog(seeing, TAIL, 95.0, (900, 700), target_s)
    assert carrying is not None
    assert wanted is not None
    assert wanted.replicas == carrying + 2
    assert for_backlog(seeing, TAIL, 95.0, (), target_s) is None


@pytest.mark.parametrize(
    ("waiting", "found"),
    [
        pytest.param((700, 650, 0, 3), (700, 650), id="two take a minute longer than the others"),
        pytest.param((590, 580, 0, 3), (), id="another would start no earlier"),
        pytest.param((2000, 1900, 1800, 1750), (), id="all alike: all get requests"),
        pytest.param((), (), id="none is ready"),
    ],
)
def test_old_queues_are_those_that_outlast_a_start(
    waiting: tuple[int, ...], found: tuple[int, ...]
) -> None:
    pods = tuple(ready_pod(f"pod-{number}") for number in range(len(waiting)))
    windows = Windows()
    for now_s in (0.0, 30.0):
        samples = tuple(
            sample(pod.uid, now_s, queue + 10.0 * now_s, waiting=queue)
            for pod, queue in zip(pods, waiting, strict=True)
        )
        observation = Observation(now_s=now_s, current=len(pods), pods=pods, samples=samples)
        windows = windows.absorb(observation)
    names = [pod.uid for pod in pods]
    assert old_queues(windows, names, full_rps=10.0, least_s=60.0, window_s=30.0) == found


def test_backlogs_exclude_stuck_replicas() -> None:
    pods = tuple(ready_pod(f"pod-{number}") for number in range(4))
    windows = Windows()
    for now_s in (0.0, 30.0):
        reported = {"pod-0": (50, 300.0), "pod-1": (50, 150.0), "pod-2": (10, 300.0)}
        samples = tuple(
            sample(uid, now_s, queue + done * now_s / 30.0, waiting=queue)
            for uid, (queue, done) in reported.items()
        )
        windows = windows.absorb(Observation(now_s=now_s, current=4, pods=pods, samples=samples))
    names = [pod.uid for pod in pods]

    def found(full_rps: float) -> tuple[int, ...]:
        return backlogs(windows, names, full_rps=full_rps, target_s=2.0, window_s=30.0)

    assert found(10.0) == (50,)  # pod-1 answers half of what a full batch would: it is stuck
    assert found(5.0) == (50, 50)
    assert found(26.0) == ()


def test_stuck_replica_adds_no_replica() -> None:
    service = Service(rate_rps=12.0, replicas=3, policy=policy(queue_depth=4, min_replicas=3))
    for _ in range(60):
        service.waiting["pod-0"] = 1000.0
        decision = service.tick()
        assert decision.replicas == 3
        assert all(rule.rule is not Reason.QUEUE_DEPTH for rule in decision.recommendations)
    assert decision.signals.standing_queue.value == 0
    assert decision.signals.waiting.value is not None
    assert decision.signals.waiting.value > 900


class Batching(Service):
    """While a batch executes, those of the next one wait."""

    def samples(self) -> tuple[PodSample, ...]:
        return tuple(replace(one, waiting=2, running=2) for one in super().samples())


@pytest.mark.parametrize("depth", [1, 2, None])
def test_bound_below_what_waits_between_batches_is_no_saturation(depth: int | None) -> None:
    service = Batching(rate_rps=20.0, replicas=3, policy=policy(queue_depth=depth))
    service.run(120)
    assert {decision.demand.known for decision in service.decisions} == {DemandKnown.EXACT}
    assert service.replicas <= 4


class Leaking(Service):
    """Its gauge still counts 12 requests at each replica that have ended."""

    def samples(self) -> tuple[PodSample, ...]:
        return tuple(replace(one, waiting=one.waiting + 12) for one in super().samples())


def test_gauge_that_is_never_lowered_hides_no_demand() -> None:
    service = Leaking(rate_rps=20.0, replicas=3)
    service.run(300)
    # 20/s within 0.5 s: 10 of 36
    assert {decision.demand.known for decision in service.decisions} == {DemandKnown.EXACT}
    assert max(decision.replicas for decision in service.decisions) <= 5  # for the queue; it was 20
