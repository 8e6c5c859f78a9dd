"""The compiled clients: who sends when, over which connection, and what becomes of a miss.

The clients run the plant: `advance` takes the next of an execution's end, a client's patience, a
user's or a backoff's time, a step of the users, and an arrival. What the plant ends lies in a list
until its client hears of it, so no call ever comes back to where it began. Cost: 0.4 to 0.6 us per
request.
"""

from __future__ import annotations

import math

from headroom.simulator.client_state import Amount, ClientState, Count, Phase
from headroom.simulator.compiling import compiled
from headroom.simulator.heap import pop, push
from headroom.simulator.kernel import (
    count_latency,
    deliver,
    finish,
    hand_out,
    purge,
    release,
    route,
    tell,
)
from headroom.simulator.plant_state import (
    ANSWERED,
    CENTRAL,
    FINE_LOG,
    NONE,
    Floats,
    Number,
    PlantState,
    Quantity,
    Tally,
)
from headroom.simulator.rng import below, uniform

_PAUSE_S = 0.001
"""Least pause of a user after a miss: no instant has endless tries."""
_JUST_LATE = math.exp(1.5 * FINE_LOG)
"""An answer to a retry counts in the histograms as later than the target."""


@compiled
def _touch(c: ClientState, now_s: float) -> None:
    """Sum the integral of requests between wish and end up to now."""
    seconds = now_s - c.amounts[Amount.TOUCHED_S]
    c.amounts[Amount.WANTED_S] += c.counts[Count.OPEN] * seconds
    c.amounts[Amount.TOUCHED_S] = now_s


@compiled
def _wake_at(c: ClientState, request: int, time_s: float, phase: int) -> None:
    c.phase[request] = phase
    push(c.wake_s, c.wake_request, c.counts[Count.WAKES], time_s, request)
    c.counts[Count.WAKES] += 1


@compiled
def _think(c: ClientState, user: int, now_s: float, least_s: float) -> None:
    seconds = -c.amounts[Amount.THINK_S] * math.log(1.0 - uniform(c.random))
    _wake_at(c, user, now_s + max(seconds, least_s), Phase.THINKING)


@compiled
def _begin_try(c: ClientState, request: int, now_s: float) -> None:
    """Add a try to the clients' queue and to those whose patience runs."""
    c.tried_s[request] = now_s
    c.phase[request] = Phase.UNSENT
    c.following[request] = NONE
    if c.counts[Count.UNSENT] == 0:
        c.counts[Count.UNSENT_HEAD] = request
    else:
        c.following[c.counts[Count.UNSENT_TAIL]] = request
    c.counts[Count.UNSENT_TAIL] = request
    c.counts[Count.UNSENT] += 1
    last = c.counts[Count.PATIENT_TAIL]
    c.patient_before[request], c.patient_next[request] = last, NONE
    if last == NONE:
        c.counts[Count.PATIENT_HEAD] = request
    else:
        c.patient_next[last] = request
    c.counts[Count.PATIENT_TAIL] = request


@compiled
def _first_unsent(c: ClientState) -> int:
    """Remove the first of the clients' queue."""
    request: int = c.counts[Count.UNSENT_HEAD]
    c.counts[Count.UNSENT_HEAD] = c.following[request]
    c.counts[Count.UNSENT] -= 1
    return request


@compiled
def _end_patience(c: ClientState, request: int) -> None:
    before, after = c.patient_before[request], c.patient_next[request]
    if before == NONE:
        c.counts[Count.PATIENT_HEAD] = after
    else:
        c.patient_next[before] = after
    if after == NONE:
        c.counts[Count.PATIENT_TAIL] = before
    else:
        c.patient_before[after] = before


@compiled
def _want(p: PlantState, c: ClientState, request: int, now_s: float) -> None:
    """Begin the first try of a request: what scores count."""
    p.tally[Tally.REQUESTS] += 1
    p.minute_requests[min(int(now_s / 60.0), len(p.minute_requests) - 1)] += 1
    _touch(c, now_s)
    c.counts[Count.OPEN] += 1
    c.wanted_s[request] = now_s
    c.tries[request] = 0
    _begin_try(c, request, now_s)


@compiled
def _connect(p: PlantState, c: ClientState, now_s: float) -> int:
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
def _disconnect(p: PlantState, c: ClientState, request: int, now_s: float, keep: bool) -> None:
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
def _send(p: PlantState, c: ClientState, now_s: float) -> None:
    """Send the first of the clients' queue; there is a connection and a free node."""
    request = _first_unsent(c)
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
        connection = _connect(p, c, now_s)
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


@compiled
def _done(c: ClientState, request: int, now_s: float, least_s: float) -> None:
    """End a request: its user thinks, or its row is free."""
    _touch(c, now_s)
    c.counts[Count.OPEN] -= 1
    c.amounts[Amount.LATENCY_S] += now_s - c.wanted_s[request]
    if request >= c.counts[Count.MOST_USERS]:
        c.phase[request] = Phase.NOTHING
        c.following[request] = c.counts[Count.FREE]
        c.counts[Count.FREE] = request
    else:
        _think(c, request, now_s, least_s)


@compiled
def _count_late(p: PlantState, wanted_s: float) -> None:
    p.minute_missed[min(int(wanted_s / 60.0), len(p.minute_missed) - 1)] += 1


@compiled
def _answered(p: PlantState, c: ClientState, request: int, now_s: float) -> None:
    """Score an answer: in time only if it is to the first try."""
    latency_s, target_s = now_s - c.wanted_s[request], p.quantities[Quantity.TARGET_S]
    if c.tries[request] > 0:
        latency_s = max(latency_s, target_s * _JUST_LATE)
    count_latency(p, latency_s)
    if latency_s <= target_s:
        p.tally[Tally.WITHIN] += 1
    else:
        p.tally[Tally.LATE] += 1
        _count_late(p, c.wanted_s[request])
    _done(c, request, now_s, 0.0)


@compiled
def _missed(p: PlantState, c: ClientState, request: int, now_s: float, outcome: int) -> None:
    """Try again after a miss, or score it."""
    tries = c.tries[request]
    if tries < c.counts[Count.RETRIES]:
        mean_s = c.amounts[Amount.BACKOFF_S] * 2.0**tries
        c.tries[request] += 1
        _wake_at(c, request, now_s + mean_s * (0.5 + uniform(c.random)), Phase.BACKING_OFF)
        return
    p.tally[outcome] += 1
    p.recent[len(p.recent) - 1] += 1
    _count_late(p, c.wanted_s[request])
    _done(c, request, now_s, _PAUSE_S)


@compiled
def _hear(p: PlantState, c: ClientState) -> None:
    """Take in the first of the ended tries."""
    node = p.numbers[Number.ENDED]
    p.numbers[Number.ENDED] = p.following[node]
    request, outcome, now_s = p.owner[node], p.mark[node], p.arrived_s[node]
    p.owner[node] = NONE
    release(p, node)
    c.amounts[Amount.NOW_S] = max(c.amounts[Amount.NOW_S], now_s)
    c.node[request] = NONE
    _end_patience(c, request)
    _disconnect(p, c, request, now_s, outcome != Tally.FAILED)
    if outcome == ANSWERED:
        _answered(p, c, request, now_s)
    else:
        _missed(p, c, request, now_s, outcome)


@compiled
def _give_up(p: PlantState, c: ClientState, now_s: float) -> None:
    """End the try that has waited longest; at the plant it goes on without a reader, if it runs."""
    request = c.counts[Count.PATIENT_HEAD]
    _end_patience(c, request)
    if c.phase[request] == Phase.UNSENT:
        _first_unsent(c)  # the queue is in the order of patience: it is this one
    else:
        p.owner[c.node[request]] = NONE
        c.node[request] = NONE
        _disconnect(p, c, request, now_s, False)
        if p.numbers[Number.ROUTING] == CENTRAL:
            for row in range(len(p.head)):
                purge(p, row, now_s)
            hand_out(p, now_s)
        else:
            purge(p, c.row[request], now_s)
    _missed(p, c, request, now_s, Tally.CANCELLED)


@compiled
def _wake(p: PlantState, c: ClientState, now_s: float) -> None:
    """Begin the try of the first that wakes; a user of too many leaves."""
    request = pop(c.wake_s, c.wake_request, c.counts[Count.WAKES])
    c.counts[Count.WAKES] -= 1
    if c.phase[request] == Phase.BACKING_OFF:
        _begin_try(c, request, now_s)
    elif request < c.counts[Count.USERS]:
        _want(p, c, request, now_s)
    else:
        c.phase[request] = Phase.NOTHING


@compiled
def _step(c: ClientState, now_s: float) -> None:
    """Change the number of users; new ones think first."""
    users = c.step_users[c.counts[Count.STEP]]
    c.counts[Count.STEP] += 1
    for user in range(c.counts[Count.USERS], users):
        if c.phase[user] == Phase.NOTHING:
            _think(c, user, now_s, 0.0)
    c.counts[Count.USERS] = users


@compiled
def _arrive(p: PlantState, c: ClientState, now_s: float) -> None:
    """Begin the request of a client that is no user; there is a free row."""
    request = c.counts[Count.FREE]
    c.counts[Count.FREE] = c.following[request]
    _want(p, c, request, now_s)


@compiled
def _may_send(c: ClientState) -> bool:
    """Return whether there is a connection for the first of the queue, who has not given up."""
    limit = c.counts[Count.CONNECTIONS]
    if c.counts[Count.UNSENT] == 0 or (limit != NONE and c.counts[Count.USED] >= limit):
        return False
    waited_s = c.amounts[Amount.NOW_S] - c.tried_s[c.counts[Count.UNSENT_HEAD]]
    return bool(waited_s < c.amounts[Amount.TIMEOUT_S])


@compiled
def advance(p: PlantState, c: ClientState, times_s: Floats, index: int, until_s: float) -> int:
    """Run clients and plant until `until_s`; return the index of the first arrival not admitted.

    Takes in the arrivals times_s[index:] that lie before `until_s`. Returns early, with STALLED
    set, where a table is full: then the caller enlarges both and calls again. At equal times
    answers come before patience ends, and both before what clients want.
    """
    c.counts[Count.STALLED] = 0
    while True:
        if p.numbers[Number.ENDED] != NONE:
            _hear(p, c)
            continue
        if _may_send(c):
            if p.numbers[Number.FREE] == NONE:
                c.counts[Count.STALLED] = 1
                return index
            _send(p, c, c.amounts[Amount.NOW_S])
            continue
        end_s = p.heap_s[0] if p.numbers[Number.HEAP] > 0 else math.inf
        patient = c.counts[Count.PATIENT_HEAD]
        leave_s = math.inf
        if patient != NONE:
            leave_s = c.tried_s[patient] + c.amounts[Amount.TIMEOUT_S]
        wake_s = c.wake_s[0] if c.counts[Count.WAKES] > 0 else math.inf
        step = c.counts[Count.STEP]
        step_s = c.step_s[step] if step < len(c.step_s) else math.inf
        arrival_s = times_s[index] if index < len(times_s) else math.inf
        wish_s = min(wake_s, step_s, arrival_s)
        if min(end_s, leave_s) <= wish_s:
            now_s = min(end_s, leave_s)
            if now_s > until_s or now_s == math.inf:
                return index
            c.amounts[Amount.NOW_S] = now_s
            if end_s <= leave_s:
                finish(p, now_s)
            else:
                _give_up(p, c, now_s)
            continue
        if wish_s >= until_s:
            return index
        if arrival_s <= wish_s and c.counts[Count.FREE] == NONE:
            c.counts[Count.STALLED] = 1
            return index
        c.amounts[Amount.NOW_S] = wish_s
        if wake_s <= wish_s:
            _wake(p, c, wish_s)
        elif step_s <= wish_s:
            _step(c, wish_s)
        else:
            _arrive(p, c, wish_s)
            index += 1


@compiled
def dismiss(c: ClientState) -> None:
    """Let no user begin another request."""
    c.counts[Count.USERS] = 0
    c.counts[Count.STEP] = len(c.step_s)


@compiled
def ages_s(c: ClientState, now_s: float) -> float:
    """Return the summed age of the requests that have not ended, and sum their integral to now."""
    _touch(c, now_s)
    total = 0.0
    for request in range(len(c.phase)):
        if c.phase[request] >= Phase.UNSENT:
            total += now_s - c.wanted_s[request]
    return total


@compiled
def miss_the_rest(p: PlantState, c: ClientState) -> None:
    """Count the requests that have not ended as missed in their minute; they stay."""
    for request in range(len(c.phase)):
        if c.phase[request] >= Phase.UNSENT:
            _count_late(p, c.wanted_s[request])
