"""One of five replicas becomes ten times as slow behind random routing: it is replaced."""

from __future__ import annotations

from headroom.scaling.values.policy import Policy
from headroom.simulator.arrivals import PoissonArrivals, shapes
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Workload

HEAVY = Server(fixed_s=0.150, per_item_s=0.060, max_batch=4)
DURATION_S = 2400.0


def run(*faults: Fault, objection: str = "") -> Outcome:
    spec = ServiceSpec(
        name="ranker",
        policy=Policy(latency_target_s=1.5, max_replicas=100, replacement_objection=objection),
        server=HEAVY,
        cold_start=ColdStart.of(60.0, spread=1.1),
    )
    profile = shapes.step(duration_s=DURATION_S, before_rps=36.0, after_rps=36.0, at_s=10.0)
    arrivals = PoissonArrivals(profile=profile, stream="ranker")
    workload = Workload(spec=spec, arrivals=arrivals)
    scenario = Scenario(name="slow", workloads=(workload,), faults=faults)
    (outcome,) = simulate(scenario, lambda truth: catalogue.make("headroom", truth), 1)
    return outcome


def test_slow_replica_costs_little_if_it_is_replaced() -> None:
    slow = Fault(kind=FaultKind.SLOW_PODS, start_s=600.0, share=0.2, factor=10.0)
    calm, replaced = run().score, run(slow).score
    kept = run(slow, objection="kept").score
    assert replaced.within / replaced.requests > 0.98
    assert replaced.gpu_hours < 1.1 * calm.gpu_hours
    assert kept.gpu_hours > 2.0 * calm.gpu_hours
