"""The port between the simulator and an autoscaler: its view of a service, and its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.observation import GatewayRejections, Pod, PodSample
from headroom.simulator.metrics import Metrics
from headroom.simulator.plant import ServiceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Observations that an autoscaler has in production at this time; never the plant's truth."""

    now_s: float
    replicas: int
    """The desired replicas of the workload (spec.replicas)."""
    pods: tuple[Pod, ...]
    """Pods as the API server lists them, including terminating ones."""
    metrics: Metrics
    """The autoscaler's own store of metrics, scraped every `scrape_s`."""
    samples: tuple[PodSample, ...]
    """A scrape of every ready pod now, without those that do not answer; empty for all but a
    `DirectScraper`."""
    rejected: GatewayRejections | None = None
    """Requests that the queue in front of the replicas reports as rejected; None without such a
    queue, and for all but a `DirectScraper`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequest:
    """The replicas that an autoscaler requests, before the service's bounds."""

    replicas: int
    reason: str = ""
    message: str = ""
    replace: str | None = None
    """UID of a pod to delete; its workload creates another."""
    most_in_flight: int | None = None
    """Per ready replica: the gateway in front rejects more; None for no bound."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundTruth:
    """Facts that only the bounds and perfect profiles may use."""

    spec: ServiceSpec
    arrivals_per_s: NDArray[np.float64]
    """Requests in each second of the run, [seconds]."""
    capacity_rps: float
    """Highest rate of one replica at which the SLO's percentile is within the target."""


class Autoscaler(Protocol):
    """One autoscaler of one service, with whatever it remembers."""

    @property
    def name(self) -> str:
        """Name and settings, as the reports show them."""
        ...

    @property
    def period_s(self) -> float:
        """Virtual seconds between two evaluations."""
        ...

    @property
    def scrape_s(self) -> float:
        """Virtual seconds between two scrapes of the pods into its metrics; inf for none."""
        ...

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the replicas that it requests now."""
        ...


@runtime_checkable
class DirectScraper(Protocol):
    """An autoscaler that asks the pods itself at each evaluation, and may be restarted."""

    def restart(self) -> None:
        """Restart from the state that survives a restart of the process."""
        ...


AutoscalerFactory = Callable[[GroundTruth], Autoscaler]
"""Makes the autoscalers of a run, one per service."""
