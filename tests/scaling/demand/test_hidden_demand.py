"""Hidden demand, retries, obstacles and the spread of connections, as tables and properties."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.demand.hidden_demand import (
    GROWTH,
    LEAST_GROWTH,
    InFlightHistory,
    concurrency_within,
    is_hidden,
    replicas_for_in_flight,
)
from headroom.scaling.demand.obstacles import LASTS_S, Obstacles
from headroom.scaling.demand.retries import Retries
from headroom.scaling.demand.throughput import Throughput
from headroom.scaling.values.demand import Obstacle
from headroom.scaling.values.observation import CostModel
from scaling.demand.saturated_throughput import load

FAST = CostModel(fixed_s=0.02, per_item_s=0.01, max_batch=8)
"""Full batches: 8 / 0.1 s = 80 requests per second."""


def history(*in_flight: int) -> InFlightHistory:
    level = InFlightHistory()
    for number, requests in enumerate(in_flight):
        level = level.add(2.0 * number, requests, 2.0)
    return level


@pytest.mark.parametrize(
    ("changes", "in_flight", "hidden"),
    [
        pytest.param({}, (64, 64, 64), True, id="64 connections wait"),
        pytest.param({"arrived": 1920.0}, (64, 224, 384), False, id="an open stream grows"),
        pytest.param({}, (300, 200, 100), False, id="a backlog is worked off"),
        pytest.param(
            {"arrived": 1000.0}, (64, 64, 64), False, id="answers of replicas that were removed"
        ),
        pytest.param(
            {"answered": 600.0, "arrived": 600.0, "standing_queue": 0.0},
            (8, 9, 8),
            False,
            id="half the capacity",
        ),
        pytest.param(
            {"missed": 640.0, "answered": 640.0}, (64, 64, 64), True, id="some waiting clients miss"
        ),
        pytest.param({"ready": 0, "in_flight": 5}, (5, 5, 5), False, id="no replica is ready"),
        pytest.param(
            {"arrived": 0.0, "answered": 0.0}, (64, 64, 64), False, id="nothing is answered"
        ),
    ],
)
def test_demand_is_hidden_only_at_saturated_replicas_with_level_requests(
    changes: dict[str, float], in_flight: tuple[int, ...], hidden: bool
) -> None:
    assert is_hidden(load(**changes), history(*in_flight), 4.0) is hidden


@pytest.mark.parametrize(
    ("cost", "target_s", "concurrency"),
    [
        (FAST, 0.25, 16.0),
        (CostModel(fixed_s=0.02, per_item_s=0.01, max_batch=8, slots=2), 0.25, 32.0),
        (FAST, 0.09, 4.0),
        (CostModel(fixed_s=0.3, per_item_s=0.0, max_batch=1), 2.0, 37 / 6),
        (CostModel(fixed_s=0.3, per_item_s=0.0, max_batch=1), 0.3, 1.0),
    ],
)
def test_concurrency_within_target_counts_whole_batches(
    cost: CostModel, target_s: float, concurrency: float
) -> None:
    assert concurrency_within(cost, target_s) == pytest.approx(concurrency)


def test_64_connections_need_four_replicas_however_much_they_send() -> None:
    assert replicas_for_in_flight(load(), concurrency_within(FAST, 0.25)) == 4


@given(st.integers(1, 100_000), st.integers(1, 50), st.floats(1.0, 100.0))
def test_growth_for_requests_in_flight_is_bounded_per_cold_start(
    in_flight: int, ready: int, concurrency: float
) -> None:
    replicas = replicas_for_in_flight(load(in_flight=in_flight, ready=ready), concurrency)
    assert replicas <= GROWTH * ready
    assert replicas <= max(math.ceil(in_flight / concurrency), math.ceil(LEAST_GROWTH * ready))


def follow(retries: Retries, rates: list[tuple[float, float]], **kinds: float | bool) -> Retries:
    """Feed (rate, missed share) every 2 s."""
    values = {"cold_start_s": 180.0, "warming": False} | kinds
    for number, (rate_rps, missed) in enumerate(rates):
        retries = retries.observe(2.0 * number, rate_rps, missed, **values)  # type: ignore[arg-type]
    return retries


def test_retries_are_bounded_by_the_rate_before_misses_began() -> None:
    retries = follow(Retries(), [(40.0, 0.0)] * 10 + [(60.0, 0.3)] * 3 + [(374.0, 0.8)] * 20)
    assert retries.at_most_rps == pytest.approx(60.0)


def test_jump_without_retries_is_seen_in_the_first_seconds_with_misses() -> None:
    retries = follow(Retries(), [(40.0, 0.0)] * 10 + [(220.0, 0.5), (400.0, 0.6), (400.0, 0.7)])
    assert retries.at_most_rps == pytest.approx(400.0)


def test_bound_on_retries_doubles_after_each_cold_start_in_vain() -> None:
    retries = follow(
        Retries(), [(40.0, 0.0)] * 5 + [(40.0, 0.5)] + [(374.0, 0.8)] * 40, cold_start_s=60.0
    )
    assert retries.at_most_rps is not None
    assert 2 * 40.0 <= retries.at_most_rps <= 2 * 374.0


def test_bound_on_retries_ends_with_the_misses() -> None:
    retries = follow(Retries(), [(40.0, 0.5)] * 5 + [(40.0, 0.01)])
    assert retries.at_most_rps is None


def test_unknown_misses_change_no_bound() -> None:
    bound = follow(Retries(), [(40.0, 0.5)] * 5)
    assert bound.observe(99.0, 10.0, None, cold_start_s=60.0, warming=False) is bound


PINNED = np.array([640.0, 640.0, 2.0, 0.0])
EVEN = np.array([320.0, 320.0, 320.0, 322.0])


def observed(
    obstacles: Obstacles,
    now_s: float,
    seen: Throughput,
    arrived: np.ndarray[tuple[int], np.dtype[np.float64]],
    *,
    settled_s: float = 60.0,
    over: bool = True,
) -> Obstacles:
    return obstacles.observe(
        now_s,
        seen,
        arrived,
        arrived,
        arrived_s=8.0,
        settled_s=settled_s,
        over_target=over,
    )


@pytest.mark.parametrize(
    ("arrived", "settled_s", "over", "obstacle"),
    [
        pytest.param(PINNED, 30.0, True, Obstacle.CONNECTIONS_PINNED, id="two take all"),
        pytest.param(PINNED, 5.0, True, None, id="replicas are new"),
        pytest.param(PINNED, 30.0, False, None, id="latency is within the target"),
        pytest.param(EVEN, 30.0, True, None, id="all take part"),
    ],
)
def test_connections_are_pinned_while_settled_replicas_stay_idle(
    arrived: np.ndarray[tuple[int], np.dtype[np.float64]],
    settled_s: float,
    over: bool,
    obstacle: Obstacle | None,
) -> None:
    seen = observed(Obstacles(), 100.0, load(ready=4), arrived, settled_s=settled_s, over=over)
    assert seen.obstacle is obstacle


@pytest.mark.parametrize(
    ("arrived", "obstacle"),
    [
        pytest.param([5.0] * 16 + [0.0], None, id="none of 5 among 17"),
        pytest.param([19.0] * 16 + [0.0], Obstacle.CONNECTIONS_PINNED, id="none of 18 among 17"),
        pytest.param([40.0, 0.0], Obstacle.CONNECTIONS_PINNED, id="none of 20"),
        pytest.param([40.0, 4.0], None, id="4 of 22"),
        pytest.param([400.0, 40.0], Obstacle.CONNECTIONS_PINNED, id="40 of 220"),
        pytest.param([0.0, 0.0], None, id="no requests"),
    ],
)
def test_replica_is_idle_only_if_chance_does_not_leave_it_so_few_requests(
    arrived: list[float], obstacle: Obstacle | None
) -> None:
    busy = load(ready=len(arrived), full_rps=max(arrived) / 8.0)
    assert observed(Obstacles(), 100.0, busy, np.array(arrived)).obstacle is obstacle


@pytest.mark.parametrize(("later_s", "age"), [(0.0, ""), (59.0, ""), (750.0, "12 min ago: ")])
def test_evidence_of_an_obstacle_states_its_age(later_s: float, age: str) -> None:
    seen = observed(Obstacles(), 100.0, load(ready=4), PINNED)
    assert seen.text(100.0 + later_s) == age + seen.detail
    assert Obstacles().text(1e6) == ""


def test_obstacle_is_forgotten_without_further_evidence() -> None:
    seen = observed(Obstacles(), 100.0, load(ready=4), PINNED)
    later = observed(seen, 101.0 + LASTS_S, load(ready=4), EVEN, over=False)
    assert later.obstacle is None


@pytest.mark.parametrize(
    ("after", "obstacle"),
    [
        pytest.param({"answered": 1296.0}, Obstacle.DOWNSTREAM_LIMIT, id="162/s"),
        pytest.param({"answered": 2480.0}, None, id="310/s"),
        pytest.param(
            {"answered": 1296.0, "full_rps": 41.0}, None, id="162/s, each request costs twice"
        ),
        pytest.param(
            {"answered": 1040.0, "full_rps": 41.0}, None, id="twice the cost, unevenly loaded"
        ),
        pytest.param(
            {"answered": 1296.0, "full_rps": 75.0},
            Obstacle.DOWNSTREAM_LIMIT,
            id="162/s, each request costs 7 % more",
        ),
        pytest.param({"answered": 2480.0, "full_rps": 400.0}, None, id="310/s of cheap requests"),
        pytest.param(
            {"answered": 1296.0, "full_rps": math.nan, "busy": True},
            None,
            id="all sequences that fit are running",
        ),
        pytest.param(
            {"answered": 1296.0, "full_rps": math.nan, "busy": False},
            Obstacle.DOWNSTREAM_LIMIT,
            id="162/s, more sequences would fit",
        ),
    ],
)
def test_downstream_limit_is_seen_if_twice_the_replicas_do_no_more_work(
    after: dict[str, float], obstacle: Obstacle | None
) -> None:
    few, many = load(), load(ready=4, **after)
    seen = observed(Obstacles(), 100.0, few, np.array([640.0, 640.0]))
    for now_s in (130.0, 200.0, 230.0):
        replicas = few if now_s == 130.0 else many
        arrived = np.array([640.0, 640.0]) if replicas is few else EVEN
        if now_s == 200.0:  # latency is within the target while the new replicas start
            seen = observed(seen, 190.0, few, arrived, over=False)
        seen = observed(seen, now_s, replicas, arrived)
    assert seen.obstacle is obstacle
