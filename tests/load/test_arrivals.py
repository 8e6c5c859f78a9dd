"""From a trace to the instants at which requests are sent."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.arrivals import Replay, ReplayError, arrivals
from load.traces import RateTrace, RequestTrace, Trace

RECORDED = RequestTrace(tuple(i * 0.5 for i in range(2001)))
COUNTED = RateTrace(60.0, (600.0, 0.0, 1200.0, 60.0))


def test_unscaled_requests_are_sent_when_they_came() -> None:
    due = arrivals(RECORDED, Replay(start_s=10.0, duration_s=2.0))
    assert due == (0.0, 0.5, 1.0, 1.5)


def test_thinning_keeps_times_and_the_configured_share() -> None:
    due = arrivals(RECORDED, Replay(duration_s=1000.0, scale=0.25))
    assert set(due) <= set(RECORDED.arrivals_s)
    assert len(due) == pytest.approx(500, abs=4 * math.sqrt(500))


def test_a_request_of_the_window_stays_or_goes_whatever_the_window() -> None:
    whole = arrivals(RECORDED, Replay(duration_s=1000.0, scale=0.25))
    part = arrivals(RECORDED, Replay(start_s=100.0, duration_s=50.0, scale=0.25))
    assert part == tuple(due - 100.0 for due in whole if 100.0 <= due < 150.0)


def test_counts_become_as_many_arrivals_as_were_counted_and_none_in_an_empty_bin() -> None:
    due = arrivals(COUNTED, Replay(duration_s=240.0, scale=2.0))
    per_bin = [sum(1 for at in due if i * 60 <= at < i * 60 + 60) for i in range(4)]
    for sent, recorded in zip(per_bin, COUNTED.requests, strict=True):
        assert sent == pytest.approx(2 * recorded, abs=4 * math.sqrt(2 * recorded))
    assert per_bin[1] == 0


def test_a_window_may_begin_and_end_within_a_bin() -> None:
    due = arrivals(COUNTED, Replay(start_s=30.0, duration_s=120.0, scale=30.0))
    per_bin = [sum(1 for at in due if i * 30 <= at < i * 30 + 30) for i in range(4)]
    assert per_bin == [pytest.approx(9000, rel=0.05), 0, 0, pytest.approx(18_000, rel=0.05)]


@pytest.mark.parametrize(
    ("trace", "replay", "message"),
    [
        (
            COUNTED,
            Replay(start_s=200.0, duration_s=60.0),
            "lasts 240 s; the window is 200 to 260 s",
        ),
        (COUNTED, Replay(duration_s=0.0), "last more than 0 seconds; got start 0, duration 0"),
        (COUNTED, Replay(duration_s=math.nan), "got start 0, duration nan"),
        (COUNTED, Replay(start_s=-1.0, duration_s=5.0), "start at 0 or later"),
        (COUNTED, Replay(duration_s=60.0, scale=0.0), "scale must be above 0; got 0"),
        (COUNTED, Replay(duration_s=60.0, scale=math.inf), "scale must be above 0; got inf"),
        (RECORDED, Replay(duration_s=60.0, scale=1.5), "scale must be at most 1; got 1.5"),
        (COUNTED, Replay(duration_s=60.0, max_requests=100), "at most 100 requests"),
    ],
)
def test_an_impossible_replay_is_refused_with_its_rule(
    trace: Trace, replay: Replay, message: str
) -> None:
    with pytest.raises(ReplayError) as caught:
        arrivals(trace, replay)
    assert message in str(caught.value)


@given(
    counts=st.lists(st.floats(0, 200), min_size=2, max_size=8),
    bin_s=st.floats(0.5, 60),
    scale=st.floats(0.01, 3),
    seed=st.integers(0, 5),
    share=st.tuples(st.floats(0, 0.9), st.floats(0.01, 1)),
)
def test_arrivals_are_sorted_lie_in_the_window_and_depend_on_nothing_else(
    counts: list[float], bin_s: float, scale: float, seed: int, share: tuple[float, float]
) -> None:
    trace = RateTrace(bin_s, tuple(counts))
    start_s = share[0] * trace.duration_s
    replay = Replay(
        start_s=start_s,
        duration_s=share[1] * (trace.duration_s - start_s),
        scale=scale,
        seed=seed,
    )
    due = arrivals(trace, replay)
    assert list(due) == sorted(due)
    assert all(0.0 <= at < replay.duration_s for at in due)
    assert due == arrivals(trace, replay)
