"""Times the simulator in a process of its own (`speed`, or a number of requests); prints JSON.

Everything is compiled before it is timed. CPU time is counted, so that other work on the machine
does not show.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from collections.abc import Mapping

import numpy as np

from headroom.scaling import Policy, Routing
from headroom.simulator.arrivals import PoissonArrivals, shapes
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.campaign import shipped
from headroom.simulator.compiled import kernel, replica_rows
from headroom.simulator.compiled.plant_allocation import allocate, with_rows
from headroom.simulator.compiled.plant_layout import Number, Tally
from headroom.simulator.outcome import Outcome
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.run import simulate
from headroom.simulator.scenario import Scenario, Workload
from headroom.simulator.scenario_file import load_scenario

SERVER = Server(fixed_s=0.006, per_item_s=0.0005, max_batch=8)
REPLICAS = 12
UTILIZATION = 0.6
STEADY_REQUESTS = 5_000_000
TRACE = "servegen-bursts"
AUTOSCALERS = ("headroom", "hpa-queue")
LONG_RPS = UTILIZATION * REPLICAS * SERVER.full_rps


def spec(routing: Routing = Routing.RANDOM) -> ServiceSpec:
    """Return a service of small batches, a promise of 100 ms."""
    return ServiceSpec(
        name="vision",
        policy=Policy(latency_target_s=0.1, max_replicas=40, routing=routing),
        server=SERVER,
        network=Network(routing=routing),
    )


def steady_rps(routing: Routing) -> float:
    """Return the requests that the compiled plant simulates in a second, without overload."""
    chance = np.random.Generator(np.random.PCG64(1))
    times_s = np.cumsum(chance.exponential(1 / LONG_RPS, STEADY_REQUESTS))
    tables = with_rows(allocate(spec(routing), 1, float(times_s[-1])), REPLICAS)
    for row in range(REPLICAS):
        replica_rows.admit(tables, row, 0.0)
    warm = kernel.advance(tables, times_s, 0, 1.0)
    began_s = time.process_time()
    done = kernel.advance(tables, times_s, warm, np.inf)
    seconds = time.process_time() - began_s
    if done != STEADY_REQUESTS or tables.numbers[Number.HEAP]:
        raise RuntimeError("the steady run must not need a second node pool")
    if tables.tally[Tally.WITHIN] < 0.99 * STEADY_REQUESTS:
        raise RuntimeError("the steady run must not be overloaded")
    return (done - warm) / seconds


def trace_seconds(autoscaler: str) -> tuple[float, int]:
    """Return what four recorded hours cost under an autoscaler, and how many requests they have."""
    _simulated(_poisson(100.0, 120.0), autoscaler)
    scenario = load_scenario(shipped()[TRACE])
    began_s = time.process_time()
    outcome = _simulated(scenario, autoscaler)
    return time.process_time() - began_s, outcome.score.requests


def peak_mib(requests: int) -> float:
    """Return the most memory that this process held for a run of about this many requests."""
    _simulated(_poisson(LONG_RPS, requests / LONG_RPS), "hpa-queue")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _poisson(rate_rps: float, duration_s: float) -> Scenario:
    profile = shapes.constant(duration_s=duration_s, rps=rate_rps)
    arrivals = PoissonArrivals(profile=profile, stream="vision")
    return Scenario(name="constant", workloads=(Workload(spec=spec(), arrivals=arrivals),))


def _simulated(scenario: Scenario, autoscaler: str) -> Outcome:
    (outcome,) = simulate(scenario, lambda truth: catalogue.make(autoscaler, truth), 1)
    return outcome


def speed() -> Mapping[str, object]:
    """Return requests per second by routing; seconds and requests of the trace by autoscaler."""
    return {
        "steady_rps": {
            routing.value: steady_rps(routing)
            for routing in (Routing.RANDOM, Routing.LEAST_IN_FLIGHT, Routing.CENTRAL)
        },
        "trace": {name: trace_seconds(name) for name in AUTOSCALERS},
    }


if __name__ == "__main__":
    wanted = sys.argv[1]
    json.dump(speed() if wanted == "speed" else {"peak_mib": peak_mib(int(wanted))}, sys.stdout)
