"""Judges each request by the promises of its own class, and all classes together. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.generation.promises.token_promises import (
    Measured,
    attainment_of,
    outcomes_of,
    worst_ratio,
)
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.values.tokens import Binding


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassMeasurement:
    """One class: the measurements of its promises."""

    promise: ClassPromise
    window: Mapping[Binding, Measured] = field(default_factory=dict)
    """Measurements of the last minute."""
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
    """The judgement of all classes together in one tick."""

    classes: tuple[ClassMeasurement, ...]
    rejected: tuple[float, float] = (0.0, 0.0)
    """Requests that gateways rejected, of the last minute and since the last tick: late ones,
    whose class no one has counted."""

    @property
    def attainment(self) -> float | None:
        """Share of the requests with a promise that kept all of their own class; None without."""
        known = [
            (one.requests, one.attainment) for one in self.classes if one.attainment is not None
        ]
        known.append((self.rejected[0], 0.0))
        requests = sum(count for count, _ in known)
        if requests <= 0.0:
            return None
        return sum(count * (share or 0.0) for count, share in known) / requests

    def of(self, name: str) -> Mapping[Binding, Measured]:
        """Return the measurements of one class in the last minute."""
        return next((one.window for one in self.classes if one.promise.name == name), {})

    def mean_of_first_token(self, share: Callable[[float], float]) -> float:
        """Return a function's mean of the promised time to first token, over ended requests."""
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
        """Return the ended requests since the last tick, and those that broke their promises."""
        each = [
            outcomes_of(_kept(one.promise, one.latest, hopeless), allowed) for one in self.classes
        ]
        each.append(Outcomes(ended=self.rejected[1], late=self.rejected[1]))
        return Outcomes(ended=sum(one.ended for one in each), late=sum(one.late for one in each))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassState:
    """Known facts about classes before a tick decides, and its findings."""

    promises: tuple[ClassPromise, ...] = ()
    """Promises of the classes, the service's own first; empty: no class differs from it."""
    judgement: ClassJudgement | None = None
    """None: the servers do not count per class."""
    has_best_effort: bool = False
    """Whether best-effort requests fill what the others leave: the load is without them, and the
    times of the others are measured with them."""
    best_effort_in_flight: float = 0.0
    """Such requests in flight now."""
    binding: str = SERVICE
    """The class whose promises bound the rate per replica."""
    floors_s: Mapping[tuple[str, Binding], float] = field(default_factory=dict)
    """Latency of an idle replica, at the percentile of each promise."""

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
