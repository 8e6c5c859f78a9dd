"""Busy replicas that wait for what they share, a database or a GPU: more of them answer no more."""

from __future__ import annotations

import pytest

from headroom.scaling.demand.shared_limit import FIRST_S, SharedLimit
from headroom.scaling.demand.throughput import Throughput

WINDOW_S, TICK_S = 8.0, 2.0


def load(ready: int, answered_rps: float, each_rps: float) -> Throughput:
    """Replicas in an overload, where the learned cost says that each answers `each_rps`."""
    return Throughput(
        window_s=WINDOW_S,
        arrived=1.3 * answered_rps * WINDOW_S,
        answered=answered_rps * WINDOW_S,
        missed=0.0,
        in_flight=40 * ready,
        ready=ready,
        full_rps=each_rps,
        standing_queue=30.0 * ready,
        queue_bound=1.0 * ready,
        busy=answered_rps >= 0.9 * each_rps * ready,
    )


def after(*phases: tuple[float, int, float, float]) -> tuple[SharedLimit, float]:
    """Follow phases of (seconds, ready, answered_rps, each_rps); return the record and its time."""
    limit, now_s = SharedLimit(), 0.0
    for seconds, ready, answered_rps, each_rps in phases:
        began_s = now_s
        while now_s < began_s + seconds:
            there = load(ready, answered_rps, each_rps)
            limit = limit.observe(now_s, there, now_s - began_s, over_target=True)
            now_s += TICK_S
    return limit, now_s


@pytest.mark.parametrize(
    ("later", "most"),
    [
        pytest.param((30, 15, 12.0, 0.8), 15, id="all wait for a database"),
        pytest.param((30, 8, 12.9, 1.6), 8, id="half as many again, 8 % more answers"),
        pytest.param((30, 15, 36.0, 2.4), None, id="three times the answers"),
        pytest.param((30, 8, 14.4, 1.8), None, id="half as many again, 20 % more answers"),
        pytest.param((30, 15, 22.0, 1.4), None, id="costlier requests, and more answers"),
        pytest.param((30, 7, 12.0, 1.7), None, id="too few more replicas to judge"),
        pytest.param((30, 15, 12.0, 2.4), None, id="idle, not busy"),
        pytest.param((10, 15, 12.0, 0.8), None, id="ready for 10 s"),
    ],
)
def test_limit_is_known_if_more_busy_replicas_answer_no_more(
    later: tuple[float, int, float, float], most: int | None
) -> None:
    limit, _ = after((60, 5, 12.0, 2.4), later)
    assert limit.most == most


def test_detail_gives_the_answer_rates_of_old_and_new_replicas() -> None:
    limit, _ = after((60, 5, 12.0, 2.4), (30, 15, 12.0, 0.8))
    assert limit.detail == (
        "15 busy replicas answer 12/s, 5 answered 12/s: they wait for something that they share"
    )


def test_growth_waits_for_the_verdict_as_soon_as_it_looks_like_a_limit() -> None:
    limit, _ = after((60, 5, 12.0, 2.4), (4, 11, 12.0, 1.1))
    assert limit.waits
    assert limit.most is None


def test_requests_that_became_costlier_over_minutes_are_no_limit() -> None:
    """Replicas that follow a slow rise of the cost answer what arrives, however many they are."""
    limit, _ = after(*((80, ready, 12.0, 12.0 / ready) for ready in (5, 6, 7, 8, 9, 10, 11, 12)))
    assert limit.most is None
    assert not limit.waits


def test_half_as_many_again_are_tried_after_times_that_double() -> None:
    limit, now_s = after((60, 5, 12.0, 2.4), (30, 15, 12.0, 0.8))
    tried = []
    while now_s < 4 * FIRST_S:
        before, limit = (
            limit.most,
            limit.observe(now_s, load(15, 12.0, 0.8), 99.0, over_target=True),
        )
        if limit.most != before:
            tried.append((round(now_s / FIRST_S, 1), limit.most))
        now_s += TICK_S
    assert tried == [(1.1, 23), (3.1, 35)]


@pytest.mark.parametrize(
    ("answered_rps", "most"),
    [
        pytest.param(14.5, None, id="the limit was lifted"),
        pytest.param(13.5, 15, id="13 % more may be chance"),
    ],
)
def test_limit_ends_when_more_is_answered(answered_rps: float, most: int | None) -> None:
    limit, now_s = after((60, 5, 12.0, 2.4), (30, 15, 12.0, 0.8))
    there = load(15, answered_rps, 0.8)
    assert limit.observe(now_s, there, 99.0, over_target=True).most == most


def test_limit_ends_with_the_overload() -> None:
    limit, now_s = after((60, 5, 12.0, 2.4), (30, 15, 12.0, 0.8))
    assert limit.observe(now_s, load(15, 12.0, 0.8), 99.0, over_target=False) == SharedLimit()
