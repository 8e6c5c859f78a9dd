"""Reports that a prefill and a decode pool exchange, as immutable values.

The prefill pool computes prompts, the decode pool generates the answers. Each is a service of its
own; its *partner* is the other one.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class PoolRole(StrEnum):
    """Role of a pool in a pair."""

    PREFILL = "Prefill"
    """Computes prompts, and passes each request on."""
    DECODE = "Decode"
    """Generates the answers of the requests that it is passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolReport:
    """Report of a pool at the end of a tick. Rates are of first tries, where known."""

    time_s: float
    fresh: bool
    """Whether its metrics are fresh: else its rates say nothing."""
    arrival_rps: float | None = None
    """None while unknown."""
    present_rps: float = 0.0
    """Present arrivals, bursts included."""
    steady_rps: float = 0.0
    """Expected when a replica requested now could serve: without noise, for utilization."""
    later_rps: float = 0.0
    """Expected then, bursts included: for latency."""
    most_rps: float = 0.0
    """The highest until a replica removed now could be back."""
    waiting: float = 0.0
    """Requests that wait for a replica; they are passed on once there are enough."""
    replica_rps: float | None = None
    """Most that one replica takes, whatever the promise; None while unknown."""
    needed: int = 0
    """Replicas that the rules need."""
    ready: int = 0
    replicas: int = 0
    """Replicas that it requests."""
    lacks_accelerators: bool = False
    """Whether it has fewer replicas than it wants because there are no accelerators for them."""
    missed: str = ""
    """The promise that it misses and more replicas would keep, as text; empty if it misses none."""

    @property
    def short(self) -> bool:
        """Whether fewer replicas serve than are needed."""
        return self.ready < self.needed

    @property
    def full(self) -> bool:
        """Whether more arrives than its ready replicas take, as far as is known."""
        return self.replica_rps is not None and self.present_rps > self.ready * self.replica_rps

    @property
    def carries_rps(self) -> float | None:
        """Highest rate of the requested replicas; None while unknown."""
        return None if self.replica_rps is None else self.replicas * self.replica_rps


@dataclass(frozen=True, slots=True, kw_only=True)
class Partner:
    """The other pool of a pair, as last seen."""

    name: str
    role: PoolRole
    """Role of the other pool."""
    report: PoolReport | None = None
    """None: nothing recent is known of it."""
    absence: str = ""
    """Reason why there is no report, as text."""
    missing: bool = False
    """Whether the service that is named does not exist."""
    unsuitable: bool = False
    """Whether there will be none: the service that is named is missing, or no such pool."""
    shares_accelerators: bool = True
    """Whether both pools draw from the same accelerators, as far as is known."""

    def __str__(self) -> str:
        """Render for people: `prefill pool chat-prefill`."""
        return f"{self.role.lower()} pool {self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairDecision:
    """Inputs that a decision uses of the partner, and the report for the partner."""

    partner: Partner
    report: PoolReport
    """For the partner."""
    passed_share: float | None = None
    """Requests that reach the decode pool per request that reaches the prefill pool, learned;
    None in a prefill pool, and while unknown."""
    unrelated: bool = False
    """Whether that share is so far from 1 that the pools do not serve the same requests."""
    announced_rps: float | None = None
    """The rate that a decode pool expects from its partner; None while it expects none."""
    held_for: str = ""
    """Reason why no replica is removed while the partner is as it is; empty if some may be."""
