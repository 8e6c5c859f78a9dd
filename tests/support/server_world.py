"""A model server in this process: an engine without a device, a runner, an HTTP client."""

from __future__ import annotations

import asyncio
import threading
from array import array
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import httpx
from prometheus_client.parser import text_string_to_metric_families

from headroom_server.engine import Engine, Staged, Work
from headroom_server.runtime.batching.runner import Runner
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers
from headroom_server.web.application.app import Application

SIGNATURE = Signature(inputs=(TensorSpec("x", "FP64", (2,)),), outputs=(TensorSpec("sum", "FP64"),))


@dataclass
class FakeEngine:
    """Sums pairs at once; can be held, and can fail."""

    name: str = "fake"
    device: str = "none"
    emulated: bool = True
    compiles: bool = False
    free: threading.Event = field(default_factory=threading.Event)
    """Cleared: the next batch stays on the device until it is set again."""
    began: threading.Event = field(default_factory=threading.Event)
    error: Exception | None = None
    batches: list[int] = field(default_factory=list)
    unloaded: bool = False
    forged: list[Any] = field(default_factory=list)
    """Returned instead of the next batches' results."""

    def __post_init__(self) -> None:
        self.free.set()

    def load(self) -> Signature:
        return SIGNATURE

    def compile(self) -> str:
        return "nothing to compile"

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        return Staged(batch, length)

    def execute(self, staged: Staged) -> Sequence[Mapping[str, Numbers]]:
        batch = staged.batch
        self.batches.append(sum(work.items for work in batch))
        self.began.set()
        self.free.wait(timeout=10)
        if self.error is not None:
            raise self.error
        if self.forged:
            return cast("Sequence[Mapping[str, Numbers]]", self.forged.pop(0))
        return [
            {"sum": array("d", [sum(x[i : i + 2]) for i in range(0, len(x), 2)])}
            for x in (work.inputs["x"] for work in batch)
        ]

    def finish(
        self, staged: Staged, result: Sequence[Mapping[str, Numbers]]
    ) -> Sequence[Mapping[str, Numbers]]:
        return result

    def unload(self) -> None:
        self.unloaded = True

    def hold(self) -> None:
        self.began.clear()
        self.free.clear()


def run(engine: Engine, batch: Sequence[Work], length: int = 0) -> Sequence[Mapping[str, Numbers]]:
    """Run all three steps of an engine."""
    staged = engine.stage(batch, length)
    return engine.finish(staged, engine.execute(staged))


async def until(holds: Callable[[], bool]) -> None:
    """Wait until another thread has made it true."""
    async with asyncio.timeout(10):
        while not holds():  # noqa: ASYNC110 - the other side is a thread, not a task
            await asyncio.sleep(0.001)


@dataclass
class World:
    app: Application
    engines: Sequence[FakeEngine]
    runner: Runner
    http: httpx.AsyncClient

    @property
    def engine(self) -> FakeEngine:
        return self.engines[0]

    async def predict(self, *instances: list[float], **headers: str) -> httpx.Response:
        return await self.http.post(
            "/v1/models/m:predict", json={"instances": list(instances)}, headers=headers
        )

    async def hold_device(self) -> asyncio.Task[httpx.Response]:
        """One request occupies the device until `engine.free` is set."""
        self.engine.hold()
        task = asyncio.create_task(self.predict([1.0, 1.0]))
        await asyncio.to_thread(self.engine.began.wait, 5)
        return task

    async def waiting(self, count: int) -> None:
        """Wait until this many requests wait."""
        await until(lambda: self.runner.snapshot().waiting == count)


Start = Callable[..., Awaitable[World]]


async def metrics(world: World) -> dict[str, float]:
    """Samples without their model label: name{other labels} -> value."""
    text = (await world.http.get("/metrics")).text
    found = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            assert sample.labels.pop("model") == "m"
            labels = ",".join(sample.labels.values())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


async def balanced_metrics(world: World) -> dict[str, float]:
    """Return the metrics, after checking that every received request is in exactly one place."""
    seen = await metrics(world)
    ended = sum(value for name, value in seen.items() if name.startswith("headroom_requests_total"))
    in_flight = seen["headroom_requests_waiting"] + seen["headroom_requests_running"]
    assert seen["headroom_requests_received_total"] == ended + in_flight
    return seen
