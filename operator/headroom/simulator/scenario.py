"""A scenario as a value: services with their arrivals, the GPU pool, and faults."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.plant import Cluster, ServiceSpec


class FaultKind(StrEnum):
    """Kinds of faults."""

    SCRAPE_LOSS = "scrape-loss"
    """A share of the pods does not answer scrapes."""
    METRICS_RESTART = "metrics-restart"
    """The metrics store restarts empty at `start_s` (Prometheus restarted; for Headroom: the
    operator restarted from its checkpoint)."""
    POD_KILL = "pod-kill"
    """A share of the ready pods dies at `start_s`; their requests fail; they are replaced."""
    NODE_LOSS = "node-loss"
    """Pods are killed, and their GPUs are missing until the fault ends."""
    SLOW_PODS = "slow-pods"
    """A share of the ready pods takes `factor` times as long until the fault ends."""
    COSTLY_REQUESTS = "costly-requests"
    """Every request costs `factor` times as much until the fault ends."""
    SLOW_STARTS = "slow-starts"
    """Cold starts of pods that are created until the fault ends take `factor` times as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault of one service; `service` None means all."""

    kind: FaultKind
    start_s: float
    duration_s: float = math.inf
    share: float = 1.0
    """Share of the pods; at least one is hit."""
    factor: float = 2.0
    service: str | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for an invalid fault."""
        if self.start_s < 0 or self.duration_s < 0:
            got = f"{self.start_s} and {self.duration_s}"
            raise ValueError(f"a fault must start at >= 0 s and last >= 0 s; got {got}")
        if not 0 < self.share <= 1:
            raise ValueError(f"a fault's share must lie in (0, 1]; got {self.share}")
        if not self.factor > 0:
            raise ValueError(f"a fault's factor must be > 0; got {self.factor}")

    @property
    def end_s(self) -> float:
        """End of the fault; inf if it never ends."""
        return self.start_s + self.duration_s


Times = NDArray[np.float64]


class Arrivals(Protocol):
    """A stream of arrival times; each reading gives the same times."""

    @property
    def duration_s(self) -> float:
        """Length of the stream."""
        ...

    def chunks(self, seed: int) -> Iterator[Times]:
        """Yield sorted arrival times in [0, duration_s), at most some 100 000 at a time.

        The same seed gives the same times. Chunks follow one another in time.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """One service and its arrivals."""

    spec: ServiceSpec
    arrivals: Arrivals


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Everything that a run needs except the autoscaler and the seed."""

    name: str
    workloads: tuple[Workload, ...]
    cluster: Cluster = field(default_factory=Cluster)
    faults: tuple[Fault, ...] = ()

    @property
    def duration_s(self) -> float:
        """Length of the longest stream."""
        return max(workload.arrivals.duration_s for workload in self.workloads)
