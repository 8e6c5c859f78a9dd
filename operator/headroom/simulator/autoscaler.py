"""The port between the simulator and whoever decides: what it sees, and what it answers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values import Pod, PodSample
from headroom.simulator.metrics import Metrics
from headroom.simulator.plant import ServiceSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """What production would show an autoscaler now; never the plant's truth."""

    now_s: float
    replicas: int
    """What the workload is asked for now (spec.replicas)."""
    pods: tuple[Pod, ...]
    """As the API server shows them, terminating ones included."""
    metrics: Metrics
    """What was scraped into the autoscaler's own store, every `scrape_s`."""
    samples: tuple[PodSample, ...]
    """A scrape of every ready pod now, without those that do not answer; empty for all but a
    `DirectScraper`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleRequest:
    """What an autoscaler wants; the simulator clamps it to the service's bounds."""

    replicas: int
    reason: str = ""
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroundTruth:
    """What only bounds and perfect profiles may know."""

    spec: ServiceSpec
    arrivals_per_s: NDArray[np.float64]
    """Requests in each second of the run, [seconds]."""
    capacity_rps: float
    """Highest rate of one replica at which the promised percentile is within the target."""


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
        """Return what it wants now."""
        ...


@runtime_checkable
class DirectScraper(Protocol):
    """An autoscaler that asks the pods itself at each evaluation, and may be restarted."""

    def restart(self) -> None:
        """Begin anew from what survives a restart of the process."""
        ...


AutoscalerFactory = Callable[[GroundTruth], Autoscaler]
"""How a run gets its autoscalers, one per service."""
