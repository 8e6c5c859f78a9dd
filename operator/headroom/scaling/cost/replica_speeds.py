"""Learns how slow each replica is compared with the usual one: other accelerators, busy neighbours.

A slow replica under the same share of the load forms larger batches than a fast one. A line through
the pairs of both confuses speed with size: with half of the replicas 1.5 times as slow it lost
three quarters of the fixed part, and half of the capacity of a full batch. So each replica has a
factor on one line, that of the usual replica (`speed_fit`).

The factor of a replica is nearly forgotten once its recent executions contradict it, and those of
the other replicas do not. If all replicas become slower, the cost changes and no factor does.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headroom.scaling.cost.change_detection import KEPT, Recent
from headroom.scaling.cost.line_fit import NOTHING, Sums
from headroom.scaling.cost.outliers import EXTREME
from headroom.scaling.cost.speed_fit import (
    changed_replicas,
    factors_beyond_chance,
    mean_factors,
    rescaled,
)
from headroom.scaling.values.observation import CostModel
from headroom.scaling.windows.window_totals import BatchStats

HALF_LIFE_S = 300.0
RECENT_HALF_LIFE_S = 20.0
_STEP = math.log(1.05)
_ROUNDING = 1e-9
_NONE: Recent = (0.0, 0.0, 0.0)

Slow = tuple[tuple[float, int], ...]
"""(times as long as the usual replica, replicas), slowest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaSpeeds:
    """Executions of each replica, and the factors of the last fit."""

    sums: Mapping[str, Sums] = field(default_factory=dict)
    recent: Mapping[str, Recent] = field(default_factory=dict)
    """Executions of the last half minute, with the seconds that the usual replica would have
    taken."""
    factors: Mapping[str, float] = field(default_factory=dict)
    """Time of each replica over the usual replica's; their median is 1."""

    def observe(
        self,
        intervals: Iterable[BatchStats],
        expected: CostModel,
        elapsed_s: float,
        cv: float | None,
    ) -> ReplicaSpeeds:
        """Return the speeds with intervals added; a replica's past fades as new intervals arrive.

        `expected` is the cost of the usual replica. `cv` determines what chance explains; while it
        is None the factors stay unchanged.
        """
        fade = 0.5 ** (max(0.0, elapsed_s) / HALF_LIFE_S)
        recent_fade = 0.5 ** (max(0.0, elapsed_s) / RECENT_HALF_LIFE_S)
        fixed_s, per_item_s = expected.fixed_s, expected.per_item_s
        sums, recent = dict(self.sums), dict(self.recent)
        for replica, batches, size, mean_s in intervals:
            weight, sizes, squared, seconds, products = sums.get(replica, NOTHING)
            count, took_s, usual_s = recent.get(replica, _NONE)
            items, all_s = batches * size, batches * mean_s
            sums[replica] = (
                fade * weight + batches,
                fade * sizes + items,
                fade * squared + items * size,
                fade * seconds + all_s,
                fade * products + items * mean_s,
            )
            recent[replica] = (
                recent_fade * count + batches,
                recent_fade * took_s + all_s,
                recent_fade * usual_s + batches * fixed_s + items * per_item_s,
            )
        if cv is None:
            return ReplicaSpeeds(sums=sums, recent=recent, factors=self.factors)
        means = mean_factors(sums, self.factors)
        changed = changed_replicas(recent, means, cv)
        for replica, ratio in changed.items():
            known = recent.pop(replica)[0] / sums[replica][0]
            sums[replica] = rescaled(sums[replica], ratio, min(1.0, max(KEPT, known)))
            means[replica] *= ratio
        return ReplicaSpeeds(
            sums=sums, recent=recent, factors=factors_beyond_chance(means, sums, cv)
        )

    def together(self, doubted: AbstractSet[str] = frozenset()) -> Recent:
        """Return the recent executions of all replicas, with the seconds that factors predict."""
        if not self.factors and not doubted:
            columns = zip(_NONE, *self.recent.values(), strict=True)
            batches, seconds, usual_s = (float(sum(column)) for column in columns)
            return batches, seconds, usual_s
        count = took_s = expected_s = 0.0
        for one, (batches, seconds, usual_s) in self.recent.items():
            if one in doubted:
                continue
            count, took_s = count + batches, took_s + seconds
            expected_s += self.factors.get(one, 1.0) * usual_s
        return count, took_s, expected_s

    def rescaled(self, ratio: float) -> ReplicaSpeeds:
        """Return the speeds after all replicas have become slower by the same ratio."""
        sums = {one: rescaled(sums, ratio, 1.0) for one, sums in self.sums.items()}
        return ReplicaSpeeds(sums=sums, factors=self.factors)

    def mean(self, replicas: Iterable[str]) -> float:
        """Return how many times as long as the usual one these replicas take, on average."""
        known = self._factors_of(replicas)
        return sum(known) / len(known) if known else 1.0

    def pooled(self, replicas: Iterable[str]) -> float:
        """Return the same for replicas that each take as much load as they can.

        From the mean of their rates. Worked: one of five takes ten times as long: 4.1 usual ones do
        the work of five, 1.22.
        """
        known = self._factors_of(replicas)
        return len(known) / sum(1.0 / one for one in known) if known else 1.0

    def slow(self, replicas: Iterable[str]) -> Slow:
        """Return how many of these are slower than the usual one, in steps of 5 %, rounded up."""
        known = self._factors_of(replicas)
        steps = Counter(math.ceil(math.log(one) / _STEP - _ROUNDING) for one in known)
        return tuple(
            (math.exp(_STEP * step), steps[step])
            for step in sorted(steps, reverse=True)
            if step > 1
        )

    @property
    def incredible(self) -> frozenset[str]:
        """The replicas that claim to be too fast: counted as usual, without learning their cost."""
        if not self.factors or min(self.factors.values()) * EXTREME > 1.0:
            return frozenset()
        return frozenset(one for one, factor in self.factors.items() if factor * EXTREME <= 1.0)

    def _factors_of(self, replicas: Iterable[str]) -> list[float]:
        if not self.factors:
            return []
        known = [self.factors[one] for one in replicas if one in self.factors]
        return [1.0 if one * EXTREME <= 1.0 else one for one in known]

    def only(self, replicas: AbstractSet[str]) -> ReplicaSpeeds:
        """Return the speeds without other replicas."""
        if self.sums.keys() <= replicas:
            return self
        return ReplicaSpeeds(
            sums={one: sums for one, sums in self.sums.items() if one in replicas},
            recent={one: recent for one, recent in self.recent.items() if one in replicas},
            factors={one: factor for one, factor in self.factors.items() if one in replicas},
        )
