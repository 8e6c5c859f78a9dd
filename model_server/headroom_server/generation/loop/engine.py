"""Our engine: one thread asks the scheduler for iterations and executes them.

One lock guards the scheduler; it is not held while an iteration executes. What an iteration
produced is handed to the event loop in one call.
"""

from __future__ import annotations

import logging
import random
import threading
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError, LoadError, OutOfMemoryError
from headroom_server.errors import RefusedError, public
from headroom_server.generation.loop.startup import (
    NotWarmError,
    StartUp,
    StoppedError,
    WarmUpLimits,
    check_result,
)
from headroom_server.generation.ports import (
    EngineListener,
    EngineStatistics,
    Executor,
    Receive,
)
from headroom_server.generation.receivers import Receivers
from headroom_server.generation.scheduling.iteration_cost import features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationLimits,
    GenerationRequest,
    Iteration,
)
from headroom_server.lifecycle import Phase

log = logging.getLogger("headroom_server")

FAILURES_IN_A_ROW = 3
"""Failed iterations of single requests after which the engine, not a request, is suspected."""
PROBE_PAUSE_S = 1.0
SUSPICION_S = 30.0
LONGEST_WAIT_S = 60.0
LOST = "the device is lost"


class LoopEngine:
    """An executor and its scheduler behind the engine's port."""

    def __init__(
        self,
        name: str,
        executor: Executor,
        *,
        clock: Callable[[], float],
        options: SchedulingOptions | None = None,
        warm_up: WarmUpLimits | None = None,
        emulated: bool = False,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.name = name
        self.emulated = emulated
        self.executing_since_s: float | None = None
        self._executor = executor
        self._clock = clock
        self._options = options or SchedulingOptions()
        self._warm_up = warm_up or WarmUpLimits()
        self._chance = chance
        self._changed = threading.Condition()
        """Its lock guards the scheduler; notified when there may be something to compute."""
        self._scheduler: Scheduler | None = None
        self._receivers = Receivers()
        """Receivers of requests in flight; used on the event loop only."""
        self._ended: list[int] = []
        """Keys that the executor has to forget."""
        self._stopping = False
        self._busy_s = 0.0
        self._failures = 0
        self._drafting = self._options.draft_model
        self._draft_failures = 0
        self._thread: threading.Thread | None = None
        self._post: Callable[..., object] = lambda *_: None

    # ---- on the event loop

    @property
    def device(self) -> str:
        """Name of the hardware for people."""
        return self._executor.device

    @property
    def limits(self) -> GenerationLimits:
        """What the loaded model admits; known once it is warm."""
        return self._ready().limits

    @property
    def fastest_s(self) -> float:
        """The shortest iteration ever; 0 before the first."""
        return 0.0 if self._scheduler is None else self._scheduler.fastest_s

    def start(self, post: Callable[..., object], listener: EngineListener) -> None:
        """Start the thread."""

        def report(call: Callable[..., None], *arguments: object) -> None:
            # after `stop` the listener's loop may be closed
            if not self._stopping:
                post(call, *arguments)

        self._post = report
        self._thread = threading.Thread(
            target=self._run, args=(listener,), name="device", daemon=True
        )
        self._thread.start()

    def submit(self, request: GenerationRequest, receive: Receive) -> None:
        """Accept a request; see `GenerationEngine.submit`."""
        scheduler = self._ready()
        with self._changed:
            scheduler.add(request, self._clock())
            self._receivers[request.key] = receive
            self._changed.notify()

    def check_count(self, tenant: str, count: int, *, batch_class: bool) -> None:
        """Refuse choices that may not wait; see `GenerationEngine.check_count`."""
        scheduler = self._ready()
        with self._changed:
            scheduler.check_count(tenant, count, batch_class=batch_class)

    def cancel(self, key: int) -> None:
        """End a request; nothing is delivered for it any more."""
        if self._receivers.pop(key, None) is None or self._scheduler is None:
            return
        with self._changed:
            if self._scheduler.cancel(key, self._clock()):
                self._ended.append(key)
                self._changed.notify()

    def close_intake(self) -> None:
        """Refuse new requests."""
        with self._changed:
            if self._scheduler is not None:
                self._scheduler.drain()

    def fail_all(self, error: str) -> None:
        """End every request with FAILED; others are accepted."""
        receivers, now_s = list(self._receivers), self._clock()
        for key in receivers:
            with self._changed:
                if self._scheduler is not None and self._scheduler.cancel(key, now_s):
                    self._ended.append(key)
        self._deliver([Delivery(key, (), FinishReason.FAILED, 0, error) for key in receivers])

    def abandon(self) -> None:
        """End every request with SHUTDOWN, and accept no others."""
        with self._changed:
            if self._scheduler is None:
                return
            deliveries = self._scheduler.close(self._clock())
        self._deliver(deliveries)

    def stop(self) -> None:
        """Ask the thread to end after its current iteration."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def join(self, timeout_s: float) -> bool:
        """Wait for the thread; return whether it has ended."""
        if self._thread is not None:
            self._thread.join(timeout_s)
        return self._thread is None or not self._thread.is_alive()

    def statistics(self) -> EngineStatistics:
        """Return the scheduler's counts."""
        with self._changed:
            if self._scheduler is None:
                return EngineStatistics()
            counts = self._scheduler.statistics
            busy_s = self._busy_s
        return EngineStatistics(
            iterations=counts.iterations,
            failed_iterations=counts.failed_iterations,
            busy_s=busy_s,
            computed_prompt_tokens=counts.computed_prompt_tokens,
            cached_prompt_tokens=counts.cached_prompt_tokens,
            generated_tokens=counts.generated_tokens,
            accepted_tokens=counts.accepted_tokens,
            rejected_tokens=counts.rejected_tokens,
            preemptions=counts.preemptions,
            cost_xx=counts.xx,
            cost_xy=counts.xy,
            total_blocks=counts.total_blocks,
            used_blocks=counts.used_blocks,
            cached_blocks=counts.cached_blocks,
            free_blocks=counts.free_blocks,
            waiting_requests=counts.waiting_requests,
            waiting_fillers=counts.waiting_fillers,
            waiting_tokens=counts.waiting_tokens,
            context_tokens=counts.context_tokens,
        )

    def _ready(self) -> Scheduler:
        if self._scheduler is None:
            raise RefusedError("this replica is not ready", retry_after_s=1)
        return self._scheduler

    def _deliver(self, deliveries: Sequence[Delivery]) -> None:
        self._receivers.deliver(deliveries, self.cancel)

    # ---- on the device thread

    def _run(self, listener: EngineListener) -> None:
        try:
            self._start_up(listener)
            self._serve(listener)
        except StoppedError:
            pass
        except (LoadError, NotWarmError) as error:
            self._post(listener.on_lost, str(error))
        except DeviceLostError as error:
            log.error("the device is lost: %s", error)
            self._lose(listener, LOST)
        except Exception:  # the last resort, which logs it
            log.exception("the device thread ended")
            self._lose(listener, "the engine failed; see the server's log")
        finally:
            self._executor.unload()

    def _start_up(self, listener: EngineListener) -> None:
        self._post(listener.on_phase, Phase.LOAD, self._clock())
        timed: list[tuple[Iteration, float]] = []

        def on_phase(phase: Phase) -> None:
            self._post(listener.on_phase, phase, self._clock())

        start_up = StartUp(
            self._executor,
            self._warm_up,
            clock=self._clock,
            stopping=lambda: self._stopping,
            on_phase=on_phase,
            observe=lambda iteration, seconds: timed.append((iteration, seconds)),
        )
        limits = self._executor.load()
        warm = start_up.warm(limits)
        scheduler = Scheduler(limits, self._options, chance=self._chance)
        for iteration, seconds in timed:
            scheduler.learn(features_of(iteration), seconds)
        with self._changed:
            self._scheduler = scheduler
        self._post(listener.on_warm, warm)

    def _serve(self, listener: EngineListener) -> None:
        scheduler = self._scheduler
        assert scheduler is not None
        while True:
            iteration = self._take(scheduler)
            if iteration is None:
                return
            if self._execute(scheduler, iteration):
                self._failures = 0
            elif self._failures >= FAILURES_IN_A_ROW:
                self._probe(scheduler.limits, listener)
            for key in self._forgotten():
                self._executor.forget(key)

    def _take(self, scheduler: Scheduler) -> Iteration | None:
        """Return the next iteration, once there is one; None: the server stops."""
        if self._drafting:
            self._draft(scheduler)
        with self._changed:
            while not self._stopping:
                now_s = self._clock()
                if scheduler.expires_s <= now_s:
                    self._hand_over(scheduler.expire(now_s))
                iteration = scheduler.next_iteration(now_s)
                if iteration is not None:
                    self.executing_since_s = now_s
                    return iteration
                left_s = scheduler.expires_s - now_s
                self._changed.wait(min(max(left_s, 0.0), LONGEST_WAIT_S))
            return None

    def _draft(self, scheduler: Scheduler) -> None:
        """Let the draft model propose tokens for the next iteration.

        Requests do without it: one that fails repeatedly is not asked again.
        """
        with self._changed:
            wanted = scheduler.wanted_drafts()
            if wanted is None:
                return
            began_s = self.executing_since_s = self._clock()
        proposed: Sequence[Sequence[int]] = [()] * len(wanted.sequences)
        try:
            proposed = self._executor.draft(wanted.sequences, wanted.most)
            self._draft_failures = 0
        except DeviceLostError:
            raise
        except Exception as error:
            self._draft_failures += 1
            self._drafting = self._draft_failures < FAILURES_IN_A_ROW
            log.exception("the draft model failed: %s", public(str(error))[:500])
        with self._changed:
            self.executing_since_s = None
            spent_s = self._clock() - began_s
            self._busy_s += spent_s
            scheduler.take_drafts(wanted, proposed, spent_s)

    def _execute(self, scheduler: Scheduler, iteration: Iteration) -> bool:
        """Execute an iteration; return whether it succeeded."""
        began_s = self._clock()
        try:
            result = self._executor.execute(iteration)
            check_result(iteration, result.sampled)
        except DeviceLostError:
            raise
        except Exception as error:  # noqa: BLE001 - any error of an iteration is isolated
            self._fail(scheduler, iteration, error)
            return False
        ended_s = self._clock()
        with self._changed:
            self.executing_since_s = None
            self._busy_s += ended_s - began_s
            self._hand_over(scheduler.complete(iteration, result, began_s, ended_s))
        return True

    def _fail(self, scheduler: Scheduler, iteration: Iteration, error: Exception) -> None:
        if isinstance(error, OutOfMemoryError):
            message = "the device has no memory for this request"
        elif isinstance(error, FloatingPointError):
            message = "the model computes NaN or infinity for this request"
            if len(iteration.chunks) == 1:  # a line per request, and none per half
                log.warning("a request failed: %s", error)
        else:
            message = "the model failed"
            log.error("an iteration failed: %s", public(str(error))[:500], exc_info=error)
        self._failures += len(iteration.chunks) == 1
        with self._changed:
            self.executing_since_s = None
            self._hand_over(scheduler.fail(iteration, message, self._clock()))

    def _hand_over(self, deliveries: Sequence[Delivery]) -> None:
        """Post deliveries to the event loop; the lock is held."""
        if deliveries:
            self._ended += [one.key for one in deliveries if one.finish is not None]
            self._post(self._deliver, deliveries)

    def _forgotten(self) -> Sequence[int]:
        if not self._ended:
            return ()
        with self._changed:
            ended, self._ended = self._ended, []
        return ended

    def _probe(self, limits: GenerationLimits, listener: EngineListener) -> None:
        """Execute what succeeded in warm-up until it succeeds again.

        Raises:
            DeviceLostError: it does not for 30 s.
        """
        began_s, suspected = self._clock(), False
        probe = StartUp(
            self._executor,
            self._warm_up,
            clock=self._clock,
            stopping=lambda: self._stopping,
            on_phase=lambda _: None,
            observe=lambda _, __: None,
        )
        while not probe.works(limits):
            if not suspected:
                suspected = True
                self._post(listener.on_suspected, True)
            if self._clock() - began_s > SUSPICION_S:
                raise DeviceLostError("it fails every iteration")
            with self._changed:
                self._changed.wait(PROBE_PAUSE_S)
        self._failures = 0
        if suspected:
            self._post(listener.on_suspected, False)

    def _lose(self, listener: EngineListener, message: str) -> None:
        with self._changed:
            if self._scheduler is not None:
                deliveries = self._scheduler.close(self._clock(), FinishReason.FAILED, message)
                self._hand_over(deliveries)
        self._post(listener.on_lost, message)
