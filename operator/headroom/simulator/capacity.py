"""Measures the capacity of one replica on the plant itself: the perfect profile of a server."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np

from headroom.scaling.values.policy import Policy, Routing
from headroom.simulator.clients import Clients
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.compiled.plant_layout import Quantity, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.plant import ServiceSpec
from headroom.simulator.service_plant import ServicePlant

_REQUESTS = 100_000
_STEPS = 9
"""Bisections: the capacity is known to 1/512 of the full throughput."""
_HEALTHY = 0.8
"""A healthy service runs at this share of its capacity."""


def capacity_rps(spec: ServiceSpec, replicas: int) -> float:
    """Return the highest Poisson rate per replica at which the percentile is within the target.

    Measured with this many replicas behind the service's routing, and with clients that limit
    nothing: an open loop without patience or retries. Connections that clients keep are kept and
    closed as theirs, and there are as many as are needed.
    """
    return _measured(_unlimited(spec), replicas)


def healthy_latency_s(spec: ServiceSpec, replicas: int) -> float:
    """Return the mean latency of a service at four fifths of its capacity.

    If it has no capacity within its target, that of a request alone.
    """
    plain = _unlimited(spec)
    utilization = _HEALTHY * _measured(plain, replicas) / spec.server.full_rps
    if utilization == 0:
        return spec.server.execution_s(1)
    tables = _run(plain, replicas, utilization)
    return float(tables.quantities[Quantity.SOJOURN_S]) / _REQUESTS


def _unlimited(spec: ServiceSpec) -> ServiceSpec:
    given = spec.clients
    clients = Clients()
    if spec.network.routing is Routing.STICKY and given.kept_connections is not None:
        clients = Clients(
            connections=_REQUESTS,
            connection_requests=given.connection_requests,
            connection_idle_s=given.connection_idle_s,
        )
    return replace(
        spec,
        name="",
        policy=Policy(
            latency_target_s=spec.policy.latency_target_s,
            latency_percentile=spec.policy.latency_percentile,
        ),
        clients=clients,
        cold_start=ColdStart(),
        advertised=None,
        initial_replicas=None,
    )


@lru_cache(maxsize=256)
def _measured(spec: ServiceSpec, replicas: int) -> float:
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        within = float(_run(spec, replicas, middle).tally[Tally.WITHIN])
        kept = within / _REQUESTS >= spec.policy.latency_percentile
        low, high = (middle, high) if kept else (low, middle)
    return low * spec.server.full_rps


def _run(spec: ServiceSpec, replicas: int, utilization: float) -> PlantState:
    """Return the plant after this many Poisson arrivals and their ends."""
    rate_rps = utilization * replicas * spec.server.full_rps
    gaps_s = np.random.Generator(np.random.PCG64(1)).exponential(1 / rate_rps, _REQUESTS)
    times_s = np.cumsum(gaps_s)
    plant = ServicePlant.with_replicas(spec, 1, float(times_s[-1]), replicas)
    plant.advance(times_s, 0, np.inf)
    return plant.tables
