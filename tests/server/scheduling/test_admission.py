"""Admission: accepted requests, times of retries, and the usable share of deadlines."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.scheduling.admission import (
    Caps,
    Refusal,
    over_caps,
    refusal_when_closed,
    retry_after_s,
)
from headroom_server.scheduling.deadline_margin import DeadlineMargin


@pytest.mark.parametrize(
    ("ready", "draining", "expected"),
    [
        pytest.param(True, False, None, id="ready: admitted"),
        pytest.param(False, False, Refusal.NOT_READY, id="not warm yet"),
        pytest.param(True, True, Refusal.DRAINING, id="on the way out"),
        pytest.param(False, True, Refusal.DRAINING, id="stopping explains more than the rest"),
    ],
)
def test_refusal_by_server_state(ready: bool, draining: bool, expected: Refusal | None) -> None:
    assert refusal_when_closed(ready=ready, draining=draining) is expected


@pytest.mark.parametrize(
    ("items", "size", "expected"),
    [
        pytest.param(0, 0, None, id="empty"),
        pytest.param(6, 60, None, id="the last room is taken"),
        pytest.param(7, 60, Refusal.QUEUE_FULL, id="one item too many"),
        pytest.param(6, 61, Refusal.BYTES_FULL, id="one byte too many"),
        pytest.param(0, 999, None, id="bytes of no waiting item refuse none"),
    ],
)
def test_refusal_by_queue_limits(items: int, size: int, expected: Refusal | None) -> None:
    caps = Caps(items=8, size=100)
    assert over_caps(2, 40, items, size, caps) is expected


def test_limits_below_one_request_with_an_empty_queue_accept_it() -> None:
    assert over_caps(8, 10**9, 0, 0, Caps(1, 1)) is None


@pytest.mark.parametrize(
    ("backlog_s", "chance", "seconds"),
    [
        pytest.param(0.08, 0.0, 1, id="80 ms: the shortest that HTTP can say"),
        pytest.param(0.08, 0.95, 2, id="jitter of a second at least: 1.03"),
        pytest.param(6.4, 0.0, 7, id="6.4 s, rounded up"),
        pytest.param(6.4, 1.0, 10, id="half as much again: 9.6"),
        pytest.param(1000.0, 0.0, 20, id="a long backlog"),
        pytest.param(1000.0, 1.0, 30, id="never longer than half a minute"),
        pytest.param(None, 0.5, 25, id="nothing is known yet"),
    ],
)
def test_retry_after_is_the_backlog_plus_jitter(
    backlog_s: float | None, chance: float, seconds: int
) -> None:
    assert retry_after_s(backlog_s, chance) == seconds


@given(st.floats(0, 1e6), st.floats(0, 1e6), st.floats(0, 1))
def test_retry_after_of_a_longer_backlog_is_not_earlier(a: float, b: float, chance: float) -> None:
    low, high = sorted((a, b))
    assert 1 <= retry_after_s(low, chance) <= retry_after_s(high, chance) <= 30


def after(margin: DeadlineMargin, history: list[bool], now_s: float = 1.0) -> DeadlineMargin:
    for missed in history:
        margin = margin.record(missed=missed, arrived_s=0.0, now_s=now_s)
    return margin


@pytest.mark.parametrize(
    ("history", "share"),
    [
        pytest.param([False] * 100, 0.81, id="a hundred in time: one percent back"),
        pytest.param([True] + [False] * 99, 0.81, id="one in a hundred is what is aimed at"),
        pytest.param([True] * 2 + [False] * 98, 0.76, id="two are too many: a twentieth less"),
        pytest.param([True] * 3, 0.76, id="three are enough to know"),
        pytest.param([True] * 30, 0.76, id="misses of one generation count once"),
        pytest.param([False] * 99, 0.80, id="too few to say"),
    ],
)
def test_deadline_share_follows_misses(history: list[bool], share: float) -> None:
    assert after(DeadlineMargin(0.8), history).share == pytest.approx(share)


def test_deadline_share_stays_within_limits() -> None:
    most = after(DeadlineMargin(), [False] * 1000)
    assert most.share == 0.95
    least = most
    for generation in range(100):
        for _ in range(3):
            least = least.record(missed=True, arrived_s=float(generation), now_s=float(generation))
    assert least.share == 0.5
    assert least.latest_s(arrived_s=10.0, deadline_s=10.1) == pytest.approx(10.05)
