"""Predicts when a new request would get its first token, and its whole answer. Pure.

The first token waits for the slowest of three: the time of the prompts before it and its own, at
the share of an iteration that prompts get; a seat; and memory. Seats and memory come from answers
that end: `running` answers of the mean length take `length * iteration` seconds each. Prompts that
are served apart (`pace`) wait for the time of their own kind only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from headroom_server.generation.scheduling.admission.served_before import served_before
from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.costs.pace import (
    ALONE,
    FINISHING_EXTRA,
    LONG_SHARE,
    PROMISE_USED,
    pace_of_long,
    share_of_prompts,
)
from headroom_server.generation.scheduling.iterations.memory_peak import MEMORY_SHARE
from headroom_server.generation.scheduling.iterations.seats import free_seats, seat_victim
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.waiting_line import WaitingLine

LEAST_SHARE = 0.05
MOST_PROMISED = 0.99
"""Highest share of an iteration for prompts: where decodes seem to take no time, it would be all of
it."""


class Ahead(NamedTuple):
    """Work that is served before a request."""

    requests: float
    """Requests that do not run yet."""
    tokens: float
    """Tokens that those will hold."""
    work_s: float
    """Time of all prompts that share its time, also of those that run."""
    preempted: int = 0
    """Answers of others that are preempted for it."""


class Forecast(NamedTuple):
    """Seconds from now."""

    first_token_s: float
    answer_s: float


def ahead_of(sequence: LiveSequence, state: SchedulerState, *, exact: bool) -> Ahead:
    """Return what is served before a sequence; not exact: at most this much, without a search."""
    cost, apart = state.cost, state.long_apart
    work_s = sum(
        cost.prompt_s(one.remaining, one.computed)
        for one in state.prefilling
        if (not exact or state.sooner(one, sequence) is one)
        and not (apart and one.long is not sequence.long)
    )
    count = tokens = own = 0
    waiting_s, tenant = 0.0, sequence.request.tenant
    for line in (state.interactive, state.long):
        shares_time = not apart or line is state.line_of(sequence)
        if exact:
            found = served_before(sequence, line, state)
            before = [len(one.tokens) for one in found]
            count += len(before)
            tokens += sum(before)
            own += sum(one.request.tenant == tenant for one in found)
            waiting_s += sum(map(cost.prompt_s, before)) if shares_time else 0.0
        elif line.count:
            count += line.count
            tokens += line.tokens
            own += line.requests_of(tenant)
            mean_s = cost.prompt_s(line.tokens // line.count)
            waiting_s += line.count * mean_s if shares_time else 0.0
    # while a tenant's own requests are served, others that come later are served among them
    more = max(1.0, own * (1.0 + state.shares.others(tenant)) / max(1, count))
    preempted = int(exact and seat_victim(state, sequence) is not None)
    return Ahead(more * count, more * tokens, work_s + more * waiting_s, preempted)


def forecast(
    sequence: LiveSequence,
    own_tokens: int,
    ahead: Ahead,
    state: SchedulerState,
    due_within_s: float | None,
) -> Forecast:
    """Predict a waiting sequence that has `own_tokens` to compute."""
    cost = state.cost
    base_s = cost.seconds(Features(0, state.running, state.context_tokens))
    own_s = cost.prompt_s(own_tokens, len(sequence.tokens) - own_tokens)
    work_s = ahead.work_s + own_s
    apart = state.long_apart
    if apart and sequence.long:
        room_s = pace_of_long(base_s, state.long_contexts_s, 0.0).partial_s
        share = room_s / ((1.0 + FINISHING_EXTRA / 2.0) * base_s + room_s)
    else:
        if apart and (state.long.count or any(one.long for one in state.prefilling)):
            base_s *= 1.0 + LONG_SHARE
        share = _share(base_s, work_s, own_s, state, due_within_s)
    wait_s, iteration_s = _wait(base_s, share, ahead, own_s, len(sequence.tokens), state)
    first_s = (1.0 + cost.tail) * (wait_s + base_s + iteration_s / 2.0)
    length = min(float(sequence.left), state.lengths.expected())
    return Forecast(first_s, first_s + length * iteration_s)


def backlog_s(lines: Sequence[WaitingLine], state: SchedulerState) -> float:
    """Return the seconds until the last of what waits in these lines begins; its cost is known."""
    count, tokens = sum(line.count for line in lines), sum(line.tokens for line in lines)
    if not count:
        return 0.0
    mean, cost = tokens // count, state.cost
    own_s = cost.prompt_s(mean)
    base_s = cost.seconds(Features(0, state.running, state.context_tokens))
    share = _share(base_s, count * own_s, own_s, state, None)
    ahead = Ahead(count - 1, tokens - mean, (count - 1) * own_s)
    return _wait(base_s, share, ahead, own_s, mean, state)[0]


def _wait(
    base_s: float, share: float, ahead: Ahead, own_s: float, tokens: int, state: SchedulerState
) -> tuple[float, float]:
    """Return the wait of a sequence of this many tokens, and the time of an iteration then."""
    work_s = ahead.work_s + own_s
    iteration_s = base_s / (1.0 - share) if work_s > base_s else base_s + work_s
    finish_s = iteration_s * state.lengths.expected() / max(1, state.running)
    seat_s = finish_s * max(0.0, ahead.requests + 1 - ahead.preempted - free_seats(state))
    memory_s = finish_s * _finishes_for_memory(tokens, ahead, state)
    wait_s = max(work_s / share, seat_s + own_s / share, memory_s + own_s / share)
    return wait_s, iteration_s


def _share(
    base_s: float, work_s: float, own_s: float, state: SchedulerState, due_within_s: float | None
) -> float:
    if not state.running:
        return ALONE / (1.0 + ALONE)
    promised_s = state.options.time_per_token_s
    if promised_s is not None:
        usable_s = PROMISE_USED * promised_s
        return min(MOST_PROMISED, max(LEAST_SHARE, (usable_s - base_s) / usable_s))
    return share_of_prompts(base_s, work_s, work_s, own_s, due_within_s)


def _finishes_for_memory(tokens: int, ahead: Ahead, state: SchedulerState) -> float:
    """Return how many answers must end before memory is left for this many tokens."""
    pool, size = state.memory.pool, state.memory.block_tokens
    if not state.running:
        return 0.0
    starting = (ahead.tokens + tokens) / size
    growth = (state.running + ahead.requests + 1) * state.lengths.expected() / 2.0 / size
    missing = pool.used + starting + growth - MEMORY_SHARE * pool.total
    return max(0.0, max(0.0, missing) / max(1.0, pool.used / state.running) - ahead.preempted)
