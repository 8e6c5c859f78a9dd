"""Promises per class of requests, what was counted of each class, and how both are judged. Pure.

A request is judged by the promises of its own class; what names no class, or one without promises
of its own, belongs to the service. A class without any promise is *best effort*: none of its
requests is late.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field

from headroom.scaling.generation.promises import (
    Measured,
    attainment_of,
    outcomes_of,
    worst_ratio,
)
from headroom.scaling.latency_counts import LatencyCounts
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.token_values import Binding, Target, TokenTargets

SERVICE = ""
"""Name of the requests that the service's own promises apply to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassPromise:
    """The promises of one class."""

    name: str
    targets: TokenTargets

    @property
    def by_binding(self) -> dict[Binding, Target]:
        """The promises by what they bind."""
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
    """What one pod has counted of one class since its process started."""

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
    found = {one.name: ClassCounts() for one in promises}
    for name, counts in counted.items():
        group = name if name in found else SERVICE
        found[group] = found[group].plus(counts)
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMeasurement:
    """One class: what was measured of its promises."""

    promise: ClassPromise
    window: Mapping[Binding, Measured] = field(default_factory=dict)
    """Of the last minute."""
    latest: Mapping[Binding, Measured] = field(default_factory=dict)
    """Since the last tick."""

    @property
    def requests(self) -> float:
        """Requests of the last minute: of the promise that counted most."""
        return max((one.requests for one in self.window.values()), default=0.0)

    @property
    def attainment(self) -> float | None:
        """Share of the last minute's requests that kept all promises; None without requests."""
        return attainment_of(self.window)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassJudgement:
    """What all classes together say of a tick."""

    classes: tuple[ClassMeasurement, ...]

    @property
    def attainment(self) -> float | None:
        """Share of the requests with a promise that kept all of their own class; None without."""
        known = [
            (one.requests, one.attainment) for one in self.classes if one.attainment is not None
        ]
        requests = sum(count for count, _ in known)
        if requests <= 0.0:
            return None
        return sum(count * (share or 0.0) for count, share in known) / requests

    def of(self, name: str) -> Mapping[Binding, Measured]:
        """Return what was measured of one class in the last minute."""
        return next((one.window for one in self.classes if one.promise.name == name), {})

    def mean_of_first_token(self, share: Callable[[float], float]) -> float:
        """Return the mean of a function of the promised time to first token, over what ended."""
        ended = late = 0.0
        for one in self.classes:
            target = one.promise.targets.first_token
            count = max((each.requests for each in one.latest.values()), default=0.0)
            ended += count
            late += count * share(target.seconds) if target is not None else 0.0
        return late / ended if ended > 0.0 else 0.0

    def worst_ratio(self, hopeless: Collection[tuple[str, Binding]] = ()) -> float | None:
        """Return the largest measured percentile over its target, without hopeless promises."""
        ratios = [worst_ratio(_kept(one.promise, one.window, hopeless)) for one in self.classes]
        return max((one for one in ratios if one is not None), default=None)

    def outcomes(self, allowed: float, hopeless: Collection[tuple[str, Binding]] = ()) -> Outcomes:
        """Return what ended since the last tick, and what of it broke a promise of its class."""
        each = [
            outcomes_of(_kept(one.promise, one.latest, hopeless), allowed) for one in self.classes
        ]
        return Outcomes(ended=sum(one.ended for one in each), late=sum(one.late for one in each))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassState:
    """What a tick knows of classes before it decides, and what it found of them."""

    promises: tuple[ClassPromise, ...] = ()
    """That of the service first; empty: no class differs from it."""
    judgement: ClassJudgement | None = None
    """None: the servers do not count per class."""
    filled: bool = False
    """Whether best-effort requests fill what the others leave: the load is without them, and the
    times of the others are measured with them."""
    filling: float = 0.0
    """Such requests in flight now."""
    binding: str = SERVICE
    """The class whose promises bound the rate per replica."""
    floors_s: Mapping[tuple[str, Binding], float] = field(default_factory=dict)
    """What an idle replica needs, at the percentile of each promise."""

    @property
    def promised(self) -> tuple[ClassPromise, ...]:
        """The classes with a promise."""
        return tuple(one for one in self.promises if not one.best_effort)

    @property
    def hopeless(self) -> frozenset[tuple[str, Binding]]:
        """Promises that no number of replicas keeps."""
        return frozenset(
            (one.name, binding)
            for one in self.promises
            for binding, target in one.by_binding.items()
            if self.floors_s.get((one.name, binding), 0.0) > target.seconds
        )


def _kept(
    promise: ClassPromise,
    measured: Mapping[Binding, Measured],
    hopeless: Collection[tuple[str, Binding]],
) -> dict[Binding, Measured]:
    return {name: one for name, one in measured.items() if (promise.name, name) not in hopeless}


def _sum(one: LatencyCounts | None, other: LatencyCounts | None) -> LatencyCounts | None:
    """Return the sum of two histograms of one page, whose bounds are the same."""
    if one is None or other is None:
        return one or other
    counts = zip(one.counts, other.counts, strict=True)
    return LatencyCounts(
        bounds_s=one.bounds_s, counts=tuple(here + there for here, there in counts)
    )
