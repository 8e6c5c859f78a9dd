"""Limits how many sequences run, and chooses who is preempted for a tenant without a seat. Pure."""

from __future__ import annotations

from collections import Counter
from operator import attrgetter, itemgetter

from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState

PACE_USED = 0.75
"""Share of a promised time per token that decodes alone may use: the rest is for prompts."""
LEAST_SEATS = 2
"""Seats that a tenant must have to lose one to a tenant without any."""


def free_seats(state: SchedulerState) -> int:
    """Return how many sequences may start now: by number, and by the promised time per token."""
    free = state.seats - state.running
    promised_s = state.options.time_per_token_s
    if promised_s is None or not state.cost.known or not state.running:
        return free
    mean = state.context_tokens // max(1, len(state.decoding))
    one_s = state.cost.seconds(Features(0, 1, mean)) - state.cost.base_s
    held = state.cost.seconds(Features(0, state.running, mean * state.running))
    room_s = PACE_USED * promised_s - held
    return min(free, int(room_s / one_s)) if one_s > 0.0 else free


def seat_victim(state: SchedulerState, head: LiveSequence) -> LiveSequence | None:
    """Return the answer that loses its seat to `head`, if the tenant of `head` has none.

    It is one of the tenant that has most seats: otherwise a tenant whose long answers have all
    seats keeps others out until they end.
    """
    tenant, seats = head.request.tenant, Counter[str]()
    for one in (*state.prefilling, *state.decoding.values()):
        if one.request.tenant == tenant:
            return None
        seats[one.request.tenant] += 1
    if not seats or not state.interrupts:
        return None
    largest, most = max(seats.items(), key=itemgetter(1))
    own = [one for one in state.decoding.values() if one.request.tenant == largest]
    own = [one for one in own if one.request.priority >= head.request.priority]
    if most < LEAST_SEATS or not own:
        return None
    return max(own, key=attrgetter("protection"))
