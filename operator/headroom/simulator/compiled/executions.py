"""Compiled: a replica's queue, and the batches that it starts from it."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled, inlined
from headroom.simulator.compiled.heap import push
from headroom.simulator.compiled.plant_layout import (
    GAMMA,
    LOGNORMAL,
    NONE,
    Column,
    Number,
    Quantity,
    Tally,
)
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import touch
from headroom.simulator.compiled.request_ends import end_unanswered
from headroom.simulator.compiled.rng import gamma_factor, lognormal_factor


@compiled
def purge(p: PlantState, row: int, now_s: float) -> None:
    """End requests that have waited too long; queues are FIFO, so only heads can."""
    while p.waiting[row] > 0:
        node = p.head[row]
        left = p.numbers[Number.CLIENTS] == 1 and p.owner[node] == NONE
        if not left and now_s - p.arrived_s[node] <= p.quantities[Quantity.PATIENCE_S]:
            return
        touch(p, row, now_s)
        p.head[row] = p.following[node]
        p.waiting[row] -= 1
        p.in_flight[row] -= 1
        if p.numbers[Number.EXPIRES] == 1 and not left:
            p.counters[row, Column.EXPIRED] += 1
            end_unanswered(p, node, now_s, Tally.EXPIRED)
        else:
            p.counters[row, Column.CANCELLED] += 1
            end_unanswered(p, node, now_s, Tally.CANCELLED)


@inlined
def _execution_s(p: PlantState, row: int, size: int) -> float:
    seconds = (
        (p.quantities[Quantity.FIXED_S] + p.quantities[Quantity.PER_ITEM_S] * size)
        * p.quantities[Quantity.COST_FACTOR]
        * p.slowness[row]
    )
    if p.numbers[Number.SPREAD] == LOGNORMAL:
        seconds *= lognormal_factor(p.random, p.quantities[Quantity.CV])
    elif p.numbers[Number.SPREAD] == GAMMA:
        seconds *= gamma_factor(p.random, p.quantities[Quantity.CV])
    return seconds


@compiled
def start_batches(p: PlantState, row: int, now_s: float) -> None:
    """Start a batch of waiting requests on every free slot."""
    slots = p.numbers[Number.SLOTS]
    while p.busy_slots[row] < slots:
        purge(p, row, now_s)
        size = min(p.waiting[row], p.numbers[Number.MAX_BATCH])
        if size == 0:
            return
        touch(p, row, now_s)
        slot = 0
        while p.batch_head[row, slot] != NONE:
            slot += 1
        first = p.head[row]
        last = first
        for _ in range(size - 1):
            last = p.following[last]
        p.head[row] = p.following[last]
        p.following[last] = NONE
        p.waiting[row] -= size
        p.batch_head[row, slot] = first
        p.batch_size[row, slot] = size
        p.batch_began_s[row, slot] = now_s
        p.busy_slots[row] += 1
        end_s = now_s + _execution_s(p, row, size)
        push(p.heap_s, p.heap_place, p.numbers[Number.HEAP], end_s, row * slots + slot)
        p.numbers[Number.HEAP] += 1


@inlined
def enqueue(p: PlantState, row: int, node: int, now_s: float) -> None:
    """Add a request to a replica's queue."""
    touch(p, row, now_s)
    p.following[node] = NONE
    if p.waiting[row] == 0:
        p.head[row] = node
    else:
        p.following[p.tail[row]] = node
    p.tail[row] = node
    p.waiting[row] += 1
    p.in_flight[row] += 1
