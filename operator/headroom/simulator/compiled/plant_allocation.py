"""Allocates the arrays of a plant's state, and grows them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.policy import Routing
from headroom.simulator.compiled.plant_layout import (
    BOUNDS_S,
    CENTRAL,
    COLUMNS,
    DETERMINISTIC,
    FINE_BUCKETS,
    GAMMA,
    LEAST,
    LOGNORMAL,
    NONE,
    RANDOM,
    ROUND_ROBIN,
    STICKY,
    TWO_CHOICES,
    Number,
    Quantity,
    Tally,
)
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.plant import ServiceSpec, Spread

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
