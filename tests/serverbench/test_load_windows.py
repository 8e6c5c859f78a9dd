"""Failures are the slowest, and nothing that was not measured has a number."""

from __future__ import annotations

import math

import pytest

from serverbench.generator.exchange import Answers, Status
from serverbench.windows import window


def answers(*ends: tuple[float, float | None, int]) -> Answers:
    due_s, took_s, statuses = zip(*ends, strict=True)
    return Answers(
        due_s=due_s,
        took_s=took_s,
        statuses=statuses,
        kinds=(0,) * len(ends),
        cpu_s=0.0,
        late_p99_s=0.0,
        retried=0,
        connections=1,
    )


SEEN = window(
    answers(
        (0.1, 0.010, 200),
        (0.2, 0.020, 200),
        (0.3, 0.001, 429),
        (0.4, None, Status.TIMED_OUT),
        (1.5, 0.500, 200),
        (1.6, 0.002, 503),
    ),
    2.0,
)


def test_a_request_without_an_answer_never_ended() -> None:
    assert SEEN.quantile_s(0.33) == 0.020
    assert SEEN.quantile_s(0.50) == 0.500
    assert SEEN.quantile_s(0.51) == math.inf, "half were refused or lost"


def test_good_answers_are_right_and_in_time() -> None:
    assert SEEN.good_rps(0.1) == pytest.approx(1.0)
    assert SEEN.between(0.0, 1.0).good_rps(0.015) == pytest.approx(1.0)


def test_refusals_have_a_latency_of_their_own() -> None:
    assert SEEN.refused_quantile_s(0.5) == 0.001
    assert math.isnan(SEEN.between(0.0, 0.25).refused_quantile_s(0.5))


def test_a_part_holds_what_was_due_in_it() -> None:
    part = SEEN.between(0.2, 1.5)
    assert [one.due_s for one in part.requests] == [0.2, 0.3, 0.4]
    assert part.seconds == pytest.approx(1.3)
    assert math.isnan(SEEN.between(1.7, 1.8).quantile_s(0.5))


def test_outcomes_are_counted_by_status() -> None:
    assert SEEN.statuses() == {200: 3, 429: 1, Status.TIMED_OUT: 1, 503: 1}
