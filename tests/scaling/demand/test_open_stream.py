"""Queues that hide no demand: an open stream made them, or old replicas work them off."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling import Observation, State, decide
from headroom.scaling.demand.old_queues import without_old_queues
from headroom.scaling.demand.open_stream import OpenStream
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Routing
from headroom.scaling.windows.sliding_windows import Windows
from scaling.demand.saturated_throughput import load
from support.fakes_scaling import COST, policy, ready_pod, sample

TICK_S = 2.0
CAPACITY = COST.full_batch_rps * TICK_S
IN_TIME = 32.0


def watched(*in_flight: int, every_s: float = TICK_S) -> OpenStream:
    stream = OpenStream()
    for number, requests in enumerate(in_flight):
        stream = stream.observe(every_s * number, load(in_flight=requests), TICK_S, IN_TIME)
    return stream


@pytest.mark.parametrize(
    ("in_flight", "rate_rps"),
    [
        pytest.param((8, 168, 328, 488, 648), 160.0, id="a stream of twice the capacity"),
        pytest.param((8, 48, 100, 132, 180), 160.0, id="one of 1.25 times, unevenly"),
        pytest.param((8, 8, 64, 64, 64), None, id="64 connections are filled within a tick"),
        pytest.param((8, 120, 256, 256, 256), None, id="256 connections within two"),
        pytest.param((8, 20, 31, 44, 55), None, id="within chance of 160/s"),
        pytest.param((8, 168, 328, 488), None, id="not for a whole window"),
        pytest.param((648, 488, 328, 168, 60), None, id="a queue that is worked off"),
        pytest.param((8, 168, 328, 488, 648, 640, 640), 160.0, id="while the queue stays"),
        pytest.param((8, 168, 328, 488, 648, 30), None, id="until it is answered in time"),
    ],
)
def test_rate_of_a_stream_is_known_if_it_makes_a_queue_steadily(
    in_flight: tuple[int, ...], rate_rps: float | None
) -> None:
    assert watched(*in_flight).rate_rps == rate_rps


def test_growth_over_a_gap_in_the_ticks_proves_nothing() -> None:
    assert watched(8, 168, 328, 488, 648, every_s=10.0).rate_rps is None


@pytest.mark.parametrize(
    ("arrived", "explained"),
    [
        pytest.param(640.0, True, id="fewer arrive"),
        pytest.param(1280.0, True, id="as many arrive"),
        pytest.param(1440.0, True, id="more within a tenth and chance"),
        pytest.param(1600.0, False, id="a quarter more"),
    ],
)
def test_what_arrived_while_the_queue_grew_is_not_hidden(arrived: float, explained: bool) -> None:
    stream = OpenStream(rate_rps=160.0)
    assert stream.explains(load(arrived=arrived)) is explained
    assert not OpenStream().explains(load(arrived=arrived))


@pytest.mark.parametrize(
    ("inside", "in_flight", "ready"),
    [
        pytest.param((184, 3, 2, 1, 3), 9, 4, id="one was alone before"),
        pytest.param((184, 180, 2, 1, 3), 6, 3, id="two of five"),
        pytest.param((184, 180, 190), 554, 3, id="all alike: clients wait, or replicas are few"),
        pytest.param((12, 3, 2), 17, 3, id="worked off within the target"),
    ],
)
def test_replicas_with_old_queues_are_left_out(
    inside: tuple[int, ...], in_flight: int, ready: int
) -> None:
    pods = tuple(ready_pod(f"pod-{number}") for number in range(len(inside)))
    windows = Windows()
    for now_s in (0.0, 10.0):
        samples = tuple(
            sample(pod.uid, now_s, 500.0 + now_s, waiting=requests - 1, running=1)
            for pod, requests in zip(pods, inside, strict=True)
        )
        observation = Observation(now_s=now_s, current=len(pods), pods=pods, samples=samples)
        windows = windows.absorb(observation)
    whole = load(in_flight=sum(inside), ready=len(inside), answered=10.0 * len(inside))
    rest = without_old_queues(
        policy(), windows, whole, COST, observation.ready_uids, observation.now_s
    )
    assert (rest.in_flight, rest.ready) == (in_flight, ready)
    assert rest.answered == pytest.approx(8.0 * ready + 2.0 * len(inside))


@pytest.mark.parametrize("routing", [Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO])
def test_old_queue_of_one_replica_is_no_hidden_demand(routing: Routing) -> None:
    """One of 30 replicas works off a queue, and the others carry all that arrives."""
    state, arrived = State.initial(), np.zeros(30)
    arrived[0] = waiting = 2000.0
    pods = tuple(ready_pod(f"pod-{number}", created_s=-900.0) for number in range(30))
    for number in range(60):
        now_s = TICK_S * number
        arrived[1:] += 0.93 * CAPACITY
        waiting -= CAPACITY
        first = sample("pod-0", now_s, arrived[0], waiting=int(waiting))
        others = [
            sample(pod.uid, now_s, count, running=1)
            for pod, count in zip(pods[1:], arrived[1:], strict=True)
        ]
        observation = Observation(now_s=now_s, current=30, pods=pods, samples=(first, *others))
        decision, state = decide(policy(routing=routing, max_replicas=99), state, observation)
        assert Reason.HIDDEN_DEMAND not in {one.rule for one in decision.recommendations}


def rules_at_a_level_queue(*arriving: float) -> set[Reason]:
    """Return the rules while two full replicas keep the queue that these ticks have made.

    Ticks are given in what both replicas answer in one. Before them they answer half of that.
    """
    state, rules = State.initial(), set[Reason]()
    arrived, inside = 0.0, 0.0
    pods = tuple(ready_pod(uid, created_s=-900.0) for uid in ("a", "b"))
    for number, share in enumerate([*[0.5] * 30, *arriving, *[1.0] * 20]):
        arrived += share * CAPACITY
        inside = max(0.0, inside + (share - 1.0) * CAPACITY)
        now_s = TICK_S * number
        samples = tuple(sample(pod.uid, now_s, arrived, waiting=int(inside)) for pod in pods)
        observation = Observation(now_s=now_s, current=2, pods=pods, samples=samples)
        decision, state = decide(policy(max_replicas=99), state, observation)
        if number >= 30 + len(arriving):
            rules |= {one.rule for one in decision.recommendations}
    return rules


def test_level_queue_hides_demand_unless_a_counted_stream_made_it() -> None:
    filled_at_once, stream = (4.0, 1.0, 1.0, 1.0, 1.0, 1.0), (1.5,) * 6
    assert Reason.HIDDEN_DEMAND in rules_at_a_level_queue(*filled_at_once)
    assert Reason.HIDDEN_DEMAND not in rules_at_a_level_queue(*stream)
