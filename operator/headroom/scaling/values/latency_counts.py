"""A cumulative histogram of latencies, as servers report it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class LatencyCounts:
    """A cumulative histogram: counts[i] requests took at most bounds_s[i]; the last is +Inf."""

    bounds_s: tuple[float, ...]
    counts: tuple[float, ...]

    def __post_init__(self) -> None:
        """Raise ValueError unless both have the same length."""
        if len(self.bounds_s) != len(self.counts):
            raise ValueError(
                f"latency counts must have one count per bound; got {len(self.bounds_s)} bounds, "
                f"{len(self.counts)} counts"
            )
