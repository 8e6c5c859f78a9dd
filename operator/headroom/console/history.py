"""The last hour of one service: a ring of samples, a ring of decisions, and its cost.

Bounded: 180 samples of 14 numbers are 12 kB, 48 decisions at most 20 kB; a thousand services take
some 30 MB at most. A sample has the worst latency and the longest queue of 20 s, and the last value
of the rest.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.scaling import Decision, DemandKnown, Policy, ReplicaCounts

EVERY_S = 20.0
SAMPLES = 180
DECISIONS = 48
LONGEST_MESSAGE = 300
LONGEST_STEP_S = 60.0
"""A longer gap between two evaluations does not count: the replicas meanwhile are unknown."""

COLUMNS = (
    *("arrivals_rps", "waiting", "latency_s", "target_s", "utilization", "desired", "current"),
    *("ready", "warming", "late", "unschedulable", "broken", "terminating", "bound"),
)
BOUNDS = {
    DemandKnown.EXACT: 0.0,
    DemandKnown.AT_LEAST: 1.0,
    DemandKnown.INCLUDES_RETRIES: -1.0,
}
"""Column `bound`: demand is at least (1) or at most (-1) what arrives, or all of it arrives (0)."""
_WORST = tuple(COLUMNS.index(name) for name in ("waiting", "latency_s"))

Samples = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeSeries:
    """The samples, oldest first; NaN is unknown, infinity is unbounded."""

    times_s: NDArray[np.float64]
    """[samples], seconds since the epoch."""
    values: Samples
    """[samples, columns]."""

    def __getitem__(self, name: str) -> Samples:
        """Return one column, [samples]."""
        column: Samples = self.values[:, COLUMNS.index(name)]
        return column


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A decision that changed the desired replicas."""

    time_s: float
    before: int
    after: int
    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """Accelerators in use since the first evaluation."""

    since_s: float
    watched_s: float = 0.0
    """Seconds that count, without gaps."""
    accelerator_s: float = 0.0
    """Accelerators times seconds."""
    peak: int = 0
    """The most accelerators in use at once."""

    @property
    def hours(self) -> float:
        """Return the accelerator-hours used."""
        return self.accelerator_s / 3600.0

    @property
    def peak_hours(self) -> float:
        """Return the accelerator-hours of the peak, if it had lasted all the time."""
        return self.peak * self.watched_s / 3600.0


@dataclass(slots=True)
class History:
    """The rings of one service."""

    moves: deque[Move] = field(default_factory=lambda: deque(maxlen=DECISIONS))
    cost: Cost | None = None
    _times_s: NDArray[np.float64] = field(default_factory=lambda: np.full(SAMPLES, np.nan))
    _values: Samples = field(
        default_factory=lambda: np.full((SAMPLES, len(COLUMNS)), np.nan, dtype=np.float32)
    )
    _filled: int = 0
    """Samples started so far."""
    _last_s: float | None = None
    _asked: int | None = None

    def take(self, policy: Policy, decision: Decision, accelerators: int) -> None:
        """Add one decision; `accelerators` are per replica."""
        self._sample(_row(policy, decision), decision.time_s)
        self._count(decision, accelerators)
        if decision.replicas != (decision.current if self._asked is None else self._asked):
            self.moves.append(_move(decision))
        self._asked, self._last_s = decision.replicas, decision.time_s

    def series(self) -> TimeSeries:
        """Return the samples in order."""
        kept = min(self._filled, SAMPLES)
        order = np.arange(self._filled - kept, self._filled) % SAMPLES
        return TimeSeries(times_s=self._times_s[order], values=self._values[order])

    def _sample(self, row: Samples, now_s: float) -> None:
        """Start a sample, or merge into the present one of the same 20 s."""
        last = (self._filled - 1) % SAMPLES
        begun = math.floor(now_s / EVERY_S)
        if self._filled and math.floor(self._times_s[last] / EVERY_S) >= begun:
            worst = np.fmax(self._values[last, _WORST], row[list(_WORST)])
            self._values[last] = row
            self._values[last, _WORST] = worst
            return
        place = self._filled % SAMPLES
        self._times_s[place], self._values[place] = now_s, row
        self._filled += 1

    def _count(self, decision: Decision, accelerators: int) -> None:
        held = accelerators * _holding(decision.counts)
        before = self.cost or Cost(since_s=decision.time_s)
        gap_s = 0.0 if self._last_s is None else decision.time_s - self._last_s
        step_s = gap_s if 0.0 < gap_s <= LONGEST_STEP_S else 0.0
        self.cost = Cost(
            since_s=before.since_s,
            watched_s=before.watched_s + step_s,
            accelerator_s=before.accelerator_s + held * step_s,
            peak=max(before.peak, held),
        )


def _row(policy: Policy, decision: Decision) -> Samples:
    signals, counts = decision.signals, decision.counts
    numbers: tuple[Any, ...] = (
        signals.arrival_rps.value,
        signals.waiting.value,
        signals.latency_s.value,
        policy.latency_target_s,
        decision.utilization,
        decision.replicas,
        decision.current,
        counts.ready,
        counts.warming,
        counts.late,
        counts.unschedulable,
        counts.broken,
        counts.terminating,
        BOUNDS[decision.demand.known],
    )
    return np.array([np.nan if one is None else one for one in numbers], dtype=np.float32)


def _holding(counts: ReplicaCounts) -> int:
    """Return the replicas with accelerators: terminating ones, but none without a node."""
    return counts.ready + counts.warming + counts.late + counts.broken + counts.terminating


def _move(decision: Decision) -> Move:
    return Move(
        time_s=decision.time_s,
        before=decision.current,
        after=decision.replicas,
        reason=decision.reason,
        message=decision.message[:LONGEST_MESSAGE],
    )
