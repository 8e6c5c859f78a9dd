"""Builders for the decision's inputs, and a small plant that closes the loop around `decide`."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

from headroom.scaling import (
    Allocation,
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
from headroom.scaling.windows.sliding_windows import Windows

BOUNDS_S = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, math.inf)
COST = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
"""Full batches: 4 / 0.39 s = 10.26 requests per second per replica."""


def policy(**changes: object) -> Policy:
    base = Policy(latency_target_s=1.5, max_replicas=20, scale_down_stabilization_s=60.0)
    return replace(base, **changes)  # type: ignore[arg-type]


def ready_pod(uid: str, *, created_s: float = 0.0, ready_s: float | None = None) -> Pod:
    return Pod(
        uid=uid,
        state=PodState.READY,
        created_s=created_s,
        ready_s=created_s if ready_s is None else ready_s,
    )


def served_sample(
    pod: str,
    time_s: float,
    served: float,
    *,
    waiting: int = 0,
    batch_s: float = 0.21,
    cost: CostModel = COST,
) -> PodSample:
    """Return a scrape of a pod that served each request alone, within half a second."""
    return PodSample(
        pod=pod,
        time_s=time_s,
        arrivals=served,
        missed=0.0,
        waiting=waiting,
        running=1,
        latency=LatencyCounts(bounds_s=(0.5, math.inf), counts=(served, served)),
        batches=served,
        batch_items=served,
        batch_seconds=batch_s * served,
        cost=cost,
    )


def sample(
    pod: str,
    time_s: float,
    arrivals: float,
    *,
    waiting: int = 0,
    running: int = 0,
    missed: float = 0.0,
    counts: tuple[float, ...] | None = None,
    cost: CostModel | None = COST,
    batches: tuple[float, float, float] = (0.0, 0.0, 0.0),
) -> PodSample:
    """One scrape; every answered request took between 0.25 and 0.5 s unless `counts` says else."""
    if counts is None:
        answered = max(0.0, arrivals - missed - waiting - running)
        counts = (0.0, 0.0, *(answered for _ in BOUNDS_S[2:]))
    return PodSample(
        pod=pod,
        time_s=time_s,
        arrivals=arrivals,
        missed=missed,
        waiting=waiting,
        running=running,
        latency=LatencyCounts(bounds_s=BOUNDS_S, counts=counts),
        batches=batches[0],
        batch_items=batches[1],
        batch_seconds=batches[2],
        cost=cost,
    )


@dataclass
class Service:
    """A fluid service under the decision: rates split evenly, counters as the server has them."""

    rate_rps: float
    replicas: int = 1
    policy: Policy = field(default_factory=policy)
    tick_s: float = 2.0
    load_s: float = 5.0
    now_s: float = 1000.0
    gpus: int = 100
    scrape: bool = True
    rolling: bool = False
    allocation: Allocation | None = None
    state: State = field(default_factory=State.initial)
    born: dict[str, float] = field(default_factory=dict)
    arrived: dict[str, float] = field(default_factory=dict)
    waiting: dict[str, float] = field(default_factory=dict)
    answered: dict[str, float] = field(default_factory=dict)
    decisions: list[Decision] = field(default_factory=list)
    serial: int = 0

    def __post_init__(self) -> None:
        for _ in range(self.replicas):
            self._create(born_s=self.now_s - 1000.0)

    def _create(self, born_s: float) -> None:
        uid = f"pod-{self.serial}"
        self.serial += 1
        self.born[uid] = born_s

    def ready(self) -> list[str]:
        scheduled = list(self.born)[: self.gpus]
        return [uid for uid in scheduled if self.now_s - self.born[uid] >= self.load_s]

    def pods(self) -> tuple[Pod, ...]:
        ready, scheduled = self.ready(), list(self.born)[: self.gpus]
        pods = []
        for uid, born_s in self.born.items():
            state = PodState.READY if uid in ready else PodState.WARMING
            if uid not in scheduled:
                state = PodState.UNSCHEDULABLE
            ready_s = born_s + self.load_s if state is PodState.READY else None
            pods.append(Pod(uid=uid, state=state, created_s=born_s, ready_s=ready_s))
        return tuple(pods)

    def samples(self) -> tuple[PodSample, ...]:
        if not self.scrape:
            return ()
        return tuple(
            sample(
                uid,
                self.now_s,
                self.arrived.get(uid, 0.0),
                waiting=int(self.waiting.get(uid, 0.0)),
                counts=(0.0, 0.0, *(self._answered(uid) for _ in BOUNDS_S[2:])),
            )
            for uid in self.ready()
        )

    def _answered(self, uid: str) -> float:
        """Return a counter that never falls, even where a test makes a queue appear."""
        now = self.arrived.get(uid, 0.0) - self.waiting.get(uid, 0.0)
        self.answered[uid] = max(self.answered.get(uid, 0.0), now)
        return self.answered[uid]

    def observe(self) -> Observation:
        return Observation(
            now_s=self.now_s,
            current=self.replicas,
            pods=self.pods(),
            samples=self.samples(),
            rolling=self.rolling,
            allocation=self.allocation,
        )

    def tick(self) -> Decision:
        """Let one tick pass, decide, and obey at once."""
        self.now_s += self.tick_s
        ready = self.ready()
        for uid in ready:
            share = self.rate_rps / len(ready)
            self.arrived[uid] = self.arrived.get(uid, 0.0) + share * self.tick_s
            backlog = self.waiting.get(uid, 0.0) + (share - COST.full_batch_rps) * self.tick_s
            self.waiting[uid] = max(0.0, backlog)
        decision, self.state = decide(self.policy, self.state, self.observe())
        self.scale(decision.replicas)
        self.decisions.append(decision)
        return decision

    def scale(self, replicas: int) -> None:
        while len(self.born) < replicas:
            self._create(born_s=self.now_s)
        while len(self.born) > replicas:
            self.born.pop(list(self.born)[-1])
        self.replicas = replicas

    def run(self, seconds: float) -> Decision:
        decision = self.tick()
        for _ in range(int(seconds / self.tick_s) - 1):
            decision = self.tick()
        return decision


def watch(
    scrapes: dict[float, dict[str, float]], pods: dict[str, Pod] | None = None
) -> tuple[Windows, Observation]:
    """Feed arrivals counters by time and pod; return the windows and the last observation."""
    windows, observation = Windows(), Observation(now_s=0.0, current=1)
    for now_s, counters in scrapes.items():
        known = pods or {uid: ready_pod(uid, created_s=-100.0) for uid in counters}
        observation = Observation(
            now_s=now_s,
            current=1,
            pods=tuple(pod for pod in known.values() if pod.created_s <= now_s),
            samples=tuple(sample(uid, now_s, value) for uid, value in counters.items()),
        )
        windows = windows.absorb(observation)
    return windows, observation
