"""Inputs of the limits, made by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from headroom.scaling import (
    Allocation,
    Freshness,
    Observation,
    Reason,
    ReplicaCounts,
    Signal,
    State,
)
from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.limit_input import DesiredReplicas, LimitInput
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.values.signals import Signals
from support.fakes_scaling import policy

NOW_S = 1000.0


def signal(freshness: Freshness) -> Signal:
    if freshness is Freshness.MISSING:
        return Signal(freshness=freshness)
    return Signal(freshness=freshness, value=1.0, age_s=0.0)


def limit_input(
    desired: int,
    current: int,
    *,
    freshness: Freshness = Freshness.FRESH,
    counts: ReplicaCounts | None = None,
    by_arrivals: int = 0,
    by_ceiling: int = 0,
    known: bool = True,
    rolling: bool = False,
    allocation: Allocation | None = None,
    needed: tuple[tuple[float, int], ...] = (),
    arrivals: tuple[tuple[float, int], ...] | None = None,
    lowest: tuple[tuple[float, int], ...] = (),
    watched_s: float = 1e6,
    state: dict[str, Any] | None = None,
    **limits: Any,
) -> LimitInput:
    known_signals = Signals(arrival_rps=signal(freshness), waiting=signal(freshness))
    return LimitInput(
        policy=policy(**{"max_replicas": 100, **limits}),
        state=replace(
            State.initial(),
            coverage=Coverage(since_s=NOW_S - watched_s, until_s=NOW_S),
            needed_high=SlidingExtreme(keep="largest", entries=needed),
            arrivals_high=SlidingExtreme(
                keep="largest", entries=needed if arrivals is None else arrivals
            ),
            desired_low=SlidingExtreme(keep="smallest", entries=lowest),
            **{"cold_starts": ColdStarts(seconds=(10.0,)), **(state or {})},
        ),
        observation=Observation(
            now_s=NOW_S, current=current, rolling=rolling, allocation=allocation
        ),
        signals=known_signals,
        counts=counts or ReplicaCounts(ready=current),
        desired=DesiredReplicas(replicas=desired, by_arrivals=by_arrivals, by_ceiling=by_ceiling),
        known=known,
        now_s=NOW_S,
    )


def outcome(limited: tuple[int, Any]) -> tuple[int, list[Reason]]:
    replicas, applied = limited
    return replicas, [limit.limit for limit in applied]
