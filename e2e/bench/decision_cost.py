"""Times `decide()` in a process of its own; prints one JSON object of milliseconds.

Fleets of several sizes are evaluated in turn, at the end of full windows, with what a scrape of the
model server holds: 80 latency bounds per pod. CPU time is counted, so that other work on the
machine does not show.
"""

from __future__ import annotations

import json
import math
import statistics
import sys
import time
from dataclasses import dataclass, field

from headroom.scaling import (
    CostModel,
    Observation,
    Pod,
    PodSample,
    PodState,
    Policy,
    State,
    decide,
)
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.latency_counts import LatencyCounts

SIZES = (3, 12, 50, 1000)
BATCHES = (4, 8, 32, 64)
TICK_S = 2.0
WINDOW_TICKS = 20
"""Fills the stable window of 30 s before anything is timed."""
TIMED_TICKS = 25
UTILIZATION = 0.6
COST = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)
BATCH_ITEMS = 2.0
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Fixed shares of a full batch's time: each asks for a latency curve that is not known yet."""


@dataclass(slots=True)
class Fleet:
    """A service at even load: so many pods, all ready, whose counters grow with time."""

    size: int
    now_s: float = 10_000.0
    state: State = field(default_factory=State.initial)
    times_ms: list[float] = field(default_factory=list)

    def tick(self) -> None:
        """Evaluate once and note what it took."""
        self.now_s += TICK_S
        policy = Policy(latency_target_s=1.5, max_replicas=2 * self.size)
        observation = self._observe()
        began_s = time.process_time()
        _, self.state = decide(policy, self.state, observation)
        self.times_ms.append(1000 * (time.process_time() - began_s))

    def _observe(self) -> Observation:
        uids = [f"pod-{number:04}" for number in range(self.size)]
        return Observation(
            now_s=self.now_s,
            current=self.size,
            pods=tuple(
                Pod(uid=uid, state=PodState.READY, created_s=0.0, ready_s=10.0) for uid in uids
            ),
            samples=tuple(self._sample(uid) for uid in uids),
        )

    def _sample(self, uid: str) -> PodSample:
        arrivals = UTILIZATION * COST.full_batch_rps * self.now_s
        batches = arrivals / BATCH_ITEMS
        return PodSample(
            pod=uid,
            time_s=self.now_s,
            arrivals=arrivals,
            missed=0.0,
            waiting=1,
            running=2,
            latency=LatencyCounts(
                bounds_s=BOUNDS_S,
                counts=tuple(arrivals * -math.expm1(-3.0 * bound_s) for bound_s in BOUNDS_S),
            ),
            batches=batches,
            batch_items=arrivals,
            batch_seconds=batches * COST.batch_s(BATCH_ITEMS),
            cost=COST,
        )


def decisions_ms() -> dict[int, float]:
    """Median of a call, by the number of pods."""
    fleets = [Fleet(size) for size in SIZES]
    for _ in range(WINDOW_TICKS + TIMED_TICKS):
        for fleet in fleets:
            fleet.tick()
    return {fleet.size: statistics.median(fleet.times_ms[WINDOW_TICKS:]) for fleet in fleets}


def curves_ms() -> dict[int, float]:
    """Median cost of a latency curve that is new, by the largest batch."""
    return {
        batch: statistics.median(_curve_ms(batch, share) for share in SHARES) for batch in BATCHES
    }


def _curve_ms(max_batch: int, share: float) -> float:
    cost = CostModel(fixed_s=share, per_item_s=(1 - share) / max_batch, max_batch=max_batch)
    began_s = time.process_time()
    TailLatency(cost=cost, percentile=0.95).capacity_rps(3.0, 1)
    return 1000 * (time.process_time() - began_s)


if __name__ == "__main__":
    json.dump({"decisions": decisions_ms(), "curves": curves_ms()}, sys.stdout)
