"""Compiled: the replica to which a request goes, also from the central queue."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled, inlined
from headroom.simulator.compiled.executions import enqueue, purge, start_batches
from headroom.simulator.compiled.plant_layout import (
    CENTRAL,
    NONE,
    RANDOM,
    ROUND_ROBIN,
    STICKY,
    TWO_CHOICES,
    Column,
    Number,
    Tally,
)
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import touch
from headroom.simulator.compiled.request_ends import end_unanswered
from headroom.simulator.compiled.rng import below


@compiled
def least_in_flight(p: PlantState) -> int:
    """Return the routable row with the fewest requests in flight; ties in turn."""
    ready = p.numbers[Number.READY]
    p.numbers[Number.TURN] += 1
    start = p.numbers[Number.TURN] % ready
    best = p.routable[start]
    for step in range(1, ready):
        index = start + step
        row = p.routable[index - ready if index >= ready else index]
        if p.in_flight[row] < p.in_flight[best]:
            best = row
    return best


@inlined
def route(p: PlantState) -> int:
    """Return the row that the next request goes to; there is at least one."""
    ready, routing = p.numbers[Number.READY], p.numbers[Number.ROUTING]
    if routing == STICKY:  # even if only one is ready: its connections stay with it
        connection = below(p.random, len(p.bound))
        row = p.bound[connection]
        if row == NONE:
            row = p.routable[below(p.random, ready)]
            p.bound[connection] = row
        return row
    if routing == RANDOM or ready == 1:
        return p.routable[below(p.random, ready)]
    if routing == ROUND_ROBIN:
        p.numbers[Number.TURN] += 1
        return p.routable[p.numbers[Number.TURN] % ready]
    if routing == TWO_CHOICES:
        first = below(p.random, ready)
        second = below(p.random, ready - 1)
        second += second >= first
        one, other = p.routable[first], p.routable[second]
        return one if p.in_flight[one] <= p.in_flight[other] else other
    return least_in_flight(p)


@inlined
def hand_out(p: PlantState, now_s: float) -> None:
    """Move requests from the central queue to replicas with room."""
    central = len(p.head) - 1
    while p.numbers[Number.READY] > 0:
        purge(p, central, now_s)
        if p.waiting[central] == 0:
            return
        row = least_in_flight(p)
        if p.in_flight[row] >= p.numbers[Number.CAP]:
            return
        touch(p, central, now_s)
        node = p.head[central]
        p.head[central] = p.following[node]
        p.waiting[central] -= 1
        p.in_flight[central] -= 1
        p.counters[row, Column.ARRIVALS] += 1
        if p.numbers[Number.CLIENTS] == 1:
            p.counters[row, Column.RETRIED] += p.mark[node]
        enqueue(p, row, node, now_s)
        start_batches(p, row, now_s)


@inlined
def deliver(p: PlantState, node: int, row: int, time_s: float) -> None:
    """Hand a request to a replica, or to the central queue, which may refuse it."""
    central = p.numbers[Number.ROUTING] == CENTRAL
    p.counters[row, Column.ARRIVALS] += 1
    if p.numbers[Number.CLIENTS] == 1:
        p.counters[row, Column.RETRIED] += p.mark[node]
    if p.numbers[Number.MAX_WAITING] != NONE:
        purge(p, row, time_s)
        full = p.waiting[row] >= p.numbers[Number.MAX_WAITING]
        if central:
            full = (
                full and p.in_flight[least_in_flight(p)] >= p.numbers[Number.CAP]
                if p.numbers[Number.READY] > 0
                else full
            )
        elif p.busy_slots[row] < p.numbers[Number.SLOTS]:
            full = False
        if full:
            p.counters[row, Column.REFUSED] += 1
            end_unanswered(p, node, time_s, Tally.REFUSED)
            return
    enqueue(p, row, node, time_s)
    if central:
        hand_out(p, time_s)
    else:
        start_batches(p, row, time_s)
