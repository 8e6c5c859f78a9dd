"""Several models and versions in one process, loaded and unloaded while others serve."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import AsyncIterator, Callable

import pytest

from headroom_server.connection import Connection
from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import LoadError, Work
from headroom_server.errors import RefusedError, UnknownModelError
from headroom_server.protocols.request_options import USUAL
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models
from headroom_server.runtime.served_model import LoadFailedError, ModelState, ModelVersion
from headroom_server.signature import Signature
from support.server_world import FakeEngine, until

pytestmark = pytest.mark.clock


class BrokenEngine(FakeEngine):
    def load(self) -> Signature:
        raise LoadError("the weights are not there")


def version(name: str, number: int, engine: FakeEngine | None = None) -> ModelVersion:
    def build() -> Runner:
        return Runner(
            name,
            [engine or FakeEngine()],
            WarmUpPlan(max_batch_size=4, requests=1, max_latency_s=5.0, timeout_s=30.0),
            Limits(max_batch_size=4, max_waiting=8, stall_timeout_s=60.0),
        )

    return ModelVersion(name, number, build)


Serve = Callable[..., Models]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    made: list[Models] = []

    def make(*versions: ModelVersion, unload_grace_s: float = 10.0) -> Models:
        models = Models(versions, unload_grace_s=unload_grace_s)
        made.append(models)
        models.start()
        return models

    yield make
    for models in made:
        for runner in models.runners:
            assert isinstance(runner.engine, FakeEngine)
            runner.engine.free.set()
        models.stop()
        assert models.join()


async def answer(models: Models, name: str, number: str | None = None) -> list[float]:
    runner = models.find(name, number).runner
    work = Work(1, {"x": array("d", [1.0, 2.0])})
    outputs = await runner.infer(
        work, arrived_s=runner.clock(), options=USUAL, connection=Connection()
    )
    return list(outputs["sum"])


async def test_model_is_found_by_name_and_version_with_the_latest_as_default(serve: Serve) -> None:
    models = serve(version("a", 2), version("a", 10), version("b", 1))
    await until(lambda: models.ready)
    found = [models.find("a", None), models.find("a", "2"), models.find("b", None)]
    assert [(one.name, one.version) for one in found] == [("a", "10"), ("a", "2"), ("b", "1")]
    for name, number, words in [
        ("c", None, "this server serves 'a' and 'b'; got 'c'"),
        ("a", "3", "'a' has version '2' and '10'; got '3'"),
        ("a", "02", "got '02'"),
        ("a", "9" * 5000, "got '999"),
        ("a", "²", "got '²'"),
    ]:
        with pytest.raises(UnknownModelError, match=words):
            models.find(name, number)


async def test_server_is_ready_when_all_configured_models_are(serve: Serve) -> None:
    slow = FakeEngine()
    slow.hold()
    models = serve(version("a", 1), version("b", 1, slow))
    await until(lambda: models.find("a", None).runner.ready)
    assert not models.ready
    assert models.states() == {
        ("a", "1"): (ModelState.READY, ""),
        ("b", "1"): (ModelState.LOADING, ""),
    }
    assert await answer(models, "a") == [3.0]
    slow.free.set()
    await until(lambda: models.ready)


async def test_configured_model_that_cannot_be_loaded_ends_the_server(serve: Serve) -> None:
    models = serve(version("a", 1), version("b", 1, BrokenEngine()))
    await asyncio.wait_for(models.failed(), 5)
    assert not models.ready
    assert models.states()["b", "1"] == (ModelState.UNAVAILABLE, "the weights are not there")


async def test_loading_and_failing_models_do_not_affect_others(serve: Serve) -> None:
    models = serve(version("a", 1))
    await until(lambda: models.ready)
    slow = FakeEngine()
    slow.hold()
    loading = asyncio.create_task(models.load([version("b", 1, slow)]))
    await until(lambda: models.states().get(("b", "1")) == (ModelState.LOADING, ""))
    assert await answer(models, "a") == [3.0]
    assert (models.ready, models.live) == (True, True)
    with pytest.raises(UnknownModelError, match="serves 'a'; got 'b'"):
        models.find("b", None)
    slow.free.set()
    await loading
    assert await answer(models, "b") == [3.0]
    with pytest.raises(LoadFailedError, match="model c, version 1: the weights are not there"):
        await models.load([version("c", 1, BrokenEngine())])
    assert (models.ready, models.live) == (True, True)
    assert sorted(models.states()) == [("a", "1"), ("b", "1")]


async def test_unload_answers_accepted_requests_first(serve: Serve) -> None:
    engine = FakeEngine()
    models = serve(version("a", 1), version("b", 1, engine))
    await until(lambda: models.ready)
    engine.hold()
    accepted = asyncio.create_task(answer(models, "b"))
    await asyncio.to_thread(engine.began.wait, 5)
    unloading = asyncio.create_task(models.unload("b"))
    await until(lambda: models.states()["b", "1"] == (ModelState.UNLOADING, ""))
    with pytest.raises(UnknownModelError, match="got 'b'"):
        models.find("b", None)
    assert await answer(models, "a") == [3.0]
    assert not unloading.done()
    engine.free.set()
    assert await accepted == [3.0]
    await unloading
    await until(lambda: engine.unloaded)
    assert models.ready
    assert sorted(models.states()) == [("a", "1")]
    with pytest.raises(UnknownModelError, match="'b' is not served"):
        await models.unload("b")


async def test_reload_serves_the_old_version_until_the_new_one_is_warm(serve: Serve) -> None:
    old, new = FakeEngine(), FakeEngine()
    models = serve(version("a", 1, old))
    await until(lambda: models.ready)
    before = models.find("a", None)
    new.hold()
    loading = asyncio.create_task(models.load([version("a", 2, new)]))
    await until(lambda: bool(new.batches))
    assert models.find("a", None) is before
    assert await answer(models, "a") == [3.0]
    new.free.set()
    await loading
    assert models.find("a", None).version == "2"
    await until(lambda: old.unloaded)
    with pytest.raises(LoadFailedError):
        await models.load([version("a", 3), version("a", 4, BrokenEngine())])
    assert models.find("a", None).version == "2"


async def test_request_still_arriving_at_an_unloaded_model_is_refused(serve: Serve) -> None:
    models = serve(version("a", 1))
    await until(lambda: models.ready)
    found = models.find("a", None)
    await models.unload("a")
    with pytest.raises(RefusedError, match="stopping"):
        await found.runner.infer(
            Work(1, {"x": array("d", [1.0, 2.0])}),
            arrived_s=found.runner.clock(),
            options=USUAL,
            connection=Connection(),
        )


async def test_unload_ends_with_its_grace_period(serve: Serve) -> None:
    engine = FakeEngine()
    models = serve(version("a", 1, engine), unload_grace_s=0.05)
    await until(lambda: models.ready)
    engine.hold()
    accepted = asyncio.create_task(answer(models, "a"))
    await asyncio.to_thread(engine.began.wait, 5)
    await models.unload("a")
    with pytest.raises(Exception, match="stopped before it could answer"):
        await accepted
    engine.free.set()


async def test_drain_ends_a_load_and_finishes_all_models(serve: Serve) -> None:
    slow = FakeEngine()
    slow.hold()
    models = serve(version("a", 1), version("a", 2))
    await until(lambda: models.ready)
    loading = asyncio.create_task(models.load([version("b", 1, slow)]))
    await until(lambda: bool(slow.batches))
    accepted = [asyncio.create_task(answer(models, "a", number)) for number in ("1", "2")]
    await asyncio.sleep(0)
    models.drain()
    assert models.draining
    assert not models.ready
    with pytest.raises(LoadFailedError, match="the server is stopping"):
        await loading
    await asyncio.wait_for(models.wait_idle(), 5)
    assert await asyncio.gather(*accepted) == [[3.0], [3.0]]
    slow.free.set()


async def test_version_label_exists_only_for_several_versions(serve: Serve) -> None:
    models = serve(version("a", 1), version("a", 2), version("b", 1))
    await until(lambda: models.ready)
    reply = [(one.model, one.version) for one in models.snapshots()]
    assert reply == [("a", "1"), ("a", "2"), ("b", None)]
    assert [one.version for one in serve(version("a", 7)).snapshots()] == [None]


async def test_invalid_requests_are_counted_with_the_only_model_or_without(serve: Serve) -> None:
    one = serve(version("a", 1))
    assert one.ledger is one.find("a", None).runner.ledger
    two = serve(version("a", 1), version("b", 1))
    assert two.ledger not in [served.runner.ledger for served in two.all()]
