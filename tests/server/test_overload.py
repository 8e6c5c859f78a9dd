"""The scheduler under load in virtual time: overload, changes of speed, classes, tenants."""

from __future__ import annotations

import random
from bisect import bisect_left
from collections import Counter
from itertools import chain
from statistics import median

import pytest

from headroom_server.scheduling.admission import Caps
from headroom_server.scheduling.cost_model import CostModel
from support.device_world import BATCH, IDEAL_RPS, Ask, Device, End, Replica, poisson

pytestmark = pytest.mark.clock


def good_rps(ends: list[End], begin_s: float, end_s: float) -> float:
    return sum(one.good for one in ends if begin_s <= one.time_s < end_s) / (end_s - begin_s)


def came(ends: list[End], begin_s: float, end_s: float) -> list[End]:
    return [one for one in ends if begin_s <= one.ask.time_s < end_s]


def outcomes(ends: list[End]) -> Counter[str]:
    return Counter(one.outcome for one in ends)


@pytest.mark.parametrize("load", [1.5, 3.0], ids=["half too much", "three times too much"])
@pytest.mark.parametrize("noise", [0.02, 0.2], ids=["a steady device", "an unsteady device"])
def test_overload_keeps_nearly_all_goodput(load: float, noise: float) -> None:
    replica = Replica(Device(noise=noise))
    asks = [Ask(time_s) for time_s in poisson(load * IDEAL_RPS, 0.0, 5.0, seed=2)]
    ends = replica.run(asks)
    assert good_rps(ends, 0.5, 5.0) >= 0.9 * IDEAL_RPS
    assert len(ends) == len(asks), "each ends once"
    accepted = [one for one in ends if one.outcome in ("ok", "expired")]
    assert sum(not one.good for one in accepted) <= 0.02 * len(accepted)
    assert set(replica.retries_s) == {1, 2}


@pytest.mark.parametrize(
    ("slowness", "load"),
    [
        pytest.param(2.0, 1.5, id="twice as slow"),
        pytest.param(4.0, 1.5, id="four times as slow"),
        pytest.param(0.5, 3.0, id="twice as fast"),
    ],
)
def test_overload_with_a_change_of_speed_is_followed(slowness: float, load: float) -> None:
    replica = Replica(Device(slowness=lambda now_s: slowness if now_s >= 3.0 else 1.0))
    ends = replica.run(Ask(time_s) for time_s in poisson(load * IDEAL_RPS, 0.0, 8.0, seed=3))
    assert good_rps(ends, 3.0, 8.0) >= 0.92 * IDEAL_RPS / slowness, "from the first moment on"
    assert good_rps(ends, 4.0, 8.0) >= 0.95 * IDEAL_RPS / slowness


@pytest.mark.parametrize(
    "device",
    [
        pytest.param(
            Device(slowness=lambda now_s: 20.0 if 2.0 <= now_s < 2.5 else 1.0),
            id="the device hangs for half a second",
        ),
        pytest.param(
            Device(answer_s=lambda now_s: 0.09 if 2.0 <= now_s < 3.0 else 0.001),
            id="answers leave late for a second",
        ),
    ],
)
def test_disturbance_is_forgotten_quickly(device: Device) -> None:
    replica = Replica(device)
    ends = replica.run(Ask(time_s) for time_s in poisson(1.5 * IDEAL_RPS, 0.0, 8.0, seed=12))
    assert good_rps(ends, 4.0, 8.0) >= 0.9 * IDEAL_RPS


def test_latency_after_an_overload_recovers() -> None:
    replica = Replica()
    loads = ((400, 0.0, 3.0), (1200, 3.0, 6.0), (400, 6.0, 9.0))
    times_s = chain.from_iterable(poisson(*load, seed=4) for load in loads)
    ends = replica.run(map(Ask, times_s))
    undisturbed, after = (
        median(one.latency_s for one in came(ends, begin_s, begin_s + 3.0) if one.good)
        for begin_s in (0.0, 6.0)
    )
    assert after <= 1.5 * undisturbed
    assert outcomes(came(ends, 6.2, 9.0)).keys() == {"ok"}


def test_disconnected_clients_cost_no_later_batches() -> None:
    replica = Replica(caps=Caps(2000))
    asks = [Ask(0.0001 * number, None, leaves_s=0.001) for number in range(1000)]
    ends = replica.run(asks)
    served = sum(sealed.items for _, sealed in replica.batches)
    # the first goes alone at once; the batch after 6.5 ms takes the latest arrivals
    assert outcomes(ends)["ok"] == served
    assert served <= 1 + BATCH * (0.1 / 0.01)
    late = [sealed for began_s, sealed in replica.batches if began_s > 0.1 + 0.001]
    assert late == []


def test_hopeless_requests_are_refused_and_never_executed() -> None:
    replica = Replica()
    ends = replica.run(Ask(0.01 * number, 0.005) for number in range(50))
    assert outcomes(ends) == {"deadline": 50}
    assert replica.busy_s == 0.0


def test_prediction_that_refuses_everything_is_tested() -> None:
    replica = Replica()
    wrong = [(items, 0.5) for items in range(1, BATCH + 1)]
    replica.scheduler.seed(CostModel.from_warm_up(wrong), None)
    ends = replica.run(Ask(time_s) for time_s in poisson(400, 0.0, 8.0, seed=5))
    # five batches' time of nothing but refusals, then probes; three batches show the truth
    assert outcomes(came(ends, 0.0, 2.4)) == {"deadline": len(came(ends, 0.0, 2.4))}
    last = came(ends, 4.0, 8.0)
    assert sum(one.good for one in last) >= 0.95 * len(last)


def test_urgent_requests_are_served_as_if_alone() -> None:
    replica = Replica()
    asks = sorted(
        [
            *(Ask(time_s, 0.1, priority=7) for time_s in poisson(1200, 0.0, 5.0, seed=6)),
            *(Ask(time_s, 0.05, priority=1) for time_s in poisson(200, 0.0, 5.0, seed=7)),
        ]
    )
    ends = replica.run(asks)
    urgent = [one for one in ends if one.ask.priority == 1]
    assert sum(one.good for one in urgent) >= 0.98 * len(urgent)
    assert good_rps(ends, 0.5, 5.0) >= 0.85 * IDEAL_RPS


@pytest.mark.parametrize("deadline_s", [0.1, None], ids=["with deadlines", "with a full queue"])
def test_heavy_tenant_takes_nothing_from_a_light_one(
    deadline_s: float | None,
) -> None:
    replica = Replica(caps=Caps(8 * BATCH))
    asks = sorted(
        [
            *(Ask(time_s, deadline_s, tenant="m") for time_s in poisson(2000, 0.0, 4.0, seed=8)),
            *(Ask(time_s, deadline_s, tenant="l") for time_s in poisson(200, 0.0, 4.0, seed=9)),
        ],
        key=lambda ask: ask.time_s,
    )
    ends = replica.run(asks)
    little = [one for one in ends if one.ask.tenant == "l"]
    assert sum(one.outcome == "ok" for one in little) >= 0.97 * len(little)
    assert median(one.latency_s for one in little if one.outcome == "ok") < 0.04


def test_urgent_requests_evict_the_least_urgent() -> None:
    replica = Replica(caps=Caps(16))
    asks = [Ask(0.0001 * n, None, priority=9 if n < 30 else 0) for n in range(60)]
    ends = replica.run(asks)
    by_class = {p: outcomes([e for e in ends if e.ask.priority == p]) for p in (0, 9)}
    # 1 runs, 16 wait, 13 find no room; then 16 urgent ones take those places, and 14 find none
    assert by_class[9] == {"ok": 1, "queue_full": 13, "evicted": 16}
    assert by_class[0] == {"ok": 16, "queue_full": 14}


LENGTHS = (16, 32, 64, 128, 256, 512)


def lognormal_lengths(rate_rps: float, end_s: float) -> list[Ask]:
    """Median 67, cut to 16..512, padded to the warmed lengths."""
    chance = random.Random(11)
    lengths = (min(512, max(16, round(chance.lognormvariate(4.2, 0.9)))) for _ in iter(int, 1))
    times_s = poisson(rate_rps, 0.0, end_s, seed=11)
    return [
        Ask(time_s, None, length=LENGTHS[bisect_left(LENGTHS, length)])
        for time_s, length in zip(times_s, lengths, strict=False)
    ]


def p95_in_order_of_arrival_s(asks: list[Ask], device: Device) -> float:
    """Batches of the oldest, padded to the longest among them."""
    chance, free_s, at, latencies = random.Random(1), 0.0, 0, []
    while at < len(asks):
        free_s = max(free_s, asks[at].time_s)
        batch = [ask for ask in asks[at : at + BATCH] if ask.time_s <= free_s]
        longest = max(ask.length for ask in batch)
        free_s += device.batch_s(len(batch), longest, free_s, chance) + device.gap_s
        latencies += [free_s - ask.time_s for ask in batch]
        at += len(batch)
    return sorted(latencies)[int(0.95 * len(latencies))]


def test_mixed_lengths_carry_a_third_more_than_arrival_order() -> None:
    # an item of length 128 costs 0.5 ms, one of 512 costs 2 ms
    device = Device(per_length=lambda length: length / 128)
    fifo_p95_s = p95_in_order_of_arrival_s(lognormal_lengths(400.0, 8.0), device)
    replica = Replica(device, lengths=LENGTHS)
    latencies = sorted(end.latency_s for end in replica.run(lognormal_lengths(530.0, 8.0)))
    assert latencies[int(0.95 * len(latencies))] <= fifo_p95_s
