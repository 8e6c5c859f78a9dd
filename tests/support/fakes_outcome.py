"""Outcomes made by hand, for whatever renders them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from headroom.simulator.outcome import Move, Outcome, Score, Timeline

SCORE = Score(
    requests=1000,
    within=980,
    refused=5,
    expired=3,
    failed=2,
    p95_s=0.08,
    p99_s=0.125,
    violation_minutes=4,
    minutes=60,
    gpu_hours=4.0,
    starting_gpu_hours=0.25,
    operations=6,
    flaps=1,
    recover_s=120.0,
    mean_ready=4.0,
    peak_ready=6,
    peak_waiting=40,
    peak_unsent=0,
    tries=1000,
    little_error=1e-12,
)


def timeline(samples: int = 4, step_s: float = 10.0, **columns: Sequence[float]) -> Timeline:
    """A steady timeline, where the columns do not say otherwise."""
    flat: dict[str, Any] = {
        "times_s": [step_s * (index + 1) for index in range(samples)],
        "arrival_rps": [20.0] * samples,
        "waiting": [0.0] * samples,
        "unsent": [0.0] * samples,
        "p95_s": [0.05] * samples,
        "attainment": [1.0] * samples,
        "desired": [2.0] * samples,
        "ready": [2.0] * samples,
        "warming": [0.0] * samples,
        "unschedulable": [0.0] * samples,
        "draining": [0.0] * samples,
    }
    return Timeline(**{name: np.array(values) for name, values in (flat | columns).items()})


def outcome(
    autoscaler: str = "headroom",
    *,
    scenario: str = "ramp",
    service: str = "vision",
    seed: int = 1,
    timeline_: Timeline | None = None,
    moves: Sequence[Move] = (),
    **figures: Any,
) -> Outcome:
    """One run with the score above, where the figures do not say otherwise."""
    return Outcome(
        scenario=scenario,
        service=service,
        autoscaler=autoscaler,
        seed=seed,
        target_s=0.1,
        percentile=0.95,
        score=replace(SCORE, **figures),
        timeline=timeline_ or timeline(),
        moves=tuple(moves),
    )


def eventful(hours: float = 4.0, step_s: float = 10.0, autoscaler: str = "headroom") -> Outcome:
    """A day's wave with a spike, a gap in the answers, misses, a shortage and thirty moves."""
    samples = int(3600 * hours / step_s)
    at = np.linspace(0.0, 1.0, samples)
    noise = np.random.default_rng(7).normal(0.0, 1.0, samples)
    load = 60.0 + 40.0 * np.sin(6.0 * at) + 3.0 * noise
    load[samples // 2 : samples // 2 + 12] += 90.0
    desired = np.ceil(np.maximum(load, 1.0) / 18.0 / 2) * 2
    ready = np.minimum(np.concatenate([desired[:6], desired[:-6]]), 10.0)
    p95 = 0.05 * np.exp(0.25 * noise) * np.maximum(1.0, load / (18.0 * ready))
    p95[samples // 2 + 2 : samples // 2 + 5] = math.inf
    p95[samples // 4 : samples // 4 + 20] = math.nan
    whole = timeline(
        samples,
        step_s,
        arrival_rps=load.tolist(),
        waiting=np.maximum(0.0, 12.0 * (load - 18.0 * ready)).round().tolist(),
        p95_s=p95.tolist(),
        desired=desired.tolist(),
        ready=ready.tolist(),
        warming=np.clip(desired - ready, 0.0, 2.0).tolist(),
        unschedulable=np.clip(desired - ready - 2.0, 0.0, None).tolist(),
        draining=np.clip(ready - desired, 0.0, None).tolist(),
    )
    moved = np.flatnonzero(np.diff(desired))[:: max(1, len(np.flatnonzero(np.diff(desired))) // 30)]
    moves = [
        Move(
            time_s=float(whole.times_s[index]),
            before=int(desired[index]),
            after=int(desired[index + 1]),
            reason="LatencyModel" if desired[index + 1] > desired[index] else "WithinTarget",
            message=f"{load[index]:.1f}/s at 18/s <each> & a margin",
        )
        for index in moved
    ]
    return outcome(autoscaler, timeline_=whole, moves=moves)
