"""The compiled plant: every request from its arrival to its end, event by event.

All state lies in `PlantState`, changed in place; time only ever comes in as an argument. Cost: 0.2
to 0.4 us per request, nearly independent of the number of replicas, except under least in flight,
which looks at each.
"""

from __future__ import annotations

import math

from headroom.simulator.compiling import compiled, inlined
from headroom.simulator.heap import pop, push
from headroom.simulator.plant_state import (
    ANSWERED,
    CENTRAL,
    FINE_BUCKETS,
    FINE_LOG,
    FINE_START_S,
    GAMMA,
    LOGNORMAL,
    NONE,
    RANDOM,
    ROUND_ROBIN,
    STICKY,
    TWO_CHOICES,
    Column,
    Floats,
    Number,
    PlantState,
    Quantity,
    Tally,
)
from headroom.simulator.rng import below, gamma_factor, lognormal_factor

_COLUMNS = len(Column)


@compiled
def _touch(p: PlantState, row: int, now_s: float) -> None:
    """Sum the integrals of a row up to now."""
    seconds = now_s - p.touched_s[row]
    if seconds > 0.0:
        counters = p.counters[row]
        counters[Column.WAITING_S] += p.waiting[row] * seconds
        counters[Column.IN_FLIGHT_S] += p.in_flight[row] * seconds
        if p.busy_slots[row] > 0:
            counters[Column.BUSY_S] += seconds
            counters[Column.SLOTS_BUSY_S] += p.busy_slots[row] * seconds
        p.quantities[Quantity.IN_SYSTEM_S] += p.in_flight[row] * seconds
        p.touched_s[row] = now_s


@compiled
def release(p: PlantState, node: int) -> None:
    """Return a node to the pool."""
    p.following[node] = p.numbers[Number.FREE]
    p.numbers[Number.FREE] = node


@compiled
def tell(p: PlantState, node: int, now_s: float, outcome: int) -> None:
    """End a try: its client, if it still waits, hears of it."""
    p.quantities[Quantity.SOJOURN_S] += now_s - p.arrived_s[node]
    if p.owner[node] == NONE:
        release(p, node)
        return
    p.arrived_s[node] = now_s
    p.mark[node] = outcome
    p.following[node] = p.numbers[Number.ENDED]
    p.numbers[Number.ENDED] = node


@compiled
def _end(p: PlantState, node: int, now_s: float, outcome: int) -> None:
    """End a request that gets no answer."""
    if p.numbers[Number.CLIENTS] == 1:
        tell(p, node, now_s, outcome)
        return
    arrived_s = p.arrived_s[node]
    p.tally[outcome] += 1
    p.minute_missed[min(int(arrived_s / 60.0), len(p.minute_missed) - 1)] += 1
    p.recent[len(p.recent) - 1] += 1
    p.quantities[Quantity.SOJOURN_S] += now_s - arrived_s
    release(p, node)


@compiled
def _answer(p: PlantState, row: int, node: int, now_s: float) -> None:
    """End a request with its answer."""
    latency_s = now_s - p.arrived_s[node]
    clients = p.numbers[Number.CLIENTS] == 1
    gone = p.owner[node] == NONE if clients else latency_s > p.quantities[Quantity.TIMEOUT_S]
    if gone:
        p.counters[row, Column.CANCELLED] += 1
        _end(p, node, now_s, Tally.CANCELLED)
        return
    p.counters[row, Column.ANSWERED] += 1
    p.counters[row, _COLUMNS + _bucket(p.bounds_s, latency_s)] += 1
    if clients:
        tell(p, node, now_s, ANSWERED)
        return
    count_latency(p, latency_s)
    if latency_s <= p.quantities[Quantity.TARGET_S]:
        p.tally[Tally.WITHIN] += 1
    else:
        p.tally[Tally.LATE] += 1
        arrived_s = p.arrived_s[node]
        p.minute_missed[min(int(arrived_s / 60.0), len(p.minute_missed) - 1)] += 1
    p.quantities[Quantity.SOJOURN_S] += latency_s
    release(p, node)


@compiled
def count_latency(p: PlantState, latency_s: float) -> None:
    """Add an answer to the ground truth's histograms."""
    fine = int(math.log(max(latency_s, FINE_START_S) / FINE_START_S) / FINE_LOG)
    fine = min(fine, FINE_BUCKETS - 1)
    p.latency[fine] += 1
    p.recent[fine] += 1


_GRID_LOG = math.log(1.15)


@compiled
def _bucket(bounds_s: Floats, latency_s: float) -> int:
    """Return the first bucket whose bound is not below; the grid is 0.001 x 1.15**k, rounded."""
    last = len(bounds_s) - 1
    index = math.ceil(math.log(max(latency_s, 1e-9) / 0.001) / _GRID_LOG)
    index = min(max(index, 0), last)
    while index > 0 and bounds_s[index - 1] >= latency_s:
        index -= 1
    while index < last and bounds_s[index] < latency_s:
        index += 1
    return index


@compiled
def purge(p: PlantState, row: int, now_s: float) -> None:
    """End requests that have waited too long; queues are FIFO, so only heads can."""
    while p.waiting[row] > 0:
        node = p.head[row]
        left = p.numbers[Number.CLIENTS] == 1 and p.owner[node] == NONE
        if not left and now_s - p.arrived_s[node] <= p.quantities[Quantity.PATIENCE_S]:
            return
        _touch(p, row, now_s)
        p.head[row] = p.following[node]
        p.waiting[row] -= 1
        p.in_flight[row] -= 1
        if p.numbers[Number.EXPIRES] == 1 and not left:
            p.counters[row, Column.EXPIRED] += 1
            _end(p, node, now_s, Tally.EXPIRED)
        else:
            p.counters[row, Column.CANCELLED] += 1
            _end(p, node, now_s, Tally.CANCELLED)


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
def _start(p: PlantState, row: int, now_s: float) -> None:
    """Start a batch of waiting requests on every free slot."""
    slots = p.numbers[Number.SLOTS]
    while p.busy_slots[row] < slots:
        purge(p, row, now_s)
        size = min(p.waiting[row], p.numbers[Number.MAX_BATCH])
        if size == 0:
            return
        _touch(p, row, now_s)
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
def _enqueue(p: PlantState, row: int, node: int, now_s: float) -> None:
    _touch(p, row, now_s)
    p.following[node] = NONE
    if p.waiting[row] == 0:
        p.head[row] = node
    else:
        p.following[p.tail[row]] = node
    p.tail[row] = node
    p.waiting[row] += 1
    p.in_flight[row] += 1


@compiled
def _least(p: PlantState) -> int:
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
    return _least(p)


@inlined
def hand_out(p: PlantState, now_s: float) -> None:
    """Move requests from the central queue to replicas with room."""
    central = len(p.head) - 1
    while p.numbers[Number.READY] > 0:
        purge(p, central, now_s)
        if p.waiting[central] == 0:
            return
        row = _least(p)
        if p.in_flight[row] >= p.numbers[Number.CAP]:
            return
        _touch(p, central, now_s)
        node = p.head[central]
        p.head[central] = p.following[node]
        p.waiting[central] -= 1
        p.in_flight[central] -= 1
        p.counters[row, Column.ARRIVALS] += 1
        if p.numbers[Number.CLIENTS] == 1:
            p.counters[row, Column.RETRIED] += p.mark[node]
        _enqueue(p, row, node, now_s)
        _start(p, row, now_s)


@compiled
def _arrive(p: PlantState, time_s: float) -> None:
    """Admit one request; the pool has a free node."""
    p.tally[Tally.REQUESTS] += 1
    p.minute_requests[min(int(time_s / 60.0), len(p.minute_requests) - 1)] += 1
    node = p.numbers[Number.FREE]
    p.numbers[Number.FREE] = p.following[node]
    p.arrived_s[node] = time_s
    if p.numbers[Number.READY] == 0 and p.numbers[Number.ROUTING] != CENTRAL:
        _end(p, node, time_s, Tally.FAILED)
        return
    central = p.numbers[Number.ROUTING] == CENTRAL
    deliver(p, node, len(p.head) - 1 if central else route(p), time_s)


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
                full and p.in_flight[_least(p)] >= p.numbers[Number.CAP]
                if p.numbers[Number.READY] > 0
                else full
            )
        elif p.busy_slots[row] < p.numbers[Number.SLOTS]:
            full = False
        if full:
            p.counters[row, Column.REFUSED] += 1
            _end(p, node, time_s, Tally.REFUSED)
            return
    _enqueue(p, row, node, time_s)
    if central:
        hand_out(p, time_s)
    else:
        _start(p, row, time_s)


@compiled
def finish(p: PlantState, now_s: float) -> None:
    """End the earliest execution and start the next one."""
    slots = p.numbers[Number.SLOTS]
    place = pop(p.heap_s, p.heap_place, p.numbers[Number.HEAP])
    p.numbers[Number.HEAP] -= 1
    row, slot = place // slots, place % slots
    _touch(p, row, now_s)
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
        _answer(p, row, node, now_s)
        node = following
    _start(p, row, now_s)
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
            _touch(p, row, now_s)
        p.counters[row, Column.WAITING] = p.waiting[row]
        p.counters[row, Column.RUNNING] = p.in_flight[row] - p.waiting[row]


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
    _touch(p, row, now_s)
    while p.waiting[row] > 0:
        node = p.head[row]
        p.head[row] = p.following[node]
        p.waiting[row] -= 1
        _end(p, node, now_s, Tally.FAILED)
    slots = p.numbers[Number.SLOTS]
    for slot in range(slots):
        node = p.batch_head[row, slot]
        while node != NONE:
            following = p.following[node]
            _end(p, node, now_s, Tally.FAILED)
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


@compiled
def ages_s(p: PlantState, now_s: float) -> float:
    """Return the summed age of the requests still in the system."""
    total = 0.0
    for row in range(len(p.head)):
        node = p.head[row]
        for _ in range(p.waiting[row]):
            total += now_s - p.arrived_s[node]
            node = p.following[node]
        for slot in range(p.numbers[Number.SLOTS]):
            node = p.batch_head[row, slot]
            while node != NONE:
                total += now_s - p.arrived_s[node]
                node = p.following[node]
    return total


@compiled
def miss_the_rest(p: PlantState) -> None:
    """Count what is still in the system as missed in its minute of arrival; it stays there."""
    last = len(p.minute_missed) - 1
    for row in range(len(p.head)):
        node = p.head[row]
        for _ in range(p.waiting[row]):
            p.minute_missed[min(int(p.arrived_s[node] / 60.0), last)] += 1
            node = p.following[node]
        for slot in range(p.numbers[Number.SLOTS]):
            node = p.batch_head[row, slot]
            while node != NONE:
                p.minute_missed[min(int(p.arrived_s[node] / 60.0), last)] += 1
                node = p.following[node]
