"""Compiled: the end of a client's try, which is scored or followed by another."""

from __future__ import annotations

import math

from headroom.simulator.compiled.clients.client_connections import disconnect
from headroom.simulator.compiled.clients.client_layout import Amount, Count, Phase
from headroom.simulator.compiled.clients.client_state import ClientState
from headroom.simulator.compiled.clients.client_tries import (
    end_patience,
    first_unsent,
    sum_wanted,
    think,
    wake_at,
)
from headroom.simulator.compiled.compiling import compiled
from headroom.simulator.compiled.executions import purge
from headroom.simulator.compiled.plant_layout import (
    ANSWERED,
    CENTRAL,
    FINE_LOG,
    NONE,
    Number,
    Quantity,
    Tally,
)
from headroom.simulator.compiled.plant_state import PlantState
from headroom.simulator.compiled.plant_telemetry import count_latency
from headroom.simulator.compiled.request_ends import release
from headroom.simulator.compiled.request_routing import hand_out
from headroom.simulator.compiled.rng import uniform

_PAUSE_S = 0.001
"""Least pause of a user after a miss: no instant has endless tries."""
_JUST_LATE = math.exp(1.5 * FINE_LOG)
"""An answer to a retry counts in the histograms as later than the target."""


@compiled
def _done(c: ClientState, request: int, now_s: float, least_s: float) -> None:
    """End a request: its user thinks, or its row is free."""
    sum_wanted(c, now_s)
    c.counts[Count.OPEN] -= 1
    c.amounts[Amount.LATENCY_S] += now_s - c.wanted_s[request]
    if request >= c.counts[Count.MOST_USERS]:
        c.phase[request] = Phase.NOTHING
        c.following[request] = c.counts[Count.FREE]
        c.counts[Count.FREE] = request
    else:
        think(c, request, now_s, least_s)


@compiled
def count_late(p: PlantState, wanted_s: float) -> None:
    """Count a miss in the minute in which it was wanted."""
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
        count_late(p, c.wanted_s[request])
    _done(c, request, now_s, 0.0)


@compiled
def _missed(p: PlantState, c: ClientState, request: int, now_s: float, outcome: int) -> None:
    """Try again after a miss, or score it."""
    tries = c.tries[request]
    if tries < c.counts[Count.RETRIES]:
        mean_s = c.amounts[Amount.BACKOFF_S] * 2.0**tries
        c.tries[request] += 1
        wake_at(c, request, now_s + mean_s * (0.5 + uniform(c.random)), Phase.BACKING_OFF)
        return
    p.tally[outcome] += 1
    p.recent[len(p.recent) - 1] += 1
    count_late(p, c.wanted_s[request])
    _done(c, request, now_s, _PAUSE_S)


@compiled
def hear_first(p: PlantState, c: ClientState) -> None:
    """Process the first of the ended tries."""
    node = p.numbers[Number.ENDED]
    p.numbers[Number.ENDED] = p.following[node]
    request, outcome, now_s = p.owner[node], p.mark[node], p.arrived_s[node]
    p.owner[node] = NONE
    release(p, node)
    c.amounts[Amount.NOW_S] = max(c.amounts[Amount.NOW_S], now_s)
    c.node[request] = NONE
    end_patience(c, request)
    disconnect(p, c, request, now_s, outcome != Tally.FAILED)
    if outcome == ANSWERED:
        _answered(p, c, request, now_s)
    else:
        _missed(p, c, request, now_s, outcome)


@compiled
def give_up(p: PlantState, c: ClientState, now_s: float) -> None:
    """End the try that has waited longest; at the plant it goes on without a reader, if it runs."""
    request = c.counts[Count.PATIENT_HEAD]
    end_patience(c, request)
    if c.phase[request] == Phase.UNSENT:
        first_unsent(c)  # the queue is in the order of patience: it is this one
    else:
        p.owner[c.node[request]] = NONE
        c.node[request] = NONE
        disconnect(p, c, request, now_s, False)
        if p.numbers[Number.ROUTING] == CENTRAL:
            for row in range(len(p.head)):
                purge(p, row, now_s)
            hand_out(p, now_s)
        else:
            purge(p, c.row[request], now_s)
    _missed(p, c, request, now_s, Tally.CANCELLED)
