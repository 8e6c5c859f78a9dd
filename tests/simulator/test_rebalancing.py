"""A step of load through kept connections: overloaded replicas are evicted, or the load stays."""

from __future__ import annotations

from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.arrivals import PoissonArrivals, Profile
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario, Workload


def run(*, objection: str = "", connection_requests: int | None = None) -> Outcome:
    spec = ServiceSpec(
        name="ranker",
        policy=Policy(
            latency_target_s=0.25,
            max_replicas=10,
            routing=Routing.STICKY,
            rebalancing_objection=objection,
        ),
        server=Server(fixed_s=0.02, per_item_s=0.01, max_batch=8),
        network=Network(routing=Routing.STICKY),
        clients=Clients(connections=64, connection_requests=connection_requests),
        cold_start=ColdStart.of(10.0, spread=1.05),
        initial_replicas=2,
    )
    profile = Profile.of([(100.0, 40.0, 40.0), (200.0, 240.0, 240.0)])
    arrivals = PoissonArrivals(profile=profile, stream="ranker")
    scenario = Scenario(name="step", workloads=(Workload(spec=spec, arrivals=arrivals),))
    (outcome,) = simulate(scenario, lambda truth: catalogue.make("headroom", truth), 1)
    return outcome


def in_time(outcome: Outcome) -> float:
    return outcome.score.within / outcome.score.requests


def test_step_through_kept_connections_is_spread_over_new_replicas() -> None:
    assert in_time(run()) > 0.5
    assert in_time(run(objection="kept")) < 0.2


def test_new_connections_for_each_request_are_left_alone() -> None:
    spread, kept = (run(objection=why, connection_requests=1) for why in ("", "kept"))
    assert abs(in_time(spread) - in_time(kept)) < 0.02
    assert spread.score.gpu_hours < 1.1 * kept.score.gpu_hours
