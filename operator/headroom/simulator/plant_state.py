"""The state of one service's compiled plant: arrays with named rows, allocated and grown here.

Requests in flight are nodes of linked lists in one pool, so memory follows the requests in flight
and not the length of the trace. Row `r` of the tables is one replica; the last row is the central
queue of `Routing.CENTRAL`. Ends of executions are in a binary heap of at most rows x slots entries.
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.policy import Routing
from headroom.simulator.plant import ServiceSpec, Spread


class Column(IntEnum):
    """Columns of a replica's telemetry. Counters are cumulative since the replica's start."""

    ARRIVALS = 0
    """Requests that reached the replica, refused ones included."""
    REFUSED = 1
    EXPIRED = 2
    CANCELLED = 3
    ANSWERED = 4
    EXECUTIONS = 5
    ITEMS = 6
    """Requests in finished executions."""
    EXECUTION_S = 7
    """Seconds of finished executions."""
    BUSY_S = 8
    """Seconds in which at least one slot was executing: what "GPU utilization" reports."""
    SLOTS_BUSY_S = 9
    """Integral of executing slots over time."""
    WAITING_S = 10
    """Integral of waiting requests over time."""
    IN_FLIGHT_S = 11
    """Integral of waiting + running requests over time."""
    WAITING = 12
    """Gauge."""
    RUNNING = 13
    """Gauge: requests in executions."""
    RETRIED = 14
    """Arrivals that said that they were retries."""


COLUMNS = len(Column)

BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)
"""The model server's latency grid; a contract test compares the two."""


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = -1
"""No node, no row."""
RANDOM, STICKY, ROUND_ROBIN, LEAST, TWO_CHOICES, CENTRAL = range(6)
DETERMINISTIC, LOGNORMAL, GAMMA = range(3)


class Number(IntEnum):
    """Integers of the whole plant."""

    READY = 0
    """Rows in `routable`."""
    FREE = 1
    """First free node of the pool; NONE when it is full."""
    HEAP = 2
    """Entries of the heap."""
    TURN = 3
    """Next row of round robin and of ties."""
    MAX_BATCH = 4
    SLOTS = 5
    ROUTING = 6
    SPREAD = 7
    MAX_WAITING = 8
    """Maximum queue length; NONE: no bound."""
    CAP = 9
    """Maximum in flight per replica under CENTRAL."""
    EXPIRES = 10
    """1: requests that waited too long are `expired` (server); 0: `cancelled` (client)."""
    CLIENTS = 11
    """1: requests are tries of clients (`client_state.py`), who hear how each ends."""
    ENDED = 12
    """First node of the list of ended tries that are unknown to their clients."""


class Quantity(IntEnum):
    """Real numbers of the whole plant."""

    FIXED_S = 0
    PER_ITEM_S = 1
    CV = 2
    COST_FACTOR = 3
    PATIENCE_S = 4
    """Waiting longer than this ends a request: the smaller of timeout and deadline; may be inf."""
    TIMEOUT_S = 5
    """An answer later than this is cancelled by the client; may be inf."""
    TARGET_S = 6
    IN_SYSTEM_S = 7
    """Integral of all requests in the system: the L of Little's law, times the time."""
    SOJOURN_S = 8
    """Sum of the times that ended requests spent in the system: the W, times their number."""


class Tally(IntEnum):
    """Ground truth about all requests, from which scores are computed."""

    REQUESTS = 0
    WITHIN = 1
    LATE = 2
    REFUSED = 3
    EXPIRED = 4
    CANCELLED = 5
    FAILED = 6


ANSWERED = -1
"""In place of a tally: a try that was answered."""


class PlantState(NamedTuple):
    """The state of one service's plant; shapes in terms of rows, slots, nodes."""

    numbers: Ints
    quantities: Floats
    tally: Ints
    random: NDArray[np.uint64]
    arrived_s: Floats
    """[nodes] When the request of a node arrived."""
    following: Ints
    """[nodes] The next node of the same list."""
    owner: Ints
    """[nodes] With clients: the request whose try this is; NONE once its client has given up."""
    mark: Ints
    """[nodes] With clients: 1 if it says that it is a retry. Once it has ended: how, a tally or
    ANSWERED, and `arrived_s` says when."""
    head: Ints
    """[rows] First waiting node."""
    tail: Ints
    waiting: Ints
    """[rows] Length of the list."""
    in_flight: Ints
    """[rows] Waiting and running."""
    batch_head: Ints
    """[rows, slots] First node of the execution; NONE while the slot is free."""
    batch_size: Ints
    batch_began_s: Floats
    busy_slots: Ints
    """[rows]"""
    slowness: Floats
    """[rows] Factor on every execution."""
    touched_s: Floats
    """[rows] Until when the integrals are summed."""
    routable: Ints
    """[rows] The first numbers[READY] are the rows that take requests."""
    open: Ints
    """[rows] 1 while the row is routable."""
    bound: Ints
    """[connections] The row of each keep-alive connection."""
    heap_s: Floats
    """[rows x slots] When an execution ends; a binary heap."""
    heap_place: Ints
    """[rows x slots] row x slots + slot."""
    counters: Floats
    """[rows, columns + buckets] What a scrape returns."""
    bounds_s: Floats
    """[buckets] The latency grid; the last is inf."""
    minute_requests: Ints
    """[minutes] By time of arrival."""
    minute_missed: Ints
    latency: Ints
    """[fine buckets] Answered requests over the run: factor 1.02 from 0.1 ms."""
    recent: Ints
    """[fine buckets + 1] As latency, since the last sample; the last counts unanswered requests."""


FINE_BUCKETS = 1000
FINE_START_S = 1e-4
FINE_LOG = math.log(1.02)
"""The ground truth's histogram: 1000 buckets of factor 1.02 reach from 0.1 ms to 11 hours."""

_ROUTINGS = {
    Routing.RANDOM: RANDOM,
    Routing.STICKY: STICKY,
    Routing.ROUND_ROBIN: ROUND_ROBIN,
    Routing.LEAST_IN_FLIGHT: LEAST,
    Routing.POWER_OF_TWO: TWO_CHOICES,
    Routing.CENTRAL: CENTRAL,
}
_SPREADS = {Spread.LOGNORMAL: LOGNORMAL, Spread.GAMMA: GAMMA}
_NODES = 4096


def allocate(spec: ServiceSpec, seed: int, duration_s: float) -> PlantState:
    """Return an empty plant with one row, that of the central queue."""
    server, clients, slots = spec.server, spec.clients, spec.server.slots
    minutes = max(1, math.ceil(duration_s / 60.0))
    # Clients that are more than plain have timers of their own; the plant knows of no patience.
    timeout_s = (clients.timeout_s or math.inf) if clients.plain else math.inf
    patience_s = min(timeout_s, clients.deadline_s or math.inf)
    cap = spec.network.in_flight_cap
    if cap is None:
        cap = 2 * server.max_batch * slots if server.max_batch > 1 else slots + 1
    numbers = np.zeros(len(Number), dtype=np.int64)
    numbers[Number.MAX_BATCH], numbers[Number.SLOTS] = server.max_batch, slots
    numbers[Number.ROUTING] = _ROUTINGS[spec.network.routing]
    numbers[Number.SPREAD] = _SPREADS[server.spread] if server.cv > 0 else DETERMINISTIC
    numbers[Number.MAX_WAITING] = NONE if clients.max_waiting is None else clients.max_waiting
    numbers[Number.CAP] = cap
    numbers[Number.EXPIRES] = clients.deadline_s is not None and patience_s == clients.deadline_s
    numbers[Number.CLIENTS], numbers[Number.ENDED] = not clients.plain, NONE
    quantities = np.zeros(len(Quantity))
    quantities[Quantity.FIXED_S], quantities[Quantity.PER_ITEM_S] = (
        server.fixed_s,
        server.per_item_s,
    )
    quantities[Quantity.CV], quantities[Quantity.COST_FACTOR] = server.cv, 1.0
    quantities[Quantity.PATIENCE_S] = patience_s
    quantities[Quantity.TIMEOUT_S] = timeout_s
    quantities[Quantity.TARGET_S] = spec.policy.latency_target_s
    following = np.arange(1, _NODES + 1, dtype=np.int64)
    following[-1] = NONE
    return PlantState(
        numbers=numbers,
        quantities=quantities,
        tally=np.zeros(len(Tally), dtype=np.int64),
        random=np.array([seed], dtype=np.uint64),
        arrived_s=np.zeros(_NODES),
        following=following,
        owner=np.full(_NODES, NONE, dtype=np.int64),
        mark=np.zeros(_NODES, dtype=np.int64),
        minute_requests=np.zeros(minutes, dtype=np.int64),
        minute_missed=np.zeros(minutes, dtype=np.int64),
        latency=np.zeros(FINE_BUCKETS, dtype=np.int64),
        recent=np.zeros(FINE_BUCKETS + 1, dtype=np.int64),
        bounds_s=np.array(BOUNDS_S),
        bound=np.full(clients.kept_connections or spec.network.connections, NONE, dtype=np.int64),
        heap_s=np.zeros(slots),
        heap_place=np.zeros(slots, dtype=np.int64),
        **{name: _rows(name, 1, slots) for name in _BY_ROW},
    )


_BY_ROW = {
    "head": np.int64,
    "tail": np.int64,
    "waiting": np.int64,
    "in_flight": np.int64,
    "batch_head": np.int64,
    "batch_size": np.int64,
    "batch_began_s": np.float64,
    "busy_slots": np.int64,
    "slowness": np.float64,
    "touched_s": np.float64,
    "routable": np.int64,
    "open": np.int64,
    "counters": np.float64,
}
"""The arrays with one entry per replica."""


def _rows(name: str, rows: int, slots: int) -> NDArray[Any]:
    shape: tuple[int, ...] = (rows,)
    if name.startswith("batch_"):
        shape = (rows, slots)
    elif name == "counters":
        shape = (rows, COLUMNS + len(BOUNDS_S))
    return np.full(shape, NONE if name == "batch_head" else 0, dtype=_BY_ROW[name])


def with_rows(tables: PlantState, rows: int) -> PlantState:
    """Return the plant with capacity for `rows` replicas; rows keep their numbers.

    Only the central queue's row, the last, moves.
    """
    before, slots = len(tables.head) - 1, int(tables.numbers[Number.SLOTS])
    grown: dict[str, NDArray[Any]] = {}
    for name in _BY_ROW:
        old, new = getattr(tables, name), _rows(name, rows + 1, slots)
        new[:before] = old[:before]
        if name != "routable":
            new[rows] = old[before]
        grown[name] = new
    for name in ("heap_s", "heap_place"):
        old = getattr(tables, name)
        grown[name] = np.concatenate((old, np.zeros((rows + 1) * slots - len(old), old.dtype)))
    return tables._replace(**grown)


def with_more_nodes(tables: PlantState) -> PlantState:
    """Return the plant with a pool of twice the size; its free list must be empty."""
    size = len(tables.arrived_s)
    following = np.concatenate((tables.following, np.arange(size + 1, 2 * size + 1)))
    following[-1] = NONE
    tables.numbers[Number.FREE] = size
    return tables._replace(
        arrived_s=np.concatenate((tables.arrived_s, np.zeros(size))),
        following=following,
        owner=np.concatenate((tables.owner, np.full(size, NONE))),
        mark=np.concatenate((tables.mark, np.zeros(size, dtype=np.int64))),
    )
