"""Increase of the counters of generating pods between two scrapes, as one table. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.frozen import cached_property
from headroom.scaling.generation.counters.token_table import FIRST_BUCKET, FIRST_SUM, Count
from headroom.scaling.mathematics.arrays import Vector
from headroom.scaling.mathematics.flags import any_set


@dataclass(frozen=True, kw_only=True, eq=False)
class Increase:
    """Increase of pods' counters since their last scrape; one row per pod scraped again."""

    pods: tuple[str, ...] = ()
    elapsed_s: Vector = field(default_factory=lambda: np.zeros(0))
    added: Vector = field(default_factory=lambda: np.zeros((0, FIRST_BUCKET)))
    """Increases of each pod, without the histograms where these are `summed`."""
    summed: Vector | None = None
    """The histograms, over all pods."""
    context_tokens: Vector = field(default_factory=lambda: np.zeros(0))
    """Mean of the gauge at both ends; NaN where it is not reported."""
    waiting_tokens: Vector = field(default_factory=lambda: np.zeros(0))
    """Growth of the number of waiting prompt tokens; NaN where it is not reported."""

    @cached_property
    def total(self) -> Vector:
        """The sum over pods; NaN where no pod reports a counter, and of sums of the cost."""
        total: Vector = self.added.sum(axis=0)
        if not self._alike:
            unknown = self._unknown
            partly = np.flatnonzero(unknown.any(axis=0) & ~unknown.all(axis=0))
            total[partly] = np.nansum(self.added[:, partly], axis=0)
        return total if self.summed is None else np.concatenate((total, self.summed))

    @cached_property
    def _unknown(self) -> NDArray[np.bool_]:
        return np.isnan(self.added[:, :FIRST_SUM])

    @cached_property
    def _alike(self) -> bool:
        """Whether all pods report the same counters."""
        return not (len(self.pods) and any_set(self._unknown != self._unknown[0]))

    def covers_s(self, pods: Collection[str]) -> float:
        """Return the time in which these pods counted it, on average.

        Not that since the last tick: where pages are new every 15 s only, as from a Prometheus, it
        is what 15 s have added.
        """
        return float(self.elapsed_s.sum()) / max(1, len(self.pods), len(pods))

    def reporting(self, count: Count) -> Increase:
        """Return the increase of the pods that report this counter; of all if none does."""
        if self._alike:
            return self
        known = ~self._unknown[:, count]
        return self.chosen(known) if any_set(known) else self

    def chosen(self, pods: NDArray[np.bool_]) -> Increase:
        """Return the increase of these pods, without histograms."""
        return Increase(
            pods=tuple(pod for pod, one in zip(self.pods, pods.tolist(), strict=True) if one),
            elapsed_s=self.elapsed_s[pods],
            added=self.added[pods][:, :FIRST_BUCKET],
            context_tokens=self.context_tokens[pods],
            waiting_tokens=self.waiting_tokens[pods],
        )
