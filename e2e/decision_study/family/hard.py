"""The named rows: workloads that broke the promise, as cells of their own.

Each has a first hour like the rest of it, or a quiet one before the event, and is judged after it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache

import numpy as np

from decision_study.cells import PLANTS
from decision_study.family import instants, rates
from decision_study.family.draws import Draws
from decision_study.family.loads import STREAM
from decision_study.family.members import limit_rps, peak_need, per_second
from decision_study.family.plants import WAITING_BATCHES
from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.arrivals import PoissonArrivals, Profile, RateTrace, RequestTrace
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.plant import Network, Server, ServiceSpec
from headroom.simulator.scenario import Arrivals, Fault, FaultKind, Scenario, Workload
from headroom.simulator.traces import shipped_trace

_HOUR_S = 3600.0
_TWO_HOURS_S = 2 * _HOUR_S
_SURGES = 0.067
"""40 s of 10 minutes."""


def _spec(
    plant: str = "heavy", *, cold_start_s: float = 60.0, routing: Routing = Routing.LEAST_IN_FLIGHT
) -> ServiceSpec:
    chosen = PLANTS[plant]
    places = chosen.server.max_batch * chosen.server.slots
    return ServiceSpec(
        name=STREAM,
        policy=Policy(latency_target_s=chosen.target_s, max_replicas=100, routing=routing),
        server=chosen.server,
        network=Network(routing=routing),
        clients=Clients(timeout_s=10 * chosen.target_s, max_waiting=WAITING_BATCHES * places),
        cold_start=ColdStart.of(cold_start_s, spread=1.1),
    )


def _scenario(
    name: str, spec: ServiceSpec, arrivals: Arrivals, faults: tuple[Fault, ...] = ()
) -> Scenario:
    """Return the scenario with a ceiling of 1.5 times the peak need."""
    counts = per_second(arrivals)
    peak = peak_need(spec, counts, limit_rps(spec, counts))
    policy = replace(spec.policy, max_replicas=-(-3 * peak // 2))
    spec = replace(spec, policy=policy)
    return Scenario(name=name, workloads=(Workload(spec=spec, arrivals=arrivals),), faults=faults)


def _poisson(profile: Profile) -> PoissonArrivals:
    return PoissonArrivals(profile=profile, stream=STREAM)


def _clumps(size: int, every_s: float) -> Callable[[str], Scenario]:
    def row(name: str) -> Scenario:
        times_s = instants.clumps(Draws.of(name, "load"), _TWO_HOURS_S, size=size, every_s=every_s)
        return _scenario(name, _spec(), instants.listed(times_s, _TWO_HOURS_S, STREAM))

    return row


def _surges(jitter: float) -> Callable[[str], Scenario]:
    def row(name: str) -> Scenario:
        profile = rates.surged(
            Draws.of(name, "load"),
            3 * _HOUR_S,
            every_s=600,
            lasting_s=120,
            jitter=jitter,
            base=0.25,
        )
        return _scenario(name, _spec(), _poisson(profile.scaled(60)))

    return row


def _doubling(name: str) -> Scenario:
    """From 2.5/s to 80/s in 50 minutes, after an hour."""
    steps = np.geomspace(2.5, 80.0, 51)
    rise = [(60.0, float(a), float(b)) for a, b in itertools.pairwise(steps)]
    profile = Profile.of([(_HOUR_S, 2.5, 2.5), *rise, (600.0, 80.0, 80.0)])
    return _scenario(name, _spec(cold_start_s=180), _poisson(profile))


def _slow_replica(name: str) -> Scenario:
    """Five replicas' load, and one of them ten times slower for an hour."""
    spec = _spec(routing=Routing.RANDOM)
    rate = 4.2 * limit_rps(spec, np.full(60, 30.0))
    profile = Profile.of([(_TWO_HOURS_S, rate, rate)])
    fault = Fault(kind=FaultKind.SLOW_PODS, start_s=_HOUR_S + 60, share=0.01, factor=10)
    return _scenario(name, spec, _poisson(profile), (fault,))


def _recorded_on_off(name: str) -> Scenario:
    """Recorded conversations in the minutes in which a recorded function ran, none in between."""
    talk = shipped_trace("azure_llm_2023_conv")
    pattern = shipped_trace("azfunc2019_orchestration_1f19e3ce_60s")
    assert isinstance(talk, RequestTrace)
    assert isinstance(pattern, RateTrace)
    duration_s = 3 * _HOUR_S
    times_s = instants.recorded(talk, start_s=0.0, duration_s=duration_s)
    busy = pattern.requests[(times_s // pattern.bin_s).astype(int)] > 0
    arrivals = instants.listed(times_s[busy], duration_s, STREAM)
    return _scenario(name, _spec("single", cold_start_s=60), arrivals)


def _retries(name: str) -> Scenario:
    """A step of 40 % to 38.5/s whose clients wait 2 s and try eight times again.

    Four replicas of 8.9/s carry the load before it under the ceiling, and not the one after it.
    """
    spec = _spec(cold_start_s=180, routing=Routing.RANDOM)
    server = Server(fixed_s=0.15, per_item_s=0.075, max_batch=4)
    clients = replace(spec.clients, timeout_s=2.0, retries=8)
    spec = replace(spec, server=server, clients=clients)
    profile = Profile.of([(4200.0, 27.5, 27.5), (3000.0, 38.5, 38.5)])
    return _scenario(name, spec, _poisson(profile))


def _live(cold_start_s: float, connection_requests: int | None) -> Callable[[str], Scenario]:
    """The step on a node: 40/s, 240/s for 100 s, 40/s, through 64 connections of a ClusterIP."""

    def row(name: str) -> Scenario:
        spec = ServiceSpec(
            name=STREAM,
            policy=Policy(latency_target_s=0.25, max_replicas=10, routing=Routing.STICKY),
            server=Server(fixed_s=0.02, per_item_s=0.01, max_batch=8),
            network=Network(routing=Routing.STICKY),
            clients=Clients(connections=64, connection_requests=connection_requests),
            cold_start=ColdStart.of(cold_start_s, spread=1.05),
            initial_replicas=2,
        )
        profile = Profile.of([(100.0, 40.0, 40.0), (100.0, 240.0, 240.0), (100.0, 40.0, 40.0)])
        workload = Workload(spec=spec, arrivals=_poisson(profile))
        return Scenario(name=name, workloads=(workload,))

    return row


ROWS: Mapping[str, Callable[[str], Scenario]] = {
    "hard-200-at-once-every-60s": _clumps(200, 60),
    "hard-60-at-once-every-10s": _clumps(60, 10),
    "hard-surges-every-10min-within-40s": _surges(_SURGES),
    "hard-surges-every-10min-punctual": _surges(0.0),
    "hard-doubling-every-10min-start-180s": _doubling,
    "hard-one-of-five-10x-slower": _slow_replica,
    "hard-recorded-on-off": _recorded_on_off,
    "hard-40%-more-with-8-retries": _retries,
    "hard-live-step-64-kept-start-10s": _live(10, None),
    "hard-live-step-64-kept-start-45s": _live(45, None),
    "hard-live-step-new-each-start-10s": _live(10, 1),
    "hard-live-step-new-each-start-45s": _live(45, 1),
}

PROMISED = (
    "hard-200-at-once-every-60s",
    "hard-60-at-once-every-10s",
    "hard-surges-every-10min-within-40s",
    "hard-doubling-every-10min-start-180s",
    "hard-40%-more-with-8-retries",
    "hard-one-of-five-10x-slower",
)
"""Rows with a promise against the ideal reactive; the others are shown."""


@lru_cache(maxsize=8)
def scenario_of(name: str) -> Scenario:
    """Return the scenario of a row."""
    return ROWS[name](name)
