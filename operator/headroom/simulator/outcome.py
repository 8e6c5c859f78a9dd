"""The outcome of one service in a run: its scores, its timeline and the moves of its replicas."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Series = NDArray[np.float64]
Counts = NDArray[np.int64]


def _none() -> Counts:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """The figures of one run. A lost, late or refused request is a miss.

    A request counts once, however often it is tried: an answer to a retry is late.
    """

    requests: int
    within: int
    """Answered within the latency target."""
    refused: int
    expired: int
    failed: int
    """Requests lost with a pod, or that found none."""
    p95_s: float
    """Unanswered requests count as inf; from a histogram of factor 1.02."""
    p99_s: float
    violation_minutes: int
    """Whole minutes with traffic in which more than 1 - percentile of the requests missed."""
    minutes: int
    """Whole minutes with traffic."""
    gpu_hours: float
    """All replicas, from GPU assignment to the end of the drain."""
    starting_gpu_hours: float
    """The part before readiness, including replicas that never became ready."""
    operations: int
    """Changes of the desired replicas."""
    flaps: int
    """Scale-ups within cold start + 60 s after a scale-down."""
    recover_s: float
    """Longest run of consecutive violation minutes, in seconds."""
    mean_ready: float
    peak_ready: int
    peak_waiting: int
    peak_unsent: int
    """Most requests that waited at clients for a connection: what servers cannot see."""
    tries: int
    """Requests that servers got: retries included, those that were never sent not."""
    little_error: float
    """|L - lambda W| / L over the run: Little's law, an identity unless the plant is wrong."""

    @property
    def attainment(self) -> float:
        """Share of all requests answered within the target; 1 without any."""
        return self.within / self.requests if self.requests else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """Time series of a run: one value per sample, all arrays [samples]."""

    times_s: Series
    arrival_rps: Series
    """Requests that clients want answered, retries not included."""
    waiting: Series
    """At the replicas."""
    unsent: Series
    """Waiting at clients for a connection."""
    p95_s: Series
    """p95 latency in each sample's interval; nan without answers, inf where it is unanswered."""
    attainment: Series
    """Attainment of requests that ended in each sample's interval; nan without any."""
    desired: Series
    ready: Series
    warming: Series
    unschedulable: Series
    draining: Series


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """One change of the desired replicas."""

    time_s: float
    before: int
    after: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One service of one scenario under one autoscaler with one seed."""

    scenario: str
    service: str
    autoscaler: str
    seed: int
    target_s: float
    percentile: float
    score: Score
    timeline: Timeline
    moves: tuple[Move, ...]
    minute_requests: Counts = field(default_factory=_none)
    """Requests of each minute of the run, by the time of their arrival, [minutes]."""
    minute_missed: Counts = field(default_factory=_none)
    """Requests of each minute that missed, whenever they ended, [minutes]."""
