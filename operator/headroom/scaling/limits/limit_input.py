"""Inputs of the limits, and the history that they share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from headroom.scaling.limits.cold_start import ColdStarts
from headroom.scaling.limits.flaps import Flaps
from headroom.scaling.limits.stabilization import Coverage, SlidingExtreme
from headroom.scaling.values.decision import LimitApplied, ReplicaCounts
from headroom.scaling.values.observation import Observation
from headroom.scaling.values.policy import Policy, RateLimit
from headroom.scaling.values.signals import Signals

Limited = tuple[int, tuple[LimitApplied, ...]]
"""The number, and the limits that changed it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DesiredReplicas:
    """Replicas that the rules need, before any limit."""

    replicas: int
    by_arrivals: int
    """The part that follows from arrivals alone, without queues."""
    by_ceiling: int
    """N_util: upward limits do not go below it."""


class LimitHistory(Protocol):
    """The part of the state that limits depend on."""

    @property
    def desired_low(self) -> SlidingExtreme:
        """The fewest desired replicas within the scale-up window."""

    @property
    def needed_high(self) -> SlidingExtreme:
        """The most needed replicas within the scale-down window."""

    @property
    def arrivals_high(self) -> SlidingExtreme:
        """The most replicas that arrivals needed within the longest hold."""

    @property
    def coverage(self) -> Coverage:
        """Period for which the inputs of a removal are known without a gap."""

    @property
    def flaps(self) -> Flaps:
        """The flaps of the last hour."""

    @property
    def cold_starts(self) -> ColdStarts:
        """The measured cold starts."""

    @property
    def changes(self) -> tuple[tuple[float, int], ...]:
        """(time, requested replicas) at each change, oldest first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitInput:
    """Everything that the limits depend on."""

    policy: Policy
    state: LimitHistory
    observation: Observation
    signals: Signals
    counts: ReplicaCounts
    desired: DesiredReplicas
    known: bool
    """Whether the cost of a request is known: without it no number is known to be too high."""
    now_s: float
    kept_because: str = ""
    """Reason why a removal leaves more than desired, if not by the usual margin."""
    pinned: bool = False
    """Whether connections stay with their replicas: one that is added again would stay idle."""
    no_effect: bool = False
    """Whether earlier growth has not helped."""
    most_useful: int | None = None
    """More replicas than this would only wait: not even the ceiling asks for them."""
    held_for: str = ""
    """Reason why the other pool of a pair allows no removal; empty if it does, or there is none."""
    contradicted: bool = False
    """Whether the other replicas contradict the samples of one."""


def step_of(rate: RateLimit, start: int) -> int:
    """Return the largest change that a rate allows from a number of replicas."""
    return max(rate.replicas, math.ceil(start * rate.percent / 100))


def replicas_at(limit_input: LimitInput, ago_s: float) -> int:
    """Return the replicas requested this long ago; the oldest known if the history is shorter."""
    replicas = limit_input.state.changes[0][1] if limit_input.state.changes else None
    for time_s, value in limit_input.state.changes:
        if time_s <= limit_input.now_s - ago_s:
            replicas = value
    return limit_input.observation.current if replicas is None else replicas
