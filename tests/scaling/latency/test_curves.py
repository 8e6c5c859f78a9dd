"""Curves and tables by hand: interpolation, grids, heavy traffic, balls into bins."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency import many_servers, slot_pool
from headroom.scaling.latency.latency_tables import between
from headroom.scaling.latency.load_curve import LoadCurve, execution_percentile
from headroom.scaling.latency.sticky_connections import imbalance, max_connections
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing
from latency_tables import batch_chain

CURVE = LoadCurve(stretches=(1.0, 2.0, 4.0), latencies=(1.0, 3.0, 7.0), slope=2.0)


@pytest.mark.parametrize(
    ("utilization", "latency"),
    [
        (0.0, 1.0),
        (1 / 3, 2.0),  # stretch 1.5, halfway from 1 to 3
        (0.5, 3.0),
        (0.6, 4.0),  # stretch 2.5, a quarter of the way from 3 to 7
        (0.75, 7.0),
        (7 / 9, 8.0),
        (0.9, 19.0),  # stretch 10: six more at 2 each
    ],
)
def test_curve_between_its_points_is_linear_in_stretch(utilization: float, latency: float) -> None:
    assert CURVE.latency(utilization) == pytest.approx(latency)
    assert CURVE.utilization(latency) == pytest.approx(utilization)


def test_curve_where_flat_returns_the_highest_load() -> None:
    flat = LoadCurve(stretches=(1.0, 2.0, 4.0), latencies=(1.0, 1.0, 3.0), slope=1.0)
    assert flat.utilization(1.0) == pytest.approx(0.5)
    assert flat.utilization(0.99) == 0.0


@pytest.mark.parametrize(
    ("cv", "percentile", "value"),
    [(1.0, 0.95, 2.781), (0.0, 0.95, 1.0), (1.0, 0.5, 0.7071), (2.0, 0.99, 8.555)],
)
def test_execution_percentile_is_that_of_a_lognormal(
    cv: float, percentile: float, value: float
) -> None:
    assert execution_percentile(cv, percentile) == pytest.approx(value, rel=1e-3)


@pytest.mark.parametrize(
    ("value", "found"),
    [
        (0.0, (0, 1, 0.0)),
        (1.0, (0, 1, 0.0)),
        (1.5, (0, 1, 0.5)),
        (2.0, (1, 2, 0.0)),
        (5.0, (1, 2, 0.75)),
        (6.0, (1, 2, 1.0)),
        (9.0, (1, 2, 1.0)),
    ],
)
def test_between_returns_two_neighbours_clamped_to_the_ends(
    value: float, found: tuple[int, int, float]
) -> None:
    assert between([1.0, 2.0, 6.0], value) == pytest.approx(found)


@pytest.mark.parametrize(
    ("replicas", "connections"), [(1, 64), (4, 23), (12, 11), (40, 6), (10_000_000, 1)]
)
def test_max_connections_of_64(replicas: int, connections: int) -> None:
    assert max_connections(replicas) == connections
    assert imbalance(replicas) == pytest.approx(connections * replicas / 64)


def test_loads_of_curves_rise_evenly() -> None:
    steps = [later - load for load, later in itertools.pairwise(slot_pool.LOADS)]
    assert (slot_pool.LOADS[0], slot_pool.LOADS[-1]) == (0.0, 0.96)
    assert 0.0 < min(steps) < max(steps) < 0.0501
    assert all(one < other for one, other in itertools.pairwise(slot_pool.POOLS))


def single(slots: int, cv: float) -> CostModel:
    return CostModel(fixed_s=1.0, per_item_s=0.0, max_batch=1, cv=cv, slots=slots)


@pytest.mark.parametrize("slots", [4, 32, 33, 40, 56, 80, 200, 900])
@pytest.mark.parametrize("load", [0.3, 0.8, 0.93])
def test_pool_between_solved_sizes_is_interpolated_closely(slots: int, load: float) -> None:
    solved = many_servers.latencies(slots, 1.0, 0.95, [load])[0]
    tail = TailLatency(cost=single(slots, 1.0), percentile=0.95)
    assert tail.latency_s(load * slots, 1) == pytest.approx(solved, rel=0.02)


@pytest.mark.parametrize(("slots", "most"), [(4, 1.02), (40, 1.09), (200, 1.13), (900, 1.06)])
def test_pool_beyond_the_last_load_is_slightly_conservative(slots: int, most: float) -> None:
    solved = many_servers.latencies(slots, 1.0, 0.95, [0.985])[0]
    found = TailLatency(cost=single(slots, 1.0), percentile=0.95).latency_s(0.985 * slots, 1)
    assert solved <= found * 1.002 <= most * solved


@pytest.mark.parametrize(("servers", "cv", "load"), [(1, 1.0, 0.7), (10, 1.0, 0.85), (4, 0.3, 0.9)])
def test_latency_is_the_sum_of_wait_and_execution(servers: int, cv: float, load: float) -> None:
    """A wait is exponential where there is one, an execution lognormal; drawn a million times."""
    chance, draws = np.random.default_rng(3), 400_000
    waits = many_servers.erlang_c(servers, servers * load)
    mean = (1 + cv * cv) / (2 * servers * (1 - load))
    waited = np.where(chance.random(draws) < waits, chance.exponential(mean, draws), 0.0)
    sigma = math.sqrt(math.log1p(cv * cv))
    executed = chance.lognormal(-sigma * sigma / 2, sigma, draws)
    expected = np.quantile(waited + executed, [0.9, 0.95, 0.99])
    for percentile, value in zip((0.9, 0.95, 0.99), expected, strict=True):
        solved = many_servers.latencies(servers, cv, percentile, [load])[0]
        assert solved == pytest.approx(float(value), rel=0.02)


@pytest.mark.parametrize("percentile", [0.9, 0.95, 0.99, 0.999])
@pytest.mark.parametrize("cv", [0.0, 0.5, 1.0])
def test_latency_without_wait_is_an_execution(cv: float, percentile: float) -> None:
    [found] = many_servers.latencies(1000, cv, percentile, [0.3])
    assert found == pytest.approx(execution_percentile(cv, percentile), rel=0.03)


def test_routing_loss_with_several_slots_is_smaller() -> None:
    """Measured at one slot it is a factor f on latency; at c slots f^(1/c) is left."""
    one, two = (
        TailLatency(cost=single(slots, 1.0), percentile=0.95, routing=Routing.POWER_OF_TWO)
        for slots in (1, 2)
    )
    lost = one.latency_s(0.9 * 4, 4) / many_servers.latencies(4, 1.0, 0.95, [0.9])[0]
    pooled = many_servers.latencies(8, 1.0, 0.95, [0.9])[0]
    assert lost > 1.1
    assert two.latency_s(0.9 * 8, 4) == pytest.approx(pooled * math.sqrt(lost), rel=0.01)


def test_tables_end_at_the_same_fleet() -> None:
    ends = {axes.FLEETS[routing][-1] for routing in axes.FLEETS if routing is not Routing.RANDOM}
    assert ends == {slot_pool.LARGEST_FLEET} == {40}


def test_m_m_10_at_85_percent_waits_1_57_executions() -> None:
    waiting = many_servers.erlang_c(10, 8.5)
    assert math.log(waiting / 0.05) / (10 * 0.15) == pytest.approx(1.57, abs=0.01)


def test_round_robin_with_one_replica_equals_random() -> None:
    costs = [single(4, 1.0), CostModel(fixed_s=0.5, per_item_s=0.1, max_batch=4, slots=2)]
    for cost, load in itertools.product(costs, (0.3, 0.8)):
        one, other = (
            TailLatency(cost=cost, percentile=0.95, routing=routing).latency_s(
                load * cost.full_batch_rps, 1
            )
            for routing in (Routing.ROUND_ROBIN, Routing.RANDOM)
        )
        assert one == pytest.approx(other)


@pytest.mark.parametrize(("slots", "cv"), [(2, 0.3), (8, 1.0)])
def test_round_robin_with_many_replicas_has_even_arrivals(slots: int, cv: float) -> None:
    for load in (0.5, 0.8, 0.94):
        even = many_servers.latencies(slots, cv, 0.95, [load], 0.0)[0]
        tail = TailLatency(cost=single(slots, cv), percentile=0.95, routing=Routing.ROUND_ROBIN)
        assert tail.latency_s(load * 10_000 * slots, 10_000) == pytest.approx(even, rel=0.01)
    random = many_servers.latencies(slots, cv, 0.95, [0.94])[0]
    assert even < 0.9 * random


def test_two_batching_slots_equal_two_replicas_with_one_queue() -> None:
    two = CostModel(fixed_s=0.5, per_item_s=0.25, max_batch=2, slots=2)
    one = CostModel(fixed_s=0.5, per_item_s=0.25, max_batch=2)
    for load in (0.2, 0.5, 0.8, 0.9):
        slots = TailLatency(cost=two, percentile=0.95).latency_s(load * two.full_batch_rps, 1)
        central = TailLatency(cost=one, percentile=0.95, routing=Routing.CENTRAL)
        assert slots == pytest.approx(central.latency_s(load * 2 * one.full_batch_rps, 2), rel=0.02)


@pytest.mark.parametrize(
    ("routing", "replicas", "max_batch", "cv", "mean"),
    [
        (Routing.RANDOM, 5, 4, 1.0, 0.625),  # (1/4 + 1) / 2
        (Routing.ROUND_ROBIN, 5, 4, 1.0, 0.525),  # (1/20 + 1) / 2
        (Routing.LEAST_IN_FLIGHT, 5, 4, 1.0, 0.125),  # (1/4 + 1) / 10
        (Routing.CENTRAL, 2, 1, 0.5, 0.3125),  # (1 + 1/4) / 4
    ],
)
def test_heavy_traffic_slope_by_routing(
    routing: Routing, replicas: int, max_batch: int, cv: float, mean: float
) -> None:
    assert axes.heavy_traffic(routing, replicas, max_batch, cv) == pytest.approx(mean)


@pytest.mark.parametrize("cv", [0.0, 0.05, 0.1, 0.2, 0.45, 0.8, 1.0, 1.5, 2.0])
def test_variation_interpolation_is_exact_for_parabolas(cv: float) -> None:
    first, weights = axes.variation(cv)
    for power in range(3):
        nodes = axes.CVS[first : first + len(weights)]
        total = sum(weight * node**power for weight, node in zip(weights, nodes, strict=True))
        assert total == pytest.approx(cv**power, abs=1e-9)
    assert len(weights) == (3 if cv < 0.1 or cv >= 1.0 else 4)


@pytest.mark.parametrize(("idle", "batch", "power"), [(1.0, 1, 0.0), (0.25, 16, 0.5), (1.0, 8, 0)])
def test_exponent_of_an_idle_time(idle: float, batch: int, power: float) -> None:
    assert axes.exponent(idle, batch) == pytest.approx(power)


def test_levels_reach_from_idle_to_many_full_batches() -> None:
    levels = axes.levels(0.125, 3.0)
    assert len(levels) == axes.LEVELS
    assert levels[0] == pytest.approx(3.0 * 0.125 * 16**0.01)
    assert levels[17] == pytest.approx(6.0)  # twice a full batch
    assert levels[-1] == pytest.approx(6.0 * 2**4.5)
    ratios = np.diff(np.log(levels))
    assert (ratios > 0).all()
    assert ratios[:18].max() < 0.09 * math.log(16) + 0.01
    assert ratios[18:].max() == pytest.approx(math.log(2) / 2)


@pytest.mark.parametrize("percentile", [0.5, 0.7, 0.93, 0.97, 0.995])
@pytest.mark.parametrize(
    ("share", "batch", "load"), [(0.4, 4, 0.6), (0.7, 8, 0.85), (0.02, 8, 0.7)]
)
def test_percentile_outside_the_tables_is_interpolated(
    percentile: float, share: float, batch: int, load: float
) -> None:
    expected = batch_chain.percentiles(share, batch, load, [percentile])[0]
    cost = CostModel(fixed_s=share, per_item_s=(1 - share) / batch, max_batch=batch)
    found = TailLatency(cost=cost, percentile=percentile).latency_s(load * cost.full_batch_rps, 1)
    assert found == pytest.approx(expected, rel=0.05)


def test_variation_above_two_is_clamped() -> None:
    more, most = (TailLatency(cost=single(1, cv), percentile=0.95) for cv in (2.7, 2.0))
    assert more.idle_s == pytest.approx(execution_percentile(2.0, 0.95)) == most.idle_s
    assert more.latency_s(0.5, 1) == most.latency_s(0.5, 1)
    less = TailLatency(cost=single(1, 1.9), percentile=0.95)
    assert less.idle_s != most.idle_s


def test_curve_above_batch_64_is_that_of_64() -> None:
    large = CostModel(fixed_s=0.5, per_item_s=0.5 / 128, max_batch=128)
    small = CostModel(fixed_s=0.5, per_item_s=0.5 / 64, max_batch=64)
    for load in (0.3, 0.7, 0.9):
        one, other = (
            TailLatency(cost=cost, percentile=0.95).latency_s(load * cost.full_batch_rps, 1)
            for cost in (large, small)
        )
        assert one == pytest.approx(other, rel=0.005)
