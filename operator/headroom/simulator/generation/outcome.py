"""The figures of a run: what was promised, what was kept, what it cost."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.tokens import Target, TokenTargets
from headroom.simulator.generation.compiled.state import TokenState

Floats = NDArray[np.float64]
_NONE = Target(percentile=1.0, seconds=math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenScore:
    """The figures of one run. A request that has no answer misses every promise."""

    requests: int
    attainment: float
    """Share of the requests that miss no promise."""
    kept: bool
    """Whether every promise held at its percentile, over all requests of the run."""
    first_token_s: tuple[float, float, float]
    """p50, p90 and at the promised percentile."""
    output_token_s: tuple[float, float, float]
    missed_first: int
    missed_output: int
    """Requests with a longer time per output token; llm-d counts both kinds of misses."""
    unanswered: int
    gpu_hours: float
    mean_replicas: float
    """Time-mean of pods, those that start and drain included."""
    peak_replicas: int
    full_share: float
    """Share of the looks at which a replica used more than 95 % of its memory."""
    preempted: int
    moves: int
    flaps: int
    """Scale-ups within start-up + 60 s after a scale-down."""
    flaps_per_hour: float
    broken_minutes: int
    """Minutes in which more requests missed than the promise allows, by arrival."""
    longest_broken_s: float
    iterations: int
    wall_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One change of the desired replicas."""

    time_s: float
    before: int
    after: int
    reason: str
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenOutcome:
    """One run."""

    score: TokenScore
    moves: tuple[Move, ...]
    timeline: Floats
    """[looks, 5]: time, desired, ready, fullest memory, requests unfinished."""
    arrival_s: Floats
    first_token_s: Floats
    """[requests]; inf without an answer."""
    output_token_s: Floats


def latencies(p: TokenState) -> tuple[Floats, Floats, Floats]:
    """Return time to first token, time per output token and latency of each request."""
    first = p.first_s - p.arrival_s
    steps = np.maximum(p.output - 1, 1)
    output = np.where(p.output > 1, (p.end_s - p.first_s) / steps, 0.0)
    latency = p.end_s - p.arrival_s
    lost = np.isnan(p.end_s)
    return tuple(np.where(lost, np.inf, column) for column in (first, output, latency))  # type: ignore[return-value]


def missed(p: TokenState, targets: TokenTargets) -> tuple[Floats, Floats, Floats]:
    """Return for each promise which requests miss it, as 0 and 1."""
    wanted = (targets.first_token, targets.output_token, targets.latency)
    pairs = zip(latencies(p), wanted, strict=True)
    found = [values > (target or _NONE).seconds for values, target in pairs]
    return (found[0].astype(float), found[1].astype(float), found[2].astype(float))


def allowed_share(targets: TokenTargets) -> float:
    """Return the share of requests that may miss: the strictest promise's."""
    given = (targets.first_token, targets.output_token, targets.latency)
    return min((1.0 - one.percentile for one in given if one is not None), default=1.0)


def kept(p: TokenState, targets: TokenTargets) -> bool:
    """Return whether every promise holds at its percentile."""
    wanted = (targets.first_token, targets.output_token, targets.latency)
    return all(
        target is None or float(np.mean(lost)) <= 1.0 - target.percentile + 1e-9
        for lost, target in zip(missed(p, targets), wanted, strict=True)
    )


def broken(arrival_s: Floats, lost: Floats, allowed: float) -> tuple[int, float]:
    """Return the minutes in which more than the allowed share was lost, and the longest run."""
    minute = (arrival_s // 60.0).astype(np.int64)
    count = np.bincount(minute)
    bad = np.bincount(minute, weights=lost) > allowed * np.maximum(count, 1) + 1e-9
    longest = run = 0
    for each in bad:
        run = run + 1 if each else 0
        longest = max(longest, run)
    return int(bad.sum()), 60.0 * longest


def quantiles(values: Floats, percentile: float) -> tuple[float, float, float]:
    """Return p50, p90 and this percentile; inf where requests have no answer."""
    found = np.quantile(values, (0.5, 0.9, percentile), method="higher")
    return (float(found[0]), float(found[1]), float(found[2]))
