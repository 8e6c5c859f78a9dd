"""Makes the tables of the tail-latency model: `python -m latency_tables.surface`.

One replica is computed from its chain: exactly without variation of executions, by independent
draws with it. Several replicas are simulated. The result is, at each of some utilizations, the
probability of exceeding each level of latency. It is smooth in the utilization where percentiles
have kinks, so it is interpolated to find the utilization at which 1 - p exceed a level. Above the
last utilization the wait's tail is exponential with the known mean of heavy traffic. Takes a
quarter of an hour on one core.
"""

from __future__ import annotations

import itertools
import math
import zlib
from collections.abc import Sequence
from pathlib import Path
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency.latency_tables import FILE
from headroom.scaling.latency.load_curve import execution_percentile
from headroom.scaling.values.policy import Routing
from latency_tables import batch_chain, varied_chain
from latency_tables.fleet_runs import Cell, percentiles

Floats = NDArray[np.float64]
TARGET = Path(axes.__file__).with_name(FILE)
CHAIN_LOADS = (0.02, 0.06, 0.12, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.88, 0.94)
DRAWS = 150_000
LOADS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.87, 0.92)
FEW = (0.2, 0.6, 1.5, 3.5)
"""Requests that arrive at a replica in the time of one, for the loads below the first: of large
batches that has one at a single replica, and five in a fleet, most of which wait for an execution
that has begun. Fleets run `LESS` times shorter there, because nothing queues."""
FEWEST = 0.8
"""A load nearer to the first one is left out."""
FINE_CV, FINE_LOADS = 0.1, (0.25, 0.35, 0.45, 0.55, 0.65)
"""With less variation, latency jumps from one batch size to the next, so more loads are needed."""
CROWD, BUSY = 16, (0.75, 0.85, 0.93, 1.0, 1.07, 1.15, 1.3, 1.5, 1.9, 2.5)
"""With less variation, the same of this many replicas: a request hardly ever waits until nearly all
are busy, and from there on most do."""
NEAREST = 1.06
"""One of these is left out if its ratio to another load is less."""
MANY, LAST_LOAD = 8, 0.96
"""Many replicas have short queues, but their batches grow up to the last load."""
WILD_CV, WILD_LOAD = 1.5, 0.75
"""With more variation, higher loads are left out."""
RELAXATIONS, ALONE_RELAXATIONS = 600.0, 5000.0
"""Length of a run: the queue forgets within (1 + B cv^2) / (1 - rho)^2 requests. Without batching
one cell represents all fixed shares, and runs longer."""
SHORTEST, LONGEST = 150_000, 2_500_000
POOLED_LESS, LESS = (Routing.POWER_OF_TWO, Routing.CENTRAL), 4
"""These runs are this much shorter. Round robin, which pools nothing, needs the length."""
RAREST = 1e-6
_LOGITS = np.linspace(-9.0, 12.0, 700)
KNOWN = 1 / (1 + np.exp(-_LOGITS))
_LOG_TAIL = -np.logaddexp(0.0, _LOGITS)
"""Percentiles kept of a fleet at one load, as logarithms of latency."""
JUMP = 0.6
"""Share of requests above a level at the next load, beyond which percentiles are interpolated."""


def requests_for(max_batch: int, cv: float, utilization: float, relaxations: float) -> int:
    """Return how many requests pass while the queue forgets `relaxations` times."""
    return int(relaxations * (1 + max_batch * cv * cv) / (1 - utilization) ** 2)


def table(routing: Routing) -> Floats:
    """Return logits, [fleets, exponents, batches, cvs, percentiles, levels]."""
    fleets = axes.FLEETS[routing]
    grid = (fleets, axes.EXPONENTS, axes.BATCHES, axes.CVS)
    shape = (*map(len, grid), len(axes.PERCENTILES), axes.LEVELS)
    result = np.zeros(shape)
    places = list(itertools.product(*(range(len(axis)) for axis in grid)))
    for n, i, j, m in track(places, description=routing.value):
        if axes.BATCHES[j] == 1 and i > 0:  # without batching there is no fixed share
            result[n, i, j, m] = result[n, 0, j, m]
        else:
            idle = axes.BATCHES[j] ** -axes.EXPONENTS[i]
            result[n, i, j, m] = cell(routing, fleets[n], idle, axes.BATCHES[j], axes.CVS[m])
    return result


def cell(routing: Routing, replicas: int, idle: float, max_batch: int, cv: float) -> Floats:
    """Return the logits of one fleet, [percentiles, levels]; `idle` is t(1) / T."""
    loads = loads_for(routing, replicas, max_batch * idle, cv)
    known = np.stack([latencies(routing, replicas, idle, max_batch, cv, load) for load in loads])
    scale = axes.heavy_traffic(routing, replicas, max_batch, cv)
    result = np.zeros((len(axes.PERCENTILES), axes.LEVELS))
    for q, percentile in enumerate(axes.PERCENTILES):
        factor = execution_percentile(cv, percentile)
        levels = axes.levels(idle, factor)
        unloaded = idle_tail(levels / idle, cv)
        highest = within(known, np.array(loads), levels, unloaded, idle * factor, percentile)
        last = math.exp(np.interp(percentile, KNOWN, known[-1]))
        free = 1 - loads[-1]
        wait = -math.log(1 - percentile) * scale / free
        beyond = 1 - free * wait / np.maximum(levels - last + wait, wait)
        highest = np.where(levels >= last, beyond, np.minimum(highest, loads[-1]))
        highest = np.clip(np.maximum.accumulate(highest), 1e-4, 1 - 1e-5)
        result[q] = np.log(highest / (1 - highest))
    return result


def loads_for(routing: Routing, replicas: int, gain: float, cv: float) -> tuple[float, ...]:
    """Return the utilizations at which a fleet is evaluated; `gain` is B t(1) / T."""
    usual = LOADS if replicas > 1 else CHAIN_LOADS
    few = (requests / gain for requests in FEW)
    loads = (*(load for load in few if load < FEWEST * usual[0]), *usual)
    if routing is Routing.LEAST_IN_FLIGHT and cv <= FINE_CV:
        busy = (requests / gain for requests in BUSY if replicas >= CROWD)
        loads = (*loads, *(load for load in busy if far(load, loads)), *FINE_LOADS)
        loads = tuple(sorted(loads))
    if cv == 0 or replicas >= MANY:
        loads = (*loads, LAST_LOAD)
    return tuple(load for load in loads if cv <= WILD_CV or load < WILD_LOAD)


def far(load: float, others: Sequence[float]) -> bool:
    """Return whether a load is below the highest of the others and near to none of them."""
    ratios = (max(load / other, other / load) for other in others)
    return load < others[-1] and min(ratios) >= NEAREST


def latencies(
    routing: Routing, replicas: int, idle: float, max_batch: int, cv: float, load: float
) -> Floats:
    """Return the logarithms of latency over T at KNOWN, of one fleet at one utilization."""
    share = (idle - 1 / max_batch) / (1 - 1 / max_batch) if max_batch > 1 else 1.0
    share = min(1.0, max(0.0, share))
    seed = zlib.crc32(repr((routing.value, replicas, max_batch, idle, cv, load)).encode())
    if replicas == 1 and cv == 0:
        known = batch_chain.percentiles(share, max_batch, load, KNOWN.tolist())
    elif replicas == 1:
        known = np.quantile(varied_chain.latencies(share, max_batch, cv, load, DRAWS, seed), KNOWN)
    else:
        fleet = Cell(
            routing=routing,
            replicas=replicas,
            fixed_share=share,
            max_batch=max_batch,
            cv=cv,
            utilization=load,
        )
        relaxations = RELAXATIONS if max_batch > 1 else ALONE_RELAXATIONS
        needed = requests_for(max_batch, cv, load, relaxations)
        requests = min(LONGEST, max(SHORTEST, needed))
        if routing in POOLED_LESS or load < LOADS[0]:
            requests //= LESS
        known = percentiles(fleet, requests, seed, KNOWN.tolist())
    return np.log(known)


def idle_tail(executions: Floats, cv: float) -> Floats:
    """Return the probability that a lognormal execution of mean 1 exceeds each of these."""
    if cv == 0:
        return np.where(executions < 1, 1.0, 0.0)
    variance = math.log1p(cv * cv)
    deviations = (np.log(executions) + variance / 2) / math.sqrt(variance)
    return np.array([1 - NormalDist().cdf(float(deviation)) for deviation in deviations])


def within(
    known: Floats, loads: Floats, levels: Floats, unloaded: Floats, idle: float, percentile: float
) -> Floats:
    """Return the utilization at which 1 - percentile exceed each level, [levels].

    In an idle fleet `unloaded` exceed a level and `idle` is the percentile. Between two loads, -ln
    of the share that exceeds it is a power of 1 - utilization, as in heavy traffic, and below the
    first load the share is linear; if nearly all exceed it at the next load, the percentile's
    logarithm is linear. If too few exceed a level at the last load, the result is meaningless.
    """
    wanted = 1 - percentile
    logs = np.log(levels)
    above = np.exp([np.interp(logs, row, _LOG_TAIL, 0.0, math.log(RAREST)) for row in known])
    above = np.clip(np.maximum.accumulate(above, axis=0), RAREST, 1 - RAREST)
    at = np.log([idle, *(math.exp(np.interp(percentile, KNOWN, row)) for row in known)])
    at = np.maximum.accumulate(at)
    places = np.minimum((above <= wanted).sum(axis=0), len(loads) - 1)
    result = np.zeros(len(levels))
    for level, place in enumerate(places):
        high = above[place, level]
        start = loads[place - 1] if place else 0.0
        if high > JUMP:
            part = (logs[level] - at[place]) / max(at[place + 1] - at[place], RAREST)
            result[level] = start + min(1.0, max(0.0, part)) * (loads[place] - start)
        elif place == 0:
            low = min(unloaded[level], wanted)
            result[level] = loads[0] * min(1.0, (wanted - low) / max(high - low, RAREST))
        else:
            deep = np.log(-np.log([above[place - 1, level], wanted, high]))
            part = min(1.0, (deep[0] - deep[1]) / max(deep[0] - deep[2], RAREST))
            free = (1 - loads[place]) / (1 - start)
            result[level] = 1 - (1 - start) * free**part
    return result


def packed(logits: Floats) -> NDArray[np.uint8]:
    """Return a table as [low bytes, high bytes] of 16-bit steps with the sign last.

    The steps are from batch to batch of the steps from level to level.
    """
    steps = np.rint(logits / axes.STEP).astype(np.int64)
    steps = np.diff(np.diff(steps, axis=-1, prepend=0), axis=2, prepend=0)
    signed = np.where(steps < 0, -2 * steps - 1, 2 * steps).astype("<u2")
    return np.ascontiguousarray(signed.reshape(-1, 1).view(np.uint8).T)


def main() -> None:
    """Write the tables next to the model."""
    tables = {routing.name: packed(table(routing)) for routing in axes.FLEETS}
    np.savez_compressed(TARGET, allow_pickle=False, **tables)


if __name__ == "__main__":
    main()
