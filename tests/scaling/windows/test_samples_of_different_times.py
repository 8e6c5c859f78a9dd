"""Samples after a gap, or of pods that a Prometheus scrapes at different times."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from headroom.scaling import (
    CostModel,
    DemandKnown,
    Freshness,
    Observation,
    Pod,
    Routing,
    State,
    decide,
)
from headroom.scaling.forecast.bursts import burst_rate_rps
from headroom.scaling.forecast.forecast import Expected, Rates
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.rules.rule_inputs import RuleInputs
from headroom.scaling.rules.rule_results import evaluate_rules
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.signals import Signal, Signals
from headroom.scaling.windows.plausibility.uneven_shares import read_shares
from headroom.scaling.windows.signals import read_signals
from headroom.scaling.windows.sliding_windows import Windows
from headroom.scaling.windows.together import moves_apart
from support.fakes_scaling import BOUNDS_S, COST, policy, ready_pod, sample

TICK_S, RATE_RPS = 2.0, 24.0
Pages = Callable[[float, float], Callable[[str, float], float | None]]
OLD, NEW = ("a", "b", "c"), ("d", "e")


def taken(uid: str, now_s: float, moved_s: float) -> float:
    """Return the requests of a replica; from then on the new ones alone get any.

    The old ones have a queue, and routing sees it.
    """
    if uid in OLD:
        return RATE_RPS / len(OLD) * min(now_s, moved_s)
    return RATE_RPS / len(NEW) * max(0.0, now_s - moved_s)


def pods_at(now_s: float, moved_s: float) -> tuple[Pod, ...]:
    new = [ready_pod(uid, created_s=5.0, ready_s=moved_s) for uid in NEW if now_s >= moved_s]
    return (*(ready_pod(uid, created_s=-100.0) for uid in OLD), *new)


def observations(
    moved_s: float, until_s: float, scraped_s: Callable[[str, float], float | None]
) -> Iterator[Observation]:
    """Yield the ticks; `scraped_s` says when a pod was scraped last, if its page is there."""
    now_s = 0.0
    while now_s <= until_s:
        pods = pods_at(now_s, moved_s)
        times = {pod.uid: scraped_s(pod.uid, now_s) for pod in pods}
        samples = tuple(
            sample(uid, time_s, taken(uid, time_s, moved_s))
            for uid, time_s in times.items()
            if time_s is not None and time_s >= (moved_s if uid in NEW else 0.0)
        )
        yield Observation(now_s=now_s, current=len(pods), pods=pods, samples=samples)
        now_s += TICK_S


def without_gap(begin_s: float, end_s: float) -> Callable[[str, float], float | None]:
    return lambda _, now_s: None if begin_s < now_s < end_s else now_s


def in_two_steps(begin_s: float, end_s: float) -> Callable[[str, float], float | None]:
    """New replicas answer first in the second tick after the gap."""
    every = without_gap(begin_s, end_s)
    return lambda uid, now_s: every(uid, now_s - TICK_S if uid in NEW else now_s) and now_s


def phase_of(every_s: float) -> Callable[[str, float], float]:
    """Each pod is scraped at its own phase of the interval."""
    phases = {uid: number * every_s / 5 for number, uid in enumerate((*OLD, *NEW))}
    return lambda uid, now_s: (now_s - phases[uid]) // every_s * every_s + phases[uid]


@pytest.mark.parametrize("gap_s", [12.0, 30.0, 90.0, 280.0, 600.0])
@pytest.mark.parametrize("ready_before_end_s", [2.0, 6.0, 10.0])
@pytest.mark.parametrize("pages", [without_gap, in_two_steps])
def test_requests_that_moved_within_a_gap_count_once(
    pages: Pages, gap_s: float, ready_before_end_s: float
) -> None:
    end_s, windows, found = 100.0 + gap_s, Windows(), []
    moved_s = end_s - ready_before_end_s
    for seen in observations(moved_s, end_s + 40.0, pages(100.0, end_s)):
        windows = windows.absorb(seen)
        if seen.now_s > end_s:
            signals = read_signals(policy(), windows, seen, None)
            assert signals.freshness is Freshness.FRESH
            found.append(signals.arrival_rps.value or 0.0)
            assert burst_rate_rps(policy(), windows, seen.now_s) is None
    assert found == pytest.approx([RATE_RPS] * 20, rel=1e-6 if pages is without_gap else 0.07)


@pytest.mark.parametrize("every_s", [15.0, 30.0, 60.0])
def test_requests_that_move_between_the_scrapes_of_a_prometheus_count_once(every_s: float) -> None:
    prometheus, windows = policy(stale_after_s=100.0), Windows()
    moved_s = 200.0
    for seen in observations(moved_s, 400.0, phase_of(every_s)):
        windows = windows.absorb(seen)
        signals = read_signals(prometheus, windows, seen, None)
        rate = signals.arrival_rps
        if seen.now_s >= moved_s and rate.value is not None:
            assert rate.value <= 1.2 * RATE_RPS  # an interval may hold the move
            burst_rps = burst_rate_rps(prometheus, windows, seen.now_s, rate.age_s or 0.0)
            assert burst_rps is None
    assert rate.value == pytest.approx(RATE_RPS)


@pytest.mark.parametrize(
    ("every_s", "now_s", "apart"),
    [
        pytest.param(30.0, 190.0, False, id="no replica is new"),
        pytest.param(30.0, 240.0, True, id="replicas became ready within the windows"),
        pytest.param(30.0, 320.0, False, id="long ago"),
        pytest.param(2.0, 214.0, False, id="all are scraped at each tick"),
    ],
)
def test_windows_that_end_apart_are_not_compared_while_requests_move(
    every_s: float, now_s: float, apart: bool
) -> None:
    windows = Windows()
    for seen in observations(200.0, now_s, phase_of(every_s)):
        windows = windows.absorb(seen)
    end_s = float(windows.ends_s.min())
    assert moves_apart(windows, 30.0, now_s - end_s, now_s) is apart


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.ROUND_ROBIN, Routing.LEAST_IN_FLIGHT])
def test_mean_of_a_gap_contradicts_no_share(routing: Routing) -> None:
    """A replica that was ready for the last minute of ten had a tenth of its mean."""
    windows, service = Windows(), policy(routing=routing)
    pods = (ready_pod("a", created_s=-9.0), ready_pod("b", created_s=5.0, ready_s=640.0))
    for tick in range(400):
        now_s = TICK_S * tick
        known = tuple(pod for pod in pods if (pod.ready_s or 0.0) < now_s)
        samples = (
            sample("a", now_s, 20.0 * now_s - 10.0 * max(0.0, now_s - 640.0)),
            sample("b", now_s, 10.0 * (now_s - 640.0)),
        )
        seen = Observation(
            now_s=now_s,
            current=len(known),
            pods=known,
            samples=() if 100.0 < now_s < 700.0 else samples[: len(known)],
        )
        windows = windows.absorb(seen)
        if now_s >= 700.0:
            shares = read_shares(service, windows, known, None, 0, now_s)
            assert (dict(shares.idle), shares.understated) == ({}, 1.0)


def test_obstacles_are_judged_by_what_came_after_a_gap() -> None:
    state, service = State.initial(), policy()
    for seen in observations(140.0, 200.0, without_gap(100.0, 180.0)):
        _, state = decide(service, state, seen)
    assert state.ready_since_s == 180.0


@pytest.mark.parametrize("silent", ["", "ab", "abc", "abcde"])
def test_burst_counts_silent_replicas(silent: str) -> None:
    """Six replicas take 2/s each, and from 100 s on 12/s."""
    pods = tuple(ready_pod(uid, created_s=-100.0) for uid in "abcdef")
    windows = Windows()
    for tick in range(53):
        now_s = TICK_S * tick
        done = 2.0 * now_s + 10.0 * max(0.0, now_s - 100.0)
        heard = tuple(sample(p.uid, now_s, done) for p in pods if now_s < 80 or p.uid not in silent)
        windows = windows.absorb(Observation(now_s=now_s, current=6, pods=pods, samples=heard))
    assert burst_rate_rps(policy(), windows, now_s, 0.0, pods) == pytest.approx(72.0)


def test_removal_leaves_replicas_for_those_that_routing_passes() -> None:
    cost = CostModel(fixed_s=0.25, per_item_s=0.0, max_batch=1)
    rates = Rates(for_ceiling_rps=19.0, for_latency_rps=19.0)
    service = policy(routing=Routing.LEAST_IN_FLIGHT)

    def needed(*queues: int) -> int:
        return evaluate_rules(
            RuleInputs(
                policy=service,
                expected=Expected(later=rates.times(0.8), most=rates, burst_rps=None),
                signals=Signals(
                    arrival_rps=Signal(freshness=Freshness.FRESH, value=15.0, age_s=0.0)
                ),
                tail=TailLatency(cost=cost, percentile=0.95, routing=service.routing),
                counts=ReplicaCounts(ready=9),
                target_s=1.0,
                backlogs=queues,
            )
        ).needed

    assert [needed(), needed(600), needed(600, 700)] == [6, 7, 8]


def test_gauges_that_are_read_seldom_are_not_level() -> None:
    """Two replicas of 10.3/s get 11.3/s each, so that their queues grow by 2/s in sum."""
    pods = (ready_pod("a", created_s=-100.0), ready_pod("b", created_s=-100.0))
    prometheus, state = policy(stale_after_s=45.0, max_replicas=2), State.initial()
    each_rps, full_rps = 11.3, COST.full_batch_rps
    known = set()
    for tick in range(200):
        now_s, samples = TICK_S * tick, []
        for pod, phase_s in zip(pods, (0.0, 13.0), strict=True):
            at_s = max(0.0, (now_s - phase_s) // 30.0 * 30.0 + phase_s)
            done = full_rps * at_s
            waiting = round((each_rps - full_rps) * at_s)
            counts = (0.0, 0.0, *(done for _ in BOUNDS_S[2:]))
            samples.append(
                sample(pod.uid, at_s, each_rps * at_s, waiting=waiting, running=4, counts=counts)
            )
        seen = Observation(now_s=now_s, current=2, pods=pods, samples=tuple(samples))
        decision, state = decide(prometheus, state, seen)
        known.add(decision.demand.known)
    assert known == {DemandKnown.EXACT}


def test_new_replica_is_not_idle_before_its_scrape_tells() -> None:
    """Clients that wait fill a replica that became ready at 205 s from 213 s on.

    It is scraped at 214 s and then at 244 s: what it took since then is not known at 243 s.
    """
    prometheus, state = policy(stale_after_s=45.0), State.initial()
    phases = {"a": 20.0, "b": 0.0, "c": 4.0}
    found = set()
    for tick in range(150):
        now_s, samples = TICK_S * tick, []
        pods = [ready_pod(uid, created_s=-100.0) for uid in "ab"]
        if now_s >= 205.0:
            pods.append(ready_pod("c", created_s=100.0, ready_s=205.0))
        for pod in pods:
            at_s = (now_s - phases[pod.uid]) // 30.0 * 30.0 + phases[pod.uid]
            begun_s = 205.0 if pod.uid == "c" else 0.0
            if at_s < begun_s:
                continue
            ended = 8.0 * max(0.0, at_s - 213.0)
            if pod.uid != "c":
                ended += 10.0 * min(at_s, 213.0)
            waiting = 0 if at_s < begun_s + 10.0 else 20
            counts = (0.0, 0.0, 0.0, 0.0, 0.0, ended, ended)
            samples.append(sample(pod.uid, at_s, ended + waiting, waiting=waiting, counts=counts))
        seen = Observation(now_s=now_s, current=3, pods=tuple(pods), samples=tuple(samples))
        decision, state = decide(prometheus, state, seen)
        found.add(decision.obstacle)
    assert found == {None}
