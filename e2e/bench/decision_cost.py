"""Times `decide()` in a process of its own; prints one JSON object of milliseconds.

As in production: the collector of garbage is set as the operator sets it, each pod is scraped at an
instant of its own, and its counters grow by chance. Fleets of several sizes are evaluated in turn,
at the end of full windows, with what a scrape of the model server holds: 80 latency bounds per pod.
CPU time is counted, so that other work on the machine does not show.
"""

from __future__ import annotations

import json
import statistics
import sys
import time
from dataclasses import dataclass, field, replace

import numpy as np

from bench.random_pods import BatchingPod, Chance, GeneratingPod, RandomPod
from headroom.cli.compose.process_setup import configure_memory
from headroom.scaling import CostModel, Observation, Pod, PodState, Policy, State, decide
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.tokens import Target, TokenTargets

SIZES = (3, 12, 50, 1000)
BATCHES = (4, 8, 32, 64)
TICK_S = 2.0
SCRAPED_WITHIN_S = 0.15
"""Before a decision: the pages of 50 pods arrive one after another."""
WINDOW_TICKS = 20
"""Fills the stable window of 30 s before anything is timed."""
TIMED_TICKS = 25
SEED = 7
SHARES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7)
"""Fixed shares of a full batch's time: each asks for a latency curve that is not known yet."""
TARGETS = TokenTargets(
    first_token=Target(percentile=0.95, seconds=2.0),
    output_token=Target(percentile=0.95, seconds=0.06),
)


@dataclass(slots=True)
class Fleet:
    """A service at even load: this many pods, all ready."""

    size: int
    generates: bool = False
    now_s: float = 10_000.0
    state: State = field(default_factory=State.initial)
    times_ms: list[float] = field(default_factory=list)
    chance: Chance = field(default_factory=lambda: np.random.default_rng(SEED))
    pods: tuple[Pod, ...] = field(init=False)
    counted: tuple[RandomPod, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Start the pods."""
        uids = [f"pod-{number:04}" for number in range(self.size)]
        of = GeneratingPod if self.generates else BatchingPod
        self.counted = tuple(of(uid, self.now_s) for uid in uids)
        self.pods = tuple(
            Pod(uid=uid, state=PodState.READY, created_s=0.0, ready_s=10.0) for uid in uids
        )

    def tick(self) -> None:
        """Evaluate once and note what it took."""
        self.now_s += TICK_S
        policy = Policy(latency_target_s=1.5, max_replicas=2 * self.size)
        if self.generates:
            policy = replace(policy, latency_target_s=60.0, token_targets=TARGETS)
        observation = self._observe()
        began_s = time.process_time()
        _, self.state = decide(policy, self.state, observation)
        self.times_ms.append(1000 * (time.process_time() - began_s))

    def _observe(self) -> Observation:
        ago_s = self.chance.uniform(0.0, SCRAPED_WITHIN_S, self.size).tolist()
        return Observation(
            now_s=self.now_s,
            current=self.size,
            pods=self.pods,
            samples=tuple(
                pod.scraped(self.now_s - before_s, self.chance)
                for pod, before_s in zip(self.counted, ago_s, strict=True)
            ),
        )


def decisions_ms(*, generates: bool = False) -> dict[int, float]:
    """Median of a call, by the number of pods."""
    fleets = [Fleet(size, generates) for size in SIZES]
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
    configure_memory()
    json.dump(
        {
            "decisions": decisions_ms(),
            "generating": decisions_ms(generates=True),
            "curves": curves_ms(),
        },
        sys.stdout,
    )
