"""More load never is faster, more replicas never slower: the tail-latency model at any point."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.scaling.latency.sticky_connections import max_connections
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing
from scaling.latency.tail_latency_points import HEAVY, HIGHEST_UTILIZATION, SINGLE, VISION


@pytest.mark.parametrize(("cost", "target_s", "routing", "known"), HIGHEST_UTILIZATION)
def test_highest_utilization_by_routing(
    cost: CostModel, target_s: float, routing: Routing, known: dict[int, float]
) -> None:
    tail = TailLatency(cost=cost, percentile=0.95, routing=routing)
    for replicas, utilization in known.items():
        modelled = tail.capacity_rps(target_s, replicas) / cost.full_batch_rps
        assert modelled == pytest.approx(utilization, abs=0.025)


@pytest.mark.parametrize(("replicas", "on_average"), [(2, 0.81), (4, 0.70), (12, 0.53), (40, 0.32)])
def test_sticky_model_is_above_the_average_imbalance(replicas: int, on_average: float) -> None:
    tail = TailLatency(cost=VISION, percentile=0.95, routing=Routing.STICKY)
    modelled = tail.capacity_rps(0.1, replicas) / VISION.full_batch_rps
    assert 0.75 * on_average < modelled < on_average


@pytest.mark.parametrize(
    ("connections", "load", "replicas"), [(64, 4.0, 7), (64, 16.0, 64), (64, 80.0, 80), (3, 2.0, 3)]
)
def test_replicas_beyond_the_connections_are_not_recommended(
    connections: int, load: float, replicas: int
) -> None:
    tail = TailLatency(
        cost=SINGLE, percentile=0.95, routing=Routing.STICKY, connections=connections
    )
    alone_rps = tail.capacity_rps(2.0, 1) * max_connections(1, connections) / connections
    found = tail.replicas_for(load * alone_rps, 2.0, 1.0)
    assert found is not None
    assert found <= max(connections, load)
    assert found == replicas


@given(st.integers(1, 200), st.integers(1, 200))
def test_more_replicas_never_raise_the_largest_share(fewer: int, more: int) -> None:
    assert max_connections(fewer + more) <= max_connections(fewer)


@pytest.mark.parametrize("utilization", [0.5, 0.7, 0.9])
@pytest.mark.parametrize("replicas", [2, 4, 12, 40])
@pytest.mark.parametrize("cost", [VISION, HEAVY, SINGLE], ids=["vision", "heavy", "single"])
def test_routing_with_more_information_is_never_slower(
    cost: CostModel, replicas: int, utilization: float
) -> None:
    rate_rps = utilization * replicas * cost.full_batch_rps
    least, two, random = (
        TailLatency(cost=cost, percentile=0.95, routing=routing).latency_s(rate_rps, replicas)
        for routing in (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO, Routing.RANDOM)
    )
    assert least <= 1.03 * two  # batches may gain from gathering: 2 % either way
    assert two <= random


def test_idle_latency_is_the_percentile_of_an_execution() -> None:
    # lognormal with cv 1: 0.3 s x exp(1.645 x 0.8326 - 0.3466) = 0.834 s
    tail = TailLatency(cost=SINGLE, percentile=0.95)
    assert tail.idle_s == pytest.approx(0.834, rel=1e-3)
    assert tail.latency_s(0.0, 1) == pytest.approx(tail.idle_s)
    assert tail.capacity_rps(0.8, 1) == 0
    assert tail.replicas_for(1.0, 0.8, 1.2) is None
    assert tail.replicas_for(0.0, 0.8, 1.2) == 0


COSTS = st.builds(
    CostModel,
    fixed_s=st.floats(1e-4, 1.0),
    per_item_s=st.floats(0.0, 0.2),
    max_batch=st.sampled_from([1, 2, 3, 5, 8, 16, 40, 64, 100]),
    cv=st.sampled_from([0.0, 0.1, 0.3, 1.0, 1.7]),
    slots=st.sampled_from([1, 1, 1, 2, 8]),
)
TAILS = st.builds(
    TailLatency,
    cost=COSTS,
    percentile=st.sampled_from([0.9, 0.95, 0.97, 0.99, 0.995]),
    routing=st.sampled_from(list(Routing)),
)


@given(TAILS, st.integers(1, 60), st.floats(0.0, 1.2), st.floats(0.0, 0.2))
@settings(max_examples=150)
def test_latency_never_falls_with_the_rate(
    tail: TailLatency, replicas: int, utilization: float, more: float
) -> None:
    full_rps = replicas * tail.cost.full_batch_rps
    low = tail.latency_s(utilization * full_rps, replicas)
    high = tail.latency_s((utilization + more) * full_rps, replicas)
    assert low <= high
    if utilization >= 1.0:
        assert math.isinf(low)


@given(TAILS, st.integers(1, 60), st.integers(1, 30), st.floats(0.01, 0.99))
@settings(max_examples=150)
def test_latency_never_rises_with_replicas(
    tail: TailLatency, replicas: int, more: int, utilization: float
) -> None:
    rate_rps = utilization * replicas * tail.cost.full_batch_rps
    assert tail.latency_s(rate_rps, replicas + more) <= tail.latency_s(rate_rps, replicas) * (
        1 + 1e-6
    )


@given(TAILS, st.integers(1, 60), st.integers(1, 30), st.floats(0.5, 20.0))
@settings(max_examples=150)
def test_capacity_of_a_replica_never_falls_with_more(
    tail: TailLatency, replicas: int, more: int, ratio: float
) -> None:
    target_s = ratio * tail.idle_s
    few, many = tail.capacity_rps(target_s, replicas), tail.capacity_rps(target_s, replicas + more)
    if tail.routing is Routing.STICKY:  # only together: one more replica takes connections
        few, many = replicas * few, (replicas + more) * many
    assert many >= few * (1 - 1e-6)
    if few > 0:
        at_most = tail.latency_s(0.999 * tail.capacity_rps(target_s, replicas) * replicas, replicas)
        assert at_most <= target_s * (1 + 1e-9)


@given(TAILS, st.floats(0.01, 1e4), st.floats(1.01, 20.0), st.floats(1.0, 2.0))
@settings(max_examples=100)
def test_replicas_for_returns_the_fewest_that_carry_the_arrivals(
    tail: TailLatency, rate_rps: float, ratio: float, margin: float
) -> None:
    target_s = ratio * tail.idle_s
    replicas = tail.replicas_for(rate_rps, target_s, margin)
    if replicas is None:
        assert tail.capacity_rps(target_s, 1) == 0
        return
    carried_rps = replicas * tail.capacity_rps(target_s, replicas)
    if tail.routing is Routing.STICKY and replicas >= tail.connections:
        return  # as many as the connections can use
    assert rate_rps * margin <= carried_rps * (1 + 1e-6)
    if replicas > 1:
        fewer_rps = (replicas - 1) * tail.capacity_rps(target_s, replicas - 1)
        assert rate_rps * margin > fewer_rps * (1 - 1e-6)
    again = tail.replicas_for(1.5 * rate_rps, target_s, margin)
    assert again is None or again >= replicas
