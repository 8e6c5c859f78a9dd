"""Stabilization: extremes of windows, coverage, defaults, bounds of memory."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling import CostModel, Observation, PodState, Policy, ReplicaCounts, State, decide
from headroom.scaling.accelerator_allocation import Demand
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import Pod, PodSample
from headroom.scaling.values.policy import RateLimit, Routing
from support.fakes_scaling import BOUNDS_S, Service, policy, ready_pod, sample
from support.service_world import service

STEPS = st.lists(st.tuples(st.sampled_from([0.5, 1.0, 5.0]), st.integers(0, 6)), max_size=30)


@given(STEPS, st.sampled_from(["largest", "smallest"]), st.sampled_from([3.0, 10.0]))
def test_sliding_extreme_equals_that_of_a_plain_list(
    steps: list[tuple[float, int]], keep: Literal["largest", "smallest"], window_s: float
) -> None:
    window, plain, now_s = SlidingExtreme(keep=keep), list[tuple[float, int]](), 0.0
    best = max if keep == "largest" else min
    assert window.value is None
    for step_s, value in steps:
        now_s += step_s
        window = window.add(now_s, value, window_s)
        plain.append((now_s, value))
        for ago_s in (0.0, 1.0, window_s):
            seen = [old for then_s, old in plain if then_s >= now_s - ago_s]
            assert window.since(now_s - ago_s) == best(seen)
        assert window.value == best(old for then_s, old in plain if then_s >= now_s - window_s)
        assert window.since(now_s + 0.1) is None
        values = [old for _, old in window.entries]
        assert all(
            (one > other) if keep == "largest" else (one < other)
            for one, other in itertools.pairwise(values)
        )


def test_coverage_after_a_long_gap_restarts() -> None:
    assert Coverage().length_s(50.0) == 0.0
    watched = Coverage().seen(100.0, 10.0)
    assert watched.length_s(100.0) == 0.0
    watched = watched.seen(110.0, 10.0)
    assert watched.length_s(112.0) == 12.0
    assert watched.seen(120.5, 10.0).length_s(121.0) == 0.5


@pytest.mark.parametrize(("missed", "kept"), [(2, True), (3, False)])
def test_coverage_with_rare_ticks_allows_three_missed_ones(missed: int, kept: bool) -> None:
    slow = Service(
        rate_rps=5.0,
        policy=policy(tick_s=30.0, burst_windows_s=(), stable_window_s=120.0),
        tick_s=30.0,
    )
    slow.run(600)
    since_s = slow.state.coverage.since_s
    slow.now_s += missed * 30.0
    slow.tick()
    assert (slow.state.coverage.since_s == since_s) is kept


def test_changes_of_replicas_are_bounded() -> None:
    watched = Service(rate_rps=0.0, replicas=2, policy=policy(scale_down_stabilization_s=1e6))
    watched.run(20)
    assert watched.state.changes == ((1002.0, 2),), "what stays is no change"
    for number in range(100):
        watched.scale(2 + number % 2)
        watched.tick()
    assert len(watched.state.changes) == 64
    assert watched.state.changes[-1] == (watched.now_s, watched.decisions[-1].current)


@pytest.mark.parametrize(
    ("current", "decided", "restarted"),
    [(5, 4, True), (5, 5, False), (4, 4, False), (3, 4, False)],
    ids=["another client raised it", "the decision did", "unchanged", "another client lowered it"],
)
def test_hold_after_a_manual_scale_up_restarts(current: int, decided: int, restarted: bool) -> None:
    watched = Service(rate_rps=5.0, replicas=4)
    watched.run(40)
    watched.state = replace(watched.state, decided=decided)
    since_s = watched.state.coverage.since_s
    observation = replace(watched.observe(), current=current, now_s=watched.now_s + 2.0)
    _, state = decide(watched.policy, watched.state, observation)
    assert (state.coverage.since_s != since_s) is restarted


@pytest.mark.parametrize(
    ("states", "asked"),
    [
        ("RRRR", 4),
        ("RRRB", 5),  # 3 are ready: one broken one is replaced
        ("RRB", 5),
        ("RRBB", 5),  # a fault of two in four is not multiplied
        ("RB", 5),
        ("RBB", 4),  # more are broken than ready
        ("RRRWB", 4),  # enough on their way
        ("RRWB", 5),
        ("RRRRB", 4),  # enough ready
    ],
)
def test_each_broken_replica_is_replaced_only_if_twice_as_many_are_ready(
    states: str, asked: int
) -> None:
    """34/s need four of 8.7/s; all pods are scraped as before."""
    watched = Service(rate_rps=32.0, replicas=4, policy=policy(scale_down_stabilization_s=1e6))
    watched.run(60)
    assert watched.replicas == 4
    kinds = {"R": PodState.READY, "B": PodState.BROKEN, "W": PodState.WARMING}
    now_s = watched.now_s + 2.0
    pods = tuple(
        Pod(
            uid=f"pod-{number}",
            state=kinds[letter],
            created_s=0.0 if letter == "R" else now_s - 1.0,
            ready_s=5.0 if letter == "R" else None,
        )
        for number, letter in enumerate(states)
    )
    observation = Observation(now_s=now_s, current=4, pods=pods, samples=watched.samples())
    decision, _ = decide(watched.policy, watched.state, observation)
    latency = max(rule.replicas for rule in decision.recommendations)
    assert latency == 4
    assert decision.replicas == asked
    assert ("1 more in place of broken or late ones" in decision.message) is (asked == 5)


def starting(uid: str, started_s: float, ready_s: float | None) -> Pod:
    state = PodState.WARMING if ready_s is None else PodState.READY
    return Pod(uid=uid, state=state, created_s=started_s, scheduled_s=started_s, ready_s=ready_s)


def test_cold_starts_keep_the_latest_20() -> None:
    pods = tuple(starting(f"p{number}", 100.0, 101.0 + number) for number in range(25))
    assert ColdStarts().observe(pods, 1000.0, timeout_s=600.0, first=False).seconds == tuple(
        range(6, 26)
    )


@pytest.mark.parametrize(
    ("count", "p90_s"), [(1, 1.0), (9, 9.0), (10, 10.0), (11, 10.0), (20, 19.0), (21, 19.0)]
)
def test_cold_start_p90_uses_the_nearest_rank(count: int, p90_s: float) -> None:
    seconds = tuple(float(number) for number in range(count, 0, -1))
    assert ColdStarts(seconds=seconds).p90_s == p90_s


def test_cold_starts_forget_deleted_pods() -> None:
    known = ColdStarts(judged=frozenset({"a", "gone"}))
    odd = Pod(uid="odd", state=PodState.READY, created_s=50.0)  # ready since an unknown time
    back = starting("back", 60.0, 55.0)  # ready before it began: clocks differ
    pods = (starting("a", 10.0, 20.0), odd, back, starting("same", 30.0, 30.0))
    every = (*pods, starting("b", 40.0, 47.0), starting("c", 41.0, None))
    found = known.observe(every, 70.0, timeout_s=600.0, first=False)
    assert found.seconds == (0.0, 7.0)
    assert found.judged == {"a", "back", "same", "b"}


def test_default_policy_equals_that_of_a_default_resource() -> None:
    written = service(spec__slo__latency__target="1500ms").to_policy()
    assert Policy(latency_target_s=1.5) == replace(
        written, scale_down_stabilization_s=90.0, scale_up_rate=None, routing=Routing.RANDOM
    )


def test_defaults_of_values_are_neutral() -> None:
    plain = CostModel(fixed_s=0.1, per_item_s=0.0, max_batch=2)
    assert (plain.cv, plain.slots, plain.full_batch_rps) == pytest.approx((0.0, 1, 20.0))
    assert replace(plain, slots=3).full_batch_rps == pytest.approx(60.0)
    scrape = PodSample(
        pod="a",
        time_s=1.0,
        arrivals=0.0,
        missed=0.0,
        waiting=0,
        running=0,
        latency=LatencyCounts(bounds_s=(), counts=()),
    )
    assert (scrape.batches, scrape.batch_items, scrape.batch_seconds) == (0.0, 0.0, 0.0)
    assert scrape.slots == 1
    none = ReplicaCounts(ready=0, warming=0, late=0, unschedulable=0, broken=0, terminating=0)
    assert ReplicaCounts() == none
    assert Demand(name="a", desired=1) == Demand(
        name="a", desired=1, priority=0, allocated=0, floor=0, accelerators=1, overdue=0
    )
    assert RateLimit(period_s=1.0) == RateLimit(period_s=1.0, replicas=0, percent=0)


def test_inconsistent_histogram_or_signal_is_rejected() -> None:
    with pytest.raises(ValueError, match="2 bounds, 1 counts"):
        LatencyCounts(bounds_s=(1.0, 2.0), counts=(1.0,))


def test_series_keep_75_seconds() -> None:
    watched, pods = State.initial().windows, (ready_pod("a", created_s=-100.0),)
    for second in range(200):
        scrape = sample("a", float(second), float(second**2))
        observation = Observation(now_s=float(second), current=1, pods=pods, samples=(scrape,))
        watched = watched.absorb(observation)
    assert watched.arrivals([74.0, 75.0]) == pytest.approx([199**2 - 125**2, 199**2 - 124**2])
    assert len(watched.series.times_s) == 76
    assert len(watched.bounds_s) == len(BOUNDS_S)
