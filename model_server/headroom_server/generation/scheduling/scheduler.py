"""The scheduler of generation: the work of each iteration, and each tenant's share of it. Pure.

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
from headroom_server.generation.scheduling.admission.intake import Intake
from headroom_server.generation.scheduling.costs.iteration_cost import Features, features_of
from headroom_server.generation.scheduling.counts import statistics_of
from headroom_server.generation.scheduling.endings import Endings
from headroom_server.generation.scheduling.iterations.decode_plan import (
    Drafts,
    learn_step,
    wanted_drafts,
)
from headroom_server.generation.scheduling.iterations.executing_iteration import ExecutingIteration
from headroom_server.generation.scheduling.iterations.iteration_plan import plan_iteration
from headroom_server.generation.scheduling.iterations.outcome import apply
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.state import SchedulerState
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
        self._intake = Intake(self._state, chance, separates_long=True)
        self._admission = self._intake.admission
        self._executing = ExecutingIteration()
        self._endings = Endings(self._state, self._executing, self._admission)

    def add(self, request: GenerationRequest, now_s: float) -> None:
        """Accept a request.

        Raises:
            RefusedError: not now; 429 with the seconds to wait, or 503 while draining.
            InvalidRequestError: no load or memory would ever admit it.
            ValueError: its key is in use.
        """
        self._intake.accept(request, now_s)

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Raise RefusedError if this many choices may not wait: before they are made."""
        self._admission.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int, now_s: float) -> Sequence[Delivery]:
        """End a request; unknown and ended keys are ignored."""
        sequence = self._state.live.get(key)
        if sequence is None:
            return ()
        return (self._endings.end(sequence, FinishReason.CANCELLED, now_s),)

    def expire(self, now_s: float) -> Sequence[Delivery]:
        """End the requests whose deadline passed."""
        expired = self._intake.expired(now_s)
        return [self._endings.end(sequence, FinishReason.EXPIRED, now_s) for sequence in expired]

    @property
    def expires_s(self) -> float:
        """Time at which `expire` next has something to do; infinity: no deadline waits."""
        return self._intake.expires_s

    def drain(self) -> None:
        """Refuse new requests; accepted ones continue."""
        self._admission.draining = True

    def close(
        self, now_s: float, reason: FinishReason = FinishReason.SHUTDOWN, error: str = ""
    ) -> Sequence[Delivery]:
        """Accept nothing more and end every request: the grace period ended, or the device."""
        self.drain()
        ended = [
            self._endings.end(one, reason, now_s, error) for one in list(self._state.live.values())
        ]
        if self._executing.iteration is not None and reason is FinishReason.FAILED:
            self._endings.release(self._executing.end(self._executing.iteration))
        return ended

    def wanted_drafts(self) -> Drafts | None:
        """Return the proposals that the next iteration needs of the draft model; None: none.

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
        """Return the next iteration; None if nothing can be computed before another event."""
        state, executing = self._state, self._executing
        half = executing.next_half()
        if half is not None:
            executing.begin(half, features_of(half), whole=False)
            return half
        planned = plan_iteration(state, now_s, self._admission.due_within_s)
        if planned is None:
            return None
        executing.begin(*planned)
        return planned[0]

    def complete(
        self, iteration: Iteration, result: IterationResult, began_s: float, ended_s: float
    ) -> Sequence[Delivery]:
        """Record a computed iteration and return its tokens.

        Raises:
            ValueError: it is not the iteration returned last.
        """
        state, executing = self._state, self._executing
        self._endings.release(executing.end(iteration))
        outcome = apply(state, iteration, result, ended_s)
        for sequence in outcome.first:
            due_s = sequence.request.first_token_deadline_s
            if due_s is not None:
                self._admission.record(sequence, ended_s, missed=ended_s > due_s)
        for sequence, reason in outcome.ended:
            self._endings.leave(sequence, reason, ended_s)
        state.count("iterations")
        if executing.whole:
            seconds = ended_s - began_s
            state.cost.observe(executing.features, seconds)
            state.sums.add(executing.features.row(), seconds, weight=1.0, keep=1.0)
        return outcome.deliveries

    def fail(self, iteration: Iteration, error: str, now_s: float) -> Sequence[Delivery]:
        """Record that an iteration failed: it repeats in halves; a request alone ends.

        `error` is what a client may read. If the device is lost, call `close` instead.
        """
        self._endings.release(self._executing.end(iteration))
        self._state.count("failed_iterations")
        live = self._state.live
        alive = [one for one in iteration.chunks if one.sequence.request.key in live]
        if len(alive) > 1:
            self._executing.split(tuple(alive))
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

    @property
    def statistics(self) -> EngineStatistics:
        """Counts since the start and the present state; `busy_s` is not known here."""
        return statistics_of(self._state)

    @property
    def idle(self) -> bool:
        """Whether no accepted request is left."""
        return not self._state.live
