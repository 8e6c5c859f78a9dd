"""`spec.runtime.metrics`: what a server of the profile `custom` exposes, by name."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from headroom.api.values import Rule, Value
from headroom.profiles.values import (
    MICROSECONDS,
    MILLISECONDS,
    Histogram,
    Label,
    Metric,
    Profile,
    Quantity,
)

MetricName = Annotated[
    str, StringConstraints(max_length=200, pattern=r"^[a-zA-Z_:][a-zA-Z0-9_:]*$")
]
LabelName = Annotated[str, StringConstraints(max_length=100, pattern=r"^[a-zA-Z_][a-zA-Z0-9_]*$")]
Path = Annotated[str, StringConstraints(max_length=512, pattern=r"^/[!-~]*$")]
_Values = Annotated[
    tuple[Annotated[str, Field(max_length=200)], ...],
    Field(
        min_length=1,
        max_length=16,
        strict=False,
        json_schema_extra={"x-kubernetes-list-type": "atomic"},
    ),
]
_SCALES = {"s": 1.0, "ms": MILLISECONDS, "us": MICROSECONDS}


class LabelValues(Value):
    """One label and the values that count."""

    label: LabelName
    values: _Values
    """Series with one of these values count; an empty one stands for the absent label."""

    def to_label(self) -> Label:
        """Give the profile's value."""
        return Label(name=self.label, pattern="|".join(map(re.escape, self.values)))


_Labels = Annotated[
    tuple[LabelValues, ...],
    Field(max_length=8, strict=False, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
]


class MetricReference(Value):
    """Series that are summed."""

    name: MetricName
    """As it stands on the page; of a counter with its _total."""
    labels: _Labels = ()
    """Only series with these labels; without them all."""
    absent_is_zero: bool = False
    """A server that exposes it only from its first event on; without it, its absence is an error.
    """

    def to_quantity(self, scale: float = 1.0) -> Quantity:
        """Give the profile's value."""
        labels = tuple(one.to_label() for one in self.labels)
        return (Metric(name=self.name, labels=labels, scale=scale, lazy=self.absent_is_zero),)


class TimeReference(MetricReference):
    """A counter of time."""

    unit: Literal["s", "ms", "us"] = "s"
    """Of its values."""

    def to_quantity(self, scale: float = 1.0) -> Quantity:
        """Give the profile's value, in seconds."""
        return super().to_quantity(scale * _SCALES[self.unit])


class HistogramReference(Value):
    """A cumulative histogram of time."""

    name: MetricName
    """Without _bucket."""
    labels: _Labels = ()
    """Only series with these labels; without them all."""
    unit: Literal["s", "ms", "us"] = "s"
    """Of its bounds."""
    absent_is_zero: bool = False
    """A server that exposes it only from its first request on; without it, its absence is an
    error."""

    def to_histogram(self) -> Histogram:
        """Give the profile's value."""
        labels = tuple(one.to_label() for one in self.labels)
        scale = _SCALES[self.unit]
        return Histogram(name=self.name, labels=labels, scale=scale, lazy=self.absent_is_zero)


class CustomMetrics(Value):
    """What the server exposes; what is left out is worked out from the rest, or does without."""

    path: Path = "/metrics"
    """Where the page is."""
    ready_path: Path = "/"
    """What the readiness probe asks, where the operator makes the pods."""
    live_path: Path | None = None
    """What the liveness probe asks; without it readyPath."""
    model_label: LabelName | None = None
    """Label that tells models apart; without it the page tells of one."""
    waiting: MetricReference | None = None
    """Gauge of requests that are queued."""
    running: MetricReference | None = None
    """Gauge of requests in a batch."""
    in_flight: MetricReference | None = None
    """Gauge of both; what is beyond maxBatchSize counts as waiting."""
    waiting_time: TimeReference | None = None
    """Counter of time in the queue, summed over requests; stands in for the gauge."""
    running_time: TimeReference | None = None
    """Counter of time in execution, summed over requests; stands in for the gauge and for
    batches."""
    arrived: MetricReference | None = None
    """Counter of requests at the door; without it those ended and in flight."""
    answered: MetricReference | None = None
    """Counter of requests that ended well; without it the count of the histogram."""
    missed: MetricReference | None = None
    """Counter of refused, expired and failed requests."""
    latency: HistogramReference | None = None
    """Time from the arrival of a request to its answer; without it the promise is kept by the
    model, and not measured."""
    batches: MetricReference | None = None
    """Counter of batches."""
    batch_requests: MetricReference | None = None
    """Counter of requests in batches."""
    batch_time: TimeReference | None = None
    """Counter of execution time, once per batch."""

    rules = (
        Rule(
            cel="has(self.inFlight) || ((has(self.waiting) || has(self.waitingTime)) && "
            "(has(self.running) || has(self.runningTime)))",
            holds=lambda metrics: bool(
                metrics.in_flight
                or (
                    (metrics.waiting or metrics.waiting_time)
                    and (metrics.running or metrics.running_time)
                )
            ),
            message="metrics needs inFlight, or waiting (or waitingTime) with running (or "
            "runningTime)",
        ),
        Rule(
            cel="has(self.answered) || has(self.latency)",
            holds=lambda metrics: bool(metrics.answered or metrics.latency),
            message="metrics needs answered or latency, to count requests that ended",
        ),
        Rule(
            cel="has(self.runningTime) || (has(self.batches) && has(self.batchTime))",
            holds=lambda metrics: bool(
                metrics.running_time or (metrics.batches and metrics.batch_time)
            ),
            message="metrics needs runningTime, or batches and batchTime, to learn what a request "
            "costs",
        ),
    )

    def to_profile(self, port: int) -> Profile:
        """Give the profile of a server that listens there."""
        return Profile(
            name="custom",
            title="custom metrics",
            port=port,
            metrics_path=self.path,
            ready_path=self.ready_path,
            live_path=self.live_path or self.ready_path,
            model_label=self.model_label,
            arrived=_quantity(self.arrived),
            answered=_quantity(self.answered),
            missed=_quantity(self.missed),
            waiting=_quantity(self.waiting),
            running=_quantity(self.running),
            in_flight=_quantity(self.in_flight),
            waiting_seconds=_quantity(self.waiting_time),
            running_seconds=_quantity(self.running_time),
            latency=self.latency.to_histogram() if self.latency else None,
            batches=_quantity(self.batches),
            batch_items=_quantity(self.batch_requests),
            batch_seconds=_quantity(self.batch_time),
        )


def _quantity(reference: MetricReference | None) -> Quantity:
    return () if reference is None else reference.to_quantity()
