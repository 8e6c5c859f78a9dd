"""The headroom model server's page of metrics → one sample. Names are the server's contract."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from headroom.scaling.values import CostModel, LatencyCounts, PodSample
from headroom.telemetry.errors import InvalidMetric, MissingMetric
from headroom.telemetry.exposition import ExpositionReader, Series

RECEIVED = "headroom_requests_received_total"
ENDED = "headroom_requests_total"
WAITING = "headroom_requests_waiting"
RUNNING = "headroom_requests_running"
LATENCY = "headroom_request_duration_seconds_bucket"
BATCHES = "headroom_execution_duration_seconds_count"
BATCH_SECONDS = "headroom_execution_duration_seconds_sum"
BATCH_ITEMS = "headroom_batch_size_sum"
MAX_BATCH = "headroom_max_batch_size"
FIXED_COST = "headroom_cost_fixed_seconds"
PER_ITEM_COST = "headroom_cost_per_item_seconds"

METRICS_PATH = "/metrics"
WANTED = frozenset(
    {
        RECEIVED,
        ENDED,
        WAITING,
        RUNNING,
        LATENCY,
        BATCHES,
        BATCH_SECONDS,
        BATCH_ITEMS,
        MAX_BATCH,
        FIXED_COST,
        PER_ITEM_COST,
    }
)
_OK = "ok"
_page = ExpositionReader(WANTED)


def read_sample(page: str, *, pod: str, model: str, time_s: float) -> PodSample:
    """Read what one pod (its UID) exposed at `time_s` about the model.

    Whatever ended otherwise than "ok" was missed. A cost model is given where the server has one.

    Raises MalformedExposition, MissingMetric or InvalidMetric; there is never half a sample.
    """
    metrics = _Metrics(_page.read(page), model)
    outcomes = metrics.by_label(ENDED, "outcome")
    if _OK not in outcomes:
        raise MissingMetric(ENDED, f'no series with outcome="{_OK}"')
    return PodSample(
        pod=pod,
        time_s=time_s,
        arrivals=metrics.number(RECEIVED),
        missed=sum(count for outcome, count in outcomes.items() if outcome != _OK),
        waiting=metrics.whole_number(WAITING),
        running=metrics.whole_number(RUNNING),
        latency=_latency(metrics.by_label(LATENCY, "le")),
        batches=metrics.number(BATCHES),
        batch_items=metrics.number(BATCH_ITEMS),
        batch_seconds=metrics.number(BATCH_SECONDS),
        cost=_cost(metrics),
    )


class _Metrics:
    """The series of one model, by metric; every value finite and not negative."""

    def __init__(self, read: Sequence[tuple[Series, float]], model: str) -> None:
        self._model = model
        self._series: dict[str, list[tuple[Series, float]]] = {}
        self._other_models: set[str] = set()
        for series, value in read:
            if series.label("model") != model:
                self._other_models.add(series.label("model"))
            elif 0.0 <= value < math.inf:
                self._series.setdefault(series.name, []).append((series, value))
            else:
                raise InvalidMetric(series.name, "is a finite number and not negative", value)

    def number(self, name: str) -> float:
        """The only series of a metric."""
        series = self._required(name)
        if len(series) != 1:
            raise InvalidMetric(name, "stands once per model", f"{len(series)} times")
        return series[0][1]

    def optional(self, name: str) -> float | None:
        """The only series of a metric that a server need not have."""
        return self.number(name) if name in self._series else None

    def whole_number(self, name: str) -> int:
        """A number of things."""
        value = self.number(name)
        if value != int(value):
            raise InvalidMetric(name, "is a whole number", value)
        return int(value)

    def by_label(self, name: str, label: str) -> Mapping[str, float]:
        """One value per value of the label."""
        series = self._required(name)
        values = {one.label(label): value for one, value in series}
        if len(values) != len(series):
            raise InvalidMetric(name, f"stands once per {label}", f"{len(series)} series")
        return values

    def _required(self, name: str) -> list[tuple[Series, float]]:
        try:
            return self._series[name]
        except KeyError:
            others = ", ".join(sorted(map(repr, self._other_models)))
            seen = f"; the page tells of model {others}" if others else ""
            raise MissingMetric(name, f"no series with model={self._model!r}{seen}") from None


def _latency(buckets: Mapping[str, float]) -> LatencyCounts:
    """Give the counts by increasing bound; they never fall."""
    bounds, order = _grid(tuple(buckets))
    given = tuple(buckets.values())
    counts = [given[place] for place in order]
    if counts != sorted(counts):
        raise InvalidMetric(LATENCY, "never falls from bound to bound", counts)
    return LatencyCounts(bounds_s=bounds, counts=tuple(counts))


@lru_cache(maxsize=64)
def _grid(labels: tuple[str, ...]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    """Read the bounds, increasing up to +Inf, and the places where they stand on the page.

    A server gives the same bounds at every scrape, so they are read once.
    """
    try:
        bounds = [float(label) for label in labels]
    except ValueError:
        raise InvalidMetric(LATENCY, "has numbers for le", labels) from None
    order = sorted(range(len(bounds)), key=bounds.__getitem__)
    ordered = tuple(bounds[place] for place in order)
    if ordered[-1] != math.inf or any(math.isnan(bound) for bound in ordered):
        raise InvalidMetric(LATENCY, "has +Inf as its last bound", labels[-1])
    if len(set(ordered)) != len(ordered):
        raise InvalidMetric(LATENCY, "has each bound once", f"{len(ordered)} bounds")
    return ordered, tuple(order)


def _cost(metrics: _Metrics) -> CostModel | None:
    """Three gauges or none; a server that has not measured yet shows a batch that costs nothing."""
    fixed, per_item = metrics.optional(FIXED_COST), metrics.optional(PER_ITEM_COST)
    if fixed is None or per_item is None or metrics.optional(MAX_BATCH) is None:
        return None
    max_batch = metrics.whole_number(MAX_BATCH)
    if max_batch < 1:
        raise InvalidMetric(MAX_BATCH, "is at least 1", max_batch)
    if fixed + per_item == 0.0:
        return None
    return CostModel(fixed_s=fixed, per_item_s=per_item, max_batch=max_batch)
