"""Learns by which factor measured latency exceeds the modelled one, under stationary conditions.

factor = measured / modelled percentile, averaged in logarithms with a time constant of minutes. The
decision uses target / factor as its target. It is learned only while the model says that the ready
replicas suffice, and has said so for long enough: the backlog of a surge is not an error of the
model, and a replica that has just become ready has not changed the measurement yet.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

SMALLEST, LARGEST = 0.6, 4.0
"""Bounds of the factor, and of the measurement of one window."""
DEAD_BAND = 0.1
"""A factor within 10 % of 1 is not applied."""
FULL_WEIGHT_REQUESTS = 200.0
"""A window with fewer requests has less weight: the 95th percentile of 200 is the tenth largest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """The averaged logarithm of measured over modelled latency, and how long it was learned."""

    logarithm: float = 0.0
    learned_s: float = 0.0

    @property
    def factor(self) -> float:
        """The factor on the modelled latency; 1 within the dead band."""
        factor = math.exp(self.logarithm)
        return 1.0 if abs(self.logarithm) <= math.log1p(DEAD_BAND) else factor

    def observe(
        self,
        measured_s: float,
        modelled_s: float,
        *,
        requests: float,
        elapsed_s: float,
        constant_s: float,
    ) -> Correction:
        """Return the correction after `elapsed_s` in which the window showed these latencies."""
        if not modelled_s > 0 or not math.isfinite(modelled_s):
            return self
        ratio = min(LARGEST, max(SMALLEST, measured_s / modelled_s))
        weight = min(1.0, requests / FULL_WEIGHT_REQUESTS)
        gain = -math.expm1(-elapsed_s * weight / constant_s)
        return Correction(
            logarithm=self.logarithm + gain * (math.log(ratio) - self.logarithm),
            learned_s=self.learned_s + elapsed_s,
        )
