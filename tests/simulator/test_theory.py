"""The compiled plant where theory is exact: mean and tail of known queues, from live runs."""

from __future__ import annotations

import math

import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.compiled.plant_layout import Column, Tally
from headroom.simulator.plant import Server, Spread
from latency_tables import batch_chain
from simulator.fakes_plant import Plant, exponential, poisson, service
from simulator.queueing_theory import batch_mean_s, inoue_bound_s, mmc_mean_s, mmc_quantile_s

REQUESTS = 400_000
MEAN_S = 0.1

VISION = Server(fixed_s=0.006, per_item_s=0.0005, max_batch=8)
MEDIUM = Server(fixed_s=0.020, per_item_s=0.0015, max_batch=16)
HEAVY = Server(fixed_s=0.150, per_item_s=0.060, max_batch=4)
ALONE = Server(fixed_s=MEAN_S, per_item_s=0.0)


def at(server: Server, utilization: float, *, target_s: float = 1e6) -> Plant:
    times_s = poisson(utilization * server.full_rps, REQUESTS)
    return Plant(service(server, target_s=target_s)).run(times_s)


@pytest.mark.parametrize("utilization", [0.3, 0.5, 0.7, 0.8])
def test_m_m_1_plant_has_mean_and_p95_of_theory(utilization: float) -> None:
    # both exponential: mean s / (1 - rho), percentile ln 20 times that; 0.5 s and 1.498 s at 0.8
    mean_s = MEAN_S / (1 - utilization)
    plant = at(exponential(MEAN_S), utilization, target_s=math.log(20) * mean_s)
    assert plant.mean_s == pytest.approx(mean_s, rel=0.02)
    assert plant.attainment == pytest.approx(0.95, abs=0.003)
    assert plant.little_error < 1e-9


@pytest.mark.parametrize(
    ("servers", "utilization"), [(2, 0.5), (4, 0.7), (8, 0.8)], ids=lambda value: f"{value}"
)
@pytest.mark.parametrize("pooled", ["slots of one replica", "replicas of a central queue"])
def test_m_m_c_plant_has_mean_and_p95_of_erlang(
    servers: int, utilization: float, pooled: str
) -> None:
    target_s = mmc_quantile_s(servers, utilization, MEAN_S, 0.95)
    times_s = poisson(servers * utilization / MEAN_S, REQUESTS)
    if pooled == "slots of one replica":
        plant = Plant(service(exponential(MEAN_S, servers), target_s=target_s))
    else:
        one = service(exponential(MEAN_S), routing=Routing.CENTRAL, cap=1, target_s=target_s)
        plant = Plant(one, replicas=servers)
    plant.run(times_s)
    assert plant.mean_s == pytest.approx(mmc_mean_s(servers, utilization, MEAN_S), rel=0.02)
    assert plant.attainment == pytest.approx(0.95, abs=0.003)
    assert plant.little_error < 1e-9


@pytest.mark.parametrize(
    ("spread", "cv", "utilization"),
    [
        (Spread.LOGNORMAL, 0.5, 0.7),
        (Spread.LOGNORMAL, 1.0, 0.5),
        (Spread.LOGNORMAL, 2.0, 0.5),
        (Spread.GAMMA, 0.5, 0.7),
        (Spread.GAMMA, 2.0, 0.5),
    ],
)
def test_m_g_1_plant_has_mean_of_pollaczek_khinchine(
    spread: Spread, cv: float, utilization: float
) -> None:
    # s (1 + rho (1 + cv^2) / (2 (1 - rho))); 0.35 s at cv 2 and 0.5
    server = Server(fixed_s=MEAN_S, per_item_s=0.0, cv=cv, spread=spread)
    expected_s = MEAN_S * (1 + utilization * (1 + cv**2) / (2 * (1 - utilization)))
    assert at(server, utilization).mean_s == pytest.approx(expected_s, rel=0.025)


@pytest.mark.parametrize("utilization", [0.3, 0.6, 0.8])
@pytest.mark.parametrize("server", [VISION, MEDIUM, HEAVY, ALONE], ids=["8", "16", "4", "M/D/1"])
def test_batching_plant_has_mean_and_p95_of_its_chain(server: Server, utilization: float) -> None:
    plant = at(server, utilization)
    exact_s = batch_mean_s(server, utilization * server.full_rps)
    assert plant.mean_s == pytest.approx(exact_s, rel=0.02)
    full_s = server.execution_s(server.max_batch)
    share = server.fixed_s / full_s
    chain_s = full_s * batch_chain.percentiles(share, server.max_batch, utilization, [0.95])[0]
    assert plant.quantile_s(0.95) == pytest.approx(chain_s, rel=0.025)


def test_chain_without_batching_is_m_d_1() -> None:
    assert batch_mean_s(ALONE, 0.8 / MEAN_S) == pytest.approx(MEAN_S * (1 + 0.8 / 0.4), rel=1e-6)


@pytest.mark.parametrize(
    ("server", "load", "below"),
    [(MEDIUM, 0.1, 0.06), (MEDIUM, 0.5, 0.003), (VISION, 0.1, 0.06), (VISION, 0.8, 0.003)],
)
def test_mean_without_batch_cap_is_at_most_inoues_bound(
    server: Server, load: float, below: float
) -> None:
    """The bound is close under load; noise of the run allowed on both sides."""
    uncapped = Server(fixed_s=server.fixed_s, per_item_s=server.per_item_s, max_batch=4096)
    rate_rps = load / server.per_item_s
    bound_s = inoue_bound_s(server.fixed_s, server.per_item_s, rate_rps)
    mean_s = Plant(service(uncapped)).run(poisson(rate_rps, REQUESTS)).mean_s
    assert (1 - below) * bound_s <= mean_s <= 1.003 * bound_s


def test_counters_match_the_offered_load() -> None:
    """Busy seconds are lambda E[T]; batches, items and executions agree with one another."""
    plant = at(HEAVY, 0.6).settle()
    executions = plant.counter(0, Column.EXECUTIONS)
    seconds = plant.counter(0, Column.EXECUTION_S)
    assert plant.counter(0, Column.ITEMS) == REQUESTS == plant.tally(Tally.WITHIN)
    assert seconds == pytest.approx(executions * 0.150 + REQUESTS * 0.060, rel=1e-9)
    assert plant.counter(0, Column.BUSY_S) == pytest.approx(seconds, rel=1e-9)
    assert plant.counter(0, Column.IN_FLIGHT_S) == pytest.approx(plant.mean_s * REQUESTS, rel=1e-9)
