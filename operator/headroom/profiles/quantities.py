"""Names of metrics: a metric with labels, a quantity as a sum of metrics, a histogram.

A quantity is the sum of all series of its metrics with the model and the given labels, in base
units (seconds, requests). A quantity without metrics, `()`, is not exposed by the server.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

MICROSECONDS, MILLISECONDS = 1e-6, 1e-3


@dataclass(frozen=True, slots=True, kw_only=True)
class Label:
    """Selects series whose label matches; `differs` selects those that do not match."""

    name: str
    pattern: str
    """A regular expression for the whole value; a missing label has the empty value."""
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """A metric whose series are added up."""

    name: str
    labels: tuple[Label, ...] = ()
    scale: float = 1.0
    """Factor to base units."""
    lazy: bool = False
    """Exposed only from the first event on: if absent, it counts as zero."""
    optional: bool = False
    """Exposed only by some versions or configurations: if absent, it is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Histogram:
    """A cumulative histogram; `name` is without `_bucket`."""

    name: str
    labels: tuple[Label, ...] = ()
    scale: float = 1.0
    lazy: bool = False
    """Exposed only from the first event on."""
    bounds_s: tuple[float, ...] = ()
    """Bounds of a lazy histogram in seconds, without +Inf, if known."""
    instead: str = ""
    """Name of the histogram that stands for it on a page without it."""

    @property
    def buckets(self) -> tuple[str, ...]:
        """The names of its series, and of those that stand for them."""
        return tuple(f"{name}_bucket" for name in (self.name, self.instead) if name)

    @property
    def substitute(self) -> Histogram | None:
        """The histogram that stands for it; None without one."""
        return replace(self, name=self.instead, instead="") if self.instead else None


Quantity = tuple[Metric, ...]


def metric(
    name: str,
    *labels: Label,
    scale: float = 1.0,
    lazy: bool = False,
    optional: bool = False,
) -> Quantity:
    """Return a quantity of one metric."""
    return (Metric(name=name, labels=labels, scale=scale, lazy=lazy, optional=optional),)


def geometric(first: float, factor: float, count: int) -> tuple[float, ...]:
    """Return geometric bounds by repeated multiplication, exactly equal to the server's."""
    bounds = [first]
    while len(bounds) < count:
        bounds.append(bounds[-1] * factor)
    return tuple(bounds)


def having(name: str, pattern: str) -> Label:
    """Select series whose label matches the whole pattern."""
    return Label(name=name, pattern=pattern)


def lacking(name: str, pattern: str) -> Label:
    """Select series whose label does not match the whole pattern."""
    return Label(name=name, pattern=pattern, differs=True)


SUCCESS = r"2\d\d"
MISS = r"5\d\d|408|429|499"
"""Status codes of requests that the server failed to serve in time. Other 4xx are client errors:
they count neither as load nor as a violated SLO."""
