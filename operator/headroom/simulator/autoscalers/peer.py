"""The base of all peers: the service it scales, its knobs as fields, its name in reports.

A knob is a field with a number (or a choice) for a default and its unit in its name. Targets that
depend on the server are given in batches, so that one setting means the same on every plant: one
batch is the number of requests that a replica executes at once, slots x max_batch (its *places*).

The arithmetic of static sizes and of the bounds:

    need = smallest N with rate / N <= limit
    limit = min(capacity, ceiling x full-batch throughput)

`capacity` is the highest rate of one replica at which the SLO's percentile is met, so in a steady
state a need breaks neither the SLO nor the utilization ceiling.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.observation import PodState
from headroom.scaling.values.policy import Policy
from headroom.simulator.autoscaler import GroundTruth, ScaleRequest, View

Knob = float | str
"""A number, or the name of a choice."""


@dataclass(kw_only=True)
class Peer(ABC):
    """An autoscaler of one service; subclasses add knobs and `evaluate`."""

    kind: ClassVar[str]
    may_be_zero: ClassVar[frozenset[str]] = frozenset()
    """Knobs for which 0 is a setting; all others are above 0."""

    truth: GroundTruth
    """Only bounds and perfect profiles use more of it than the spec."""
    period_s: float = 15.0
    scrape_s: float = 15.0
    """inf: reads no metrics."""

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        for knob, value in self.settings().items():
            self.check(knob, value)

    @classmethod
    def check(cls, knob: str, value: Knob) -> None:
        """Raise ValueError for a value that is out of the knob's range."""
        if isinstance(value, str):
            return
        zero = knob in cls.may_be_zero or isinstance(value, bool)
        never = math.isinf(value) and value == cls.knobs()[knob]
        if not (math.isfinite(value) or never) or value < 0 or (value == 0 and not zero):
            rule = ">= 0" if zero else "> 0"
            raise ValueError(f"{cls.kind}: {knob} must be a number {rule}; got {value}")

    @classmethod
    def knobs(cls) -> Mapping[str, Knob]:
        """Return every knob with its default."""
        return {
            field.name: field.default
            for field in fields(cls)
            if field.init and isinstance(field.default, (bool, int, float, str))
        }

    def settings(self) -> Mapping[str, Knob]:
        """Return every knob with its value."""
        return {knob: getattr(self, knob) for knob in self.knobs()}

    @property
    def name(self) -> str:
        """The kind, and the knobs that are not at their default."""
        defaults = self.knobs()
        changed = [
            f"{knob}={value}" if isinstance(value, str) else f"{knob}={value:g}"
            for knob, value in self.settings().items()
            if value != defaults[knob]
        ]
        return f"{self.kind}({', '.join(changed)})" if changed else self.kind

    @property
    def policy(self) -> Policy:
        """The service's SLO and limits."""
        return self.truth.spec.policy

    @property
    def places(self) -> int:
        """Requests that one replica executes at once."""
        return self.truth.spec.server.slots * self.truth.spec.server.max_batch

    @abstractmethod
    def evaluate(self, view: View) -> ScaleRequest:
        """Return the requested replicas."""


def limit_rps(truth: GroundTruth, ceiling: float) -> float:
    """Return the highest rate that one replica may be given."""
    return min(truth.capacity_rps, ceiling * truth.spec.server.full_rps)


def window_rates(arrivals_per_s: NDArray[np.float64], window_s: int) -> NDArray[np.float64]:
    """Return the mean rate of each aligned window, [windows]; the last may be shorter.

    Worked: (2, 4, 6) in windows of 2 s: 3 and 6 requests per second.
    """
    starts = np.arange(0, len(arrivals_per_s), window_s)
    if not len(starts):
        return np.zeros(0)
    seconds = np.minimum(starts + window_s, len(arrivals_per_s)) - starts
    rates: NDArray[np.float64] = np.add.reduceat(arrivals_per_s, starts) / seconds
    return rates


def needed(rates: NDArray[np.float64], limit: float) -> NDArray[np.int64]:
    """Return the replicas that each rate needs, same shape; at least 1 where there is traffic."""
    if not limit > 0:
        raise ValueError(
            f"one replica must be able to carry traffic, with limit > 0; got {limit:g} rps"
        )
    return np.ceil(rates / limit - 1e-9).astype(np.int64)


def ready_pods(view: View) -> tuple[str, ...]:
    """Return the UIDs of the pods that take requests."""
    return tuple(pod.uid for pod in view.pods if pod.state is PodState.READY)


def existing_count(view: View) -> int:
    """Count the replicas of the workload's status: all pods but the terminating ones."""
    return sum(pod.state is not PodState.TERMINATING for pod in view.pods)


def unready_count(view: View) -> int:
    """Count the pods that exist but take no requests: warming, unschedulable or broken."""
    return existing_count(view) - len(ready_pods(view))


def of_ready(values: Mapping[str, float], view: View) -> dict[str, float]:
    """Return the values of ready pods; a ready pod without a value is left out."""
    return {uid: values[uid] for uid in ready_pods(view) if uid in values}


def round_up(value: float) -> int:
    """Return the ceiling, ignoring the last digits of a division: 6.000000000001 is 6."""
    return math.ceil(value - 1e-9)
