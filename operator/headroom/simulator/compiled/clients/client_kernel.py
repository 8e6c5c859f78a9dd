"""The compiled clients: their requests, connections and retries, event by event.

The clients run the plant: `advance` takes the next of an execution's end, a client's patience, a
user's or a backoff's time, a step of the users, and an arrival. What the plant ends lies in a list
until its client learns of it, so no call ever comes back to where it began. Cost: 0.4 to 0.6 us per
request.
"""

from __future__ import annotations

import math

from headroom.simulator.compiled.clients.client_connections import send_first
from headroom.simulator.compiled.clients.client_ends import give_up, hear_first
from headroom.simulator.compiled.clients.client_layout import Amount, Count, Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.clients.client_tries import begin_try, think, want
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.heap import pop
from headroom.simulator.compiled.kernel import finish
from headroom.simulator.compiled.plant_layout import NONE, Floats, Number
from headroom.simulator.compiled.plant_state import PlantState


@compiled
def _wake(p: PlantState, c: ClientState, now_s: float) -> None:
    """Begin the try of the first that wakes; a user of too many leaves."""
    request = pop(c.wake_s, c.wake_request, c.counts[Count.WAKES])
    c.counts[Count.WAKES] -= 1
    if c.phase[request] == Phase.BACKING_OFF:
        begin_try(c, request, now_s)
    elif request < c.counts[Count.USERS]:
        want(p, c, request, now_s)
    else:
        c.phase[request] = Phase.NOTHING


@compiled
def _step(c: ClientState, now_s: float) -> None:
    """Change the number of users; new ones think first."""
    users = c.step_users[c.counts[Count.STEP]]
    c.counts[Count.STEP] += 1
    for user in range(c.counts[Count.USERS], users):
        if c.phase[user] == Phase.NOTHING:
            think(c, user, now_s, 0.0)
    c.counts[Count.USERS] = users


@compiled
def _arrive(p: PlantState, c: ClientState, now_s: float) -> None:
    """Begin the request of a client that is no user; there is a free row."""
    request = c.counts[Count.FREE]
    c.counts[Count.FREE] = c.following[request]
    want(p, c, request, now_s)


@compiled
def _may_send(c: ClientState) -> bool:
    """Return whether there is a connection for the first of the queue, which has not given up."""
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
            hear_first(p, c)
            continue
        if _may_send(c):
            if p.numbers[Number.FREE] == NONE:
                c.counts[Count.STALLED] = 1
                return index
            send_first(p, c, c.amounts[Amount.NOW_S])
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
        next_s = min(wake_s, step_s, arrival_s)
        if min(end_s, leave_s) <= next_s:
            now_s = min(end_s, leave_s)
            if now_s > until_s or now_s == math.inf:
                return index
            c.amounts[Amount.NOW_S] = now_s
            if end_s <= leave_s:
                finish(p, now_s)
            else:
                give_up(p, c, now_s)
            continue
        if next_s >= until_s:
            return index
        if arrival_s <= next_s and c.counts[Count.FREE] == NONE:
            c.counts[Count.STALLED] = 1
            return index
        c.amounts[Amount.NOW_S] = next_s
        if wake_s <= next_s:
            _wake(p, c, next_s)
        elif step_s <= next_s:
            _step(c, next_s)
        else:
            _arrive(p, c, next_s)
            index += 1


@compiled
def dismiss(c: ClientState) -> None:
    """Let no user begin another request."""
    c.counts[Count.USERS] = 0
    c.counts[Count.STEP] = len(c.step_s)
