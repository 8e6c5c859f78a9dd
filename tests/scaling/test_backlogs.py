"""A replica that works off a queue gets no requests, and is in use nevertheless."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headroom.scaling import Observation, State, decide
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.demand import Obstacle
from headroom.scaling.values.policy import Routing
from support.fakes_scaling import BOUNDS_S, COST, policy, ready_pod, sample

TICK_S = 2.0
CAPACITY = COST.full_batch_rps * TICK_S


def obstacles(
    arrivals_rps: float, backlog: float, *, pinned: bool = False, each_s: float = math.inf
) -> list[Obstacle | None]:
    """Return the obstacles seen in three minutes after a second replica became ready.

    The first one had a backlog then. Requests go to the replica with the fewest in flight; if
    they are pinned, to the first one. The second one may execute requests meanwhile
    that take `each_s`, one at a time.
    """
    state, found = State.initial(), list[Obstacle | None]()
    arrived, waiting, late = np.zeros(2), np.zeros(2), np.zeros(2)
    for number in range(120):
        now_s, both = TICK_S * number, number >= 30
        if number == 30:
            arrived[0] += backlog
            waiting[0] += backlog
        coming = arrivals_rps * TICK_S
        to_first = (
            coming
            if pinned or not both
            else np.clip((coming + waiting[1] - waiting[0]) / 2.0, 0.0, coming)
        )
        taken = np.array([to_first, coming - to_first])
        arrived += taken
        answered = np.minimum(waiting + taken, CAPACITY)
        late += np.where(waiting > CAPACITY, answered, 0.0)
        waiting += taken - answered
        names = ["first", "second"] if both else ["first"]
        samples = []
        for at, name in enumerate(names):
            ended = arrived[at] - waiting[at]
            long = 0 if at == 0 or each_s == math.inf else 1
            alone = long * int((now_s - 60.0) // each_s)
            counts = [0.0, 0.0, *[ended - late[at]] * (len(BOUNDS_S) - 3), ended + alone]
            samples.append(
                sample(
                    name,
                    now_s,
                    arrived[at] + alone + long,
                    waiting=int(waiting[at]),
                    running=long,
                    counts=tuple(counts),
                )
            )
        decision, state = decide(
            policy(routing=Routing.LEAST_IN_FLIGHT, max_replicas=2),
            state,
            Observation(
                now_s=now_s,
                current=2,
                pods=tuple(ready_pod(name, created_s=-5.0) for name in names),
                samples=tuple(samples),
            ),
        )
        found.append(decision.obstacle)
    return found


@pytest.mark.parametrize("backlog", [100.0, 200.0, 400.0])
def test_replica_that_works_off_its_queue_is_no_obstacle(backlog: float) -> None:
    assert set(obstacles(9.0, backlog)) == {None}


def test_replica_that_gets_nothing_is_found_while_the_other_works_off_its_queue() -> None:
    found = obstacles(9.0, 200.0, pinned=True)
    assert found[-1] is Obstacle.CONNECTIONS_PINNED
    assert found.index(Obstacle.CONNECTIONS_PINNED) <= 45


def test_replica_that_executes_long_requests_gets_none_where_routing_sees_load() -> None:
    assert set(obstacles(9.0, 200.0, pinned=True, each_s=12.0)) == {None}


@pytest.mark.parametrize(
    ("queue", "added"),
    [pytest.param(3000.0, 3, id="for minutes"), pytest.param(100.0, 0, id="for a start")],
)
def test_replicas_replace_those_that_work_off_a_queue_of_a_shortage(
    queue: float, added: int
) -> None:
    """Three of nine have a queue since a time when they were alone; the others carry the rest."""
    state, arrived, needed = State.initial(), np.zeros(9), 0
    waiting = np.zeros(9)
    waiting[:3] = arrived[:3] = queue
    pods = tuple(ready_pod(f"pod-{number}", created_s=-900.0) for number in range(9))
    for number in range(30):
        now_s = TICK_S * number
        arrived[3:] += 0.9 * CAPACITY
        waiting[:3] = np.maximum(0.0, waiting[:3] - CAPACITY)
        samples = tuple(
            sample(pod.uid, now_s, count, waiting=int(inside), running=1)
            for pod, count, inside in zip(pods, arrived, waiting, strict=True)
        )
        observation = Observation(now_s=now_s, current=9, pods=pods, samples=samples)
        decision, state = decide(
            policy(routing=Routing.LEAST_IN_FLIGHT, max_replicas=99), state, observation
        )
        rules = {one.rule: one.replicas for one in decision.recommendations}
        needed = rules.get(Reason.LATENCY_MODEL, 0)
        if number > 15:
            assert rules.get(Reason.QUEUE_DEPTH, needed) - needed == added
    assert needed > 0
