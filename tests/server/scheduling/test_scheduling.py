"""Predictions for a new request, refusals based on them, and the knowledge of the device."""

from __future__ import annotations

import pytest

from headroom_server.scheduling.admission import Caps, Refusal
from headroom_server.scheduling.cost_model import CostModel
from headroom_server.scheduling.device_time import DeviceTime
from headroom_server.scheduling.entries import QueueEntry
from headroom_server.scheduling.scheduler import Scheduler

# t(b) = 6 ms + 0.5 ms b: a full batch of 8 takes 10 ms, one alone 6.5 ms
COST = CostModel.from_warm_up((b, 0.006 + 0.0005 * b) for b in range(1, 9))


def scheduler(*, waiting: int = 0, busy_since_s: float | None = None) -> Scheduler[None]:
    one: Scheduler[None] = Scheduler(8, Caps(1000, 1000), chance=lambda: 0.0)
    one.seed(COST, None)
    if busy_since_s is not None:
        for key in range(8):
            one.offer(entry(-1 - key), busy_since_s)
        one.seal(busy_since_s)
    for key in range(waiting):
        one.offer(entry(1000 + key), 0.0)
    return one


def entry(
    key: int,
    deadline_s: float | None = None,
    *,
    priority: int = 5,
    arrived_s: float = 0.0,
    size: int = 0,
) -> QueueEntry[None]:
    return QueueEntry(key, 1, arrived_s, deadline_s, None, 0, priority, "", size)


@pytest.mark.parametrize(
    ("waiting", "busy_since_s", "latest_s"),
    [
        pytest.param(0, None, 0.95 * 0.0065, id="idle: alone, and without any caution"),
        pytest.param(0, -0.004, 0.006 + 0.0065, id="busy for 6 ms more"),
        pytest.param(3, -0.004, 0.006 + 0.008, id="in a batch of four"),
        pytest.param(8, -0.004, 0.006 + 0.010 + 0.010, id="behind a full one, in one that fills"),
        pytest.param(47, -0.004, 0.006 + 5 * 0.010 + 0.010, id="the last place in the sixth"),
        pytest.param(48, -0.004, 0.006 + 6 * 0.010 + 0.010, id="the first place in the seventh"),
        pytest.param(0, -0.013, 0.003 + 0.0065, id="3 ms over its time: as much again"),
    ],
)
def test_finish_is_predicted_at_arrival(
    waiting: int, busy_since_s: float | None, latest_s: float
) -> None:
    # 95 % of a deadline is usable
    for slack_s, refusal in ((0.0001, None), (-0.0001, Refusal.DEADLINE)):
        one = scheduler(waiting=waiting, busy_since_s=busy_since_s)
        offer = one.offer(entry(1, latest_s / 0.95 + slack_s), 0.0)
        assert offer.refusal is refusal


def test_urgent_request_is_delayed_only_by_what_is_served_before_it() -> None:
    one = scheduler(waiting=80, busy_since_s=-0.004)
    due_s = 0.030
    assert one.offer(entry(1, due_s, priority=5), 0.0).refusal is Refusal.DEADLINE
    assert one.offer(entry(2, due_s, priority=4), 0.0).refusal is None
    assert one.offer(entry(3, due_s, priority=6), 0.0).refusal is Refusal.DEADLINE


def test_deadline_counts_from_arrival() -> None:
    late = entry(1, 0.1, arrived_s=0.0)
    assert scheduler().offer(late, 0.094).refusal is Refusal.DEADLINE
    assert scheduler().offer(late, 0.093).refusal is None


def test_byte_limit_evicts_no_request_in_vain() -> None:
    one = scheduler()
    assert one.offer(entry(1, size=600, priority=9), 0.0).refusal is None
    assert one.offer(entry(2, size=600, priority=9), 0.0).refusal is Refusal.BYTES_FULL
    offer = one.offer(entry(3, size=900, priority=0), 0.0)
    assert [gone.key for gone in offer.evicted] == [1]
    assert offer.retry_after_s == 1
    assert one.offer(entry(4, size=50, priority=9), 0.0).refusal is None
    offer = one.offer(entry(5, size=950, priority=1), 0.0)
    assert (offer.refusal, offer.evicted) == (Refusal.BYTES_FULL, ())
    assert len(one.batcher) == 2, "who was tried for room has its place again"


def test_exported_predictions_are_those_of_admission() -> None:
    one = scheduler(waiting=16, busy_since_s=-0.004)
    assert one.delay_s(0.0) == pytest.approx(0.006 + 0.020)
    assert one.saturation(0.0) is None, "none had a deadline"
    one.offer(entry(1, 0.097, arrived_s=-0.003), 0.0)
    assert one.saturation(0.0) == pytest.approx((0.026 + 0.010) / 0.1, rel=0.01)
    unknown: Scheduler[None] = Scheduler(8, Caps(8), chance=lambda: 0.0)
    assert unknown.delay_s(0.0) is None


def test_gap_between_batches_is_learned_if_a_request_waited() -> None:
    device = DeviceTime()
    end_s = 0.0
    for _ in range(200):
        device.assign(end_s + 0.0004, 0.01)
        device.complete(end_s + 0.0005, 0.01, waited=True)
        end_s += 0.0105
    assert device.gap_s == pytest.approx(0.0005, rel=0.01)
    device.complete(end_s + 60.0, 0.01, waited=False)
    assert device.gap_s == pytest.approx(0.0005, rel=0.01)


def test_assigned_batch_starts_when_the_previous_one_ends() -> None:
    device = DeviceTime()
    device.assign(0.0, 0.01)
    device.assign(0.004, 0.008)
    assert not device.idle
    assert device.free_in_s(0.004) == pytest.approx(0.014)
    device.complete(0.0, 0.01, waited=False)
    assert device.free_in_s(0.010) == pytest.approx(0.002)


def test_unreported_batch_ends_with_a_later_one() -> None:
    device = DeviceTime()
    device.assign(0.0, 0.01)
    device.assign(0.02, 0.01)
    device.complete(0.02, 0.01, waited=False)
    assert device.idle
    assert device.free_in_s(5.0) == 0.0


def test_misses_that_only_an_idle_device_accepts_leave_the_margin_of_others_alone() -> None:
    one = scheduler()
    for key in range(50):
        # it would end 0.05 ms before its deadline if nothing came between
        tight = entry(key, 10.0 * key + 0.00655, arrived_s=10.0 * key)
        assert one.offer(tight, 10.0 * key).refusal is None
        one.withdraw(key)
        one.record_answer(tight, 10.0 * key + 0.008, answered=False)
    assert one.margin(5).share == 0.95

    for key in range(100, 110):  # those that had room for the wait count
        missed = entry(key, 10.0 * key + 0.1, arrived_s=10.0 * key)
        one.record_answer(missed, 10.0 * key + 0.2, answered=False)
    assert one.margin(5).share < 0.95


def executed(one: Scheduler[None], key: int, began_s: float, seconds: float) -> QueueEntry[None]:
    """Let a request with a deadline wait, be executed, and end."""
    asked = entry(key, began_s + 10.0, arrived_s=began_s)
    one.offer(asked, began_s)
    one.record_batch(one.seal(began_s), began_s, seconds, whole=True)
    return asked


def test_shortest_batch_ever_is_what_no_deadline_may_undercut() -> None:
    one = scheduler()
    assert one.fastest_s == 0.0, "none was executed"
    for key, seconds in enumerate((0.02, 0.0065, 0.03)):
        executed(one, key, float(key), seconds)
    assert one.fastest_s == 0.0065


def test_hiccup_of_the_loop_counts_as_a_bounded_overhead() -> None:
    """One answer that is a minute late must not make the server refuse everything."""
    one = scheduler()
    for key in range(100):
        asked = executed(one, key, float(key), 0.0065)
        one.record_answer(asked, key + 0.0075, answered=True)
    asked = executed(one, 100, 100.0, 0.0065)
    one.record_answer(asked, 160.0, answered=True)
    assert one.overhead_s.high < 0.1


@pytest.mark.parametrize(
    ("waited_s", "pauses_s"),
    [
        pytest.param(0.005, 2 * 0.0003, id="the next batch was waiting: the server paused"),
        pytest.param(0.0, 0.0, id="it arrived later: there was nothing to do"),
    ],
)
def test_pauses_between_batches_count_in_the_wait(waited_s: float, pauses_s: float) -> None:
    one = scheduler()
    for number in range(200):
        began_s = 0.0103 * number
        for key in range(8):
            one.offer(entry(8 * number + key, arrived_s=began_s - waited_s), began_s)
        one.record_batch(one.seal(began_s), began_s, 0.010, whole=True)
    now_s = 0.0103 * 200
    for key in range(-16, 0):
        one.offer(entry(key, arrived_s=now_s), now_s)
    assert one.delay_s(now_s) == pytest.approx(2 * 0.010 + pauses_s, abs=0.00005)
