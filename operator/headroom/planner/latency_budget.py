"""A latency budget over sequential stages, and the gain of a faster stage.

Amdahl 1967: the parts that do not become faster bound the total.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.planner.errors import positive, require, share

_STAGES = "Give stages as name=time"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One stage and its present latency, at the percentile of the budget."""

    name: str
    latency_s: float

    def __post_init__(self) -> None:
        """Raise ImpossiblePlan for a stage that takes no time."""
        positive(f"the time of stage {self.name!r}", self.latency_s, _STAGES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One stage in the budget."""

    stage: Stage
    share: float
    """Share of the total latency."""
    allowance_s: float
    """The target in proportion to the shares."""
    percentile: float
    """The percentile of the stage with which the misses of all stages stay within the budget."""
    twice_as_fast_s: float
    """The total, if only this stage were twice as fast."""
    best_s: float
    """The total, if this stage took no time: Amdahl's bound."""
    needed_speedup: float | None
    """The speed-up of this stage alone that meets the target; None if none does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The stages compared with the target."""

    target_s: float
    total_s: float
    lines: tuple[Line, ...]

    @property
    def bottleneck(self) -> Line:
        """Return the slowest stage, where a speed-up gains most."""
        return max(self.lines, key=lambda line: line.stage.latency_s)

    @property
    def kept(self) -> bool:
        """Return whether the total is within the target."""
        return self.total_s <= self.target_s


def amdahl(sped_up_share: float, factor: float) -> float:
    """Return the speed-up of the total when a share of it becomes `factor` times as fast.

    Worked: 70 % at 2x gives 1 / (0.3 + 0.35) = 1.54; at 10x 2.7; without end 3.33.
    """
    require(
        0 <= sped_up_share <= 1,
        "the share must be between 0 and 1",
        f"{sped_up_share:g}",
        "0.7 is 70 %",
    )
    require(factor >= 1, "a speed-up must be at least 1", f"{factor:g}", "2 is twice as fast")
    return 1.0 / ((1.0 - sped_up_share) + sped_up_share / factor)


def budget(stages: Sequence[Stage], target_s: float, percentile: float = 0.95) -> Budget:
    """Divide the target among the stages in proportion to their latencies.

    The sum of percentiles overstates the total unless stages are slow together, so the budget is on
    the safe side. Misses add up at most (Boole): each stage gets an equal part of 1 - percentile.
    """
    require(bool(stages), "a budget must have at least 1 stage", "none", _STAGES)
    positive("the target", target_s, "Give the total latency")
    share("the percentile", percentile, "Give one such as 0.95")
    total_s = sum(stage.latency_s for stage in stages)
    return Budget(
        target_s=target_s,
        total_s=total_s,
        lines=tuple(_line(one, total_s, target_s, percentile, len(stages)) for one in stages),
    )


def _line(stage: Stage, total_s: float, target_s: float, percentile: float, count: int) -> Line:
    part = stage.latency_s / total_s
    others_s = total_s - stage.latency_s
    room_s = target_s - others_s
    return Line(
        stage=stage,
        share=part,
        allowance_s=part * target_s,
        percentile=1.0 - (1.0 - percentile) / count,
        twice_as_fast_s=total_s / amdahl(part, 2.0),
        best_s=others_s,
        needed_speedup=max(1.0, stage.latency_s / room_s) if room_s > 0 else None,
    )
