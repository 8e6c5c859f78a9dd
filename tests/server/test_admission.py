"""Who may wait, and when to come back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.admission import Refusal, admit, retry_after_s


@pytest.mark.parametrize(
    ("ready", "draining", "waiting", "expected"),
    [
        pytest.param(True, False, 0, None, id="ready and empty: accepted"),
        pytest.param(True, False, 6, None, id="the last room is taken"),
        pytest.param(True, False, 7, Refusal.QUEUE_FULL, id="one item too many"),
        pytest.param(False, False, 0, Refusal.NOT_READY, id="not warm yet"),
        pytest.param(True, True, 0, Refusal.DRAINING, id="on the way out"),
        pytest.param(False, True, 9, Refusal.DRAINING, id="stopping explains more than the rest"),
    ],
)
def test_admission(ready: bool, draining: bool, waiting: int, expected: Refusal | None) -> None:
    got = admit(2, ready=ready, draining=draining, waiting_items=waiting, max_waiting_items=8)
    assert got is expected


def test_a_bound_below_one_request_still_lets_it_through_when_nobody_waits() -> None:
    assert admit(8, ready=True, draining=False, waiting_items=0, max_waiting_items=1) is None


@pytest.mark.parametrize(
    ("waiting", "rate", "seconds"),
    [
        pytest.param(64, 800.0, 1, id="a backlog of 80 ms: the shortest that HTTP can say"),
        pytest.param(64, 10.0, 7, id="6.4 s, rounded up"),
        pytest.param(64, 0.5, 30, id="never longer than half a minute"),
        pytest.param(64, None, 30, id="nothing is known yet"),
        pytest.param(64, 0.0, 30, id="nothing moves"),
    ],
)
def test_retry_after_is_the_time_in_which_the_backlog_is_served(
    waiting: int, rate: float | None, seconds: int
) -> None:
    assert retry_after_s(waiting, rate) == seconds


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0.001, 1e6))
def test_a_longer_backlog_never_asks_for_an_earlier_return(a: int, b: int, rate: float) -> None:
    low, high = sorted((a, b))
    assert 1 <= retry_after_s(low, rate) <= retry_after_s(high, rate) <= 30
