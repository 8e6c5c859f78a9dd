"""How much one execution varies, learnt from how much each replica differs from itself.

The mean over n executions of variation v has a variation of v / sqrt(n), so two successive means of
one replica, over n and m executions, differ by v^2 (1/n + 1/m) in the square (von Neumann 1941, the
mean square successive difference). What lasts longer than an interval stands in both and cancels:
a slower replica, a size that no line fits, a cost that drifts. From residuals around one line it
would not: a replica that is 20 % slower throughout, at 60 executions an interval, would count as
60 x 0.2^2 = 2.4, and pass for a variation of 1.5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from headroom.scaling.values import CostModel
from headroom.scaling.windows.sliding_windows import BatchStats

FIRST_INTERVALS = 10
FEWEST_DIFFERENCES = 10.0
"""Before as many nothing is said."""
_NEGLIGIBLE_CV = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionVariation:
    """The mean square successive difference, fading."""

    squares: float = 0.0
    differences: float = 0.0
    intervals: int = 0
    """Heard so far; of the first ones nothing is compared, the expectation being a guess."""
    latest: Mapping[str, BatchStats] = field(default_factory=dict)
    """The last interval of each replica."""

    def observe(
        self,
        intervals: Sequence[BatchStats],
        expected: CostModel,
        fade: float,
        factors: Mapping[str, float],
    ) -> ExecutionVariation:
        """Return it with intervals added, at most one per replica; what is known fades by `fade`.

        Both means of a pair are compared with the same expectation, so that an expectation that
        moves is no difference: `expected` for the usual replica, times how slow this one is.
        """
        squares, differences = fade * self.squares, fade * self.differences
        fixed_s, per_item_s = expected.fixed_s, expected.per_item_s
        settled, latest = self.intervals >= FIRST_INTERVALS, dict(self.latest)
        for now in intervals:
            replica, batches, size, mean_s = now
            before = latest.get(replica)
            latest[replica] = now
            if before is None or not settled:
                continue
            _, fewer, other, other_s = before
            ratio = mean_s / (fixed_s + per_item_s * size)
            ratio -= other_s / (fixed_s + per_item_s * other)
            if replica in factors:
                ratio /= factors[replica]
            squares += ratio * ratio * batches * fewer / (batches + fewer)
            differences += 1.0
        heard = self.intervals + len(intervals)
        return ExecutionVariation(
            squares=squares, differences=differences, intervals=heard, latest=latest
        )

    def only(self, replicas: AbstractSet[str]) -> ExecutionVariation:
        """Return it with no other replica remembered; what they taught stays."""
        if self.latest.keys() <= replicas:
            return self
        latest = {replica: one for replica, one in self.latest.items() if replica in replicas}
        return replace(self, latest=latest)

    def fewer(self, kept: float) -> ExecutionVariation:
        """Return the same variation, known from a share of what was seen."""
        return ExecutionVariation(squares=kept * self.squares, differences=kept * self.differences)

    @property
    def known(self) -> bool:
        """Whether enough was seen to say anything."""
        return self.differences >= FEWEST_DIFFERENCES

    @property
    def cv(self) -> float:
        """The coefficient of variation of one execution; 0 while it is not known."""
        if not self.known:
            return 0.0
        cv = math.sqrt(self.squares / self.differences)
        return cv if cv > _NEGLIGIBLE_CV else 0.0
