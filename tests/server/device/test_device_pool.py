"""Several devices on one queue: time until a position is served, and the capacity of all."""

from __future__ import annotations

from collections import Counter
from heapq import heapreplace
from itertools import pairwise
from statistics import fmean

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.scheduling.admission import Caps, Refusal
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.device_pool import DevicePool, nth_start_s
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.scheduler import Scheduler
from support.device_world import IDEAL_RPS, Ask, Device, Replica, poisson

pytestmark = pytest.mark.clock

# t(b) = 6 ms + 0.5 ms b: a full batch of 8 takes 10 ms
COST = CostModel.from_warm_up((b, 0.006 + 0.0005 * b) for b in range(1, 9))


@pytest.mark.parametrize(
    ("free_s", "ahead", "begins_s"),
    [
        pytest.param([0.002], 0, 0.002, id="one device"),
        pytest.param([0.002], 3, 0.032, id="one device, behind three"),
        pytest.param([0.002, 0.007], 0, 0.002, id="the one that is free first"),
        pytest.param([0.007, 0.002], 1, 0.007, id="the other, while the first has the one ahead"),
        pytest.param([0.002, 0.007], 2, 0.012, id="the first again"),
        pytest.param([0.002, 0.007], 201, 1.007, id="far behind"),
        pytest.param([0.002, 60.0], 3, 0.032, id="as if the one that hangs were not there"),
        pytest.param([0.0, 0.0, 0.0, 0.0], 7, 0.01, id="the last of a round"),
    ],
)
def test_batch_starts_on_the_device_free_first(
    free_s: list[float], ahead: int, begins_s: float
) -> None:
    assert nth_start_s(free_s, ahead, 0.01) == pytest.approx(begins_s)


@settings(max_examples=200)
@given(
    st.lists(st.integers(0, 500), min_size=1, max_size=8), st.integers(0, 300), st.integers(1, 50)
)
def test_skipped_rounds_give_the_same_start(free: list[int], ahead: int, batch: int) -> None:
    one_by_one = sorted(map(float, free))
    for _ in range(ahead):
        heapreplace(one_by_one, one_by_one[0] + batch)
    assert nth_start_s(list(map(float, free)), ahead, float(batch)) == one_by_one[0]


def test_fraction_of_a_batch_is_interpolated() -> None:
    pool = DevicePool(2)
    pool.assign(0, 0.0, 0.002)
    pool.assign(1, 0.0, 0.007)
    assert pool.starts_in_s(0.0, 1.5, 0.015) == pytest.approx((0.007 + 0.012) / 2)
    assert pool.next(0.0) == 0
    assert not pool.idle


def test_lost_device_is_not_counted() -> None:
    pool = DevicePool(2)
    pool.assign(1, 0.0, 0.007)
    assert pool.starts_in_s(0.0) == 0.0
    pool.remove(0)
    assert pool.starts_in_s(0.0, 1.0, 0.01) == pytest.approx(0.017)
    assert pool.next(0.0) == 1


@pytest.mark.parametrize(
    ("devices", "waiting", "wait_s"),
    [
        pytest.param(1, 16, 0.010 + 0.020, id="one device works off two batches alone"),
        pytest.param(2, 0, 0.010, id="two are busy"),
        pytest.param(2, 8, 0.010, id="one batch ahead, and it goes to the other"),
        pytest.param(2, 16, 0.020, id="a round ahead"),
        pytest.param(4, 16, 0.010, id="four devices, two batches ahead"),
    ],
)
def test_wait_is_predicted_over_all_devices(devices: int, waiting: int, wait_s: float) -> None:
    one: Scheduler[None] = Scheduler(8, Caps(1000), chance=lambda: 0.0, devices=devices)
    one.seed(COST, None)
    for number in range(8 * devices + waiting):
        one.offer(QueueEntry(number, 1, 0.0, None, None), 0.0)
        if number % 8 == 7 and number < 8 * devices:
            one.seal(0.0, number // 8)
    assert one.delay_s(0.0) == pytest.approx(wait_s)
    latest_s = (wait_s + (0.0065 if waiting % 8 else 0.010 if waiting else 0.0065)) / 0.95
    too_late = one.offer(QueueEntry(-1, 1, 0.0, latest_s - 0.001, None), 0.0)
    in_time = one.offer(QueueEntry(-2, 1, 0.0, latest_s + 0.001, None), 0.0)
    assert (too_late.refusal, in_time.refusal) == (Refusal.DEADLINE, None)


def test_idle_device_refuses_only_hopeless_requests() -> None:
    one: Scheduler[None] = Scheduler(8, Caps(1000), chance=lambda: 0.0, devices=2)
    one.seed(COST, None)
    one.offer(QueueEntry(0, 1, 0.0, None, None), 0.0)
    one.seal(0.0, 0)
    assert one.offer(QueueEntry(1, 1, 0.0, 0.0064, None), 0.0).refusal is Refusal.DEADLINE
    assert one.offer(QueueEntry(2, 1, 0.0, 0.0066, None), 0.0).refusal is None


def test_devices_carry_the_sum_of_their_capacities() -> None:
    for count in (2, 4):
        replica = Replica(others=(Device(),) * (count - 1))
        rate = 1.5 * count * IDEAL_RPS
        ends = replica.run(Ask(time_s) for time_s in poisson(rate, 0.0, 4.0, seed=2))
        good = sum(one.good and 0.5 <= one.time_s < 4.0 for one in ends) / 3.5
        assert good >= 0.9 * count * IDEAL_RPS
        accepted = [one for one in ends if one.outcome in ("ok", "expired")]
        assert sum(not one.good for one in accepted) <= 0.02 * len(accepted)
        fewest, most = min(Counter(replica.took).values()), max(Counter(replica.took).values())
        assert most <= 1.1 * fewest


def test_batches_leave_the_queue_in_order_of_arrival() -> None:
    replica = Replica(others=(Device(),), caps=Caps(4096))
    replica.run(Ask(time_s, None) for time_s in poisson(1.2 * IDEAL_RPS, 0.0, 3.0, seed=4))
    served = [entry.key for _, sealed in replica.batches for entry in sealed.batch]
    assert served == sorted(served)
    for number in (0, 1):
        own = [
            at_s
            for (at_s, _), took in zip(replica.batches, replica.took, strict=True)
            if took == number
        ]
        assert all(b - a >= 0.006 for a, b in pairwise(own)), "one batch at a time"


def test_one_queue_waits_less_than_two() -> None:
    load = 0.85 * IDEAL_RPS
    shared = Replica(others=(Device(),), caps=Caps(4096))
    together = shared.run(Ask(time_s, None) for time_s in poisson(2 * load, 0.0, 10.0, seed=5))
    apart = [
        end
        for seed in (6, 7)
        for end in Replica(caps=Caps(4096)).run(
            Ask(time_s, None) for time_s in poisson(load, 0.0, 10.0, seed=seed)
        )
    ]
    assert fmean(one.latency_s for one in together) < 0.9 * fmean(one.latency_s for one in apart)


def test_slowed_device_costs_only_its_lost_capacity() -> None:
    slow = Device(slowness=lambda now_s: 2.0 if now_s >= 2.0 else 1.0)
    replica = Replica(others=(slow,))
    ends = replica.run(Ask(time_s) for time_s in poisson(3 * IDEAL_RPS, 0.0, 8.0, seed=3))
    good = sum(one.good and 3.0 <= one.time_s < 8.0 for one in ends) / 5.0
    assert good >= 0.9 * 1.5 * IDEAL_RPS


@pytest.mark.parametrize(
    ("arrived_s", "learned"),
    [
        pytest.param(0.5, True, id="it waited for the batch before"),
        pytest.param(1.5, False, id="it came later: the device had nothing to do"),
        pytest.param(None, False, id="nothing was executed"),
    ],
)
def test_gap_is_learned_from_batches_whose_first_request_waited(
    arrived_s: float | None, learned: bool
) -> None:
    pool = DevicePool(1)
    pool.assign(0, 0.0, 1.0)
    pool.complete(0, 0.0, 1.0, arrived_s=0.0)
    before_s = pool.gap_s
    pool.assign(0, 2.0, 1.0)
    pool.complete(0, 2.0, 1.0, arrived_s=arrived_s)
    assert (pool.gap_s != before_s) is learned
