"""The positions of all quantities of one model in the values of a page's layout. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from headroom.profiles.values import QUANTITIES, Profile
from headroom.telemetry.bounds.physical_bounds import check_quantities
from headroom.telemetry.errors import InvalidMetric, MissingMetric
from headroom.telemetry.pages.class_positions import class_positions
from headroom.telemetry.pages.continued_page import ContinuedPage
from headroom.telemetry.pages.exposition import Layout, Series
from headroom.telemetry.pages.generation_positions import positions_of
from headroom.telemetry.pages.positions import Buckets, SumOfSeries, is_of
from headroom.telemetry.pages.reading import Reading

BATCHES = frozenset(("batches", "batch_items", "batch_seconds"))
"""Quantities that a server lacks where it generates: it has iterations."""

_reading: Callable[..., Reading] = Reading  # fields are filled by the order of QUANTITIES


class PagePositions:
    """Positions of the quantities; raises MissingMetric or InvalidMetric if one is unreadable."""

    def __init__(self, profile: Profile, layout: Layout, model: str | None) -> None:
        self._profile = profile
        self._layout = layout.series
        series = _of_model(profile, layout, model)
        nothing = layout.lines == 0 and profile.empty_until_asked
        self._sums = [SumOfSeries(getattr(profile, name), series, nothing) for name in QUANTITIES]
        self._generation = positions_of(profile.generation, series)
        self._classes = class_positions(profile, series)
        for name, one in zip(QUANTITIES, self._sums, strict=True):
            if one.lacks is not None and (self._generation is None or name not in BATCHES):
                raise _missing(profile, one.lacks, model, layout)
        _reject_other_servers(profile, self._sums, layout)
        found = {name: Buckets(histogram, series) for name, histogram in profile.histograms.items()}
        substitutes = {
            name: Buckets(one.substitute, series)
            for name, one in profile.histograms.items()
            if one.substitute is not None and not found[name]
        }
        for name, histogram in profile.histograms.items():
            if not found[name] and not histogram.lazy:
                raise _missing(profile, f"{histogram.name}_bucket", model, layout)
        self._histograms = {name: one for name, one in found.items() if one}
        self._substitutes = {name: one for name, one in substitutes.items() if one}
        used = {place for one in self._sums for place, _ in one.places}
        for every in (self._histograms, self._substitutes):
            used |= {place for one in every.values() for place in one.places}
        if self._generation is not None:
            used |= self._generation.places
        self._used = sorted(used)

    def read(self, values: Sequence[float], source: ContinuedPage | None) -> Reading:
        """Read the quantities from the values of a page. Raises InvalidMetric."""
        self._check(values)
        sums = [one.of(values) for one in self._sums]
        check_quantities(self._profile, sums)
        own = {name: one.of(values) for name, one in self._histograms.items()}
        histograms = own | {name: one.of(values) for name, one in self._substitutes.items()}
        classes = {name: one.counts(values) for name, one in self._classes.items()}
        if self._generation is None:
            return _reading(*sums, **histograms, classes=classes, source=source)
        tokens = self._generation.sample(values, own)  # a substitute counts no requests
        idle_s = self._generation.idle_s(values)
        return _reading(
            *sums,
            **histograms,
            generation=tokens,
            idle_seconds=idle_s,
            classes=classes,
            source=source,
        )

    def _check(self, values: Sequence[float]) -> None:
        """Check that all used values are finite and not negative."""
        if self._used and (not math.isfinite(sum(values)) or min(values) < 0.0):
            for place in self._used:
                if not 0.0 <= values[place] < math.inf:
                    name = self._layout[place].name
                    raise InvalidMetric(name, "must be finite and not negative", values[place])


def _of_model(profile: Profile, layout: Layout, model: str | None) -> list[tuple[int, Series]]:
    """Return the positions and series of the model, and of series without a model label.

    Raises InvalidMetric if a series is repeated, or if no model is named and the page has several.
    """
    if len({(one.name, *sorted(one.labels.items())) for one in layout.series}) != len(
        layout.series
    ):
        raise InvalidMetric(
            _repeated(layout.series), "must appear once with its labels", "a repetition"
        )
    label = profile.model_label
    if label is None:
        return list(enumerate(layout.series))
    wanted = model if model is not None else _only_model(profile, layout)
    return [
        (place, one)
        for place, one in enumerate(layout.series)
        if one.labels.get(label, wanted) == wanted
    ]


def _only_model(profile: Profile, layout: Layout) -> str:
    models = _models(profile, layout)
    if len(models) > 1:
        shown = ", ".join(sorted(map(repr, models))[:5])
        rule = "must have one model, unless spec.model.name names it"
        raise InvalidMetric("the page", rule, shown)
    return next(iter(models), "")


def _models(profile: Profile, layout: Layout) -> set[str]:
    """Return the models in the series of all quantities."""
    assert profile.model_label is not None
    metrics = [one for quantity in profile.quantities.values() for one in quantity]
    return {
        one.labels[profile.model_label]
        for one in layout.series
        if profile.model_label in one.labels
        and any(is_of(one, metric.name, metric.labels) for metric in metrics)
    }


def _reject_other_servers(profile: Profile, sums: Sequence[SumOfSeries], layout: Layout) -> None:
    """Raise MissingMetric if all metrics are lazy and nothing shows the kind of server."""
    (witness, *_) = sums
    if not profile.witness or witness.places or (profile.empty_until_asked and not layout.lines):
        return
    if not any(one.places for one in sums):
        raise _missing(profile, profile.witness[0].name, None, layout)


def _missing(profile: Profile, name: str, model: str | None, layout: Layout) -> MissingMetric:
    if profile.model_label is None or model is None:
        return MissingMetric(name, f"the page is not from {profile.title}, or from another version")
    others = ", ".join(sorted(map(repr, _models(profile, layout) - {model})))
    seen = f"; the page has model {others}" if others else ""
    return MissingMetric(name, f"no series with {profile.model_label}={model!r}{seen}")


def _repeated(series: Sequence[Series]) -> str:
    seen: set[tuple[object, ...]] = set()
    for one in series:
        key = (one.name, *sorted(one.labels.items()))
        if key in seen:
            return one.name
        seen.add(key)
    return ""
