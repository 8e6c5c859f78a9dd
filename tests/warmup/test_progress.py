"""Progress of a warm-up: warm, next request, late; tables of answers."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.controller.warmup.progress import (
    LATE_PAUSE_S,
    LONGEST_PAUSE_S,
    ROUND_PAUSE_S,
    SHORTEST_PAUSE_S,
    Fault,
    Progress,
    Terms,
)

TERMS = Terms(requests=4, max_latency_s=0.25, timeout_s=60.0)


def after(*seconds: float | None, terms: Terms = TERMS, begun_s: float = 0.0) -> Progress:
    """Give the progress after answers that took so long; None is a request without an answer."""
    progress, now_s = Progress(begun_s=begun_s), begun_s
    for one in seconds:
        now_s += one or 0.0
        if one is None:
            progress = progress.failed(Fault.UNANSWERED, "connection refused", now_s)
        else:
            progress = progress.answered(one, now_s, terms)
    return progress


@pytest.mark.parametrize(
    ("answers", "warm"),
    [
        ((), False),
        ((0.1, 0.1, 0.1), False),
        ((0.1, 0.1, 0.1, 0.1), True),
        ((9.0, 2.0, 0.1, 0.1, 0.1, 0.25), True),
        ((9.0, 0.1, 0.1, 0.1, 0.26), False),
        ((0.1, 0.1, 0.1, None, 0.1), False),
        ((0.1, 0.1, 0.1, None, 0.1, 0.1, 0.1, 0.1), True),
    ],
)
def test_pod_is_warm_after_enough_fast_requests(
    answers: tuple[float | None, ...], warm: bool
) -> None:
    assert after(*answers).is_warm(TERMS) is warm


@pytest.mark.parametrize(("slow", "warm"), [(1, True), (2, False)])
def test_one_of_twenty_requests_may_be_slow(slow: int, warm: bool) -> None:
    terms = Terms(requests=20, max_latency_s=0.25, timeout_s=60.0)
    assert after(*[0.1] * (20 - slow), *[3.0] * slow, terms=terms).is_warm(terms) is warm


def test_warmup_requests_are_sent_one_after_another() -> None:
    assert after().next_s(TERMS, 7.0) == 7.0
    assert after(9.0, 0.5).next_s(TERMS, 9.5) == 9.5


def test_failures_pause_up_to_ten_seconds() -> None:
    pauses = [after(*[None] * n).next_s(TERMS, 0.0) for n in (1, 2, 3, 4, 5, 6, 7, 20)]
    assert pauses == [SHORTEST_PAUSE_S, 0.5, 1.0, 2.0, 4.0, 8.0, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    assert after(None, None, 0.1).next_s(TERMS, 0.1) == 0.1


def test_slow_pod_is_not_flooded() -> None:
    assert after(0.3, 0.3, 0.3).next_s(TERMS, 0.9) == pytest.approx(0.9)
    assert after(0.3, 0.3, 0.3, 0.3).next_s(TERMS, 1.2) == pytest.approx(1.2 + ROUND_PAUSE_S)


@pytest.mark.parametrize(
    ("answers", "now_s", "late", "next_s"),
    [
        ((0.3,), 59.0, False, 0.3),
        ((0.3,), 61.0, True, 0.3 + LATE_PAUSE_S),
        ((None,), 61.0, True, LATE_PAUSE_S),
        ((0.1,), 61.0, True, 0.1),
    ],
)
def test_warmup_after_timeout_continues_slowly(
    answers: tuple[float | None, ...], now_s: float, late: bool, next_s: float
) -> None:
    progress = after(*answers)
    assert progress.is_late(TERMS, now_s) is late
    assert progress.next_s(TERMS, now_s) == pytest.approx(next_s)


@settings(max_examples=200)
@given(st.lists(st.one_of(st.none(), st.floats(0.0, 300.0)), max_size=40), st.integers(1, 6))
def test_pod_is_warm_exactly_by_its_last_requests(
    answers: list[float | None], requests: int
) -> None:
    terms = Terms(requests=requests, max_latency_s=0.25, timeout_s=60.0)
    last = answers[-requests:]
    quick = len(last) == requests and all(one is not None and one <= 0.25 for one in last)
    progress = after(*answers, terms=terms)
    assert progress.is_warm(terms) is quick
    assert progress.sent == len(answers)
    assert len(progress.answered_s) <= requests
    assert progress.last_s is None or progress.next_s(terms, progress.last_s) >= progress.last_s
