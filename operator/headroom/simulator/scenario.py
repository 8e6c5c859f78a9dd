"""A scenario as a value: services with their arrivals, the GPU pool, and faults."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.faults import Fault
from headroom.simulator.plant import Cluster, ServiceSpec

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
