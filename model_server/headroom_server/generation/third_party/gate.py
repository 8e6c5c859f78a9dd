"""The queue in front of a third-party engine: admission, and the next request. Pure.

The engine schedules what it has in its own order, usually that of arrival. So it gets only what it
can compute now (its seats, its memory, two iterations of prompts); the rest waits here, where
priorities, tenants' shares and deadlines decide. What runs in the engine is followed from its
reports: `step` reports what an iteration computed, `produced` what a request got.

It is not safe for threads. Every accepted request gets deliveries in order, of which exactly one,
the last, has `finish`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headroom_server.generation.scheduling.admission.intake import Intake
from headroom_server.generation.scheduling.costs.iteration_cost import Features
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.sequences import LiveSequence, Phase
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.third_party.engine_load import EngineLoad
from headroom_server.generation.third_party.ports import Produced, Step
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
)


class Gate:
    """The requests of one engine. `chance` spreads the times of retries, from 0 to 1."""

    def __init__(
        self,
        limits: GenerationLimits,
        options: SchedulingOptions,
        *,
        chance: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.limits = limits
        # The engine has its own prefix cache: what it saves is only known with the first token.
        own = options._replace(prefix_cache=False, max_drafts=0)
        self.state = SchedulerState(limits, own, interrupts=False)
        self._intake = Intake(self.state, chance, separates_long=False)
        self._admission = self._intake.admission
        self.engine_load = EngineLoad(self.state)
        self.cached_tokens = 0
        self.generated_tokens = 0

    # ---- requests

    def add(self, request: GenerationRequest, now_s: float) -> None:
        """Accept a request.

        Raises:
            RefusedError: not now; 429 with the seconds to wait, or 503 while draining.
            InvalidRequestError: no load or memory would ever admit it.
        """
        self._intake.accept(request, now_s)

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Raise RefusedError if this many choices may not wait: before they are made."""
        self._admission.check_count(tenant, count, batch_class=batch_class)

    def next(self, now_s: float) -> Sequence[GenerationRequest]:
        """Return the requests to hand over now; they count as running."""
        state, found = self.state, []
        while (sequence := state.interactive.first() or self._batch()) is not None:
            if not self.engine_load.fits(sequence):
                break
            self.engine_load.hand_over(sequence, now_s)
            found.append(sequence.request)
        return found

    def cancel(self, key: int) -> bool:
        """End a request; return whether the engine has it."""
        sequence = self.state.live.get(key)
        if sequence is None:
            return False
        running = sequence.phase is not Phase.WAITING
        self._leave(sequence)
        return running

    def expire(self, now_s: float) -> Sequence[Delivery]:
        """End the requests whose deadline passed."""
        expired = self._intake.expired(now_s)
        return [self._end(sequence, FinishReason.EXPIRED) for sequence in expired]

    @property
    def expires_s(self) -> float:
        """Time at which `expire` next has something to do; infinity: no deadline waits."""
        return self._intake.expires_s

    def drain(self) -> None:
        """Refuse new requests; accepted ones continue."""
        self._admission.draining = True

    def end_all(self, reason: FinishReason, error: str = "") -> Sequence[Delivery]:
        """End every request."""
        return [self._end(one, reason, error) for one in list(self.state.live.values())]

    # ---- reports of the engine

    def learn(self, step: Step) -> None:
        """Learn from an iteration of warm-up, whose requests are not from here; nothing counts it.

        The contexts of its decodes are taken for those of its prompts: they are short.
        """
        if step.seconds is not None:
            products = step.prompt_tokens * step.prompt_tokens / 2
            features = Features(step.prompt_tokens, step.decodes, 0, products)
            self.state.cost.learn(features, step.seconds)

    def step(self, step: Step) -> None:
        """Follow an iteration: its prompts, and its time.

        Call it before `produced` of the same iteration.
        """
        state, left, products = self.state, step.prompt_tokens, 0.0
        for sequence in state.prefilling:  # in the order in which the engine got them
            count = min(left, sequence.remaining)
            products += count * (sequence.computed + count / 2)
            sequence.computed += count
            left -= count
        state.count("iterations")
        state.count("computed_prompt_tokens", step.prompt_tokens)
        state.count("preemptions", step.preemptions)
        if step.seconds is not None:
            decodes = step.decodes
            features = Features(step.prompt_tokens, decodes, state.context_tokens, products)
            state.cost.observe(features, step.seconds)
            state.sums.add(features.row(), step.seconds, weight=1.0, keep=1.0)

    def produced(self, key: int, produced: Produced, now_s: float) -> Delivery | None:
        """Return the delivery of a request's tokens; None: it has ended here."""
        sequence = self.state.live.get(key)
        if sequence is None:
            return None
        count, started_s = len(produced.tokens), None
        sequence.tokens += [one.token for one in produced.tokens]
        sequence.left -= count
        self.generated_tokens += count
        self.engine_load.grow(count)
        if sequence.phase is Phase.DECODE:
            self.state.context_tokens += count
        elif count:
            self._first(sequence, produced.cached_tokens, now_s)
            started_s = sequence.started_s
        if produced.finish is not None:
            self._leave(sequence)
            self.state.lengths.record(sequence.generated)
            if sequence.request.deadline_s is not None:
                self._admission.record(sequence, now_s, missed=False)
        tokens, finish, cached = produced
        return Delivery(key, tokens, finish, cached, started_s=started_s)

    def failed(self, key: int, error: str) -> Delivery | None:
        """Return the delivery of a request that the engine could not answer."""
        sequence = self.state.live.get(key)
        return None if sequence is None else self._end(sequence, FinishReason.FAILED, error)

    # ---- transitions

    def _batch(self) -> LiveSequence | None:
        state = self.state
        return state.batch.first() if state.running < self.limits.max_sequences else None

    def _first(self, sequence: LiveSequence, cached_tokens: int, now_s: float) -> None:
        sequence.first_token_s = now_s
        sequence.cached_tokens = cached_tokens
        self.cached_tokens += cached_tokens
        self.state.begin_decode(sequence)
        due_s = sequence.request.first_token_deadline_s
        if due_s is not None:
            self._admission.record(sequence, now_s, missed=now_s > due_s)

    def _end(self, sequence: LiveSequence, reason: FinishReason, error: str = "") -> Delivery:
        self._leave(sequence)
        return Delivery(sequence.key, (), reason, error=error)

    def _leave(self, sequence: LiveSequence) -> None:
        state = self.state
        self.engine_load.leave(sequence)
        state.withdraw(sequence)
        sequence.phase = Phase.ENDED
        del state.live[sequence.key]
        state.charges.end(sequence)
