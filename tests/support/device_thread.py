"""A device thread whose engine echoes, fails, runs out of memory, or takes long on the host."""

from __future__ import annotations

import threading
import time
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from headroom_server.device.batch_loop import BatchSource
from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan
from headroom_server.device.thread import DeviceThread
from headroom_server.device.warming import SelfTest
from headroom_server.engine import OutOfMemoryError, Staged, Work
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

SIGNATURE = Signature(inputs=(TensorSpec("x", "FP64"),), outputs=(TensorSpec("y", "FP64"),))
POISON = -1.0


@dataclass
class Echo:
    """Returns its input; POISON and too many items make it fail, in the configured step."""

    name: str = "echo"
    device: str = "none"
    emulated: bool = True
    compiles: bool = False
    fails_in: str = "execute"
    error: Exception = field(default_factory=lambda: RuntimeError("poisoned"))
    slow_failure_s: float = 0.0
    room: int = 1000
    stage_s: float = 0.0
    execute_s: float = 0.0
    finish_s: float = 0.0
    broken: threading.Event = field(default_factory=threading.Event)
    free: threading.Event = field(default_factory=threading.Event)
    staged: list[list[float]] = field(default_factory=list)
    executed: list[list[float]] = field(default_factory=list)
    threads: dict[str, set[str]] = field(default_factory=dict)
    slept_s: float = 0.0

    def __post_init__(self) -> None:
        self.free.set()

    def load(self) -> Signature:
        return SIGNATURE

    def compile(self) -> str:
        return "compiled"

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        if ahead is not None and list(ahead.batch) == list(batch):
            return ahead
        self.staged.append(values(batch))
        self._sleep(self.stage_s)
        self._step("stage", batch)
        return Staged(batch, length)

    def execute(self, staged: Staged) -> Any:
        self.executed.append(values(staged.batch))
        self.free.wait(10)
        self._sleep(self.execute_s)
        self._step("execute", staged.batch)
        if sum(work.items for work in staged.batch) > self.room:
            raise OutOfMemoryError("too many")
        return values(staged.batch)

    def finish(self, staged: Staged, result: Any) -> Sequence[Mapping[str, Numbers]]:
        self._sleep(self.finish_s)
        self._step("finish", staged.batch)
        return [{"y": array("d", [value])} for value in result]

    def unload(self) -> None:
        self.threads["unload"] = {threading.current_thread().name}

    def _sleep(self, seconds: float) -> None:
        time.sleep(seconds)
        self.slept_s += seconds

    def _step(self, step: str, batch: Sequence[Work]) -> None:
        self.threads.setdefault(step, set()).add(threading.current_thread().name)
        if step == self.fails_in and (self.broken.is_set() or POISON in values(batch)):
            time.sleep(self.slow_failure_s)
            raise self.error


def values(batch: Sequence[Work]) -> list[float]:
    return [number for work in batch for number in work.inputs["x"]]


class World:
    """A queue, a device, and the events of its listener, on any thread."""

    def __init__(self, engine: Echo, max_batch_size: int) -> None:
        self.engine = engine
        self.batcher: Batcher[Work] = Batcher(max_batch_size)
        self.lock = threading.Lock()
        self.done: list[ExecutedBatch[Work]] = []
        self.phases: list[Phase] = []
        self.doubts: list[bool] = []
        self.failure = ""
        self.warm: Warm | None = None
        self.thread: DeviceThread[Work] = DeviceThread(
            engine,
            WarmUpPlan(max_batch_size=max_batch_size, requests=1, max_latency_s=5, timeout_s=10),
            BatchSource(
                take=self._take,
                peek=self._peek,
                waits=lambda: len(self.batcher) > 0,
                work_of=lambda work: work,
            ),
            clock=self._clock,
        )
        self._key = 0

    def _clock(self) -> float:
        # Warm-up measurements decide about threads: the engine's configured times count, not the
        # load of the machine.
        return self.engine.slept_s if self.warm is None else time.monotonic()

    def _take(self) -> SealedBatch[Work]:
        with self.lock:
            return self.batcher.seal(time.monotonic())

    def _peek(self) -> SealedBatch[Work]:
        with self.lock:
            return self.batcher.peek(time.monotonic())

    def send(self, *numbers: float, deadline_s: float | None = None) -> None:
        with self.lock:
            for number in numbers:
                self._key += 1
                work = Work(1, {"x": array("d", [number])})
                self.batcher.add(QueueEntry(self._key, 1, time.monotonic(), deadline_s, work))
        self.thread.wake()
        self.thread.on_queued()

    def on_phase(self, phase: Phase, _at_s: float) -> None:
        self.phases.append(phase)

    def on_self_test(self, result: SelfTest) -> None:
        assert result.passed

    def on_warm(self, warm: Warm) -> None:
        self.warm = warm

    def on_executed(self, done: ExecutedBatch[Work]) -> None:
        self.done.append(done)

    def on_suspected(self, suspected: bool) -> None:
        self.doubts.append(suspected)

    def on_lost(self, message: str) -> None:
        self.failure = message

    def ended(self) -> dict[float, str]:
        """Return the end of each request, by its number."""
        ends: dict[float, str] = {}
        for done in list(self.done):
            for entry in done.sealed.expired:
                ends[values([entry.payload])[0]] = "expired"
            for entry, answer in zip(done.sealed.batch, done.outputs, strict=True):
                number = values([entry.payload])[0]
                assert number not in ends, "every request ends once"
                ends[number] = "failed" if answer is None else "ok"
                assert answer is None or list(answer["y"]) == [number]
        return ends

    def until(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + 10
        while not holds():
            assert time.monotonic() < deadline_s
            time.sleep(0.001)


@contextmanager
def started(
    engine: Echo, max_batch_size: int = 8, make: Callable[[Echo, int], World] = World
) -> Iterator[World]:
    world = make(engine, max_batch_size)
    world.thread.start(lambda call, *arguments: call(*arguments), world)
    try:
        world.until(lambda: world.warm is not None)
        engine.staged.clear()
        engine.executed.clear()
        engine.threads.clear()
        yield world
    finally:
        engine.free.set()
        world.thread.stop()
        assert world.thread.join(5)


def together(world: World, *numbers: float, deadline_s: float | None = None) -> None:
    """Queue them behind a batch of one, so that they become one batch."""
    world.engine.free.clear()
    seen = len(world.engine.executed)
    world.send(100.0)
    world.until(lambda: len(world.engine.executed) > seen)
    world.send(*numbers, deadline_s=deadline_s)
    world.engine.free.set()
