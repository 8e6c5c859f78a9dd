"""Percentiles with misses as +Inf, attainment, windows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from load.outcomes import Outcome, Result
from load.statistics import FACTOR, Tally, Windows, bound_s, bucket_of, merged


def tally(*latencies_s: float, target_s: float = 1.0, **misses: int) -> Tally:
    result = Tally()
    for latency_s in latencies_s:
        result.add(Result(due_s=0.0, latency_s=latency_s, outcome=Outcome.OK), target_s)
    for name, count in misses.items():
        for _ in range(count):
            result.add(Result(due_s=0.0, latency_s=0.1, outcome=Outcome(name)), target_s)
    return result


@given(st.floats(0.001, 1000))
def test_a_bucket_bounds_its_latency_within_two_percent(latency_s: float) -> None:
    bound = bound_s(bucket_of(latency_s))
    assert latency_s <= bound * (1 + 1e-9)
    assert bound <= latency_s * FACTOR * (1 + 1e-9)


def test_tally_without_requests_has_no_percentile() -> None:
    assert Tally().quantile_s(0.95) is None
    assert Tally().attainment is None
    assert Tally().holds(0.95)


@pytest.mark.parametrize("miss", [o.value for o in Outcome if o is not Outcome.OK])
def test_every_kind_of_miss_counts_as_infinitely_slow(miss: str) -> None:
    seen = tally(*[0.1] * 94, **{miss: 6})
    assert seen.quantile_s(0.95) == math.inf
    assert seen.quantile_s(0.94) == pytest.approx(0.1, rel=0.02)
    assert seen.attainment == 0.94
    assert not seen.holds(0.95)
    assert seen.missed == 6


def test_fast_refusals_do_not_improve_attainment() -> None:
    assert tally(0.2, refused=3).attainment == 0.25


def test_exactly_the_permitted_share_of_misses_holds() -> None:
    assert tally(*[0.1] * 95, *[2.0] * 5).holds(0.95)
    assert not tally(*[0.1] * 94, *[2.0] * 6).holds(0.95)


def test_the_target_itself_is_within() -> None:
    assert tally(1.0, 1.0000001).within == 1


@given(st.lists(st.floats(0.001, 100), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_percentile_is_the_nearest_rank_rounded_up_to_its_bound(
    latencies_s: list[float], share: float
) -> None:
    exact = sorted(latencies_s)[math.ceil(share * len(latencies_s) - 1e-9) - 1]
    found = tally(*latencies_s).quantile_s(share)
    assert found is not None
    assert exact * (1 - 1e-9) <= found <= exact * FACTOR * (1 + 1e-9)


def test_windows_go_by_the_instant_at_which_a_request_was_due() -> None:
    windows = Windows(10.0)
    for due_s in (0.0, 9.99, 10.0, 35.0):
        windows.add(Result(due_s=due_s, latency_s=30.0, outcome=Outcome.OK), 1.0)
    assert [(start, t.requests) for start, t in windows.items()] == [(0.0, 2), (10.0, 1), (30.0, 1)]


outcomes = st.dictionaries(st.sampled_from(list(Outcome)), st.integers(1, 9), max_size=4)


@given(outcomes, st.lists(st.floats(0.001, 5), max_size=9), outcomes)
def test_a_tally_survives_json_and_sums_up(
    misses: dict[Outcome, int], latencies_s: list[float], more: dict[Outcome, int]
) -> None:
    left = tally(*latencies_s, **{o.value: n for o, n in misses.items() if o is not Outcome.OK})
    right = tally(0.5, **{o.value: n for o, n in more.items()})
    assert Tally.from_json(left.to_json()) == left
    total = merged((left, right))
    assert total.requests == left.requests + right.requests
    assert total.within == left.within + right.within


def test_a_tally_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="outcomes, within and buckets"):
        Tally.from_json({"outcomes": {}})
