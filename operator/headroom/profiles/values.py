"""The value types of a profile: metrics, probes, port and arguments of a model server.

A quantity is the sum of all series of its metrics with the model and the given labels, in base
units (seconds, requests). A quantity without metrics, `()`, is not exposed by the server;
`accounts.py` derives a replacement, and `missing` describes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.profiles.generation import GenerationMetrics
from headroom.profiles.quantities import Histogram, Quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupCall:
    """A warm-up request that every model of a server answers; `{model}` is the model's name."""

    path: str
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Sent as JSON; empty if it is generated from the description at `inputs_path`."""
    inputs_path: str = ""
    """Path of the model's metadata (Open Inference Protocol)."""
    takes_model: bool = False
    """Whether the body has the model's name as `model`, if the service names one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One model server."""

    name: str
    title: str
    port: int
    """Default port of requests."""
    metrics_port: int | None = None
    """Port of the metrics; None: the port of requests."""
    metrics_path: str = "/metrics"
    prefix: str = ""
    """Prefix of its metrics on a shared page that is too large to keep."""
    ready_path: str
    live_path: str
    batch_argument: str = ""
    """Argument for the maximum batch size, such as `--max-num-seqs`; empty: it is set elsewhere."""
    iteration_argument: str = ""
    """Argument for the tokens that an iteration may compute; empty: none is read."""
    batch_setting: str = ""
    """The server's name for the setting of the maximum batch size."""

    warmup: WarmupCall | None = None
    """The operator's warm-up request; None: it depends on the model."""
    model_label: str | None = None
    """Label with the model's name; None: a page has one model."""
    class_label: str = ""
    """Label with the class that a request names; empty: the server does not count per class."""
    best_effort_label: str = ""
    """Label with the class of a request that only fills what others leave; empty: none does."""
    witness: Quantity = ()
    """A metric on every page of this server, even an idle one; needed if all others are lazy,
    because a page of another server would read as zeros."""
    empty_until_asked: bool = False
    """Its page has no series before the first request."""

    arrived: Quantity = ()
    """Requests counted on arrival."""
    answered: Quantity = ()
    """Successful requests; defaults to the count of `latency`."""
    retried: Quantity = ()
    """Arrived requests that said they were retries."""
    missed: Quantity = ()
    """Refused, expired, failed or abandoned requests."""
    waiting: Quantity = ()
    """Gauge of requests that are queued."""
    running: Quantity = ()
    """Gauge of requests in a batch."""
    in_flight: Quantity = ()
    """Gauge of waiting and running requests together."""
    waiting_seconds: Quantity = ()
    """Counter of queue time, summed over requests; replaces a gauge by Little's law."""
    running_seconds: Quantity = ()
    """Counter of execution time, summed over requests (each counts its batch's time)."""
    latency: Histogram | None = None
    """Time from the arrival of a request to its answer."""
    conserves: bool = False
    """Each arrived request is waiting, running, missed or in `latency`, on every page."""

    batches: Quantity = ()
    batch_items: Quantity = ()
    """Counter of requests in batches; defaults to `answered`."""
    batch_seconds: Quantity = ()
    """Counter of execution time, summed over batches."""
    fixed_cost_s: Quantity = ()
    item_cost_s: Quantity = ()
    max_batch: Quantity = ()
    pages: Quantity = ()
    """Counter of scrapes; a page with the previous value is a cached copy."""

    first_token: Histogram | None = None
    """Time to first token."""
    output_token: Histogram | None = None
    """Time per output token."""

    generation: GenerationMetrics | None = None
    """None: the server does not generate tokens."""

    missing: tuple[str, ...] = ()
    """Values that the server does not expose and their derivation, one sentence each."""

    @property
    def quantities(self) -> dict[str, Quantity]:
        """All quantities by field name."""
        return {name: getattr(self, name) for name in QUANTITIES}

    @property
    def histograms(self) -> dict[str, Histogram]:
        """The exposed histograms by field name."""
        named = {name: getattr(self, name) for name in HISTOGRAMS}
        return {name: one for name, one in named.items() if one is not None}

    @property
    def counter_names(self) -> frozenset[str]:
        """The names of all counters."""
        counters = [one for name, one in self.quantities.items() if name not in GAUGES]
        names = {metric.name for quantity in counters for metric in quantity}
        names |= {name for one in self.histograms.values() for name in one.buckets}
        return frozenset(names | set(self.generation.counter_names() if self.generation else ()))

    @property
    def metric_names(self) -> frozenset[str]:
        """The names of all metrics that are read."""
        metrics = {one.name for quantity in self.quantities.values() for one in quantity}
        metrics |= {name for one in self.histograms.values() for name in one.buckets}
        return frozenset(metrics | set(self.generation.metric_names() if self.generation else ()))


QUANTITIES = (
    "witness",
    "arrived",
    "retried",
    "answered",
    "missed",
    "waiting",
    "running",
    "in_flight",
    "waiting_seconds",
    "running_seconds",
    "batches",
    "batch_items",
    "batch_seconds",
    "fixed_cost_s",
    "item_cost_s",
    "max_batch",
    "pages",
)
GAUGES = frozenset(
    ("witness", "waiting", "running", "in_flight", "fixed_cost_s", "item_cost_s", "max_batch")
)
"""Quantities that are no counters."""
HISTOGRAMS = ("latency", "first_token", "output_token")
