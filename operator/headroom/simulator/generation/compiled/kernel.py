"""The compiled plant of a generating service: arrivals, routing, and rows that open and close."""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.rng import below
from headroom.simulator.generation.compiled import iteration_cost, iterations, memory, sequences
from headroom.simulator.generation.compiled.layout import (
    DECODES,
    IDLE,
    NONE,
    Plant,
    Real,
    Request,
    Row,
    Time,
    Unit,
)
from headroom.simulator.generation.compiled.state import TokenState

LEAST_IN_FLIGHT, LEAST_TOKENS, PREFIX_AFFINITY = 1, 2, 3
"""`TokenRouting`; 0 is random."""


@compiled
def _least(p: TokenState, by_tokens: bool) -> int:
    """Return the routable row with the least; ties in turn."""
    ready = p.whole[Plant.READY]
    p.whole[Plant.TURN] += 1
    start = p.whole[Plant.TURN] % ready
    best, least = NONE, 0
    for step in range(ready):
        index = start + step
        row = p.routable[index - ready if index >= ready else index]
        r = p.rows[row]
        load = r[Row.WAITING_TOKENS] + r[Row.CONTEXTS] if by_tokens else r[Row.IN_FLIGHT]
        if best == NONE or load < least:
            best, least = row, load
    return best


@compiled
def _by_prefix(p: TokenState, request: int) -> int:
    """Return the row with the longest cached prefix, unless it has too much in flight."""
    least = _least(p, False)
    best, most = least, memory.hits(p, least, request)
    bound = p.rows[least, Row.IN_FLIGHT] + p.whole[Plant.SLACK]
    for index in range(p.whole[Plant.READY]):
        row = p.routable[index]
        if p.rows[row, Row.IN_FLIGHT] <= bound:
            count = memory.hits(p, row, request)
            if count > most:
                best, most = row, count
    return best


@compiled
def _route(p: TokenState, request: int) -> int:
    routing = p.whole[Plant.ROUTING]
    if routing == LEAST_IN_FLIGHT:
        return _least(p, False)
    if routing == LEAST_TOKENS:
        return _least(p, True)
    if routing == PREFIX_AFFINITY:
        return _by_prefix(p, request)
    return p.routable[below(p.random, p.whole[Plant.READY])]


@compiled
def _full(p: TokenState) -> bool:
    """Return whether the gateway's bound on requests in flight is reached, like Envoy's."""
    ready, inside = p.whole[Plant.READY], 0
    for index in range(ready):
        inside += p.rows[p.routable[index], Row.IN_FLIGHT]
    return inside >= ready * p.whole[Plant.MOST_IN_FLIGHT]


@compiled
def _arrive(p: TokenState, request: int, now_s: float) -> None:
    if p.whole[Plant.READY] == 0:
        p.whole[Plant.FAILED] += 1
        return
    if p.whole[Plant.MOST_IN_FLIGHT] > 0 and _full(p):
        p.whole[Plant.REJECTED] += 1
        return
    row = _route(p, request)
    p.requests[request, Request.PLACE] = row
    r, x = p.rows[row], p.reals[row]
    r[Row.IN_FLIGHT] += 1
    p.counters[row, 0] += 1
    sequences.enqueue(p, row, request)
    if r[Row.DOING] == IDLE:
        iterations.plan(p, row, now_s)
    elif r[Row.DOING] == DECODES and r[Row.WAITING] == 1:
        # The present iteration ends, and the next may admit it.
        steps = iteration_cost.steps_within(p, row, now_s - x[Real.BEGAN]) + 1
        if steps < r[Row.LEFT]:
            r[Row.LEFT] = steps
            x[Real.ENDS] = x[Real.BEGAN] + iteration_cost.run_s(p, row, steps)


@compiled
def advance(p: TokenState, until_s: float) -> None:
    """Run the plant until then: all that ends by then, and what arrives before."""
    count, rows = len(p.times), len(p.rows)
    while True:
        request = p.whole[Plant.NEXT]
        arrival_s = p.times[request, Time.ARRIVED] if request < count else math.inf
        stop_s = min(arrival_s, until_s)
        for row in range(rows):
            while p.rows[row, Row.DOING] != IDLE and p.reals[row, Real.ENDS] <= stop_s:
                iterations.end(p, row)
        if arrival_s >= until_s:
            return
        _arrive(p, request, arrival_s)
        p.whole[Plant.NEXT] += 1


@compiled
def settle(p: TokenState, now_s: float) -> None:
    """Bring counters and gauges of runs of decodes up to now; `advance` was called until now."""
    for row in range(len(p.rows)):
        r = p.rows[row]
        if r[Row.DOING] == DECODES:
            steps = iteration_cost.steps_within(p, row, now_s - p.reals[row, Real.BEGAN])
            iterations.commit(p, row, min(steps, r[Row.LEFT] - 1))


@compiled
def admit(p: TokenState, row: int) -> None:
    """Open a row, empty and with counters at zero, to requests."""
    p.rows[row, :] = 0
    p.reals[row, :] = 0.0
    p.counters[row, :] = 0.0
    p.residues[row, :] = 0
    p.units[row, :, Unit.USES] = NONE
    p.rows[row, Row.PARTIAL] = NONE
    p.rows[row, Row.OLDEST] = NONE
    p.rows[row, Row.NEWEST] = NONE
    p.rows[row, Row.OPEN] = 1
    p.routable[p.whole[Plant.READY]] = row
    p.whole[Plant.READY] += 1


@compiled
def close(p: TokenState, row: int) -> None:
    """Stop routing to a row; it finishes what it has."""
    if p.rows[row, Row.OPEN] == 0:
        return
    p.rows[row, Row.OPEN] = 0
    ready, found = p.whole[Plant.READY], 0
    while p.routable[found] != row:
        found += 1
    for index in range(found, ready - 1):
        p.routable[index] = p.routable[index + 1]
    p.whole[Plant.READY] = ready - 1


@compiled
def kill(p: TokenState, row: int) -> None:
    """Close a row at once; its requests are aborted."""
    close(p, row)
    p.rows[row, Row.DOING] = IDLE
    p.rows[row, Row.IN_FLIGHT] = 0
