"""Compiled: opens, closes and kills a replica of the plant."""

from __future__ import annotations

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.heap import push
from headroom.simulator.compiled.plant_layout import CENTRAL, NONE, Number, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import touch
from headroom.simulator.compiled.request_ends import end_unanswered
from headroom.simulator.compiled.request_routing import hand_out


@compiled
def admit(p: PlantState, row: int, now_s: float) -> None:
    """Open a row, empty and with counters at zero, to requests."""
    p.counters[row, :] = 0.0
    p.touched_s[row] = now_s
    p.slowness[row] = 1.0
    p.routable[p.numbers[Number.READY]] = row
    p.numbers[Number.READY] += 1
    p.open[row] = 1
    if p.numbers[Number.ROUTING] == CENTRAL:
        hand_out(p, now_s)


@compiled
def close(p: PlantState, row: int) -> None:
    """Stop routing requests to a row; it finishes those that it has."""
    if p.open[row] == 0:
        return
    p.open[row] = 0
    for connection in range(len(p.bound)):
        if p.bound[connection] == row:
            p.bound[connection] = NONE
    ready = p.numbers[Number.READY]
    found = 0
    while p.routable[found] != row:
        found += 1
    for index in range(found, ready - 1):
        p.routable[index] = p.routable[index + 1]
    p.numbers[Number.READY] = ready - 1


@compiled
def kill(p: PlantState, row: int, now_s: float) -> None:
    """Close a row at once; its requests in flight fail."""
    close(p, row)
    touch(p, row, now_s)
    while p.waiting[row] > 0:
        node = p.head[row]
        p.head[row] = p.following[node]
        p.waiting[row] -= 1
        end_unanswered(p, node, now_s, Tally.FAILED)
    slots = p.numbers[Number.SLOTS]
    for slot in range(slots):
        node = p.batch_head[row, slot]
        while node != NONE:
            following = p.following[node]
            end_unanswered(p, node, now_s, Tally.FAILED)
            node = following
        p.batch_head[row, slot] = NONE
    p.busy_slots[row] = 0
    p.in_flight[row] = 0
    kept = 0
    for index in range(p.numbers[Number.HEAP]):  # in place: never grows beyond `index`
        place = p.heap_place[index]
        if place // slots != row:
            push(p.heap_s, p.heap_place, kept, p.heap_s[index], place)
            kept += 1
    p.numbers[Number.HEAP] = kept
