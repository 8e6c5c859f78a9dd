"""Inputs of replacements at one tick, and the replacement in progress. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from headroom.scaling.replacement.evidence import Suspicion
from headroom.scaling.values.replica_defect import Defect, ReplacementStep

USUAL_START_S = 300.0
"""A surge or a successor is waited for twice as long as a cold start; for this long if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """Inputs of replacements at one tick."""

    now_s: float
    ready: tuple[str, ...]
    current: int
    usable: bool
    """Whether the evidence counts: fresh metrics, no rollout."""
    cv: float | None
    """Variation of an execution; None while unknown."""
    may_surge: bool
    """Whether one more replica is allowed and would find a node."""
    others_carry: Callable[[float], bool]
    """Whether no more requests are late without a replica that is this slow than with it."""
    start_s: float | None
    """The measured cold start."""

    @property
    def longest_s(self) -> float:
        """Longest wait for a new replica."""
        return USUAL_START_S if self.start_s is None else max(60.0, 2.0 * self.start_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class UnderWay:
    """The replacement in progress."""

    pod: str
    defect: Defect
    step: ReplacementStep
    suspicion: Suspicion
    since_s: float
    """Start of the step."""
    until_ready: int
    """Other replicas that must be ready for the step to end."""

    @property
    def factor(self) -> float:
        """Time of an execution over that of the others; infinite where it answers nothing."""
        factor = self.suspicion.factor
        return math.inf if factor is None or self.defect is Defect.FAILING else factor
