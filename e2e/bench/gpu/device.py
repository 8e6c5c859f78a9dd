"""The server's engine and device thread, saturated, compared with a bare loop over the model.

Bare: one batch after the other, its input in the device's memory already, and a wait for each
result: no copying, no collecting, no answers. The server gets separate requests of one item.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from queue import SimpleQueue
from typing import Any

import torch

from bench.gpu.models import BenchModel
from headroom_server.device.batch_loop import BatchSource
from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.startup import Warm, WarmUpPlan
from headroom_server.device.thread import DeviceThread
from headroom_server.device.warming import SelfTest, synthetic
from headroom_server.engine import Staged, Work
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.batching import Batcher
from headroom_server.scheduling.entries import QueueEntry, SealedBatch
from headroom_server.torch_engine import TorchEngine
from headroom_server.torch_engine.loading import Loaded

READY_WITHIN_S = 600.0
BATCHES_WAITING = 4


def engine_of(model: BenchModel) -> TorchEngine:
    """The server's engine with this model."""

    def load(device: torch.device) -> Loaded:
        model.load(None, device)
        return Loaded(model, model.signature)

    return TorchEngine(load, threads=torch.get_num_threads())


def bare_items_per_s(model: BenchModel, size: int, seconds: float) -> float:
    """Items per second of the bare loop, after three batches that do not count."""
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model.load(None, device)
    spec = model.signature.inputs[0]
    shape = (size, *spec.shape)
    dtype = torch.int64 if spec.datatype == "INT64" else torch.float32
    batch, count = torch.zeros(shape, dtype=dtype, device=device), 0
    with torch.inference_mode():
        for _ in range(3):
            model.forward(batch).cpu()
        began_s = time.perf_counter()
        while (now_s := time.perf_counter()) < began_s + seconds:
            model.forward(batch)
            if device.type == "cuda":
                torch.cuda.synchronize(device)
            count += size
    return count / (now_s - began_s)


class Watched:
    """An engine that notes when it computes."""

    compiles = False

    def __init__(self, engine: TorchEngine) -> None:
        self._engine = engine
        self.name, self.device, self.emulated = engine.name, engine.device, engine.emulated
        self.load, self.compile, self.unload = engine.load, engine.compile, engine.unload
        self.stage, self.finish = engine.stage, engine.finish
        self.times: list[tuple[float, float]] = []

    def execute(self, staged: Staged) -> Any:
        """Execute a batch, as the engine does."""
        began_s = time.perf_counter()
        result = self._engine.execute(staged)
        self.times.append((began_s, time.perf_counter()))
        return result

    def idle_share(self, since_s: float) -> float:
        """Return the idle share of the time between the first batch since then and the last."""
        times = [one for one in self.times if one[0] >= since_s]
        whole_s = times[-1][1] - times[0][0]
        return 1.0 - sum(end_s - begin_s for begin_s, end_s in times) / whole_s


@dataclass(frozen=True, slots=True)
class Saturated:
    """Work of the server while more requests waited than fit into a batch."""

    items_per_s: float
    idle_share: float
    batch_items: float
    pipelined: bool


class Feeder:
    """A queue that is never empty: every answered request is followed by another."""

    def __init__(self, model: BenchModel, size: int) -> None:
        self.engine = Watched(engine_of(model))
        self._batcher: Batcher[Work] = Batcher(size)
        self._lock = threading.Lock()
        self._works = synthetic(model.signature, size * BATCHES_WAITING, 0)
        self._key = 0
        self.warm = threading.Event()
        self.failure = ""
        self.batches: list[tuple[float, int]] = []
        self.thread: DeviceThread[Work] = DeviceThread(
            self.engine,
            WarmUpPlan(
                max_batch_size=size,
                requests=1,
                max_latency_s=READY_WITHIN_S,
                timeout_s=READY_WITHIN_S,
            ),
            BatchSource(
                take=lambda: self._locked(self._batcher.seal),
                peek=lambda: self._locked(self._batcher.peek),
                waits=lambda: len(self._batcher) > 0,
                work_of=lambda work: work,
            ),
            clock=time.monotonic,
        )

    def _locked(self, ask: Callable[[float], SealedBatch[Work]]) -> SealedBatch[Work]:
        with self._lock:
            return ask(time.monotonic())

    def add(self, works: Sequence[Work]) -> None:
        """Queue these requests."""
        with self._lock:
            for work in works:
                self._key += 1
                # a separate object, as requests are
                self._batcher.add(QueueEntry(self._key, 1, time.monotonic(), None, Work(*work)))
        self.thread.on_queued()

    def on_phase(self, phase: Phase, at_s: float) -> None:
        """Nothing."""

    def on_self_test(self, result: SelfTest) -> None:
        """Nothing."""

    def on_warm(self, warm: Warm) -> None:
        """Fill the queue before the device asks for a batch."""
        self.add(self._works)
        self.thread.wake()
        self.warm.set()

    def on_executed(self, done: ExecutedBatch[Work]) -> None:
        """Count the batch, and queue as many new requests."""
        self.batches.append((time.perf_counter(), done.sealed.items))
        self.add([entry.payload for entry in done.sealed.batch])
        self.thread.wake()

    def on_suspected(self, suspected: bool) -> None:
        """Record the failure: the engine would fail every batch."""
        self.failure = "the engine fails every batch" if suspected else ""

    def on_lost(self, message: str) -> None:
        """End the waiting."""
        self.failure = message
        self.warm.set()


def _run_calls(calls: SimpleQueue[Callable[[], None] | None]) -> None:
    """Replaces the server's event loop: handles what the device reports, in its own thread."""
    while (call := calls.get()) is not None:
        call()


def saturated(model: BenchModel, size: int, seconds: float) -> Saturated:
    """Run the engine behind the server's device thread with a queue that is never empty.

    Raises:
        RuntimeError: where it does not get warm, or fails.
    """
    feeder = Feeder(model, size)
    calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
    caller = threading.Thread(target=_run_calls, args=(calls,), daemon=True)
    caller.start()
    feeder.thread.start(lambda call, *arguments: calls.put(partial(call, *arguments)), feeder)
    try:
        feeder.warm.wait(READY_WITHIN_S)
        time.sleep(0.2 * seconds)
        since_s = time.perf_counter()
        time.sleep(seconds)
        until_s = time.perf_counter()
        pipelined = feeder.thread.pipelined
    finally:
        feeder.thread.stop()
        feeder.thread.join(READY_WITHIN_S)
        calls.put(None)
        caller.join()
    done = [(time_s, items) for time_s, items in feeder.batches if since_s <= time_s <= until_s]
    if feeder.failure or len(done) < 2:
        raise RuntimeError(f"the device thread returned nothing: {feeder.failure}")
    items = sum(count for _, count in done[1:])
    return Saturated(
        items_per_s=items / (done[-1][0] - done[0][0]),
        idle_share=feeder.engine.idle_share(since_s),
        batch_items=items / (len(done) - 1),
        pipelined=pipelined,
    )
