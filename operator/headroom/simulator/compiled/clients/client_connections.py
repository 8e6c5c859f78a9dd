"""Compiled: the connection over which a client sends a try."""

from __future__ import annotations

from headroom.simulator.compiled.clients.client_layout import Amount, Count, Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.clients.client_tries import first_unsent
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.plant_layout import CENTRAL, NONE, Number, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.request_ends import tell
from headroom.simulator.compiled.request_routing import deliver, route
from headroom.simulator.compiled.rng import below


@compiled
def connect(p: PlantState, c: ClientState, now_s: float) -> int:
    """Return the idle connection used last, else a new one; it may be without a replica."""
    connection: int
    while c.counts[Count.IDLE] > 0:
        c.counts[Count.IDLE] -= 1
        connection = c.idle[c.counts[Count.IDLE]]
        fresh = now_s - c.idle_since_s[connection] <= c.amounts[Amount.IDLE_S]
        if fresh and p.bound[connection] != NONE:
            return connection
        c.closed[c.counts[Count.CLOSED]] = connection
        c.counts[Count.CLOSED] += 1
    c.counts[Count.CLOSED] -= 1
    connection = c.closed[c.counts[Count.CLOSED]]
    c.uses[connection] = 0
    p.bound[connection] = NONE
    ready = p.numbers[Number.READY]
    if ready > 0:
        p.bound[connection] = p.routable[below(p.random, ready)]
    return connection


@compiled
def disconnect(p: PlantState, c: ClientState, request: int, now_s: float, keep: bool) -> None:
    """Free the connection of a request; it stays open if it may."""
    c.counts[Count.USED] -= 1
    connection = c.connection[request]
    if connection == NONE:
        return
    c.connection[request] = NONE
    worn = c.uses[connection] == c.counts[Count.MOST_USES]
    if keep and not worn and p.bound[connection] != NONE:
        c.idle[c.counts[Count.IDLE]] = connection
        c.counts[Count.IDLE] += 1
        c.idle_since_s[connection] = now_s
    else:
        p.bound[connection] = NONE
        c.closed[c.counts[Count.CLOSED]] = connection
        c.counts[Count.CLOSED] += 1


@compiled
def send_first(p: PlantState, c: ClientState, now_s: float) -> None:
    """Send the first of the clients' queue; there is a connection and a free node."""
    request = first_unsent(c)
    node = p.numbers[Number.FREE]
    p.numbers[Number.FREE] = p.following[node]
    retry = c.tries[request] > 0
    p.arrived_s[node], p.owner[node] = now_s, request
    p.mark[node] = 1 if retry and c.counts[Count.MARKED] == 1 else 0
    c.phase[request], c.node[request] = Phase.SENT, node
    c.counts[Count.USED] += 1
    c.counts[Count.TRIES] += 1
    c.counts[Count.RETRIED] += retry
    row = NONE
    if c.counts[Count.KEPT] == 1:
        connection = connect(p, c, now_s)
        c.connection[request] = connection
        c.uses[connection] += 1
        row = p.bound[connection]
    elif p.numbers[Number.ROUTING] == CENTRAL:
        row = len(p.head) - 1
    elif p.numbers[Number.READY] > 0:
        row = route(p)
    c.row[request] = row
    if row == NONE:
        tell(p, node, now_s, Tally.FAILED)
    else:
        deliver(p, node, row, now_s)
