"""A fast simulation of replicas in steady state under Poisson arrivals: percentiles of latency.

Built for tables of many thousand points: no failures, no timeouts, a constant number of replicas,
and one full batch as the time unit. A replica's state is updated only when a request inspects it,
so that a request costs about 50 ns; only a central queue needs the order of executions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.policy import Routing
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.rng import below, lognormal_factor, uniform

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

RANDOM, ROUND_ROBIN, LEAST, TWO_CHOICES, CENTRAL = range(5)
ROUTINGS = {
    Routing.RANDOM: RANDOM,
    Routing.ROUND_ROBIN: ROUND_ROBIN,
    Routing.LEAST_IN_FLIGHT: LEAST,
    Routing.POWER_OF_TWO: TWO_CHOICES,
    Routing.CENTRAL: CENTRAL,
}
BINS = 6000
BIN_START = 1e-4
BIN_LOG = math.log(1.003)
"""6000 bins of 0.3 % reach from 1e-4 to 6000 full batches."""
WARM_UP = 0.1
"""Share of the requests that is excluded from the counts."""


class Fleet(NamedTuple):
    """The state of a run; the last row is the central queue."""

    random: NDArray[np.uint64]
    cost: Floats
    """[3] fixed, per item, cv."""
    queue: Floats
    """[rows, room] Arrival times of waiting requests, in a ring of a power of two."""
    head: Ints
    """[rows] Index of the first."""
    length: Ints
    running: Ints
    """[rows] Requests in execution."""
    ends: Floats
    """[rows] End of the execution; inf without one."""
    counts: Ints
    """[bins] Histogram of latencies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A fleet to simulate.

    A batch of b takes fixed_share + (1 - fixed_share) b / max_batch, times a lognormal factor of
    mean 1 and this cv.
    """

    routing: Routing
    replicas: int
    fixed_share: float
    max_batch: int
    cv: float
    utilization: float

    def __post_init__(self) -> None:
        """Raise ValueError for a fleet that has no steady state."""
        if not 0 < self.utilization < 1:
            raise ValueError(f"utilization must be > 0 and < 1; got {self.utilization}")


def percentiles(cell: Cell, requests: int, seed: int, wanted: Sequence[float]) -> Floats:
    """Return the wanted percentiles of latency over the time of a full batch, [wanted]."""
    rows, per_item = cell.replicas + 1, (1 - cell.fixed_share) / cell.max_batch
    room, done = 1024, False
    while not done:
        fleet = Fleet(
            random=np.array([seed], dtype=np.uint64),
            cost=np.array([cell.fixed_share, per_item, cell.cv]),
            queue=np.empty((rows, room)),
            head=np.zeros(rows, dtype=np.int64),
            length=np.zeros(rows, dtype=np.int64),
            running=np.zeros(rows, dtype=np.int64),
            ends=np.full(rows, math.inf),
            counts=np.zeros(BINS, dtype=np.int64),
        )
        rate = cell.utilization * cell.max_batch * cell.replicas
        done = _run(fleet, ROUTINGS[cell.routing], cell.max_batch, rate, requests)
        room *= 8
    counts = fleet.counts
    cumulated = np.cumsum(counts)
    bins = np.searchsorted(cumulated, np.asarray(wanted) * cumulated[-1])
    before = cumulated[bins] - counts[bins]
    part = (np.asarray(wanted) * cumulated[-1] - before) / counts[bins]
    result: Floats = BIN_START * np.exp(BIN_LOG * (bins + part))
    return result


@compiled
def _begin(f: Fleet, row: int, now: float, max_batch: int) -> None:
    """Start waiting requests on an idle row; counts their answers, whose end is known."""
    size = min(f.length[row], max_batch)
    f.running[row] = size
    if size == 0:
        f.ends[row] = math.inf
        return
    seconds = f.cost[0] + f.cost[1] * size
    if f.cost[2] > 0.0:
        seconds *= lognormal_factor(f.random, f.cost[2])
    end = now + seconds
    mask = f.queue.shape[1] - 1
    first = f.head[row]
    for place in range(size):
        latency = end - f.queue[row, (first + place) & mask]
        index = int(math.log(latency / BIN_START) / BIN_LOG)
        f.counts[min(max(index, 0), BINS - 1)] += 1
    f.head[row] = (first + size) & mask
    f.length[row] -= size
    f.ends[row] = end


@compiled
def _enter(f: Fleet, row: int, arrived: float, now: float, max_batch: int) -> None:
    """Put a request into a row's queue, and start it if the row is idle."""
    f.queue[row, (f.head[row] + f.length[row]) & (f.queue.shape[1] - 1)] = arrived
    f.length[row] += 1
    if f.running[row] == 0 and row < len(f.head) - 1:
        _begin(f, row, now, max_batch)


@compiled
def _catch_up(f: Fleet, row: int, now: float, max_batch: int) -> int:
    """Update a row to now; return its requests in flight."""
    while f.ends[row] <= now:
        _begin(f, row, f.ends[row], max_batch)
    return int(f.running[row] + f.length[row])


@compiled
def _hand_out(f: Fleet, now: float, max_batch: int) -> None:
    """Update all rows to now in order of their ends, filling each from the central queue."""
    central = len(f.head) - 1
    while True:
        row = 0
        for other in range(1, central):
            if f.ends[other] < f.ends[row]:
                row = other
        at = f.ends[row]
        if at > now:
            return
        _begin(f, row, at, max_batch)
        while f.length[central] > 0 and f.running[row] + f.length[row] < 2 * max_batch:
            arrived = f.queue[central, f.head[central]]
            f.head[central] = (f.head[central] + 1) & (f.queue.shape[1] - 1)
            f.length[central] -= 1
            _enter(f, row, arrived, at, max_batch)


@compiled
def _least(f: Fleet, turn: int, now: float, max_batch: int) -> int:
    """Return the row with the fewest in flight; ties in turn."""
    rows = len(f.head) - 1
    best, least = turn, _catch_up(f, turn, now, max_batch)
    for step in range(1, rows):
        row = turn + step
        if row >= rows:
            row -= rows
        in_flight = _catch_up(f, row, now, max_batch)
        if in_flight < least:
            best, least = row, in_flight
    return best


@compiled
def _run(f: Fleet, routing: int, max_batch: int, rate: float, requests: int) -> bool:
    """Count the latencies of `requests` arrivals; False if a queue exceeded its size."""
    replicas = len(f.head) - 1
    turn = 0
    now = 0.0
    for number in range(requests):
        if number == int(WARM_UP * requests):
            f.counts[:] = 0
        now -= math.log(1.0 - uniform(f.random)) / rate
        turn = turn + 1 if turn + 1 < replicas else 0
        row = turn
        if routing == CENTRAL:
            _hand_out(f, now, max_batch)
        if routing == RANDOM or replicas == 1:
            row = below(f.random, replicas)
        elif routing == TWO_CHOICES:
            row = below(f.random, replicas)
            other = below(f.random, replicas - 1)
            other += other >= row
            in_flight = _catch_up(f, row, now, max_batch)
            if _catch_up(f, other, now, max_batch) < in_flight:
                row = other
        elif routing in (LEAST, CENTRAL):
            row = _least(f, turn, now, max_batch)
        in_flight = _catch_up(f, row, now, max_batch)
        if routing == CENTRAL and in_flight >= 2 * max_batch:
            row = replicas
        if f.length[row] >= f.queue.shape[1] - 1:
            return False
        _enter(f, row, now, now, max_batch)
    return True
