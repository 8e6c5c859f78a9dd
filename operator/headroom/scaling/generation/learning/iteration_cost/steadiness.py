"""Tells another engine from a machine that other work makes faster and slower by the minute. Pure.

What an engine took before counts for little once it has changed. A machine that is only shared
changes back, and what it takes is the mean. Worked: 30 % faster and slower, for 40 s each, at 2 to
15 % load: forgotten at every change, the learned capacity was 0.4 to 2.5 times the true one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

RECENT_S = 60.0
CHANGED = 1.15
"""The recent iterations take this many times as long as expected, or as short: the engine is
another one, and what was learned counts for little against what is seen now."""
UNSTEADY_S = 1800.0
UNUSUAL = 3.0
"""Usual deviations of a minute by which another engine differs."""
TAKEN_BACK = 2.0
"""Factor by which the next change must exceed a change that reverses the one before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Steadiness:
    """Difference of the times of iterations from their expectation."""

    recent: float = 0.0
    """Logarithm of measured over expected time, averaged over RECENT_S."""
    unsteady: float = 0.0
    """Mean square of `recent` over UNSTEADY_S; more after a change that was taken back."""
    moved: float = 0.0
    """Logarithm of the latest change; 0 before the first."""
    engine_s: float = 0.0
    """Engine seconds of the last minute: faded over RECENT_S."""

    def observe(
        self, logarithm: float, engine_s: float, elapsed_s: float
    ) -> tuple[Steadiness, float]:
        """Return it after these iterations, and the factor of a change; 1 without one.

        `logarithm` is that of their measured over their expected time, weighted by iterations;
        they took `engine_s` in the last `elapsed_s`.
        """
        elapsed_s = max(0.0, elapsed_s)
        recent = self.recent - math.expm1(-elapsed_s / RECENT_S) * (logarithm - self.recent)
        gain = -math.expm1(-elapsed_s / UNSTEADY_S)
        unsteady = self.unsteady + gain * (recent * recent - self.unsteady)
        engine_s += self.engine_s * math.exp(-elapsed_s / RECENT_S)
        if abs(recent) <= max(math.log(CHANGED), UNUSUAL * math.sqrt(unsteady)):
            same = Steadiness(recent=recent, unsteady=unsteady, moved=self.moved, engine_s=engine_s)
            return same, 1.0
        if recent * self.moved < 0.0:  # back: the same engine, at another moment
            unsteady = max(unsteady, (TAKEN_BACK * recent / UNUSUAL) ** 2)
        return Steadiness(unsteady=unsteady, moved=recent, engine_s=engine_s), math.exp(recent)

    @property
    def noise_s(self) -> float:
        """Square of an error of one deviation in seconds: that of one or two minutes together.

        0 for an engine that is steadier than what shows another one.
        """
        usual = (math.log(CHANGED) / UNUSUAL) ** 2
        return max(0.0, self.unsteady - usual) * 2.0 * self.engine_s
