"""The state of one service's clients: arrays with named rows, allocated and grown here.

A request is what a client wants answered; each of its tries is a node of the plant. A client that
gives up leaves its try at the plant without an owner. Users come first in the table of requests and
keep their row indefinitely, so no user can have two requests.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.policy import Routing
from headroom.simulator.compiled.clients.client_layout import Amount, Count
from headroom.simulator.compiled.plant_allocation import with_more_nodes
from headroom.simulator.compiled.plant_layout import NONE, Floats, Ints, Number
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.plant import ServiceSpec


class ClientState(NamedTuple):
    """The state of one service's clients; shapes in terms of requests, connections, steps."""

    counts: Ints
    amounts: Floats
    random: NDArray[np.uint64]
    phase: Ints
    """[requests]"""
    wanted_s: Floats
    """[requests] When the client first wanted to send it."""
    tried_s: Floats
    """[requests] When the client wanted to send this try."""
    tries: Ints
    """[requests] Earlier tries."""
    node: Ints
    """[requests] The try at the plant; NONE if there is none."""
    row: Ints
    """[requests] The row that the try was sent to."""
    connection: Ints
    """[requests] NONE unless connections are kept."""
    following: Ints
    """[requests] The next of the clients' queue, or of the free ones."""
    patient_next: Ints
    """[requests]"""
    patient_before: Ints
    wake_s: Floats
    """[requests] When a user has thought, or a backoff is over; a binary heap."""
    wake_request: Ints
    idle: Ints
    """[connections] A stack: the last used is on top."""
    idle_since_s: Floats
    """[connections] By connection."""
    uses: Ints
    """[connections] By connection, since it was opened."""
    closed: Ints
    """[connections] A stack."""
    step_s: Floats
    """[steps] of the users."""
    step_users: Ints


_REQUESTS = 4096


def allocate_clients(spec: ServiceSpec, seed: int) -> ClientState | None:
    """Return the clients of a service before their first request; None if they are plain."""
    clients = spec.clients
    if clients.plain:
        return None
    steps = clients.user_steps
    users = clients.most_users
    kept = clients.kept_connections if spec.network.routing is Routing.STICKY else None
    counts = np.zeros(len(Count), dtype=np.int64)
    for name in (Count.UNSENT_HEAD, Count.UNSENT_TAIL, Count.PATIENT_HEAD, Count.PATIENT_TAIL):
        counts[name] = NONE
    counts[Count.FREE] = users
    counts[Count.CONNECTIONS] = clients.connections or kept or NONE
    counts[Count.KEPT] = kept is not None
    counts[Count.CLOSED] = kept or 0
    counts[Count.MOST_USES] = clients.connection_requests or NONE
    counts[Count.MOST_USERS] = users
    counts[Count.RETRIES], counts[Count.MARKED] = clients.retries, clients.retries_marked
    amounts = np.zeros(len(Amount))
    amounts[Amount.TIMEOUT_S] = clients.timeout_s or math.inf
    amounts[Amount.IDLE_S] = clients.connection_idle_s or math.inf
    amounts[Amount.THINK_S], amounts[Amount.BACKOFF_S] = clients.think_s, clients.backoff_s
    return ClientState(
        counts=counts,
        amounts=amounts,
        random=np.array([seed ^ 0x5DEECE66D], dtype=np.uint64),
        idle=np.zeros(kept or 0, dtype=np.int64),
        idle_since_s=np.zeros(kept or 0),
        uses=np.zeros(kept or 0, dtype=np.int64),
        closed=np.arange((kept or 0) - 1, -1, -1, dtype=np.int64),
        step_s=np.array([time_s for time_s, _ in steps], dtype=np.float64),
        step_users=np.array([count for _, count in steps], dtype=np.int64),
        **_requests(0, users + _REQUESTS),
    )


def _requests(first: int, last: int) -> dict[str, NDArray[Any]]:
    """Return the tables of these requests, all free."""
    count = last - first
    following = np.arange(first + 1, last + 1, dtype=np.int64)
    following[-1] = NONE
    fields: dict[str, NDArray[Any]] = {
        name: np.full(count, NONE, dtype=np.int64)
        for name in ("node", "row", "connection", "patient_next", "patient_before")
    }
    fields |= {name: np.zeros(count, dtype=np.int64) for name in ("phase", "tries", "wake_request")}
    fields |= {name: np.zeros(count) for name in ("wanted_s", "tried_s", "wake_s")}
    return fields | {"following": following}


def with_more_requests(clients: ClientState) -> ClientState:
    """Return the clients with twice as many requests; their free list must be empty."""
    size = len(clients.phase)
    added = _requests(size, 2 * size)
    clients.counts[Count.FREE] = size
    grown = {name: np.concatenate((getattr(clients, name), more)) for name, more in added.items()}
    return clients._replace(**grown)


def enlarged(plant: PlantState, clients: ClientState) -> tuple[PlantState, ClientState]:
    """Return both with room for more, after they stalled."""
    if plant.numbers[Number.FREE] == NONE:
        plant = with_more_nodes(plant)
    if clients.counts[Count.FREE] == NONE:
        clients = with_more_requests(clients)
    return plant, clients
