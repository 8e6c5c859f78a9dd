"""Positions of the quantities of generation in the layout of a page. Pure.

What is constant for a layout, such as the size of the KV memory in a label, is read once for it.
A page without any of the metrics has no positions, and costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

from headroom.profiles.generation import (
    COUNTED,
    GAUGES,
    GENERATION_QUANTITIES,
    CostMetrics,
    GenerationMetrics,
    InfoLabels,
)
from headroom.profiles.quantities import Histogram
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.tokens import CostSums, EngineLimits, GenerationSample, TokenCounts
from headroom.telemetry.bounds.generation_bounds import check_cost, check_generation, check_limits
from headroom.telemetry.pages.exposition import Series
from headroom.telemetry.pages.positions import Buckets, SumOfSeries, is_of

_sample: Callable[..., GenerationSample] = GenerationSample  # fields are filled by their names
_Found = Sequence[tuple[int, Series]]
_WHOLE = re.compile(r"[0-9]{1,15}", re.ASCII)


def positions_of(metrics: GenerationMetrics | None, series: _Found) -> GenerationPositions | None:
    """Return the positions of all quantities; None if the page has none."""
    if metrics is None:
        return None
    found = GenerationPositions(metrics, series)
    return found if found.counts else None


class GenerationPositions:
    """Reads the sample of one layout."""

    def __init__(self, metrics: GenerationMetrics, series: _Found) -> None:
        self._metrics = metrics
        sums = {name: SumOfSeries(getattr(metrics, name), series) for name in GENERATION_QUANTITIES}
        self._sums = {name: one for name, one in sums.items() if one.places and one.lacks is None}
        self._lengths = {
            name: TokenLengths(histogram, series)
            for name, histogram in (
                ("prompt_lengths", metrics.prompt_lengths),
                ("output_lengths", metrics.output_lengths),
            )
            if histogram is not None
        }
        self._lengths = {name: one for name, one in self._lengths.items() if one.places}
        self._cost = _cost_places(metrics.cost, series)
        self._kv_tokens = _stated_tokens(metrics.kv_info, series)
        self.counts = self._cost is not None or not self._sums.keys().isdisjoint(COUNTED)
        """Whether the page counts any work; bounds alone say nothing."""
        self.places = {place for one in self._sums.values() for place, _ in one.places}
        for lengths in self._lengths.values():
            self.places |= lengths.places
        for places in self._cost or ():
            self.places.update(*places)

    def sample(
        self, values: Sequence[float], latencies: Mapping[str, LatencyCounts]
    ) -> GenerationSample:
        """Return the sample of one page; raise InvalidMetric for what no engine can report."""
        found = {name: one.of(values) for name, one in self._sums.items()}
        if "kv_share" in found:
            share = self._sums["kv_share"]
            found["kv_share"] = (found["kv_share"] or 0.0) / len(share.places)
        check_generation(self._metrics, found)
        cost = self._cost_sums(values)
        known = {name: found.get(name) for name in (*COUNTED, *GAUGES)}
        if cost is not None:
            # The first feature is 1: its square counts iterations, and its product their seconds.
            known["iterations"] = cost.xx[0]
            known["engine_seconds"] = cost.xy[0]
        return _sample(
            **known,
            cost_sums=cost,
            kv_used_share=_share(found),
            limits=self._limits(found),
            **{name: one.of(values) for name, one in self._lengths.items()},
            first_token=latencies.get("first_token"),
            output_token=latencies.get("output_token"),
        )

    def idle_s(self, values: Sequence[float]) -> float | None:
        """Return the seconds in which the engine had no work, where the server counts them."""
        idle = self._sums.get("idle_seconds")
        return None if idle is None else idle.of(values)

    def _limits(self, found: Mapping[str, float | None]) -> EngineLimits:
        """Return the bounds of the engine; a bound of 0 is one that is not known yet."""
        kv_all, size = found.get("kv_all"), found.get("kv_block_tokens")
        tokens = self._kv_tokens
        if kv_all and (size or not self._metrics.kv_block_tokens):
            tokens = kv_all * (size or 1.0)
        check_limits(self._metrics, tokens)
        return EngineLimits(
            kv_tokens=tokens,
            sequences=int(found.get("sequences") or 0) or None,
            iteration_tokens=int(found.get("iteration_tokens") or 0) or None,
        )

    def _cost_sums(self, values: Sequence[float]) -> CostSums | None:
        if self._cost is None or self._metrics.cost is None:
            return None
        xx, xy = (
            tuple(sum(values[place] for place in places) for places in part) for part in self._cost
        )
        check_cost(self._metrics.cost, xx, xy)
        return CostSums(xx=xx, xy=xy)


class TokenLengths:
    """A histogram of lengths: the positions of its counts and of its sum."""

    def __init__(self, histogram: Histogram, series: _Found) -> None:
        self._buckets = Buckets(histogram, series)
        name = f"{histogram.name}_sum"
        self._sum = [place for place, one in series if is_of(one, name, histogram.labels)]
        self.places = {*self._buckets.places, *self._sum} if self._sum else set()

    def of(self, values: Sequence[float]) -> TokenCounts:
        """Raise InvalidMetric if the counts decrease."""
        return TokenCounts(
            bounds=self._buckets.bounds,
            counts=self._buckets.counts(values),
            total=sum(values[place] for place in self._sum),
        )


_Places = tuple[tuple[int, ...], ...]


def _cost_places(cost: CostMetrics | None, series: _Found) -> tuple[_Places, _Places] | None:
    """Return the positions of each product, of all engines of a server; None if one is missing."""
    if cost is None:
        return None
    size = len(cost.features)
    pairs = [(row, column) for row in range(size) for column in range(row, size)]
    named = {
        (cost.features[row], cost.features[column]): number
        for number, (row, column) in enumerate(pairs)
    }
    xx: list[list[int]] = [[] for _ in pairs]
    xy: list[list[int]] = [[] for _ in cost.features]
    for place, one in series:
        row = one.label(cost.row)
        if one.name == cost.xx and (row, one.label(cost.column)) in named:
            xx[named[row, one.label(cost.column)]].append(place)
        elif one.name == cost.xy and row in cost.features:
            xy[cost.features.index(row)].append(place)
    if not all(xx) or not all(xy):
        return None
    return tuple(map(tuple, xx)), tuple(map(tuple, xy))


def _stated_tokens(info: InfoLabels | None, series: _Found) -> float | None:
    """Return the tokens that labels state, summed over the engines of a server."""
    if info is None:
        return None
    tokens = [_tokens_of(info, one) for _, one in series if one.name == info.metric]
    known = [one for one in tokens if one]
    return float(sum(known)) if known and len(known) == len(tokens) else None


def _tokens_of(info: InfoLabels, series: Series) -> int | None:
    stated, blocks, size = (
        int(text) if _WHOLE.fullmatch(text) else None
        for text in map(series.label, (info.tokens, info.blocks, info.block_tokens))
    )
    return stated if stated is not None or not blocks or not size else blocks * size


def _share(found: Mapping[str, float | None]) -> float | None:
    used, whole = found.get("kv_used"), found.get("kv_all")
    if used is not None and whole:
        return used / whole
    return found.get("kv_share")
