"""Accelerators that differ behind one service: the cost of half a fleet of slower ones."""

from __future__ import annotations

import pytest

from headroom.scaling.values.policy import Routing
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.cold_start import ColdStart, Phase
from headroom.simulator.outcome import Score
from headroom.simulator.plant import Server
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Workload
from simulator.fakes_fleet import spec
from simulator.fakes_plant import poisson
from simulator.runs_by_hand import Given

SERVER = Server(fixed_s=0.020, per_item_s=0.0015, max_batch=16)
"""A full batch takes 44 ms: 364 requests a second."""
START = ColdStart(phases=(Phase(name="warming", median_s=20.0),))
SLOWER = 1.5


def played(routing: Routing, *faults: Fault) -> Score:
    """Twenty minutes at 1000/s: 3.4 replicas at a ceiling of 0.8 if all are fast."""
    service = spec(
        server=SERVER, cold_start=START, routing=routing, target_s=0.250, drain_s=1.0, initial=6
    )
    arrivals = Given(poisson(1000.0, 1_200_000), 1201.0)
    workloads = (Workload(spec=service, arrivals=arrivals),)
    scenario = Scenario(name="mixed", workloads=workloads, faults=faults)
    (outcome,) = simulate(scenario, lambda trace: catalogue.make("headroom", trace, {}), 1)
    return outcome.score


@pytest.mark.parametrize("routing", [Routing.RANDOM, Routing.LEAST_IN_FLIGHT])
def test_fleet_half_slow_costs_no_more_than_all_slow(routing: Routing) -> None:
    fast = played(routing)
    mixed = played(routing, Fault(kind=FaultKind.SLOW_PODS, start_s=5.0, share=0.5, factor=SLOWER))
    slow = played(routing, Fault(kind=FaultKind.COSTLY_REQUESTS, start_s=5.0, factor=SLOWER))
    assert min(fast.attainment, mixed.attainment, slow.attainment) > 0.99
    assert mixed.gpu_hours < 1.25 * slow.gpu_hours  # it takes minutes to distinguish them


def test_fleet_with_one_slow_replica_keeps_its_number() -> None:
    # Three times as slow, it carries 121/s: ten get 100/s each, and one in ten is late by turns.
    slow = played(
        Routing.RANDOM, Fault(kind=FaultKind.SLOW_PODS, start_s=300.0, share=0.01, factor=3.0)
    )
    assert slow.attainment > 0.97
    assert slow.peak_ready <= 12
    assert slow.flaps == 0
