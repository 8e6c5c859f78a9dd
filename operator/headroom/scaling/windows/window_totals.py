"""Totals of one window: requests of all pods, and the batches of a replica."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from headroom.scaling.mathematics.arrays import Vector


class BatchStats(NamedTuple):
    """Executions of one replica between two scrapes.

    Means over the interval; the mean of an affine cost is the cost of the mean.
    """

    replica: str
    batches: float
    size: float
    """Requests per batch, on average."""
    mean_s: float
    """Seconds per batch, on average."""


class Flow(NamedTuple):
    """Requests of all pods that arrived, were missed, and ended either way."""

    arrivals: float
    missed: float
    ended: float


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowTotal:
    """Requests of all pods within one window."""

    arrivals: float
    missed: float
    retried: float = 0.0
    """Arrivals that were marked as retries."""
    latency: Vector
    """Cumulative per bound of the grid, [bounds]."""

    @property
    def ended(self) -> float:
        """Requests that ended within the window, answered or missed."""
        return (float(self.latency[-1]) if len(self.latency) else 0.0) + self.missed
