"""Positions of a profile's quantities among the values of a page's layout. Pure."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from operator import itemgetter

from headroom.profiles.quantities import Histogram, Label, Metric
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.telemetry.bounds.physical_bounds import check_counts
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.pages.exposition import Series

_MOST_BOUNDS = 256
"""Most bounds of a histogram; servers have 10 to 60. Each is kept several times for each pod."""


class SumOfSeries:
    """A quantity: the positions and scales of its series."""

    def __init__(
        self, metrics: Sequence[Metric], series: Sequence[tuple[int, Series]], nothing: bool = False
    ) -> None:
        """`nothing`: whether a server without any series counts as zero, which is no error."""
        self.places: list[tuple[int, float]] = []
        self.lacks: str | None = None
        self.absent = True
        for metric in metrics:
            found = [place for place, one in series if is_of(one, metric.name, metric.labels)]
            self.places += [(place, metric.scale) for place in found]
            if found or metric.lazy:
                self.absent = False
            elif not metric.optional and not nothing:
                self.lacks = metric.name
        self._only = self.places[0][0] if len(self.places) == 1 else None
        self._scale = self.places[0][1] if len(self.places) == 1 else 1.0

    def of(self, values: Sequence[float]) -> float | None:
        """Return the quantity; None if the page lacks it."""
        if self._only is not None:
            return values[self._only] * self._scale
        if self.absent:
            return None
        return sum(values[place] * scale for place, scale in self.places)


class Buckets:
    """A histogram: the positions of its counts for each bound, in increasing order up to +Inf."""

    def __init__(self, histogram: Histogram, series: Sequence[tuple[int, Series]]) -> None:
        self._name = f"{histogram.name}_bucket"
        by_bound: dict[float, list[int]] = {}
        groups: dict[tuple[tuple[str, str], ...], set[float]] = {}
        for place, one in series:
            if not is_of(one, self._name, histogram.labels):
                continue
            bound = self._bound(one.label("le"))
            others = tuple(sorted((k, v) for k, v in one.labels.items() if k != "le"))
            if bound in groups.setdefault(others, set()):
                raise InvalidMetric(self._name, "must have each bound once", one.label("le"))
            groups[others].add(bound)
            by_bound.setdefault(bound, []).append(place)
        if len(by_bound) > _MOST_BOUNDS:
            rule = f"must have at most {_MOST_BOUNDS} bounds"
            raise InvalidMetric(self._name, rule, len(by_bound))
        bounds = sorted(by_bound)
        if bounds and bounds[-1] != math.inf:
            raise InvalidMetric(self._name, "must have +Inf as its last bound", bounds[-1])
        if any(len(group) != len(bounds) for group in groups.values()):
            rule = "must have the same bounds for all labels"
            raise InvalidMetric(self._name, rule, f"{len(groups)} groups")
        self.bounds = tuple(bound * histogram.scale for bound in bounds)
        """In base units."""
        self._by_bound = [by_bound[bound] for bound in bounds]
        self.places = [place for places in self._by_bound for place in places]
        self._pick = itemgetter(*self.places) if len(self.places) > 1 else None
        self._single = len(groups) == 1

    def __bool__(self) -> bool:
        """Return whether the page has the histogram."""
        return bool(self.places)

    def of(self, values: Sequence[float]) -> LatencyCounts:
        """Return a histogram of seconds; raise InvalidMetric if the counts decrease."""
        return LatencyCounts(bounds_s=self.bounds, counts=self.counts(values))

    def counts(self, values: Sequence[float]) -> tuple[float, ...]:
        """Return the counts of each bound; raise InvalidMetric if they decrease."""
        if self._single and self._pick is not None:
            counts: tuple[float, ...] = self._pick(values)
        else:
            counts = tuple(sum(values[place] for place in places) for places in self._by_bound)
        if list(counts) != sorted(counts):
            raise InvalidMetric(self._name, "must not decrease from bound to bound", list(counts))
        check_counts(self._name, counts)
        return counts

    def _bound(self, text: str) -> float:
        try:
            bound = float(text)
        except ValueError:
            raise InvalidMetric(self._name, "must have numbers as values of le", text) from None
        if math.isnan(bound):
            raise InvalidMetric(self._name, "must have numbers as values of le", text)
        return bound


def is_of(series: Series, name: str, labels: Sequence[Label]) -> bool:
    """Return whether a series has this name and these labels."""
    return series.name == name and all(
        (re.fullmatch(label.pattern, series.label(label.name)) is not None) != label.differs
        for label in labels
    )
