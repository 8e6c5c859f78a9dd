"""One peak: a rise of the rate that stood out, until half of it was gone. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.frozen import replace

LEAST_DISTANCE_S = 120.0
"""Between two peaks."""
LONGEST_S = 600.0
"""A longer rise is the new load, not a peak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Peak:
    """A significant rise, until half of it was gone."""

    began_s: float
    before_rps: float
    peak_rps: float
    """The largest rate of the stable window during the peak."""
    burst_rps: float = 0.0
    """The largest rate of a burst window."""
    over: bool = False
    short: bool = False
    """Whether it was over before it had filled the stable window twice."""

    def update(self, now_s: float, rate_rps: float, burst_rps: float, window_s: float) -> Peak:
        """Return the peak with this instant added, or marked as over."""
        peak_rps, length_s = max(self.peak_rps, rate_rps), now_s - self.began_s
        burst_rps = max(self.burst_rps, burst_rps)
        fallen = length_s > 2 * window_s and rate_rps < (self.before_rps + peak_rps) / 2
        if fallen or length_s > LONGEST_S:
            short = length_s < 2.5 * window_s
            return replace(self, peak_rps=peak_rps, burst_rps=burst_rps, over=True, short=short)
        if (peak_rps, burst_rps) == (self.peak_rps, self.burst_rps):
            return self
        return replace(self, peak_rps=peak_rps, burst_rps=burst_rps)

    @property
    def size_rps(self) -> float:
        """The rate that replicas must carry: a short peak never fills the stable window."""
        return max(self.peak_rps, self.burst_rps) if self.short else self.peak_rps
