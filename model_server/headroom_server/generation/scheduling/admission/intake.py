"""Accepts requests, or says why not, and finds those whose deadline passed. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headroom_server.generation.scheduling.admission.decision import Admission, check_valid
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting.expiry import Expiry
from headroom_server.generation.scheduling.waiting.service_order import place_s
from headroom_server.generation.values import GenerationRequest


class Intake:
    """The intake of one engine. `chance` spreads the times of retries, from 0 to 1.

    With `separates_long`, long prompts wait in a line of their own.
    """

    def __init__(
        self, state: SchedulerState, chance: Callable[[], float], *, separates_long: bool
    ) -> None:
        self._state = state
        self._separates_long = separates_long
        self._expiry = Expiry(state.live)
        self.admission = Admission(state, chance)

    def accept(self, request: GenerationRequest, now_s: float) -> None:
        """Accept a request: from now on it waits.

        Raises:
            RefusedError: not now; 429 with the seconds to wait, or 503 while draining.
            InvalidRequestError: no load or memory would ever admit it.
            ValueError: its key is in use.
        """
        state = self._state
        if request.key in state.live:
            raise ValueError(f"the key of a request must be unique; {request.key} is in use")
        check_valid(request, state.limits)
        size, cost = len(request.prompt), state.cost
        prompt_s = cost.prompt_s(size)
        # the batch class waits for all others anyway, in a line of its own
        separates = self._separates_long and not request.batch_class
        long = separates and state.prompts.long(size, prompt_s, cost.base_s)
        state.prompts.record(size)
        sequence = LiveSequence(request, place_s(request, prompt_s), long=long)
        self.admission.check(sequence, now_s)
        state.live[request.key] = sequence
        self._expiry.watch(sequence)
        state.wait(sequence)

    def expired(self, now_s: float) -> Sequence[LiveSequence]:
        """Return the requests whose deadline passed, once; they are still live."""
        expired = self._expiry.expired(now_s)
        for sequence in expired:
            self.admission.record(sequence, now_s, missed=True)
        return expired

    @property
    def expires_s(self) -> float:
        """Time at which `expired` next has something to return; infinity: no deadline waits."""
        return self._expiry.next_s
