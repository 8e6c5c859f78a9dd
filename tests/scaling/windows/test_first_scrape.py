"""A replica that served before its first scrape: its requests until then are unknown."""

from __future__ import annotations

import pytest

from headroom.scaling import Direction, Freshness, Observation, PodSample, State, decide
from support.fakes_scaling import policy, ready_pod, sample

TICK_S = 2.0
RATE_RPS = 6.6
"""Rate of each of three replicas: two would have to carry 9.9, and 8.2 is what the ceiling
allows."""


@pytest.mark.parametrize("late_ticks", [1, 4, 11, 14])
@pytest.mark.parametrize("hold_s", [4.0, 10.0])
def test_replica_scraped_late_blocks_removal_until_its_window_is_full(
    late_ticks: int, hold_s: float
) -> None:
    """Its first scrape is a baseline: for a window its arrivals look fewer than they are."""
    service = policy(scale_down_stabilization_s=hold_s)
    pods = tuple(ready_pod(uid, created_s=-100.0) for uid in ("a", "b", "late"))
    state, seen = State.initial(), []
    for tick in range(40):
        now_s = tick * TICK_S
        scraped = pods if tick >= late_ticks else pods[:2]
        samples: tuple[PodSample, ...] = tuple(
            sample(pod.uid, now_s, arrivals=RATE_RPS * now_s) for pod in scraped
        )
        observation = Observation(now_s=now_s, current=3, pods=pods, samples=samples)
        decision, state = decide(service, state, observation)
        assert decision.direction is not Direction.DOWN, f"{now_s} s: {decision.message}"
        seen.append(decision.signals.freshness)
    first_s, window_s = late_ticks * TICK_S, service.stable_window_s
    full = int((first_s + window_s) / TICK_S)
    assert Freshness.FRESH not in seen[late_ticks:full]
    assert set(seen[full:]) == {Freshness.FRESH}


def test_replica_created_after_the_first_tick_counts_from_zero() -> None:
    pods = (ready_pod("old", created_s=-100.0), ready_pod("new", created_s=41.0, ready_s=50.0))
    state = State.initial()
    for tick in range(30):
        now_s = tick * TICK_S
        samples = [sample("old", now_s, arrivals=4.0 * now_s)]
        if now_s > 50.0:
            samples.append(sample("new", now_s, arrivals=4.0 * (now_s - 50.0)))
        there = pods if now_s > 50.0 else pods[:1]
        observation = Observation(
            now_s=now_s, current=len(there), pods=there, samples=tuple(samples)
        )
        decision, state = decide(policy(), state, observation)
        assert now_s < 12.0 or decision.signals.freshness is Freshness.FRESH
