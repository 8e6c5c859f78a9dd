"""Decides whether a request is valid, and whether it may wait. Pure.

| request                                           | response                                |
|---------------------------------------------------|-----------------------------------------|
| longer than the context or all memory, bad tokens | 400: no load would admit it             |
| while draining                                    | 503, retry after 1 s (another replica)  |
| too many requests or tokens wait, of all tenants  | 429, retry once they are served         |
| its tenant waits with more than what is free      | 429: another tenant finds room          |
| batch class, and half of the room is taken        | 429: interactive requests find room     |
| predicted to miss one of its deadlines            | 429, retry once the backlog is served   |

A prediction is not trusted while nothing runs or waits: refusing would leave the device idle, and
nothing would be learned. The usable share of deadlines is controlled by misses, as for batches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from headroom_server.errors import InvalidRequestError, LateError, QueueFullError, RefusedError
from headroom_server.generation.scheduling.admission.forecast import (
    Forecast,
    ahead_of,
    backlog_s,
    forecast,
)
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import GenerationLimits, GenerationRequest
from headroom_server.scheduling.admission import retry_after_s
from headroom_server.scheduling.deadline_margin import DeadlineMargin

BUDGET_WEIGHT = 0.05
BATCH_SHARE = 0.5
"""Share of the bounds on waiting requests that batch-class requests may fill: others still find
room."""


def check_valid(request: GenerationRequest, limits: GenerationLimits) -> None:
    """Raise InvalidRequestError for a request that no load would admit."""
    prompt, most = request.prompt, request.max_tokens
    if not prompt:
        raise InvalidRequestError("the prompt must have at least 1 token; got 0")
    if most < 1:
        raise InvalidRequestError(f"max_tokens must be at least 1; got {most}")
    total = len(prompt) + most
    if total > limits.context_tokens:
        raise InvalidRequestError(
            f"prompt and max_tokens together must be at most {limits.context_tokens} tokens; "
            f"got {len(prompt)} + {most}"
        )
    if -(-total // limits.block_tokens) > limits.blocks:
        raise InvalidRequestError(
            f"prompt and max_tokens must fit the memory of {limits.blocks * limits.block_tokens} "
            f"tokens; got {len(prompt)} + {most}"
        )
    if min(prompt) < 0 or max(prompt) >= limits.vocabulary:
        raise InvalidRequestError(
            f"tokens must be between 0 and {limits.vocabulary - 1}; "
            f"got {min(prompt)} to {max(prompt)}"
        )


class Admission:
    """Decides about new requests. `chance` returns numbers from 0 to 1."""

    def __init__(self, state: SchedulerState, chance: Callable[[], float]) -> None:
        self._state = state
        self._chance = chance
        self._margins: dict[int, DeadlineMargin] = {}
        self.draining = False
        self.due_within_s: float | None = None
        """Recent mean time from arrival to the first token's deadline, of those that can be met:
        a client's impossible ones must not change how others are served."""

    def check(self, sequence: LiveSequence, now_s: float) -> None:
        """Raise the client's error if its request is not accepted."""
        if self.draining:
            raise RefusedError("this replica is stopping", retry_after_s=1)
        request = sequence.request
        self._check_room(request)
        first_s, whole_s = request.first_token_deadline_s, request.deadline_s
        if (first_s is not None or whole_s is not None) and self._state.cost.known:
            expected = self._in_time(sequence, now_s)
            if expected is not None and self._state.live:
                retry_s = retry_after_s(expected, self._chance())
                raise LateError(
                    "the answer is predicted to come after its deadline; "
                    f"try again after {retry_s} s",
                    retry_after_s=retry_s,
                )
            sequence.at_own_risk = expected is not None
        if first_s is not None and not sequence.at_own_risk:
            budget_s = first_s - request.arrived_s
            usual_s = budget_s if self.due_within_s is None else self.due_within_s
            self.due_within_s = usual_s + BUDGET_WEIGHT * (budget_s - usual_s)

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Raise the client's error if this many further choices may not wait together."""
        if self.draining:
            raise RefusedError("this replica is stopping", retry_after_s=1)
        lines = first, second, third = self._state.lines
        before = first.count + second.count + third.count + count - 1
        if not before:
            return
        share = BATCH_SHARE if batch_class else 1.0
        most = max(1, int(share * self._state.options.max_waiting_requests))
        if before >= most:
            self._refuse(f"at most {most} requests may wait", batch_class=batch_class)
        if before <= most - before:
            return  # of all tenants together
        own = sum(line.requests_of(tenant) for line in lines) + count - 1
        if own > most - before:
            self._refuse(
                "one tenant's waiting requests must be at most the free places",
                batch_class=batch_class,
            )

    def record(self, sequence: LiveSequence, now_s: float, *, missed: bool) -> None:
        """Follow an accepted request that met or missed a deadline."""
        if sequence.at_own_risk:
            return
        request = sequence.request
        self._margins[request.priority] = self._margin(request.priority).record(
            missed=missed, arrived_s=request.arrived_s, now_s=now_s
        )

    def _margin(self, priority: int) -> DeadlineMargin:
        return self._margins.get(priority) or DeadlineMargin()

    def _in_time(self, sequence: LiveSequence, now_s: float) -> float | None:
        """Return the predicted seconds to the first token if a deadline would be missed."""
        state = self._state
        own = len(sequence.tokens) - len(state.memory.prefix(sequence)) * state.memory.block_tokens
        for exact in (False, True):
            ahead = ahead_of(sequence, state, exact=exact)
            expected = forecast(sequence, own, ahead, state, self.due_within_s)
            if not self._late(sequence.request, expected, now_s):
                return None
        return expected.first_token_s

    def _late(self, request: GenerationRequest, expected: Forecast, now_s: float) -> bool:
        margin, arrived_s = self._margin(request.priority), request.arrived_s
        first_s, whole_s = request.first_token_deadline_s, request.deadline_s
        late = False
        if first_s is not None:
            late = now_s + expected.first_token_s > margin.latest_s(arrived_s, first_s)
        if whole_s is not None:
            late |= now_s + expected.answer_s > margin.latest_s(arrived_s, whole_s)
        return late

    def _check_room(self, request: GenerationRequest) -> None:
        self.check_count(request.tenant, 1, batch_class=request.batch_class)
        state, options = self._state, self._state.options
        lines, (first, second, third) = state.lines, state.lines
        tokens = first.tokens + second.tokens + third.tokens
        if not tokens:
            return  # a short bound must not exclude a long prompt
        tenant, own = request.tenant, len(request.prompt)
        refuse = partial(self._refuse, batch_class=request.batch_class)
        share = BATCH_SHARE if request.batch_class else 1.0
        most_tokens = int(share * options.max_waiting_tokens)
        free_tokens = most_tokens - tokens
        if own > free_tokens:
            refuse(f"at most {most_tokens} tokens may wait")
        if own > free_tokens + state.memory.tokens - state.running_tokens:
            refuse("running and waiting requests have too many tokens")
        if own + tokens <= free_tokens:
            return  # of all tenants together
        if own + sum(line.tokens_of(tenant) for line in lines) > free_tokens:
            refuse("one tenant's waiting tokens must be at most the free tokens")

    def _refuse(self, why: str, *, batch_class: bool) -> None:
        state = self._state
        lines = state.lines if batch_class else (state.interactive, state.long)
        wait_s = backlog_s(lines, state) if state.cost.known else None
        retry_s = retry_after_s(wait_s, self._chance())
        raise QueueFullError(f"{why}; try again after {retry_s} s", retry_after_s=retry_s)
