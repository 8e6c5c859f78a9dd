"""Ideal that no server can exceed, worked out by hand and against the theory."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from serverbench.experiments import ideal
from serverbench.experiments.knees import draws, ladder
from serverbench.experiments.scale import FULL, QUICK
from serverbench.generator.arrivals import Segment, kinds, lognormal_lengths, poisson
from serverbench.loading import SLO_S
from serverbench.servers import Device
from serverbench.windows import quantile

USUAL = Device()


def test_free_device_takes_waiting_requests_up_to_a_batch() -> None:
    # 6 ms + 0.5 ms each: alone until 6.5 ms, the two that came meanwhile until 13.5, then nothing
    # waits, and of nine that come together eight are done at 110 and the ninth at 116.5.
    due_s = [0.0, 0.001, 0.002, *[0.1] * 9]
    done_s = ideal.finished_s(due_s, USUAL.batch_s, 8)
    assert done_s == pytest.approx([0.0065, 0.0135, 0.0135, *[0.110] * 8, 0.1165])


def test_a_batch_takes_as_long_as_its_longest() -> None:
    cost = Device(per_item_s=0.0, per_token_s=0.0001).batch_s
    # alone, 10 long: 7 ms; then two together, both as long as 100: 6 + 2 * 10 ms
    assert ideal.finished_s([0.0, 0.001, 0.002], cost, 8, [10, 20, 100]) == pytest.approx(
        [0.007, 0.033, 0.033]
    )


def test_the_ideal_agrees_with_the_simulation_of_the_public_comparison() -> None:
    due_s = poisson([Segment(300.0, 200.0)], seed=1)
    took_s = ideal.latencies_s(due_s, USUAL.batch_s, 8)
    assert quantile(took_s, 0.50) == pytest.approx(0.0110, rel=0.03)
    assert quantile(took_s, 0.95) == pytest.approx(0.0148, rel=0.03)


def test_the_highest_rate_of_the_usual_device_is_782() -> None:
    def p95_s(rate_rps: float) -> float:
        due_s = poisson([Segment(rate_rps, 300.0)], seed=1)
        return quantile(ideal.latencies_s(due_s, USUAL.batch_s, 8), 0.95)

    # 1000 s at 765, 775, 780, 785 and 790 give 53, 69, 86, 117 and 181 ms
    assert p95_s(765.0) < 0.07
    assert p95_s(795.0) > SLO_S


def test_the_same_seed_gives_the_same_arrivals_closer_together() -> None:
    slow, fast = (poisson([Segment(rate, 2.0)], seed=5) for rate in (100.0, 200.0))
    assert fast[: len(slow)] == pytest.approx([due_s / 2 for due_s in slow])
    assert len(fast) > 1.5 * len(slow)


def test_segments_follow_each_other() -> None:
    due_s = poisson([Segment(50.0, 2.0), Segment(500.0, 1.0)], seed=1)
    assert due_s == sorted(due_s)
    assert sum(at_s < 2.0 for at_s in due_s) == pytest.approx(100, abs=30)
    assert sum(at_s >= 2.0 for at_s in due_s) == pytest.approx(500, abs=70)
    assert max(due_s) < 3.0


def test_kinds_come_in_proportion_and_whatever_the_arrivals() -> None:
    drawn = kinds([0.98, 0.01, 0.01], 20_000, seed=1)
    assert drawn.count(1) == pytest.approx(200, abs=60)
    assert drawn == kinds([0.98, 0.01, 0.01], 20_000, seed=1)


def test_lengths_fill_their_bounds_with_the_median_in_the_middle() -> None:
    lengths = lognormal_lengths(90.0, 0.87, (16, 512), 64)
    assert lengths == sorted(lengths)
    assert (lengths[0], lengths[-1]) == (16, 512)
    assert lengths[32] == pytest.approx(90, abs=5)
    assert sum(lengths) / 64 == pytest.approx(126, abs=6)


@settings(max_examples=100)
@given(st.lists(st.floats(0.0, 1.0), max_size=40), st.integers(1, 8))
def test_no_request_ends_before_its_cost_and_none_is_lost(due_s: list[float], size: int) -> None:
    due_s.sort()
    done_s = ideal.finished_s(due_s, USUAL.batch_s, size)
    assert len(done_s) == len(due_s)
    assert done_s == sorted(done_s)
    for due, done in zip(due_s, done_s, strict=True):
        assert done >= due + 0.0065 - 1e-9


@settings(max_examples=100)
@given(st.integers(1, 60), st.integers(-1, 60))
def test_bisection_finds_the_last_that_holds(count: int, last: int) -> None:
    rates = [float(at) for at in range(count)]
    asked: list[float] = []

    def holds(rate: float) -> bool:
        asked.append(rate)
        return rate <= last

    found = ideal.highest(rates, holds)
    assert found == (None if last < 0 else min(last, count - 1))
    assert len(asked) == len(set(asked)) <= 8


def test_a_ladder_is_fine_where_it_is_decided_and_ends_above_the_ideal() -> None:
    rates = ladder(770.0, FULL)
    assert rates[0] == 100.0
    assert rates == sorted(set(rates))
    assert rates[-1] == 775.0
    assert rates[-10:] == [730.0 + 5.0 * at for at in range(10)]


def test_draws_are_chosen_whose_few_seconds_are_like_a_long_run() -> None:
    drawn = draws(USUAL, QUICK)[:2]
    # 2 s say little: other draws have their knee anywhere from 700 to 900
    assert all(770.0 <= ideal_rps <= 790.0 for ideal_rps, _ in drawn), drawn
