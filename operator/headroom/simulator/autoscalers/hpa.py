"""HorizontalPodAutoscaler v2 on GPU utilization, the queue, p95 or arrivals: one metric each.

Source: kubernetes/kubernetes, pkg/controller/podautoscaler. Sync every 15 s, tolerance 0.1,
scale-up by at most max(4, 100 %) per 15 s, scale-down after 300 s to the largest recommendation of
that time. Metrics come from Prometheus at a 15 s scrape through an adapter. It does not know a
pod's start-up: a warming pod is an unready one.

Choices: every pod that exists and is not ready counts as *unready* (for a metric other than CPU,
the controller would count a running, unready one as *missing*, which the view cannot distinguish);
"GPU utilization" is the busy time of the last minute, as `rate` or `avg_over_time` over DCGM's
gauge gives it.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.autoscalers.hpa_controller import (
    DEFAULT_DOWN,
    HpaBehavior,
    Rules,
    combine,
    from_average,
    from_pods,
    from_value,
)
from headroom.simulator.autoscalers.peer import Peer, existing_count, ready_pods, unready_count
from headroom.simulator.compiled.plant_layout import Column


@dataclass(kw_only=True)
class Hpa(Peer):
    """An HPA with one metric: the controller's behaviour; subclasses compute the recommendation."""

    may_be_zero: ClassVar[frozenset[str]] = frozenset({"tolerance", "stabilization_s"})

    tolerance: float = 0.1
    window_s: float = 60.0
    """Window of `rate` and `histogram_quantile` in the queries."""
    stabilization_s: float = 300.0
    """Scale-down stabilization."""
    _behavior: HpaBehavior = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raise ValueError for a knob that is out of its range."""
        super().__post_init__()
        down = Rules(stabilization_s=self.stabilization_s, rate=DEFAULT_DOWN.rate)
        self._behavior = HpaBehavior(policy=self.policy, down=down)

    def evaluate(self, view: View) -> ScaleRequest:
        """Return the value that the controller would write to /scale."""
        recommendation = combine([self._propose(view)], current=view.replicas)
        return self._behavior.settle(view.now_s, view.replicas, recommendation)

    @abstractmethod
    def _propose(self, view: View) -> int | None:
        """Return the metric's recommendation; None if it failed."""


@dataclass(kw_only=True)
class HpaUtilization(Hpa):
    """GPU busy time per pod against a target, as `type: Pods`."""

    kind: ClassVar[str] = "hpa-utilization"

    target_utilization: float = 0.7

    def _propose(self, view: View) -> int | None:
        return from_pods(
            view.metrics.rate(Column.BUSY_S, view.now_s, self.window_s),
            ready=ready_pods(view),
            unready=unready_count(view),
            current=view.replicas,
            target=self.target_utilization,
            tolerance=self.tolerance,
        )


@dataclass(kw_only=True)
class HpaQueue(Hpa):
    """The service's waiting requests as External metric with an `AverageValue` target.

    The query sums over scraped pods; a pod without a scrape adds nothing, and only an empty answer
    is an error. The default target is one full batch waiting per replica. With `in_flight` it is
    waiting and running requests, averaged over the window.
    """

    kind: ClassVar[str] = "hpa-queue"

    target_batches: float = 1.0
    """Waiting requests per replica, in batches; with `in_flight` running ones, too."""
    in_flight: bool = False

    def _propose(self, view: View) -> int | None:
        queue = queue_of(view, in_flight=self.in_flight, window_s=self.window_s)
        if queue is None:
            return None
        return from_average(
            queue,
            existing=existing_count(view),
            target=self.target_batches * self.places,
            tolerance=self.tolerance,
        )


@dataclass(kw_only=True)
class HpaRequests(Hpa):
    """Arrivals as External metric with an `AverageValue` target: a share of the true capacity.

    The capacity is the highest rate of one replica at which the SLO is met, as measured on the
    plant: the best that a load test can find.
    """

    kind: ClassVar[str] = "hpa-rps"

    target_share: float = 0.8
    """Target rate per replica over its true capacity."""

    def _propose(self, view: View) -> int | None:
        rates = view.metrics.rate(Column.ARRIVALS, view.now_s, self.window_s)
        if not rates:
            return None
        return from_average(
            sum(rates.values()),
            existing=existing_count(view),
            target=self.target_share * self.truth.capacity_rps,
            tolerance=self.tolerance,
        )


@dataclass(kw_only=True)
class HpaLatency(Hpa):
    """The SLO's percentile as External metric with a `Value` target: ceil(ready x p95 / SLO).

    Without answers in the window the query yields NaN, which the adapter drops: an error, no
    change.
    """

    kind: ClassVar[str] = "hpa-p95"

    target_ratio: float = 1.0
    """Target as a ratio of the latency target."""

    def _propose(self, view: View) -> int | None:
        policy = self.policy
        measured = view.metrics.quantile(policy.latency_percentile, view.now_s, self.window_s)
        if measured is None:
            return None
        return from_value(
            measured,
            ready=len(ready_pods(view)),
            current=view.replicas,
            target=self.target_ratio * policy.latency_target_s,
            tolerance=self.tolerance,
        )


def queue_of(view: View, *, in_flight: bool, window_s: float) -> float | None:
    """Return the waiting requests of all scraped pods; None without a scrape.

    With `in_flight` it is the mean over the window of waiting and running ones.
    """
    waiting = view.metrics.instant(Column.WAITING)
    if not waiting:
        return None
    if not in_flight:
        return sum(waiting.values())
    columns = (Column.WAITING, Column.RUNNING)
    means = [view.metrics.average(column, view.now_s, window_s) for column in columns]
    return sum(each[uid] for each in means for uid in waiting if uid in each)
