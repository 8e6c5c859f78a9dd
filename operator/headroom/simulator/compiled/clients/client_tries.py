"""Compiled: tries of clients, from their queue and their timers to the first that is sent."""

from __future__ import annotations

import math

from headroom.simulator.compiled.clients.client_layout import Amount, Count, Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.heap import push
from headroom.simulator.compiled.plant_layout import NONE, Tally
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.rng import uniform


@compiled
def sum_wanted(c: ClientState, now_s: float) -> None:
    """Sum up to now the integral of the requests that a client wants and that have not ended."""
    seconds = now_s - c.amounts[Amount.TOUCHED_S]
    c.amounts[Amount.WANTED_S] += c.counts[Count.OPEN] * seconds
    c.amounts[Amount.TOUCHED_S] = now_s


@compiled
def wake_at(c: ClientState, request: int, time_s: float, phase: int) -> None:
    """Wake this request at a time."""
    c.phase[request] = phase
    push(c.wake_s, c.wake_request, c.counts[Count.WAKES], time_s, request)
    c.counts[Count.WAKES] += 1


@compiled
def think(c: ClientState, user: int, now_s: float, least_s: float) -> None:
    """Let a user think before its next request."""
    seconds = -c.amounts[Amount.THINK_S] * math.log(1.0 - uniform(c.random))
    wake_at(c, user, now_s + max(seconds, least_s), Phase.THINKING)


@compiled
def begin_try(c: ClientState, request: int, now_s: float) -> None:
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
def first_unsent(c: ClientState) -> int:
    """Remove the first of the clients' queue."""
    request: int = c.counts[Count.UNSENT_HEAD]
    c.counts[Count.UNSENT_HEAD] = c.following[request]
    c.counts[Count.UNSENT] -= 1
    return request


@compiled
def end_patience(c: ClientState, request: int) -> None:
    """Remove a try from those whose patience runs."""
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
def want(p: PlantState, c: ClientState, request: int, now_s: float) -> None:
    """Begin the first try of a request: what scores count."""
    p.tally[Tally.REQUESTS] += 1
    p.minute_requests[min(int(now_s / 60.0), len(p.minute_requests) - 1)] += 1
    sum_wanted(c, now_s)
    c.counts[Count.OPEN] += 1
    c.wanted_s[request] = now_s
    c.tries[request] = 0
    begin_try(c, request, now_s)
