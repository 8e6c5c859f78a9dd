"""Learns how many requests reach the decode pool per request that reaches the prefill pool.

It is 1 where each request passes both once. Servers that compute short prompts in the decode pool
make it more, clients that give up while they wait less. It is learned only while the prefill pool
has enough replicas: a full one passes on what it can, which says nothing of what it is sent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MEMORY_S = 600.0
"""Time constant: what an earlier mix taught is forgotten within some of these."""
SETTLED_S = 60.0
"""After a shortage the queue is passed on for a while, at more than the arrivals."""
LONGEST_STEP_S = 30.0
LEAST_REQUESTS = 50.0
"""Below so many requests on either side nothing is known: a share of 20 has an error of a fifth."""
LEAST, MOST = 0.05, 20.0
"""Outside of them the two pools do not serve the same requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passing:
    """Requests of the last minutes on both sides; older ones count less."""

    arrived: float = 0.0
    """At the prefill pool."""
    passed: float = 0.0
    """At the decode pool."""
    last_s: float | None = None
    settled_since_s: float | None = None
    """Since when the prefill pool has enough replicas; None while it has not."""

    def observe(
        self, now_s: float, arrived_rps: float | None, passed_rps: float | None, *, enough: bool
    ) -> Passing:
        """Return what is known after a tick; None for a rate that is not fresh."""
        since_s = self.settled_since_s
        if not enough or arrived_rps is None or passed_rps is None:
            return Passing(arrived=self.arrived, passed=self.passed, last_s=now_s)
        if since_s is None or self.last_s is None or now_s - self.last_s > LONGEST_STEP_S:
            return Passing(
                arrived=self.arrived, passed=self.passed, last_s=now_s, settled_since_s=now_s
            )
        arrived, passed = self.arrived, self.passed
        if now_s - since_s >= SETTLED_S:
            elapsed_s = max(0.0, now_s - self.last_s)
            kept = math.exp(-elapsed_s / MEMORY_S)
            arrived = kept * arrived + elapsed_s * arrived_rps
            passed = kept * passed + elapsed_s * passed_rps
        return Passing(arrived=arrived, passed=passed, last_s=now_s, settled_since_s=since_s)

    @property
    def share(self) -> float | None:
        """Requests passed on per arrival; None while unknown."""
        if min(self.arrived, self.passed) >= LEAST_REQUESTS:
            return self.passed / self.arrived
        if max(self.arrived, self.passed) >= MOST * LEAST_REQUESTS:
            return self.passed / self.arrived if self.arrived else math.inf
        return None

    @property
    def unrelated(self) -> bool:
        """Whether the two pools do not serve the same requests."""
        return self.share is not None and not LEAST <= self.share <= MOST
