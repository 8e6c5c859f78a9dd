"""One model on several devices: in parallel, one lost, one hanging, one failing every batch."""

from __future__ import annotations

import asyncio
import threading
import time
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

import aiohttp
import pytest

from headroom_server.batching_composition.engines import build_engines
from headroom_server.connection import Connection
from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import DeviceLostError, LoadError, Staged, Work
from headroom_server.lifecycle import Phase
from headroom_server.protocols.request_options import RequestOptions
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelSource
from headroom_server.settings import Settings
from headroom_server.settings_sources import InvalidSettingsError, from_environment, merged
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine.choosing_devices import chosen
from headroom_server.typed_arrays import Numbers
from support.server_process import serving
from support.server_world import SIGNATURE, FakeEngine, Start, World, balanced_metrics, until

pytestmark = pytest.mark.clock

BUSY = "headroom_device_busy_seconds_total"
FIT = "headroom_device_healthy"


def plan(timeout_s: float = 30.0) -> WarmUpPlan:
    return WarmUpPlan(max_batch_size=2, requests=1, max_latency_s=5.0, timeout_s=timeout_s)


def limits() -> Limits:
    return Limits(max_batch_size=2, max_waiting=4, stall_timeout_s=60.0)


async def answered_by(world: World, count: int) -> Counter[int]:
    """Return the batches that each device executes for this many requests, one after the other."""
    before = [len(engine.batches) for engine in world.engines]
    for _ in range(count):
        assert (await world.predict([1.0, 2.0])).json() == {"predictions": [3.0]}
    after = [len(engine.batches) for engine in world.engines]
    return Counter({at: b - a for at, (a, b) in enumerate(zip(before, after, strict=True))})


async def test_devices_are_ready_when_all_are_warm() -> None:
    engines = [FakeEngine(), FakeEngine()]
    engines[1].hold()
    runner = Runner("m", engines, plan(), limits())
    runner.start()
    try:
        await until(lambda: engines[0].batches == [1, 2, 1, 2, 1] and engines[1].began.is_set())
        await asyncio.sleep(0.05)
        assert (runner.ready, runner.lifecycle.phase) == (False, Phase.WARM)
        engines[1].free.set()
        await until(lambda: runner.ready)
        assert runner.warm is not None
        assert [len(shape.later) for shape in runner.warm.shapes] == [2, 2], "both are learned from"
    finally:
        engines[1].free.set()
        runner.stop()


async def test_device_that_does_not_become_warm_fails_the_start() -> None:
    class Broken(FakeEngine):
        def load(self) -> Signature:
            raise LoadError("no room for the weights")

    models = Models.of(Runner("m", [FakeEngine(), Broken()], plan(), limits()))
    models.start()
    async with asyncio.timeout(5):
        await models.failed()
    assert not models.warm
    models.stop()


async def test_devices_with_different_signatures_fail_the_start() -> None:
    class Other(FakeEngine):
        def load(self) -> Signature:
            return Signature(SIGNATURE.inputs, (TensorSpec("total", "FP64"),))

        def execute(self, staged: Staged) -> Sequence[Mapping[str, Numbers]]:
            return [{"total": one["sum"]} for one in super().execute(staged)]

    runner = Runner("m", [FakeEngine(), Other()], plan(), limits())
    runner.start()
    assert "different inputs or outputs" in await runner.failed()
    runner.stop()


async def test_free_device_takes_the_next_batch(
    start: Start,
) -> None:
    world = await start(devices=2, max_batch_size=1, max_waiting=4)
    for engine in world.engines:
        engine.hold()
    asked = [asyncio.create_task(world.predict([float(n), 0.0])) for n in range(2)]
    await asyncio.to_thread(world.engines[0].began.wait, 5)
    await asyncio.to_thread(world.engines[1].began.wait, 5)
    asked += [asyncio.create_task(world.predict([float(n), 0.0])) for n in (2, 3)]
    await world.waiting(2)
    world.engines[1].free.set()
    await asyncio.wait(asked[2:], timeout=5)
    assert all(task.done() for task in asked[2:]), "the other device works off the line"
    world.engines[0].free.set()
    assert [(await one).json() for one in asked] == [{"predictions": [n]} for n in (0.0, 1, 2, 3)]
    assert sorted(len(engine.batches) for engine in world.engines) == [1, 3]


async def test_idle_devices_take_turns(start: Start) -> None:
    world = await start(devices=3)
    shares = await answered_by(world, 30)
    assert sum(shares.values()) == 30
    # Ten each; a device whose thread reports late that it is free may be passed over.
    assert min(shares[at] for at in range(3)) >= 5


async def test_lost_device_leaves_the_queue_to_the_others(start: Start) -> None:
    world = await start(devices=2, max_batch_size=1, max_waiting=4)
    whole = (await balanced_metrics(world))["headroom_capacity_requests_per_second"]
    world.engines[0].error = DeviceLostError("CUDA error: an illegal access")
    for engine in world.engines:
        engine.hold()
    asked = [asyncio.create_task(world.predict([1.0, 1.0])) for _ in range(4)]
    await asyncio.to_thread(world.engines[0].began.wait, 5)
    await asyncio.to_thread(world.engines[1].began.wait, 5)
    await world.waiting(2)
    for engine in world.engines:
        engine.free.set()
    answers = [await one for one in asked]
    assert sorted(one.status_code for one in answers) == [200, 200, 200, 500]
    (lost,) = [one for one in answers if one.status_code == 500]
    assert "illegal" not in lost.text
    assert (world.runner.ready, world.runner.live, world.runner.impaired) == (True, True, True)
    assert await answered_by(world, 5) == Counter({1: 5})
    seen = await balanced_metrics(world)
    assert (seen[f"{FIT}{{0}}"], seen[f"{FIT}{{1}}"], seen["headroom_ready"]) == (0, 1, 1)
    assert seen["headroom_capacity_requests_per_second"] < whole
    assert (await world.http.get("/v2/health/ready")).json()["devices_fit"] == [False, True]
    assert seen[f"{BUSY}{{1}}"] > 0.0

    world.engines[1].error = DeviceLostError("it too")
    assert (await world.predict([1.0, 1.0])).status_code == 500
    assert (world.runner.ready, world.runner.live) == (False, False)
    assert "it too" in await world.runner.failed()
    assert (await world.predict([1.0, 1.0])).status_code == 503
    await balanced_metrics(world)


async def test_hanging_device_keeps_only_its_own_batch(start: Start) -> None:
    world = await start(devices=2, stall_timeout_s=0.05)
    for engine in world.engines:
        engine.hold()
    hangs = asyncio.create_task(world.predict([1.0, 1.0]))
    await until(lambda: any(engine.began.is_set() for engine in world.engines))
    at = 0 if world.engines[0].began.is_set() else 1
    world.engines[1 - at].free.set()
    await asyncio.sleep(0.06)
    world.runner.watch()
    assert (await hangs).status_code == 500
    assert (world.runner.ready, world.runner.live) == (True, True)
    assert await answered_by(world, 3) == Counter({1 - at: 3})
    assert (await balanced_metrics(world))[f"{FIT}{{{at}}}"] == 0
    world.engines[at].free.set()
    await until(lambda: [one.fit for one in world.runner.snapshot().devices] == [True, True])
    assert not world.runner.impaired


async def test_always_failing_device_gets_no_work(start: Start) -> None:
    world = await start(devices=2)
    world.engines[0].error = RuntimeError("broken")
    statuses = [(await world.predict([1.0, 1.0])).status_code for _ in range(12)]
    assert statuses.count(500) <= 4, "three, and one that was on its way"
    await until(lambda: not world.runner.snapshot().devices[0].fit)
    assert world.runner.ready
    assert (await answered_by(world, 6))[1] == 6
    world.engines[0].error = None  # the next request of zeros finds it well
    await until(lambda: world.runner.snapshot().devices[0].fit)
    assert (await answered_by(world, 6))[0] >= 2
    await balanced_metrics(world)


async def test_always_failing_devices_are_not_ready(start: Start) -> None:
    world = await start(devices=2)
    for engine in world.engines:
        engine.error = RuntimeError("broken")
    while not world.runner.suspected:
        assert (await world.predict([1.0, 1.0])).status_code == 500
    assert not world.runner.ready
    assert world.runner.live


# ---- a process


async def _served(url: str, seconds: float) -> int:
    """Responses within this many seconds to 16 clients in closed loops."""
    end_s, body, served = time.monotonic() + seconds, {"instances": [[1, 2, 3, 4]]}, 0

    async def ask(http: aiohttp.ClientSession) -> None:
        nonlocal served
        while time.monotonic() < end_s:
            async with http.post(f"{url}/v1/models/m:predict", json=body) as answer:
                assert await answer.json() == {"predictions": [10.0]}
                served += time.monotonic() < end_s

    async with aiohttp.ClientSession() as http, asyncio.TaskGroup() as clients:
        for _ in range(16):
            clients.create_task(ask(http))
    return served


async def test_two_devices_carry_twice_the_load_and_drain() -> None:
    shape = {"EMULATED_FIXED_COST_S": 0.1, "EMULATED_PER_ITEM_COST_S": 0, "MAX_BATCH_SIZE": 4}
    async with serving(**shape) as one, serving(DEVICES="0,1", **shape) as two:
        await one.ready()
        await two.ready()
        rates = await asyncio.gather(_served(one.url, 2.0), _served(two.url, 2.0))
        assert rates[0] == pytest.approx(80, rel=0.15), "4 every 100 ms"
        assert rates[1] == pytest.approx(2 * rates[0], rel=0.15)
        left = [asyncio.create_task(_served(two.url, 0.3))]
        await asyncio.sleep(0.1)
        two.process.terminate()
        assert await left[0] > 0, "what is accepted while it drains is answered"
        assert await two.process.wait() == 0


async def test_device_lost_while_serving_shows_in_the_exit_code() -> None:
    world = {"EMULATED_FIXED_COST_S": 0.1, "EMULATED_PER_ITEM_COST_S": 0, "MAX_BATCH_SIZE": 4}
    async with serving(DEVICES="0,1", EMULATED_LOSS="1:1.5", DRAIN_DELAY_S=0, **world) as server:
        await server.ready()
        statuses: Counter[int] = Counter()
        ends = time.monotonic() + 2.5

        async def ask(http: aiohttp.ClientSession) -> None:
            body = {"instances": [[1, 2, 3, 4]]}
            while time.monotonic() < ends:
                async with http.post(f"{server.url}/v1/models/m:predict", json=body) as answer:
                    statuses[answer.status] += 1

        async with aiohttp.ClientSession() as http:
            async with asyncio.TaskGroup() as clients:
                for _ in range(16):
                    clients.create_task(ask(http))
            assert statuses.keys() == {200, 500}
            assert 1 <= statuses[500] <= 4, "what it had in hand"
            async with http.get(f"{server.url}/v2/health/ready") as answer:
                assert (answer.status, (await answer.json())["devices_fit"]) == (200, [True, False])
            async with http.get(f"{server.url}/v2/health/live") as answer:
                assert answer.status == 200
            async with http.get(f"{server.url}/metrics") as answer:
                text = await answer.text()
            assert 'headroom_device_healthy{model="m",device="1"} 0' in text
            (capacity,) = [
                float(line.split()[1])
                for line in text.splitlines()
                if line.startswith("headroom_capacity_requests_per_second{")
            ]
            assert capacity == pytest.approx(40, rel=0.1), "4 every 100 ms, on one device"
        server.process.terminate()
        assert await server.process.wait() == 1


class Preparing(FakeEngine):
    """Its host work takes long enough for separate threads."""

    stagers: set[str] = set()  # noqa: RUF012 - of all

    def stage(self, batch: Sequence[Work], length: int, ahead: Staged | None = None) -> Staged:
        self.stagers.add(threading.current_thread().name)
        time.sleep(0.002)
        return super().stage(batch, length, ahead)

    def execute(self, staged: Staged) -> Sequence[Mapping[str, Numbers]]:
        time.sleep(0.004)
        return super().execute(staged)


async def test_devices_that_stage_ahead_answer_each_request_once() -> None:
    engines = [Preparing(), Preparing()]
    runner = Runner(
        "m", engines, plan(), Limits(max_batch_size=2, max_waiting=100, stall_timeout_s=60.0)
    )
    runner.start()
    try:
        await until(lambda: runner.ready)
        before = [sum(engine.batches) for engine in engines]
        answers = await asyncio.gather(
            *(
                runner.infer(
                    Work(1, {"x": array("d", [n, 1.0])}),
                    arrived_s=runner.clock(),
                    options=RequestOptions(),
                    connection=Connection(),
                )
                for n in range(60)
            )
        )
        assert [answer["sum"][0] for answer in answers] == [n + 1.0 for n in range(60)]
        items = [sum(engine.batches) - was for engine, was in zip(engines, before, strict=True)]
        assert sum(items) == 60
        assert "lookahead" in Preparing.stagers
        assert min(items) >= 20
    finally:
        runner.stop()


# ---- which devices


@pytest.mark.parametrize(
    ("value", "numbers"),
    [
        ("", ()),
        ("all", ("all",)),
        ("0,1", ("0", "1")),
        ("cuda:0, cuda:3", ("0", "3")),
        ("cuda:2 1", ("2", "1")),
    ],
)
def test_devices_setting_is_parsed(value: str, numbers: tuple[str, ...]) -> None:
    settings = merged([from_environment({"HEADROOM_DEVICES": value})])
    assert settings.devices == numbers


@pytest.mark.parametrize("value", ["0,0", "0,cuda:0", "all,0", "cpu", "-1", "01", "cuda:", "1000"])
def test_invalid_devices_setting_is_refused(value: str) -> None:
    with pytest.raises(InvalidSettingsError, match="HEADROOM_DEVICES"):
        merged([from_environment({"HEADROOM_DEVICES": value})])


@pytest.mark.parametrize(
    ("wanted", "cuda_devices", "found"),
    [
        ((), 0, ["None"]),
        ((), 4, ["None"]),
        (("all",), 0, ["None"]),
        (("all",), 2, ["cuda:0", "cuda:1"]),
        (("1", "3"), 4, ["cuda:1", "cuda:3"]),
    ],
)
def test_devices_are_selected(wanted: tuple[str, ...], cuda_devices: int, found: list[str]) -> None:
    assert [str(one) for one in chosen(wanted, cuda_devices)] == found


@pytest.mark.parametrize(
    ("cuda_devices", "there"), [(0, "no CUDA device; got 1"), (1, "0 to 0; got 1")]
)
def test_missing_device_is_named(cuda_devices: int, there: str) -> None:
    with pytest.raises(LoadError, match=there):
        chosen(("0", "1") if cuda_devices else ("1",), cuda_devices)


@pytest.mark.parametrize(("devices", "count"), [((), 1), (("all",), 1), (("0", "1", "5"), 3)])
def test_emulated_engine_gives_the_configured_number_of_devices(
    devices: tuple[str, ...], count: int
) -> None:
    settings = Settings(engine="emulated", devices=devices)
    engines = build_engines(settings, ModelSource("m"))
    assert len(engines) == count
    assert len(set(map(id, engines))) == count
