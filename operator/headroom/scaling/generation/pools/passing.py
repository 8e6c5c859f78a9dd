"""Learns how many requests reach the decode pool per request that reaches the prefill pool.

It is 1 where each request passes both once. Servers that compute short prompts in the decode pool
make it more, clients that give up while they wait less. It is learned only while the prefill pool
has enough replicas: a full one passes on what it can, which says nothing of what it is sent. So it
survives a restart: an operator that begins during a surge would have no time to learn it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.forecast.rate_history import WINDOW_S
from headroom.scaling.frozen import replace
from headroom.scaling.values.checkpoint_numbers import MOST_COUNTED, Checkpoint, numbers_of, short
from headroom.scaling.values.partner import PoolReport

MEMORY_S = 600.0
"""Time constant: what an earlier mix taught is forgotten within some of these."""
SETTLED_S = 60.0
"""After a shortage the queue is passed on for a while, at more than the arrivals."""
LONGEST_STEP_S = 30.0
QUEUED_S = 5.0
"""A queue that all prefill replicas together take longer for is passed on later, as a surge."""
RELEASED_S = 60.0
"""A queue at the prefill pool is passed on within about this time once it has enough replicas."""
LEAST_REQUESTS = 50.0
"""Below this many requests on either side nothing is known: a share of 20 has an error of a
fifth."""
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
    queued_s: float = -math.inf
    """Time when the prefill pool last had a queue."""

    def to_checkpoint(self) -> dict[str, object]:
        """Return the checkpoint of both counts as JSON values; nothing outside of a decode pool."""
        counted = [short(min(MOST_COUNTED, number)) for number in (self.arrived, self.passed)]
        return {"passing": counted} if any(counted) else {}

    @classmethod
    def from_checkpoint(cls, checkpoint: Checkpoint) -> Passing:
        """Return the counts that `to_checkpoint` saved; an older checkpoint has none.

        Raise ValueError with rule and value.
        """
        if "passing" not in checkpoint:
            return cls()
        numbers = numbers_of(checkpoint, "passing")
        if len(numbers) != 2 or max(numbers) > MOST_COUNTED:
            rule = f"requests that arrived and were passed on, <= {MOST_COUNTED:g}"
            raise ValueError(f"checkpoint passing must hold {rule}; got {numbers}")
        return cls(arrived=numbers[0], passed=numbers[1])

    def observe(self, now_s: float, report: PoolReport | None, passed_rps: float | None) -> Passing:
        """Return the counts after a tick; None: no fresh report, no fresh rate."""
        if report is None or not report.fresh:
            return replace(self, last_s=now_s, settled_since_s=None)
        queued_s = now_s if _queues(report) else self.queued_s
        if report.short or report.arrival_rps is None or passed_rps is None:
            return replace(self, last_s=now_s, settled_since_s=None, queued_s=queued_s)
        since_s, last_s = self.settled_since_s, self.last_s
        if since_s is None or last_s is None or now_s - last_s > LONGEST_STEP_S:
            return replace(self, last_s=now_s, settled_since_s=now_s, queued_s=queued_s)
        arrived, passed = self.arrived, self.passed
        if now_s - since_s >= SETTLED_S:
            elapsed_s = max(0.0, now_s - last_s)
            kept = math.exp(-elapsed_s / MEMORY_S)
            arrived = kept * arrived + elapsed_s * report.arrival_rps
            passed = kept * passed + elapsed_s * passed_rps
        return replace(self, arrived=arrived, passed=passed, last_s=now_s, queued_s=queued_s)

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

    def releases(self, now_s: float) -> bool:
        """Return whether present arrivals at the decode pool may be a queue that is passed on."""
        return now_s - self.queued_s <= RELEASED_S + WINDOW_S


def _queues(report: PoolReport) -> bool:
    return report.carries_rps is not None and report.waiting > QUEUED_S * report.carries_rps
