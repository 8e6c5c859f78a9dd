"""Replicas that execute batches of random duration, under the decision; some are slow or broken."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling import (
    CostModel,
    Decision,
    Observation,
    Pod,
    PodSample,
    PodState,
    Policy,
    State,
    decide,
)
from headroom.scaling.values.latency_counts import LatencyCounts

BOUNDS_S = (0.5, 1.5, math.inf)
TRUE = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
TICK_S = 2.0


@dataclass
class Replica:
    """One pod, its speed and its counters."""

    uid: str
    created_s: float
    ready_s: float
    factor: float = 1.0
    fails: bool = False
    """It takes requests and answers none."""
    lie: Callable[[PodSample], PodSample] = lambda sample: sample
    arrivals: float = 0.0
    missed: float = 0.0
    answered: float = 0.0
    within: float = 0.0
    batches: float = 0.0
    items: float = 0.0
    seconds: float = 0.0

    def ready(self, now_s: float) -> bool:
        return now_s >= self.ready_s


@dataclass
class Replicas:
    """A service whose requests are shared evenly, as behind routing that does not see load."""

    factors: tuple[float, ...]
    rate_rps: float = 20.0
    cv: float = 0.0
    seed: int = 1
    start_s: float = 30.0
    policy: Policy = field(
        default_factory=lambda: Policy(latency_target_s=1.5, max_replicas=20, min_replicas=1)
    )
    now_s: float = 1000.0
    state: State = field(default_factory=State.initial)
    replicas: list[Replica] = field(default_factory=list)
    deleted: list[tuple[float, str]] = field(default_factory=list)
    decisions: list[Decision] = field(default_factory=list)
    refuses: bool = False
    """No pod can be deleted."""
    rolling: bool = False
    stale: frozenset[str] = frozenset()
    """Pods that do not answer a scrape."""
    desired: int = 0
    serial: int = 0

    def __post_init__(self) -> None:
        self.random = np.random.default_rng(self.seed)
        for factor in self.factors:
            self.create(ready_s=0.0, factor=factor)
        self.desired = len(self.factors)

    def create(self, ready_s: float, factor: float = 1.0) -> Replica:
        one = Replica(uid=f"pod-{self.serial}", created_s=ready_s, ready_s=ready_s, factor=factor)
        self.serial += 1
        self.replicas.append(one)
        return one

    def run(self, seconds: float) -> Decision:
        for _ in range(int(seconds / TICK_S)):
            self.tick()
        return self.decisions[-1]

    def tick(self) -> None:
        self.now_s += TICK_S
        serving = [one for one in self.replicas if one.ready(self.now_s)]
        for one in serving:
            self.serve(one, self.rate_rps * TICK_S / len(serving))
        decision, self.state = decide(self.policy, self.state, self.observe())
        self.decisions.append(decision)
        self.follow(decision)

    def serve(self, one: Replica, expected: float) -> None:
        """Execute the requests of a tick in batches, as many as fit into the time."""
        came = float(self.random.poisson(expected))
        one.arrivals += came
        if one.fails:
            one.missed += came
            return
        utilization = expected / TICK_S * one.factor / TRUE.full_batch_rps
        size = max(1.0, min(4.0, 4.0 * utilization))
        mean_s = one.factor * TRUE.batch_s(size)
        batches = float(self.random.poisson(min(came / size, TICK_S / mean_s)))
        if batches:
            spread = math.log1p(self.cv**2)
            took = self.random.lognormal(-spread / 2, math.sqrt(spread), int(batches))
            one.seconds += mean_s * float(took.sum())
        one.batches += batches
        one.items += batches * size
        one.answered += batches * size
        one.within += batches * size if utilization < 1.0 else 0.0

    def observe(self) -> Observation:
        ready = [one for one in self.replicas if one.ready(self.now_s)]
        return Observation(
            now_s=self.now_s,
            current=self.desired,
            pods=tuple(self._pod(one) for one in self.replicas),
            samples=tuple(one.lie(self._sample(one)) for one in ready if one.uid not in self.stale),
            rolling=self.rolling,
        )

    def follow(self, decision: Decision) -> None:
        """Do what the workload does: replicas as desired, and a successor of a deleted pod."""
        self.desired = decision.replicas
        found = decision.replacement
        if found is not None and found.deletes and not self.refuses:
            self.deleted.append((self.now_s, found.pod))
            self.replicas = [one for one in self.replicas if one.uid != found.pod]
        while len(self.replicas) > self.desired:
            self.replicas.pop()
        while len(self.replicas) < self.desired:
            self.create(ready_s=self.now_s + self.start_s)

    def _pod(self, one: Replica) -> Pod:
        ready = one.ready(self.now_s)
        return Pod(
            uid=one.uid,
            state=PodState.READY if ready else PodState.WARMING,
            created_s=one.created_s,
            ready_s=one.ready_s if ready else None,
        )

    def _sample(self, one: Replica) -> PodSample:
        return PodSample(
            pod=one.uid,
            time_s=self.now_s,
            arrivals=one.arrivals,
            missed=one.missed,
            waiting=0,
            running=0,
            latency=LatencyCounts(bounds_s=BOUNDS_S, counts=(one.within, one.within, one.answered)),
            batches=one.batches,
            batch_items=one.items,
            batch_seconds=one.seconds,
            cost=TRUE,
        )
