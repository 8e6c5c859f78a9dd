"""The compiled plant: every request from its arrival to its end, event by event.

All state lies in `PlantState`, changed in place; time only ever comes in as an argument. Cost: 0.2
to 0.4 us per request, nearly independent of the number of replicas, except under least in flight,
which looks at each.
"""

from __future__ import annotations

import math

from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.executions import purge, start_batches
from headroom.simulator.compiled.heap import pop
from headroom.simulator.compiled.plant_layout import CENTRAL, NONE, Column, Floats, Number, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import touch
from headroom.simulator.compiled.request_ends import end_answered, end_unanswered
from headroom.simulator.compiled.request_routing import deliver, hand_out, route


@compiled
def _arrive(p: PlantState, time_s: float) -> None:
    """Admit one request; the pool has a free node."""
    p.tally[Tally.REQUESTS] += 1
    p.minute_requests[min(int(time_s / 60.0), len(p.minute_requests) - 1)] += 1
    node = p.numbers[Number.FREE]
    p.numbers[Number.FREE] = p.following[node]
    p.arrived_s[node] = time_s
    if p.numbers[Number.READY] == 0 and p.numbers[Number.ROUTING] != CENTRAL:
        end_unanswered(p, node, time_s, Tally.FAILED)
        return
    central = p.numbers[Number.ROUTING] == CENTRAL
    deliver(p, node, len(p.head) - 1 if central else route(p), time_s)


@compiled
def finish(p: PlantState, now_s: float) -> None:
    """End the earliest execution and start the next one."""
    slots = p.numbers[Number.SLOTS]
    place = pop(p.heap_s, p.heap_place, p.numbers[Number.HEAP])
    p.numbers[Number.HEAP] -= 1
    row, slot = place // slots, place % slots
    touch(p, row, now_s)
    counters = p.counters[row]
    size = p.batch_size[row, slot]
    counters[Column.EXECUTIONS] += 1
    counters[Column.ITEMS] += size
    counters[Column.EXECUTION_S] += now_s - p.batch_began_s[row, slot]
    node = p.batch_head[row, slot]
    p.batch_head[row, slot] = NONE
    p.busy_slots[row] -= 1
    p.in_flight[row] -= size
    while node != NONE:
        following = p.following[node]
        end_answered(p, row, node, now_s)
        node = following
    start_batches(p, row, now_s)
    if p.numbers[Number.ROUTING] == CENTRAL:
        hand_out(p, now_s)


@compiled
def advance(p: PlantState, times_s: Floats, index: int, until_s: float) -> int:
    """Run the plant until `until_s`; return the index of the first arrival not admitted.

    Takes in the arrivals times_s[index:] that lie before `until_s`. Returns early, with time not
    yet at `until_s`, only where the pool is full: then the caller enlarges it and calls again.
    """
    count = len(times_s)
    while True:
        arrival_s = times_s[index] if index < count else math.inf
        end_s = p.heap_s[0] if p.numbers[Number.HEAP] > 0 else math.inf
        if end_s <= arrival_s:
            if end_s > until_s or end_s == math.inf:
                return index
            finish(p, end_s)
        else:
            if arrival_s >= until_s or p.numbers[Number.FREE] == NONE:
                return index
            _arrive(p, arrival_s)
            index += 1


@compiled
def settle(p: PlantState, now_s: float) -> None:
    """Update every row's integrals and gauges to now, and end requests that timed out.

    With clients these end when their client or their server notices: to look changes nothing.
    """
    plain = p.numbers[Number.CLIENTS] == 0
    for row in range(len(p.head)):
        if p.in_flight[row] > 0 or p.touched_s[row] < now_s:
            if plain:
                purge(p, row, now_s)
            touch(p, row, now_s)
        p.counters[row, Column.WAITING] = p.waiting[row]
        p.counters[row, Column.RUNNING] = p.in_flight[row] - p.waiting[row]
