"""Positions of the counts per class of requests in the layout of a page. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.profiles.values import Profile
from headroom.scaling.generation.promises.classes import ClassCounts
from headroom.telemetry.errors import InvalidMetric
from headroom.telemetry.pages.exposition import Series
from headroom.telemetry.pages.positions import Buckets, SumOfSeries

MOST_CLASSES = 32
"""On a page: Headroom's server has 16, `other`, and requests without a class."""
_Found = Sequence[tuple[int, Series]]


def class_positions(profile: Profile, series: _Found) -> dict[str, ClassPositions]:
    """Return the positions by class; empty if the server does not count per class, or has none.

    Raises InvalidMetric.
    """
    label = profile.class_label
    if not label:
        return {}
    buckets = {f"{one.name}_bucket" for one in profile.histograms.values()}
    names = {one.label(label) for _, one in series if one.name in buckets}
    if names <= {""}:
        return {}
    if len(names) > MOST_CLASSES:
        rule = f"must have at most {MOST_CLASSES} values of {label}"
        raise InvalidMetric(min(buckets), rule, len(names))
    return {
        name: ClassPositions(profile, [pair for pair in series if pair[1].label(label) == name])
        for name in sorted(names)
    }


class ClassPositions:
    """Reads the counts of one class."""

    def __init__(self, profile: Profile, series: _Found) -> None:
        self._fills = any(one.label(profile.best_effort_label) for _, one in series)
        gauges = {one.name for one in (*profile.waiting, *profile.running)}
        self._gauges = [place for place, one in series if self._fills and one.name in gauges]
        self._missed = SumOfSeries(profile.missed, series, nothing=True)
        found = {name: Buckets(histogram, series) for name, histogram in profile.histograms.items()}
        self._histograms = {name: one for name, one in found.items() if one}

    def counts(self, values: Sequence[float]) -> ClassCounts:
        """Return the counts of one page; raise InvalidMetric if a histogram decreases."""
        return ClassCounts(
            missed=self._missed.of(values) or 0.0,
            fills=self._fills,
            in_flight=sum(values[place] for place in self._gauges),
            **{name: one.of(values) for name, one in self._histograms.items()},
        )
