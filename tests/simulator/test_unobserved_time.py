"""Restarts of the operator and silent replicas: unobserved requests do not count as none."""

from __future__ import annotations

from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.arrivals import PoissonArrivals, Profile
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Workload

HOUR_S = 3600.0
Piece = tuple[float, float, float]
"""Seconds, requests per second at the start and at the end."""


def outcome_of(
    pieces: list[Piece], server: Server, target_s: float, start_s: float, *faults: Fault
) -> Outcome:
    spec = ServiceSpec(
        name="ranker",
        policy=Policy(latency_target_s=target_s, max_replicas=20, routing=Routing.LEAST_IN_FLIGHT),
        server=server,
        network=Network(routing=Routing.LEAST_IN_FLIGHT),
        cold_start=ColdStart.of(start_s),
    )
    arrivals = PoissonArrivals(profile=Profile.of(pieces), stream="ranker")
    workloads = (Workload(spec=spec, arrivals=arrivals),)
    scenario = Scenario(name="unobserved", workloads=workloads, faults=faults)
    (outcome,) = simulate(scenario, lambda truth: catalogue.make("headroom", truth, {}), 1)
    return outcome


def test_restarts_of_the_operator_cost_no_surge() -> None:
    """30 s of five times the load every 17 minutes, and an operator that restarts in between."""
    pieces = [(990.0, 3.0, 3.0), (30.0, 15.0, 15.0)] * 7
    server = Server(fixed_s=1.0, per_item_s=0.0, slots=8, cv=0.5)
    restarts = [
        Fault(kind=FaultKind.METRICS_RESTART, start_s=hours * HOUR_S) for hours in (1.1, 1.4, 1.6)
    ]
    kept = outcome_of(pieces, server, 6.0, 120.0).score
    found = outcome_of(pieces, server, 6.0, 120.0, *restarts).score
    assert found.attainment >= kept.attainment - 0.003
    assert found.flaps <= kept.flaps + 1


def test_rise_that_half_of_the_replicas_cannot_show_is_met() -> None:
    """The load triples while three of five replicas are scraped, for 15 minutes."""
    pieces = [(1800.0, 150.0, 150.0), (600.0, 150.0, 480.0), (1800.0, 480.0, 480.0)]
    server = Server(fixed_s=0.020, per_item_s=0.010, max_batch=8)
    silent = Fault(kind=FaultKind.SCRAPE_LOSS, start_s=1980.0, duration_s=900.0, share=0.5)
    found = outcome_of(pieces, server, 0.25, 20.0, silent)
    assert found.score.attainment >= 0.99
