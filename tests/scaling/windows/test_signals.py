"""Signals from scrapes: their age, their sums, and the rules that use them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.scaling import CostModel, Freshness, Observation, Pod, PodState, Reason, Signals
from headroom.scaling.forecast.bursts import burst_rate_rps
from headroom.scaling.forecast.forecast import Rates
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.rate_rules import for_burst, for_removal, for_utilization
from headroom.scaling.values.policy import Policy
from headroom.scaling.windows.by_replica import executed_batches
from headroom.scaling.windows.signals import read_signals
from headroom.scaling.windows.sliding_windows import Windows
from support.fakes_scaling import BOUNDS_S, policy, ready_pod, sample

POLICY = policy()
FRESH, STALE, MISSING = Freshness.FRESH, Freshness.STALE, Freshness.MISSING


def scraped(
    now_s: float,
    last_s: dict[str, float],
    *,
    pods: tuple[Pod, ...] | None = None,
    policy: Policy = POLICY,
) -> Signals:
    """Each pod answers every 2 s from 0 on until it falls silent; 2/s, 3 wait and 1 runs."""
    known = pods or tuple(ready_pod(uid, created_s=-100.0) for uid in last_s)
    windows, time_s = Windows(), 0.0
    while time_s <= now_s:
        samples = tuple(
            sample(uid, time_s, 10.0 + 2.0 * time_s, waiting=3, running=1)
            for uid, until_s in last_s.items()
            if time_s <= until_s
        )
        observation = Observation(now_s=time_s, current=1, pods=known, samples=samples)
        windows = windows.absorb(observation)
        time_s += 2.0
    return read_signals(policy, windows, replace(observation, now_s=now_s), 7)


@pytest.mark.parametrize(
    ("now_s", "last_s", "freshness", "age_s", "coverage"),
    [
        (60.0, {"a": 60.0}, FRESH, 0.0, 1.0),
        (60.0, {"a": 50.0}, FRESH, 10.0, 1.0),
        (60.5, {"a": 50.0}, STALE, 10.5, 0.0),
        (60.0, {"a": 60.0, "b": 50.0}, FRESH, 10.0, 1.0),
        (60.0, {"a": 60.0, "b": 48.0}, STALE, 12.0, 0.5),
        (200.0, {"a": 80.0, "b": 48.0}, STALE, 152.0, 0.0),
        (200.5, {"a": 80.0, "b": 48.0}, MISSING, None, 0.0),
        (62.0, {"a": 60.0, "never": -1.0}, STALE, 162.0, 0.5),
    ],
)
def test_signals_are_as_old_as_the_oldest_scrape(
    now_s: float,
    last_s: dict[str, float],
    freshness: Freshness,
    age_s: float | None,
    coverage: float,
) -> None:
    signals = scraped(now_s, last_s)
    for signal in (signals.arrival_rps, signals.waiting, signals.standing_queue, signals.in_flight):
        assert (signal.freshness, signal.age_s) == (freshness, age_s)
    assert signals.freshness is freshness
    assert signals.coverage == coverage


@pytest.mark.parametrize(("last_s", "freshness"), [(0.0, STALE), (10.0, STALE), (12.0, FRESH)])
def test_signals_with_a_replica_silent_before_its_rate_is_known_are_stale(
    last_s: float, freshness: Freshness
) -> None:
    patient = policy(stale_after_s=30.0)
    signals = scraped(20.0, {"a": 20.0, "b": last_s}, policy=patient)
    assert signals.freshness is freshness
    assert signals.arrival_rps.value == pytest.approx(4.0 if last_s else 2.0)


def test_signals_sum_over_all_pods() -> None:
    signals = scraped(60.0, {"a": 60.0, "b": 60.0})
    assert signals.arrival_rps.value == pytest.approx(4.0)
    assert (signals.waiting.value, signals.in_flight.value) == (6.0, 8.0)
    assert signals.standing_queue.value == 7
    assert signals.latency_s.value == pytest.approx(0.25 + 0.95 * 0.25)
    assert signals.attainment.value == 1.0


@pytest.mark.parametrize(("ready_s", "freshness"), [(50.0, FRESH), (49.5, STALE)])
def test_new_ready_replica_may_be_silent_for_10_s(ready_s: float, freshness: Freshness) -> None:
    pods = (ready_pod("a", created_s=-100.0), ready_pod("new", created_s=20.0, ready_s=ready_s))
    assert scraped(60.0, {"a": 60.0}, pods=pods).freshness is freshness


def test_replica_without_ready_time_is_silent_since_its_creation() -> None:
    unknown = Pod(uid="new", state=PodState.READY, created_s=49.0)
    pods = (ready_pod("a", created_s=-100.0), unknown)
    assert scraped(60.0, {"a": 60.0}, pods=pods).waiting.age_s == 11.0


@pytest.mark.parametrize(("now_s", "known"), [(11.9, False), (12.0, True)])
def test_rate_is_known_after_the_longest_burst_window(now_s: float, known: bool) -> None:
    signals = scraped(now_s, {"a": 12.0})
    assert (signals.arrival_rps.value is not None) is known
    assert (signals.attainment.value is not None) is known
    assert signals.waiting.value == 3.0
    if known:
        assert signals.arrival_rps.value == pytest.approx(2.0)


def test_signals_without_a_scrape_are_missing() -> None:
    assert scraped(60.0, {"a": -1.0}) == Signals()


def burst(*, before: float, lately: dict[float, float], watched_s: float = 40.0) -> float | None:
    """Arrivals a second before and in the last seconds; scrapes every second."""
    windows, arrivals, time_s = Windows(), 0.0, 0.0
    pods = (ready_pod("a", created_s=-100.0),)
    while time_s <= watched_s:
        scrape = sample("a", time_s, arrivals)
        windows = windows.absorb(Observation(now_s=time_s, current=1, pods=pods, samples=(scrape,)))
        left_s = watched_s - time_s
        rates = [rate for window_s, rate in lately.items() if left_s <= window_s]
        arrivals += rates[0] if rates else before
        time_s += 1.0
    return burst_rate_rps(policy(), windows, watched_s)


@pytest.mark.parametrize(
    ("before", "lately", "rate_rps"),
    [
        (5.0, {}, None),
        (5.0, {4.0: 15.0}, 15.0),  # 60 against 20: 8.9 deviations
        (5.0, {4.0: 10.0}, None),  # 40 against 20: 4.47
        (5.0, {4.0: 10.1}, 10.1),  # 40.4 against 20: 4.56
        (0.0, {4.0: 1.1}, None),  # 4.4 where none came: not more than 4.5 deviations of one
        (0.0, {4.0: 1.2}, 1.2),
        (5.0, {8.0: 8.5}, None),  # 68 against 40: 4.43
        (5.0, {12.0: 7.9}, None),  # 94.8 against 60: 4.49
        (5.0, {12.0: 8.0}, 8.0),  # 96 against 60: 4.65; of 8 s 64 against 43: 3.2
        (5.0, {8.0: 8.6}, 8.6),  # 68.8 against 40: 4.55
    ],
)
def test_burst_must_exceed_4_5_deviations(
    before: float, lately: dict[float, float], rate_rps: float | None
) -> None:
    found = burst(before=before, lately=lately)
    assert found == (rate_rps and pytest.approx(rate_rps))


@pytest.mark.parametrize(("watched_s", "speaks"), [(7.0, False), (8.0, True)])
def test_burst_window_needs_as_long_before_it(watched_s: float, speaks: bool) -> None:
    assert (burst(before=1.0, lately={4.0: 30.0}, watched_s=watched_s) is not None) is speaks


FAST = CostModel(fixed_s=0.1, per_item_s=0.0, max_batch=1)
"""Ten a second, and latency matters only near that."""


@pytest.mark.parametrize(
    ("arrival_rps", "ceiling", "replicas"),
    [(16.0, 0.8, 2), (16.0000000001, 0.8, 2), (16.1, 0.8, 3), (0.0, 0.8, 0), (7.9, 0.4, 2)],
)
def test_utilization_stays_below_its_ceiling(
    arrival_rps: float, ceiling: float, replicas: int
) -> None:
    found = for_utilization(policy(utilization_ceiling=ceiling), FAST, arrival_rps)
    assert (found.rule, found.replicas) == (Reason.UTILIZATION_CEILING, replicas)


@pytest.mark.parametrize(
    ("arrival_rps", "ceiling", "replicas"),
    [
        (16.0, 0.8, 2),  # 0.8 x 10/s each
        (16.1, 0.8, 3),
        (0.8, 0.04, 2),
        (0.81, 0.04, 3),
        (0.0, 0.8, 0),
    ],
)
def test_removal_keeps_utilization_below_the_ceiling(
    arrival_rps: float, ceiling: float, replicas: int
) -> None:
    tail = TailLatency(cost=FAST, percentile=0.95)
    limits = policy(utilization_ceiling=ceiling)
    assert (
        for_removal(limits, tail, Rates(for_ceiling_rps=arrival_rps, for_latency_rps=0.0), 60.0)
        == replicas
    )


def test_removal_keeps_latency_below_its_margin() -> None:
    tail = TailLatency(cost=FAST, percentile=0.95)
    target_s, carried_rps = 0.25, 2 * tail.capacity_rps(0.92 * 0.25, 1)
    assert carried_rps < 2 * 0.8 * 10.0

    def left(felt_rps: float, within_s: float) -> int:
        return for_removal(
            policy(), tail, Rates(for_ceiling_rps=10.0, for_latency_rps=felt_rps), within_s
        )

    assert left(0.999 * carried_rps, target_s) == 2
    assert left(1.001 * carried_rps, target_s) == 3
    # where the lower target cannot be promised at all, utilization alone decides
    assert left(15.0, 0.105) == 2


def test_burst_rule_applies_ceiling_and_latency_at_its_rate() -> None:
    tail = TailLatency(cost=FAST, percentile=0.95)
    assert for_burst(policy(), tail, None, 0.25) is None
    by_latency = for_burst(policy(), tail, 40.0, 0.25)
    assert by_latency is not None
    assert by_latency.replicas == tail.replicas_for(40.0, 0.25, 1.0)
    assert by_latency.replicas > 5
    by_ceiling = for_burst(policy(), tail, 40.0, 60.0)
    assert by_ceiling is not None
    assert by_ceiling.replicas == 5
    infeasible = for_burst(policy(), tail, 40.0, 0.05)
    assert infeasible is not None
    assert infeasible.replicas == 5


def test_interval_with_a_batch_is_reported() -> None:
    pods = (ready_pod("a", created_s=-100.0),)
    windows, reported = Windows(), []
    for now_s, batches in ((0.0, (3.0, 5.0, 1.0)), (2.0, (4.0, 8.0, 1.5)), (4.0, (4.0, 8.0, 1.5))):
        scrape = sample("a", now_s, 0, batches=batches)
        windows = windows.absorb(Observation(now_s=now_s, current=1, pods=pods, samples=(scrape,)))
        reported.append(executed_batches(windows))
    assert reported == [[], [("a", 1.0, 3.0, 0.5)], []]
    assert len(BOUNDS_S) == len(windows.total(4.0).latency)


@pytest.mark.parametrize(
    ("created_s", "ready_s", "arrivals"),
    [
        (0.0, 3.0, 7.0),  # created as watching began
        (-0.1, 3.0, 0.0),
        (1.0, 4.0, 0.0),  # ready at its first scrape, which is a baseline
        (1.0, 3.9, 7.0),
    ],
)
def test_pod_created_after_the_first_tick_counts_from_zero(
    created_s: float, ready_s: float, arrivals: float
) -> None:
    windows = Windows().absorb(Observation(now_s=0.0, current=1))
    pods = (ready_pod("new", created_s=created_s, ready_s=ready_s),)
    scrape = sample("new", 4.0, 7.0)
    windows = windows.absorb(Observation(now_s=4.0, current=1, pods=pods, samples=(scrape,)))
    assert windows.total(30.0).arrivals == arrivals
