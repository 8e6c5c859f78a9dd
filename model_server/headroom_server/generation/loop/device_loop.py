"""The device thread of Headroom's engine: it asks the scheduler for iterations and executes them.

What an iteration produced is handed to the event loop in one call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError, LoadError
from headroom_server.generation.loop.drafting import Drafting
from headroom_server.generation.loop.failures import Failures, message_of
from headroom_server.generation.loop.shared_scheduler import SharedScheduler
from headroom_server.generation.loop.startup import (
    NotWarmError,
    StartUp,
    StoppedError,
    WarmUpLimits,
    check_result,
)
from headroom_server.generation.ports import EngineListener, Executor
from headroom_server.generation.scheduling.costs.iteration_cost import features_of
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.scheduling.scheduler import Scheduler
from headroom_server.generation.values import Delivery, FinishReason, Iteration
from headroom_server.lifecycle import Phase

log = logging.getLogger("headroom_server")

LONGEST_WAIT_S = 60.0
LOST = "the device is lost"


class DeviceLoop:
    """Executes iterations. `post` calls a function on the event loop; `deliver` is called there."""

    def __init__(
        self,
        executor: Executor,
        shared: SharedScheduler,
        options: SchedulingOptions,
        warm_up: WarmUpLimits,
        *,
        clock: Callable[[], float],
        chance: Callable[[], float],
        post: Callable[..., object],
        deliver: Callable[[Sequence[Delivery]], None],
    ) -> None:
        self._executor = executor
        self._shared = shared
        self._options = options
        self._warm_up = warm_up
        self._clock = clock
        self._chance = chance
        self._post = post
        self._deliver = deliver
        self._failures = Failures(executor, shared, warm_up, clock=clock, post=post)
        self._drafting = Drafting(executor, shared, clock=clock, enabled=options.draft_model)

    def run(self, listener: EngineListener) -> None:
        """Load, warm up and compute, until the server stops or the device is lost."""
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
            stopping=lambda: self._shared.stopping,
            on_phase=on_phase,
            observe=lambda iteration, seconds: timed.append((iteration, seconds)),
        )
        limits = self._executor.load()
        warm = start_up.warm(limits)
        scheduler = Scheduler(limits, self._options, chance=self._chance)
        for iteration, seconds in timed:
            scheduler.learn(features_of(iteration), seconds)
        with self._shared.changed:
            self._shared.scheduler = scheduler
        self._post(listener.on_warm, warm)

    def _serve(self, listener: EngineListener) -> None:
        scheduler = self._shared.scheduler
        assert scheduler is not None
        while True:
            iteration = self._take(scheduler)
            if iteration is None:
                return
            if self._execute(scheduler, iteration):
                self._failures.forget()
            elif self._failures.suspicious:
                self._failures.probe(scheduler.limits, listener)
            for key in self._forgotten():
                self._executor.forget(key)

    def _take(self, scheduler: Scheduler) -> Iteration | None:
        """Return the next iteration, once there is one; None: the server stops."""
        if self._drafting.enabled:
            self._drafting.propose(scheduler)
        with self._shared.changed:
            while not self._shared.stopping:
                now_s = self._clock()
                if scheduler.expires_s <= now_s:
                    self._hand_over(scheduler.expire(now_s))
                iteration = scheduler.next_iteration(now_s)
                if iteration is not None:
                    self._shared.executing_since_s = now_s
                    return iteration
                left_s = scheduler.expires_s - now_s
                self._shared.changed.wait(min(max(left_s, 0.0), LONGEST_WAIT_S))
            return None

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
        with self._shared.changed:
            self._shared.executing_since_s = None
            self._shared.busy_s += ended_s - began_s
            self._hand_over(scheduler.complete(iteration, result, began_s, ended_s))
        return True

    def _fail(self, scheduler: Scheduler, iteration: Iteration, error: Exception) -> None:
        message = message_of(error, iteration)
        self._failures.count(iteration)
        with self._shared.changed:
            self._shared.executing_since_s = None
            self._hand_over(scheduler.fail(iteration, message, self._clock()))

    def _hand_over(self, deliveries: Sequence[Delivery]) -> None:
        """Post deliveries to the event loop; the lock is held."""
        if deliveries:
            self._shared.ended += [one.key for one in deliveries if one.finish is not None]
            self._post(self._deliver, deliveries)

    def _forgotten(self) -> Sequence[int]:
        if not self._shared.ended:
            return ()
        with self._shared.changed:
            ended, self._shared.ended = self._shared.ended, []
        return ended

    def _lose(self, listener: EngineListener, message: str) -> None:
        with self._shared.changed:
            if self._shared.scheduler is not None:
                deliveries = self._shared.scheduler.close(
                    self._clock(), FinishReason.FAILED, message
                )
                self._hand_over(deliveries)
        self._post(listener.on_lost, message)
