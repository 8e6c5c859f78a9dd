"""A page of metrics and a profile → the quantities of one model in base units. Pure.

The position of each quantity is looked up once per page layout. A missing quantity is None; a
metric that its profile marks as lazy is zero until the server has counted something.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from weakref import WeakKeyDictionary

from headroom.profiles.values import QUANTITIES, Histogram, Label, Metric, Profile
from headroom.scaling.latency_counts import LatencyCounts
from headroom.telemetry.errors import InvalidMetric, MissingMetric, TelemetryError
from headroom.telemetry.exposition import ExpositionReader, Layout, Page, Series
from headroom.telemetry.physical_bounds import check_counts, check_quantities


@dataclass(frozen=True, slots=True)
class Reading:
    """The quantities of one page, named as in `Profile`; None if the server does not expose one."""

    witness: float | None
    arrived: float | None
    retried: float | None
    answered: float | None
    missed: float | None
    waiting: float | None
    running: float | None
    in_flight: float | None
    waiting_seconds: float | None
    running_seconds: float | None
    batches: float | None
    batch_items: float | None
    batch_seconds: float | None
    fixed_cost_s: float | None
    item_cost_s: float | None
    max_batch: float | None
    pages: float | None = None
    latency: LatencyCounts | None = None
    """None if there is no histogram, or not yet."""
    first_token: LatencyCounts | None = None
    output_token: LatencyCounts | None = None


_ANY = "\x00"
"""Placeholder for the model's name."""
_MOST_BOUNDS = 256
"""Of a histogram; servers have 10 to 60. Each is kept several times for each pod."""
_PLAIN = re.compile(r"[\w./:@+-]+", re.ASCII)
"""Names that need no escapes."""

_reading: Callable[..., Reading] = Reading  # fields are filled by the order of QUANTITIES


class ProfileReader:
    """Reads pages of servers with one profile."""

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self._pages = ExpositionReader(profile.metric_names)
        self._plans: WeakKeyDictionary[Layout, dict[str | None, _Plan]] = WeakKeyDictionary()

    def read_text(self, text: str, model: str | None) -> Reading:
        """Read a page in Prometheus' text format; see `read`.

        The model's name is replaced by a placeholder first, so that services share the layout of
        their pages. If that is ambiguous or the page is rejected, the original text is read.
        Raises MalformedExposition, too.
        """
        neutral = None if model is None else _neutral(text, self._profile.model_label, model)
        if neutral is not None:
            try:
                return self.read(self._pages.read(neutral), _ANY)
            except TelemetryError:
                pass  # the read below reports it with the page's own text
        return self.read(self._pages.read(text), model)

    def read(self, page: Page, model: str | None) -> Reading:
        """Read the quantities of the model; None reads the only model on the page.

        Raises MissingMetric or InvalidMetric.
        """
        plans = self._plans.setdefault(page.layout, {})
        plan = plans.get(model)
        if plan is None:
            plan = plans[model] = _Plan(self._profile, page.layout, model)
        return plan.read(page.values)


def _neutral(text: str, label: str | None, model: str) -> str | None:
    """Replace the model's name as the label's value by `_ANY`; None if that is ambiguous.

    Equality of series does not change: `_ANY` was not on the page, and the name is no other whole
    value afterwards.
    """
    if label is None or _ANY in text or not _PLAIN.fullmatch(model):
        return None
    for before in "{,":
        text = text.replace(f'{before}{label}="{model}"', f'{before}{label}="{_ANY}"')
    return None if f'"{model}"' in text else text


class _Plan:
    """The positions of all quantities in the values of a layout."""

    def __init__(self, profile: Profile, layout: Layout, model: str | None) -> None:
        self._profile = profile
        self._layout = layout.series
        series = _of_model(profile, layout, model)
        self._sums = [_Sum(profile, name, series, layout.lines == 0) for name in QUANTITIES]
        for one in self._sums:
            if one.lacks is not None:
                raise _missing(profile, one.lacks, model, layout)
        _reject_other_servers(profile, self._sums, layout)
        found = {
            name: _Buckets(histogram, series) for name, histogram in profile.histograms.items()
        }
        for name, histogram in profile.histograms.items():
            if not found[name] and not histogram.lazy:
                raise _missing(profile, f"{histogram.name}_bucket", model, layout)
        self._histograms = {name: one for name, one in found.items() if one}
        used = {place for one in self._sums for place, _ in one.places}
        used |= {place for one in self._histograms.values() for place in one.places}
        self._used = sorted(used)

    def read(self, values: Sequence[float]) -> Reading:
        """Raise InvalidMetric."""
        self._check(values)
        sums = [one.of(values) for one in self._sums]
        check_quantities(self._profile, sums)
        histograms = {name: one.of(values) for name, one in self._histograms.items()}
        return _reading(*sums, **histograms)

    def _check(self, values: Sequence[float]) -> None:
        """Check that all used values are finite and not negative."""
        if self._used and (not math.isfinite(sum(values)) or min(values) < 0.0):
            for place in self._used:
                if not 0.0 <= values[place] < math.inf:
                    name = self._layout[place].name
                    raise InvalidMetric(name, "must be finite and not negative", values[place])


class _Sum:
    """A quantity: the positions and scales of its series."""

    def __init__(
        self, profile: Profile, name: str, series: Sequence[tuple[int, Series]], nothing: bool
    ) -> None:
        metrics: tuple[Metric, ...] = getattr(profile, name)
        self.places: list[tuple[int, float]] = []
        self.lacks: str | None = None
        self.absent = True
        for metric in metrics:
            found = [place for place, one in series if _is(one, metric.name, metric.labels)]
            self.places += [(place, metric.scale) for place in found]
            if found or metric.lazy:
                self.absent = False
            elif not metric.optional and not (nothing and profile.empty_until_asked):
                self.lacks = metric.name
        self._only = self.places[0][0] if len(self.places) == 1 else None
        self._scale = self.places[0][1] if len(self.places) == 1 else 1.0

    def of(self, values: Sequence[float]) -> float | None:
        if self._only is not None:
            return values[self._only] * self._scale
        if self.absent:
            return None
        return sum(values[place] * scale for place, scale in self.places)


class _Buckets:
    """A histogram: the positions of its counts for each bound, in increasing order up to +Inf."""

    def __init__(self, histogram: Histogram, series: Sequence[tuple[int, Series]]) -> None:
        self._name = f"{histogram.name}_bucket"
        by_bound: dict[float, list[int]] = {}
        groups: dict[tuple[tuple[str, str], ...], set[float]] = {}
        for place, one in series:
            if not _is(one, self._name, histogram.labels):
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
        self._bounds_s = tuple(bound * histogram.scale for bound in bounds)
        self._by_bound = [by_bound[bound] for bound in bounds]
        self.places = [place for places in self._by_bound for place in places]
        self._pick = itemgetter(*self.places) if len(self.places) > 1 else None
        self._single = len(groups) == 1

    def __bool__(self) -> bool:
        return bool(self.places)

    def of(self, values: Sequence[float]) -> LatencyCounts:
        """Raise InvalidMetric if the counts decrease."""
        if self._single and self._pick is not None:
            counts = self._pick(values)
        else:
            counts = tuple(sum(values[place] for place in places) for places in self._by_bound)
        if list(counts) != sorted(counts):
            raise InvalidMetric(self._name, "must not decrease from bound to bound", list(counts))
        check_counts(self._name, counts)
        return LatencyCounts(bounds_s=self._bounds_s, counts=counts)

    def _bound(self, text: str) -> float:
        try:
            bound = float(text)
        except ValueError:
            raise InvalidMetric(self._name, "must have numbers as values of le", text) from None
        if math.isnan(bound):
            raise InvalidMetric(self._name, "must have numbers as values of le", text)
        return bound


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
        and any(_is(one, metric.name, metric.labels) for metric in metrics)
    }


def _reject_other_servers(profile: Profile, sums: Sequence[_Sum], layout: Layout) -> None:
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


def _is(series: Series, name: str, labels: Sequence[Label]) -> bool:
    return series.name == name and all(
        (re.fullmatch(label.pattern, series.label(label.name)) is not None) != label.differs
        for label in labels
    )


def _repeated(series: Sequence[Series]) -> str:
    seen: set[tuple[object, ...]] = set()
    for one in series:
        key = (one.name, *sorted(one.labels.items()))
        if key in seen:
            return one.name
        seen.add(key)
    return ""
