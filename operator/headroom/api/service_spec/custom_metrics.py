"""`spec.runtime.metrics`: names of the metrics of a server with the profile `custom`."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from headroom.api.text_forms import PATH, TextForm
from headroom.api.values import Rule, Value
from headroom.profiles.quantities import (
    MICROSECONDS,
    MILLISECONDS,
    Histogram,
    Label,
    Metric,
    Quantity,
)
from headroom.profiles.values import Profile

MetricName = Annotated[
    str,
    StringConstraints(max_length=200),
    TextForm(
        "^[a-zA-Z_:][a-zA-Z0-9_:]*$",
        "must be the name of a metric without its labels, such as requests_total",
    ),
]
LabelName = Annotated[
    str,
    StringConstraints(max_length=100),
    TextForm("^[a-zA-Z_][a-zA-Z0-9_]*$", "must be the name of a label, such as model"),
]
Path = Annotated[str, StringConstraints(max_length=512), PATH]
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
    """A label and its accepted values."""

    label: LabelName
    values: _Values
    """Accepted values; an empty value also accepts series without the label."""

    def to_label(self) -> Label:
        """Return the form that profiles use."""
        return Label(name=self.label, pattern="|".join(map(re.escape, self.values)))


_Labels = Annotated[
    tuple[LabelValues, ...],
    Field(max_length=8, strict=False, json_schema_extra={"x-kubernetes-list-type": "atomic"}),
]


class MetricReference(Value):
    """Metric whose series are summed."""

    name: MetricName
    """Name as exposed; for a counter with _total."""
    labels: _Labels = ()
    """Only series with these labels. Default: all series."""
    absent_is_zero: bool = False
    """Treat a missing metric as 0, for servers that expose it only after the first event. Default:
    a missing metric is an error."""

    def to_quantity(self, scale: float = 1.0) -> Quantity:
        """Return the form that profiles use."""
        labels = tuple(one.to_label() for one in self.labels)
        return (Metric(name=self.name, labels=labels, scale=scale, lazy=self.absent_is_zero),)


class TimeReference(MetricReference):
    """Counter of time."""

    unit: Literal["s", "ms", "us"] = "s"
    """Unit of the values."""

    def to_quantity(self, scale: float = 1.0) -> Quantity:
        """Return the form that profiles use, in seconds."""
        return super().to_quantity(scale * _SCALES[self.unit])


class HistogramReference(Value):
    """Cumulative histogram of time."""

    name: MetricName
    """Name without _bucket."""
    labels: _Labels = ()
    """Only series with these labels. Default: all series."""
    unit: Literal["s", "ms", "us"] = "s"
    """Unit of the bucket bounds."""
    absent_is_zero: bool = False
    """Treat a missing histogram as empty, for servers that expose it only after the first request.
    Default: a missing histogram is an error."""

    def to_histogram(self) -> Histogram:
        """Return the form that profiles use."""
        labels = tuple(one.to_label() for one in self.labels)
        scale = _SCALES[self.unit]
        return Histogram(name=self.name, labels=labels, scale=scale, lazy=self.absent_is_zero)


class CustomMetrics(Value):
    """Metrics that the server exposes; unset ones are derived from others if possible."""

    path: Path = "/metrics"
    """Path of the metrics page."""
    ready_path: Path = "/"
    """Path of the readiness probe, where the operator creates the pods."""
    live_path: Path | None = None
    """Path of the liveness probe. Default: readyPath."""
    model_label: LabelName | None = None
    """Label that names the model. Default: the page describes one model."""
    waiting: MetricReference | None = None
    """Gauge of queued requests."""
    running: MetricReference | None = None
    """Gauge of requests in a batch."""
    in_flight: MetricReference | None = None
    """Gauge of queued and running requests; those beyond maxBatchSize count as queued."""
    waiting_time: TimeReference | None = None
    """Counter of time in the queue, summed over requests; replaces waiting."""
    running_time: TimeReference | None = None
    """Counter of execution time, summed over requests; replaces running, batches and batchTime."""
    arrived: MetricReference | None = None
    """Counter of requests that arrived. Default: those completed plus those in flight."""
    retried: MetricReference | None = None
    """Counter of arrived requests that said they were retries, such as by x-retry-attempt."""
    answered: MetricReference | None = None
    """Counter of successful requests. Default: the count of the latency histogram."""
    missed: MetricReference | None = None
    """Counter of rejected, expired and failed requests."""
    latency: HistogramReference | None = None
    """Time from the arrival of a request to its response. Without it, latency is estimated by the
    model and not measured."""
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
            message="metrics must set inFlight, or waiting (or waitingTime) together with running "
            "(or runningTime)",
        ),
        Rule(
            cel="has(self.answered) || has(self.latency)",
            holds=lambda metrics: bool(metrics.answered or metrics.latency),
            message="metrics must set answered or latency, to count completed requests",
        ),
        Rule(
            cel="has(self.runningTime) || (has(self.batches) && has(self.batchTime))",
            holds=lambda metrics: bool(
                metrics.running_time or (metrics.batches and metrics.batch_time)
            ),
            message="metrics must set runningTime, or batches and batchTime, to learn the cost of "
            "a request",
        ),
    )

    def to_profile(self, port: int) -> Profile:
        """Return the profile of a server that listens on `port`."""
        return Profile(
            name="custom",
            title="custom metrics",
            port=port,
            metrics_path=self.path,
            ready_path=self.ready_path,
            live_path=self.live_path or self.ready_path,
            model_label=self.model_label,
            arrived=_quantity(self.arrived),
            retried=_quantity(self.retried),
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
