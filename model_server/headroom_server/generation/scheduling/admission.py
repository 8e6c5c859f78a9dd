"""PURE. Whether a request is valid, and whether it may wait.

| request                                           | response                                |
|---------------------------------------------------|-----------------------------------------|
| longer than the context or all memory, bad tokens | 400: no load would admit it             |
| while draining                                    | 503, retry after 1 s (another replica)  |
| too many requests or tokens wait                  | 429, retry once they are served         |
| its tenant waits with more than what is free      | 429: another tenant finds room          |
| predicted to miss one of its deadlines            | 429                                     |
"""

from __future__ import annotations

from collections.abc import Callable

from headroom_server.errors import InvalidRequestError, QueueFullError, RefusedError
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.values import GenerationLimits, GenerationRequest
from headroom_server.scheduling.admission import retry_after_s


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
        self.draining = False

    def check(self, request: GenerationRequest, now_s: float) -> None:
        """Raise what a client gets whose request is not accepted."""
        if self.draining:
            raise RefusedError("this replica is stopping", retry_after_s=1)
        check_valid(request, self._state.limits)
        self._check_room(request, now_s)

    def _check_room(self, request: GenerationRequest, now_s: float) -> None:
        state = self._state
        options = state.options
        line = state.batch if request.batch_class else state.interactive
        if not line.count:
            return  # a short bound must not exclude a long prompt
        if line.count >= options.max_waiting_requests:
            self._refuse(f"at most {options.max_waiting_requests} requests may wait")
        free = options.max_waiting_tokens - line.tokens
        own = line.by_tenant.get(request.tenant, 0) + len(request.prompt)
        if len(request.prompt) > free:
            self._refuse(f"at most {options.max_waiting_tokens} tokens may wait")
        if own > free:
            self._refuse("a tenant may wait with at most as many tokens as are free")

    def _refuse(self, why: str) -> None:
        retry_s = retry_after_s(None, self._chance())
        raise QueueFullError(f"{why}; try again after {retry_s} s", retry_after_s=retry_s)
