"""The requests that a third-party engine computes: a task for each, on the engine's event loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
from collections.abc import Callable, Sequence

from headroom_server.engine import DeviceLostError
from headroom_server.errors import InvalidRequestError, public
from headroom_server.generation.third_party.locked_gate import LockedGate
from headroom_server.generation.third_party.ports import ThirdPartyModel
from headroom_server.generation.values import Delivery, GenerationRequest

log = logging.getLogger("headroom_server")


class Traffic:
    """Hands requests to the engine, and their results back. `deliver` gets those of one turn."""

    def __init__(
        self,
        model: ThirdPartyModel,
        locked: LockedGate,
        deliver: Callable[[Sequence[Delivery]], object],
    ) -> None:
        self.failures = 0
        """Requests that failed since one succeeded."""
        self._model = model
        self._locked = locked
        self._deliver = deliver
        self._loop = asyncio.get_running_loop()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._produced: list[Delivery] = []
        self._timer: asyncio.TimerHandle | None = None

    def hand_over(self) -> None:
        """Start the requests that the engine can take now."""
        locked = self._locked
        with locked.lock:
            requests = locked.gate.next(locked.clock())
            due_s = locked.gate.expires_s
        for request in requests:
            self._tasks[request.key] = self._loop.create_task(self._generate(request))
        if not self._tasks:
            locked.progress_s = None
        elif locked.progress_s is None:
            locked.progress_s = locked.clock()
        self._arm(due_s)

    def abort(self, key: int) -> None:
        """End a request in the engine; the gate has already forgotten it."""
        task = self._tasks.pop(key, None)
        if task is not None:
            task.cancel()
        self.hand_over()

    async def close(self) -> None:
        """End everything in the engine."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = list(self._tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _generate(self, request: GenerationRequest) -> None:
        key, locked = request.key, self._locked
        error = "the engine ended the answer too early"
        try:
            async with contextlib.aclosing(self._model.generate(request)) as parts:
                async for produced in parts:
                    with locked.lock:
                        delivery = locked.gate.produced(key, produced, locked.clock())
                    if delivery is None:
                        break
                    self._put(delivery)
            self.failures = 0
        except InvalidRequestError as refused:
            error = refused.message
        except DeviceLostError as lost:
            log.error("a request failed: %s", public(str(lost))[:500])
            error = "the engine is lost"
        except Exception as failed:
            log.error("a request failed: %s", public(str(failed))[:500], exc_info=failed)
            self.failures += 1
            error = "the model failed"
        self._tasks.pop(key, None)
        with locked.lock:  # nothing is left if it has ended as it should
            left = locked.gate.failed(key, error)
        if left is not None:
            self._put(left)
        self.hand_over()

    def _put(self, delivery: Delivery) -> None:
        self._locked.progress_s = self._locked.clock()
        self._produced.append(delivery)
        if len(self._produced) == 1:
            # the tasks that the engine's iteration woke run before this
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        produced, self._produced = self._produced, []
        self._deliver(produced)

    def _arm(self, due_s: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due_s < math.inf:
            left_s = max(0.0, due_s - self._locked.clock())
            self._timer = self._loop.call_later(left_s + 0.001, self._expire)

    def _expire(self) -> None:
        locked = self._locked
        with locked.lock:
            expired = locked.gate.expire(locked.clock())
        for delivery in expired:
            self._put(delivery)
            task = self._tasks.pop(delivery.key, None)
            if task is not None:
                task.cancel()
        self.hand_over()
