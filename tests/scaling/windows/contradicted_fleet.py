"""A fleet of one lying replica and others, minute by minute, and the lies that it reports."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from headroom.scaling import (
    CostModel,
    Decision,
    LatencyCounts,
    Observation,
    Pod,
    PodSample,
    PodState,
    Routing,
    State,
    decide,
)
from support.fakes_scaling import policy, served_sample

COST = CostModel(fixed_s=0.15, per_item_s=0.06, max_batch=4)
START_S, TICK_S = 10_000.0, 2.0
Lie = Callable[[PodSample], PodSample]


class Fleet:
    """Replicas with nearly the same requests each, of which the first may report anything."""

    def __init__(
        self, rate_rps: float = 18.0, replicas: int = 3, routing: Routing = Routing.RANDOM
    ) -> None:
        self.policy = policy(
            min_replicas=1,
            max_replicas=20,
            latency_target_s=1.5,
            scale_down_stabilization_s=10.0,
            routing=routing,
        )
        self.state, self.tick = State.initial(), 0
        self.replicas, self.share = replicas, rate_rps * TICK_S / replicas
        self.shares = [1.0 + 0.02 * number for number in range(replicas)]
        self.served = [0.0] * replicas
        self.ready_s = [2.0] * replicas
        self.lie: Lie | None = None
        self.current = replicas

    def next(self) -> Decision:
        self.tick += 1
        now_s = START_S + TICK_S * self.tick
        for number, share in enumerate(self.shares):
            self.served[number] += self.share * share
        samples = [self._sample(number, now_s) for number in range(self.replicas)]
        if self.lie is not None:
            samples[0] = self.lie(samples[0])
        pods = tuple(
            Pod(uid=f"pod-{number}", state=PodState.READY, created_s=1.0, ready_s=ready_s)
            for number, ready_s in enumerate(self.ready_s)
        )
        observation = Observation(
            now_s=now_s, current=self.current, pods=pods, samples=tuple(samples)
        )
        decision, self.state = decide(self.policy, self.state, observation)
        return decision

    def run(self, ticks: int, lie: Lie | None = None) -> list[Decision]:
        self.lie = lie
        decisions = [self.next() for _ in range(ticks)]
        self.lie = None
        return decisions

    def _sample(self, number: int, now_s: float) -> PodSample:
        served = float(int(self.served[number]))
        return served_sample(f"pod-{number}", now_s, served)


def scaled(factor: float) -> Lie:
    def lie(true: PodSample) -> PodSample:
        served = float(int(true.arrivals * factor))
        return replace(
            true,
            arrivals=served,
            latency=LatencyCounts(bounds_s=true.latency.bounds_s, counts=(served, served)),
            running=true.running if factor else 0,
            batches=served,
            batch_items=served,
            batch_seconds=0.21 * served,
        )

    return lie


def frozen() -> Lie:
    """The first page, again and again, as if it were new."""
    first: list[PodSample] = []

    def lie(true: PodSample) -> PodSample:
        first.append(true)
        return replace(first[0], time_s=true.time_s)

    return lie


def batches(factor: float) -> Lie:
    return lambda true: replace(
        true, batches=true.batches * factor, batch_items=true.batch_items * factor
    )


def seconds(factor: float) -> Lie:
    return lambda true: replace(true, batch_seconds=true.batch_seconds * factor)


def claiming(factor: float) -> Lie:
    cost = replace(COST, fixed_s=0.15 * factor, per_item_s=0.06 * factor)
    return lambda true: replace(true, cost=cost)


def late() -> Lie:
    """All requests in the slowest bucket."""
    return lambda true: replace(
        true,
        latency=LatencyCounts(bounds_s=true.latency.bounds_s, counts=(0.0, true.arrivals)),
    )


def silent() -> Lie:
    return lambda true: replace(true, time_s=1.0)


def back_and_forth() -> Lie:
    ticks = [0]

    def lie(true: PodSample) -> PodSample:
        ticks[0] += 1
        return scaled((0.5, 1.0, 0.9)[ticks[0] % 3])(true)

    return lie


LIES: dict[str, Callable[[], Lie]] = {
    "other server, idle": lambda: scaled(0.0),
    "a hundredth": lambda: scaled(0.01),
    "half": lambda: scaled(0.5),
    "ten times": lambda: scaled(10.0),
    "a million times": lambda: scaled(1e6),
    "frozen": frozen,
    "back and forth": back_and_forth,
    "a thousand times the batches": lambda: batches(1e3),
    "a billion times the batches": lambda: batches(1e9),
    "executions in ms": lambda: seconds(1e-3),
    "executions in hours": lambda: seconds(1e4),
    "dear": lambda: claiming(1000.0),
    "free": lambda: claiming(0.001),
}
