"""Rate limits count from the start of their period; curves continue above their last point."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from headroom.scaling import Observation, State
from headroom.scaling.latency.load_curve import LoadCurve
from headroom.scaling.limits.limit_input import DesiredReplicas, LimitInput
from headroom.scaling.limits.scale_up import limit_increase
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.policy import RateLimit
from headroom.scaling.values.signals import Signals
from support.fakes_scaling import policy

CHANGES = ((0.0, 2), (40.0, 4), (95.0, 6))


@pytest.mark.parametrize(
    ("period_s", "replicas", "percent", "most"),
    [
        (60.0, 3, 0, 7),  # 4 stood 60 s ago, and 3 more
        (60.0, 1, 100, 8),  # 4 stood, and as many again
        (90.0, 3, 0, 7),  # at the very moment of a change it counts
        (91.0, 6, 0, 8),  # 2 stood
        (500.0, 6, 0, 8),  # the oldest known
        (20.0, 3, 0, 9),  # 6 stood all the time
        (60.0, 1, 30, 6),  # 30 % of 4 are 2, rounded up: 6, the current number
    ],
)
def test_rate_limit_counts_from_the_start_of_its_period(
    period_s: float, replicas: int, percent: int, most: int
) -> None:
    rate = RateLimit(period_s=period_s, replicas=replicas, percent=percent)
    limit_input = LimitInput(
        policy=policy(scale_up_rate=rate, max_replicas=100),
        state=replace(State.initial(), changes=CHANGES),
        observation=Observation(now_s=130.0, current=6),
        signals=Signals(),
        counts=ReplicaCounts(ready=6),
        desired=DesiredReplicas(replicas=50, by_arrivals=50, by_ceiling=0),
        known=True,
        now_s=130.0,
    )
    assert limit_increase(limit_input)[0] == most


@pytest.mark.parametrize(
    ("slope", "latency", "utilization"),
    [
        (2.0, 9.0, 0.8),  # 4 stretches gave 7, one more gives 9: 1 - 1/5
        (0.0, 9.0, 1.0),  # what never gets slower can be full
        (-1.0, 9.0, 1.0),  # nor does a curve fall
        (2.0, 7.0, 0.75),
        (2.0, 0.5, 0.0),
    ],
)
def test_curve_above_its_last_point_follows_its_slope(
    slope: float, latency: float, utilization: float
) -> None:
    curve = LoadCurve(stretches=(1.0, 2.0, 4.0), latencies=(1.0, 3.0, 7.0), slope=slope)
    assert curve.utilization(latency) == pytest.approx(utilization)
    if slope > 0.0 and latency >= 1.0:
        assert curve.latency(utilization) == pytest.approx(latency)
    assert curve.latency(1.0) == math.inf
