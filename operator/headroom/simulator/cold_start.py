"""The cold start of a replica as a value: its phases from node assignment to readiness."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.simulator.validation import require


@dataclass(frozen=True, slots=True, kw_only=True)
class Phase:
    """One phase of a cold start: lognormal around its median; `spread` 1.2 means p84 / median."""

    name: str
    median_s: float
    spread: float = 1.0

    def __post_init__(self) -> None:
        """Raise ValueError for an impossible phase."""
        require(self.median_s >= 0, f"{self.name}: median_s must be >= 0", self.median_s)
        require(self.spread >= 1, f"{self.name}: spread must be >= 1", self.spread)


@dataclass(frozen=True, slots=True, kw_only=True)
class ColdStart:
    """The phases of a new replica between its node assignment and readiness."""

    phases: tuple[Phase, ...] = (Phase(name="warming", median_s=60.0),)

    @property
    def median_s(self) -> float:
        """Sum of the phases' medians."""
        return sum(phase.median_s for phase in self.phases)

    @classmethod
    def of(cls, seconds: float, spread: float = 1.0) -> ColdStart:
        """Return a cold start of typical proportions: 15 % pulling, 15 % starting, 70 % warming.

        `spread` is each phase's p84 over its median; 1: always the same.
        """
        return cls(
            phases=(
                Phase(name="pulling", median_s=0.15 * seconds, spread=spread),
                Phase(name="starting", median_s=0.15 * seconds, spread=spread),
                Phase(name="warming", median_s=0.70 * seconds, spread=spread),
            )
        )
