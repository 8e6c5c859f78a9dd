"""Promises per class of requests, and the counts of each class. Pure.

A request is judged by the promises of its own class; what names no class, or one without promises
of its own, belongs to the service. A class without any promise is *best effort*: none of its
requests is late.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import Binding, Target, TokenTargets

SERVICE = ""
"""Name of the requests that the service's own promises apply to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPromise:
    """The promises of one class."""

    name: str
    targets: TokenTargets

    @property
    def by_binding(self) -> dict[Binding, Target]:
        """The promises by the time that they bound."""
        named = {
            Binding.TIME_TO_FIRST_TOKEN: self.targets.first_token,
            Binding.TIME_PER_OUTPUT_TOKEN: self.targets.output_token,
            Binding.LATENCY: self.targets.latency,
        }
        return {binding: target for binding, target in named.items() if target is not None}

    @property
    def best_effort(self) -> bool:
        """Whether nothing is promised."""
        return not self.by_binding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCounts:
    """Counts of one class at one pod since its process started."""

    missed: float = 0.0
    """Refused, expired, failed or abandoned requests."""
    first_token: LatencyCounts | None = None
    output_token: LatencyCounts | None = None
    latency: LatencyCounts | None = None
    fills: bool = False
    """Whether the server says that the class only fills what others leave."""
    in_flight: float = 0.0
    """Requests that wait or run, of a class that fills."""

    def of(self, binding: Binding) -> LatencyCounts | None:
        """Return the histogram of one promise; None if the server has none yet."""
        if binding is Binding.TIME_TO_FIRST_TOKEN:
            return self.first_token
        if binding is Binding.TIME_PER_OUTPUT_TOKEN:
            return self.output_token
        return self.latency if binding is Binding.LATENCY else None

    def plus(self, other: ClassCounts) -> ClassCounts:
        """Return the counts of both classes together."""
        return ClassCounts(
            missed=self.missed + other.missed,
            first_token=_sum(self.first_token, other.first_token),
            output_token=_sum(self.output_token, other.output_token),
            latency=_sum(self.latency, other.latency),
            fills=self.fills or other.fills,
            in_flight=self.in_flight + other.in_flight,
        )


def grouped(
    counted: Mapping[str, ClassCounts], promises: Iterable[ClassPromise]
) -> dict[str, ClassCounts]:
    """Return the counts by promise: a class without one of its own counts for the service."""
    names = [one.name for one in promises]
    found: dict[str, ClassCounts] = {}
    for name, counts in counted.items():
        group = name if name in names else SERVICE
        known = found.get(group)
        found[group] = counts if known is None else known.plus(counts)
    return {name: found.get(name, NOTHING) for name in names}


NOTHING = ClassCounts()


def _sum(one: LatencyCounts | None, other: LatencyCounts | None) -> LatencyCounts | None:
    """Return the sum of two histograms of one page, whose bounds are the same."""
    if one is None or other is None:
        return one or other
    counts = zip(one.counts, other.counts, strict=True)
    return LatencyCounts(
        bounds_s=one.bounds_s, counts=tuple(here + there for here, there in counts)
    )
