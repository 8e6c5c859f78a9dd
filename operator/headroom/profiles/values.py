"""The words in which a model server is described: its metrics, probes, port and arguments.

A quantity is the sum of all series of its metrics that carry the model and the labels asked for, in
base units (seconds, requests). A quantity without metrics, `()`, is one that the server does not
expose; what takes its place is decided where samples are made, and `missing` says it in words.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MICROSECONDS, MILLISECONDS = 1e-6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Keeps the series whose label matches; `differs` keeps the others."""

    name: str
    pattern: str
    """A regular expression for the whole value; a series without the label has the empty one."""
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """Series that are summed."""

    name: str
    labels: tuple[Label, ...] = ()
    scale: float = 1.0
    """What to multiply with to get base units."""
    lazy: bool = False
    """Exposed from its first event on: on a page of this server its absence is a zero."""
    optional: bool = False
    """Not every version or set-up has it: its absence is an absence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A cumulative histogram; `name` is without `_bucket`."""

    name: str
    labels: tuple[Label, ...] = ()
    scale: float = 1.0
    lazy: bool = False
    """Exposed from its first event on."""
    bounds_s: tuple[float, ...] = ()
    """Of a lazy one, where they are known: its bounds in seconds, +Inf left out."""


Quantity = tuple[Metric, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmupCall:
    """A request that every model of a server answers; `{model}` stands for the model's name."""

    path: str
    body: Mapping[str, Any] = field(default_factory=dict, hash=False)
    """Sent as JSON; empty where it follows from what is at `inputs_path`."""
    inputs_path: str = ""
    """Where the server names the model's inputs, as the Open Inference Protocol has it."""
    takes_model: bool = False
    """Whether the body says the model's name where the service does, as `model`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """One model server."""

    name: str
    title: str
    port: int
    """Where it listens for requests unless told otherwise."""
    metrics_port: int | None = None
    """Where it exposes metrics; None: where it listens for requests."""
    metrics_path: str = "/metrics"
    prefix: str = ""
    """Of its own metrics on a page that others share, and that is too large to be read whole."""
    ready_path: str
    live_path: str
    batch_argument: str = ""
    """Argument that bounds a batch, as in `--max-num-seqs`; empty: it is set elsewhere."""
    batch_setting: str = ""
    """What bounds a batch, in the server's own words."""

    warmup: WarmupCall | None = None
    """What the operator may send to warm it; None: it depends on the model."""
    model_label: str | None = None
    """Label that tells models apart; None: a page tells of one."""
    witness: Quantity = ()
    """On every page of this server, also of an idle one; needed where all else is lazy, since a
    page of something else would read as zeros."""
    empty_until_asked: bool = False
    """Its page has no series at all before the first request."""

    arrived: Quantity = ()
    """Requests counted at the door."""
    answered: Quantity = ()
    """Requests that ended well; without it the count of `latency`."""
    missed: Quantity = ()
    """Refused, expired, failed or abandoned requests."""
    waiting: Quantity = ()
    """Gauge of requests that are queued."""
    running: Quantity = ()
    """Gauge of requests in a batch."""
    in_flight: Quantity = ()
    """Gauge of both, where the server does not tell them apart."""
    waiting_seconds: Quantity = ()
    """Counter, summed over requests: time in the queue. Stands in for a gauge by Little's law."""
    running_seconds: Quantity = ()
    """Counter, summed over requests: time of their execution, which they share with their batch."""
    latency: Histogram | None = None
    """From the arrival of a request to its answer."""

    batches: Quantity = ()
    batch_items: Quantity = ()
    """Counter of requests in batches; without it those answered."""
    batch_seconds: Quantity = ()
    """Counter of execution time, once per batch."""
    fixed_cost_s: Quantity = ()
    item_cost_s: Quantity = ()
    max_batch: Quantity = ()
    pages: Quantity = ()
    """Counter of the pages that the server has written: one that says the same as the last was not
    written anew, however new it looks."""

    first_token: Histogram | None = None
    """Time to first token."""
    output_token: Histogram | None = None
    """Time per output token."""

    missing: tuple[str, ...] = ()
    """What the server does not say and what takes its place, a sentence each."""

    @property
    def says_max_batch(self) -> bool:
        """Whether the largest batch is read from the page."""
        return bool(self.max_batch)

    @property
    def quantities(self) -> dict[str, Quantity]:
        """Every quantity by its name here."""
        return {name: getattr(self, name) for name in QUANTITIES}

    @property
    def histograms(self) -> dict[str, Histogram]:
        """Every histogram that the server exposes, by its name here."""
        named = {name: getattr(self, name) for name in HISTOGRAMS}
        return {name: one for name, one in named.items() if one is not None}

    @property
    def metric_names(self) -> frozenset[str]:
        """Everything that is read, as it stands on the page."""
        metrics = {one.name for quantity in self.quantities.values() for one in quantity}
        return frozenset(metrics | {f"{one.name}_bucket" for one in self.histograms.values()})


QUANTITIES = (
    "witness",
    "arrived",
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
HISTOGRAMS = ("latency", "first_token", "output_token")


def metric(
    name: str,
    *labels: Label,
    scale: float = 1.0,
    lazy: bool = False,
    optional: bool = False,
) -> Quantity:
    """Return the quantity that is one metric."""
    return (Metric(name=name, labels=labels, scale=scale, lazy=lazy, optional=optional),)


def geometric(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return bounds multiplied up one by one, so that they are the server's to the last digit."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def having(name: str, pattern: str) -> Label:
    """Keep series whose label matches the whole pattern."""
    return Label(name=name, pattern=pattern)


def lacking(name: str, pattern: str) -> Label:
    """Keep series whose label does not match the whole pattern."""
    return Label(name=name, pattern=pattern, differs=True)


SUCCESS = r"2\d\d"
MISS = r"5\d\d|408|429|499"
"""Status codes of requests that the server did not serve in time. The other 4xx are the client's
mistakes: they are neither load nor a broken promise."""
