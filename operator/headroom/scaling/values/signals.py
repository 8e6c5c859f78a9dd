"""The quantities that the decision depends on, each with its freshness. Missing is not zero."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Freshness(StrEnum):
    """Whether a signal is recent, too old, or missing. Missing is not zero."""

    FRESH = "Fresh"
    """Recent enough to remove replicas."""
    STALE = "Stale"
    """Too old to remove replicas."""
    MISSING = "Missing"
    """No value is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One quantity that the decision depends on; `value` is None exactly if it is missing."""

    freshness: Freshness
    value: float | None = None
    age_s: float | None = None

    def __post_init__(self) -> None:
        """Raise ValueError for a missing signal with a value, and for any other without one."""
        if (self.value is None) != (self.freshness is Freshness.MISSING):
            raise ValueError(
                "a signal must have a value unless it is missing; "
                f"got {self.freshness}, {self.value}"
            )

    @property
    def fresh(self) -> bool:
        """Whether a scale-down may rely on it."""
        return self.freshness is Freshness.FRESH


MISSING = Signal(freshness=Freshness.MISSING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signals:
    """The signals of all pods of the service, computed from the sliding windows."""

    arrival_rps: Signal = MISSING
    waiting: Signal = MISSING
    standing_queue: Signal = MISSING
    """Requests waiting throughout the shortest burst window: the replicas do not work them off."""
    in_flight: Signal = MISSING
    latency_s: Signal = MISSING
    """The target percentile in the stable window, misses as +Inf; missing without traffic."""
    undecided_s: tuple[float, float] | None = None
    """Bounds of a wide bucket in which both that percentile and its target lie; None: no such."""
    attainment: Signal = MISSING
    """Share of the stable window's requests answered within the target; missing without traffic."""
    coverage: float = 0.0
    """Share of the ready pods that have a fresh sample."""

    @property
    def freshness(self) -> Freshness:
        """The worst freshness of the signals that a removal depends on."""
        order = (Freshness.MISSING, Freshness.STALE, Freshness.FRESH)
        return min((self.arrival_rps.freshness, self.waiting.freshness), key=order.index)
