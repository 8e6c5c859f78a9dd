"""PURE. The scheduler of generation: what each iteration computes, and who gets what of it.

It gets every event with its time and has no clock, thread or random numbers of its own; the loop
of the engine and simulations drive it alike. It is not safe for threads: one thread calls it, or
callers share a lock, which need not be held while an iteration executes.

    scheduler.add(request, now_s)                 any time; raises what the client gets
    scheduler.cancel(key, now_s)                  any time
    iteration = scheduler.next_iteration(now_s)   None: nothing to compute now
    result = executor.execute(iteration)
    scheduler.complete(iteration, result, began_s, ended_s)     or fail(iteration, error, now_s)
    scheduler.expire(now_s)                       at `expires_s`, or before each iteration

Every accepted request gets deliveries in order, of which exactly one, the last, has `finish`. A
stop token is delivered as the last token. The caller calls `Executor.forget` for each finished key,
after the iteration in which it took part.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headroom_server.generation.ports import EngineStatistics
from headroom_server.generation.scheduling.admission import Admission, check_valid
from headroom_server.generation.scheduling.counts import statistics_of
from headroom_server.generation.scheduling.decode_plan import (
    Drafts,
    learn_step,
    plan_decodes,
    wanted_drafts,
)
from headroom_server.generation.scheduling.endings import Endings
from headroom_server.generation.scheduling.expiry import Expiry
from headroom_server.generation.scheduling.flight import Flight
from headroom_server.generation.scheduling.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.outcome import apply
from headroom_server.generation.scheduling.prompt_fill import PromptFill
from headroom_server.generation.scheduling.sequences import LiveSequence
from headroom_server.generation.scheduling.state import SchedulerState
from headroom_server.generation.scheduling.waiting_line import place_s
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
)


class Scheduler:
    """Schedules the requests of one model. `chance` spreads the times of retries, from 0 to 1."""

    def __init__(
        self,
        limits: GenerationLimits,
        options: SchedulingOptions | None = None,
        *,
        chance: Callable[[], float] = lambda: 0.5,
    ) -> None:
        self.limits = limits
        self._state = SchedulerState(limits, options or SchedulingOptions())
        self._admission = Admission(self._state, chance)
        self._expiry = Expiry(self._state.live)
        self._flight = Flight()
        self._endings = Endings(self._state, self._flight, self._admission)

    # ---- requests

    def add(self, request: GenerationRequest, now_s: float) -> None:
        """Accept a request.

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
        # what only fills waits for all others anyway, in a line of its own
        long = not request.batch_class and state.prompts.long(size, prompt_s, cost.base_s)
        state.prompts.record(size)
        sequence = LiveSequence(request, place_s(request, prompt_s), long=long)
        self._admission.check(sequence, now_s)
        state.live[request.key] = sequence
        self._expiry.watch(sequence)
        state.wait(sequence)

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Raise RefusedError if so many choices may not wait: before they are made."""
        self._admission.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int, now_s: float) -> Sequence[Delivery]:
        """End a request; unknown and ended keys are ignored."""
        sequence = self._state.live.get(key)
        if sequence is None:
            return ()
        return (self._endings.end(sequence, FinishReason.CANCELLED, now_s),)

    def expire(self, now_s: float) -> Sequence[Delivery]:
        """End the requests whose deadline passed."""
        expired = self._expiry.expired(now_s)
        for sequence in expired:
            self._admission.record(sequence, now_s, missed=True)
        return [self._endings.end(sequence, FinishReason.EXPIRED, now_s) for sequence in expired]

    @property
    def expires_s(self) -> float:
        """When `expire` has something to do next; infinity: no deadline waits."""
        return self._expiry.next_s

    def drain(self) -> None:
        """Accept nothing more; what was accepted continues."""
        self._admission.draining = True

    def close(
        self, now_s: float, reason: FinishReason = FinishReason.SHUTDOWN, error: str = ""
    ) -> Sequence[Delivery]:
        """Accept nothing more and end every request: the grace period ended, or the device."""
        self.drain()
        ended = [
            self._endings.end(one, reason, now_s, error) for one in list(self._state.live.values())
        ]
        if self._flight.iteration is not None and reason is FinishReason.FAILED:
            self._endings.release(self._flight.end(self._flight.iteration))
        return ended

    # ---- iterations

    def wanted_drafts(self) -> Drafts | None:
        """Return what the draft model is to propose before the next iteration; None: nothing.

        The caller gives `Executor.draft(drafts.sequences, drafts.most)` to `take_drafts`.
        """
        return wanted_drafts(self._state)

    def take_drafts(
        self, drafts: Drafts, proposed: Sequence[Sequence[int]], seconds: float = 0.0
    ) -> None:
        """Take proposals for the next iteration, which verifies them; they took `seconds`."""
        learn_step(self._state, seconds / max(1, drafts.most))
        for sequence, tokens in zip(drafts.sequences, proposed, strict=True):
            sequence.proposed = tuple(tokens[: drafts.most])

    def next_iteration(self, now_s: float) -> Iteration | None:
        """Return what to compute now; None if nothing can be computed before another event."""
        state, flight = self._state, self._flight
        half = flight.next_half()
        if half is not None:
            flight.begin(half, features_of(half), whole=False)
            return half
        pause = state.prompts_pending
        chunks = plan_decodes(state, pause=pause)
        fill = PromptFill(state, chunks, now_s)
        fill.fill(self._admission.due_within_s)
        if not chunks and pause:  # no prompt could be computed: what fills may go on
            chunks = plan_decodes(state)
        if not chunks:
            return None
        decodes = len(chunks) - fill.chunks_added
        features = Features(fill.prompt_tokens, decodes, state.context_tokens, fill.products)
        iteration = Iteration(tuple(chunks))
        if state.options.max_drafts or decodes < len(state.decoding):
            features = features_of(iteration)
        flight.begin(iteration, features)
        return iteration

    def complete(
        self, iteration: Iteration, result: IterationResult, began_s: float, ended_s: float
    ) -> Sequence[Delivery]:
        """Record a computed iteration and return what it produced.

        Raises:
            ValueError: it is not the iteration returned last.
        """
        state, flight = self._state, self._flight
        self._endings.release(flight.end(iteration))
        outcome = apply(state, iteration, result, ended_s)
        for sequence in outcome.first:
            due_s = sequence.request.first_token_deadline_s
            if due_s is not None:
                self._admission.record(sequence, ended_s, missed=ended_s > due_s)
        for sequence, reason in outcome.ended:
            self._endings.leave(sequence, reason, ended_s)
        state.count("iterations")
        if flight.whole:
            self._observe(flight.features, ended_s - began_s)
        return outcome.deliveries

    def fail(self, iteration: Iteration, error: str, now_s: float) -> Sequence[Delivery]:
        """Record that an iteration failed: it repeats in halves; a request alone ends.

        `error` is what a client may read. If the device is lost, call `close` instead.
        """
        self._endings.release(self._flight.end(iteration))
        self._state.count("failed_iterations")
        live = self._state.live
        alive = [one for one in iteration.chunks if one.sequence.request.key in live]
        if len(alive) > 1:
            self._flight.split(tuple(alive))
            return ()
        failed = [live[one.sequence.request.key] for one in alive]
        return [self._endings.end(one, FinishReason.FAILED, now_s, error) for one in failed]

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever; 0 before the first."""
        return self._state.cost.fastest_s

    def learn(self, features: Features, seconds: float) -> None:
        """Learn from an iteration of warm-up, with `features_of(iteration)`; no sum counts it."""
        self._state.cost.learn(features, seconds)

    def _observe(self, features: Features, seconds: float) -> None:
        self._state.cost.observe(features, seconds)
        self._state.sums.add(features.row(), seconds, 1.0, 1.0)

    # ---- what is known

    @property
    def statistics(self) -> EngineStatistics:
        """Counts since the start and the present state; `busy_s` is not known here."""
        return statistics_of(self._state)

    @property
    def idle(self) -> bool:
        """Whether no accepted request is left."""
        return not self._state.live
