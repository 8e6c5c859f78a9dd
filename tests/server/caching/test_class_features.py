"""Features of a user's class: computed before the batch, kept by content, once per tenant."""

from __future__ import annotations

import asyncio
import threading
import time
from array import array
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest
import torch

from headroom_server.batching_composition.runners import build_runner
from headroom_server.batching_composition.settings_rules import check_applicable
from headroom_server.caching.cache import Cache
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.store import ByteStore, GuardedStore, StoredValue
from headroom_server.device.startup import WarmUpPlan
from headroom_server.engine import LoadError, Work
from headroom_server.runtime.batching.featuring import FeatureSource
from headroom_server.runtime.batching.model_queue import Limits
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models
from headroom_server.runtime.store import ModelSource, ModelStore
from headroom_server.settings import Settings
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.torch_engine import TorchEngine
from headroom_server.torch_engine.loading import ClassModel, Loaded
from headroom_server.web.application.app import Application
from support.memory_store import DOWN, MemoryStore
from support.server_world import World, balanced_metrics, run, until

pytestmark = pytest.mark.clock


class Letters:
    """Counts the letters of a text; its features are their codes and the text's length."""

    signature = Signature(
        inputs=(TensorSpec("text", "BYTES"),),
        outputs=(TensorSpec("sum", "INT64"), TensorSpec("length", "INT64")),
    )
    features = (TensorSpec("codes", "INT32", (8,)), TensorSpec("size", "INT64"))

    def __init__(self) -> None:
        self.asked: list[list[bytes]] = []
        self.free = threading.Event()
        self.free.set()

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Nothing is loaded."""

    def featurize(self, inputs: dict[str, Any]) -> dict[str, torch.Tensor]:
        texts = inputs["text"]
        self.asked.append(texts)
        self.free.wait(10)
        if b"wrong" in texts:
            raise ValueError("no text")
        rows = [[*text[:8], *[0] * (8 - len(text))] for text in texts]
        return {
            "codes": torch.tensor(rows, dtype=torch.int32),
            "size": torch.tensor([len(text) for text in texts]),
        }

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        assert sorted(inputs) == ["codes", "size"]
        return {name: tensor.clone() for name, tensor in inputs.items()}

    def forward(self, batch: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"sum": batch["codes"].long().sum(-1), "length": batch["size"]}

    def postprocess(self, result: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return result


class Scaled:
    """Doubles rows of any length on the host, and adds up what the mask shows."""

    signature = Signature(
        inputs=(TensorSpec("x", "FP32", (-1,)),),
        outputs=(TensorSpec("y", "FP32", (-1,)),),
        lengths=(4, 8),
        mask=TensorSpec("mask", "FP32", (-1,)),
    )
    features = (TensorSpec("doubled", "FP32", (-1,)),)

    def load(self, directory: Path | None, device: torch.device) -> None:
        """Nothing is loaded."""

    def featurize(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        return {"doubled": inputs["x"] * 2}

    def preprocess(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["doubled"] + inputs["mask"]

    def forward(self, batch: torch.Tensor) -> torch.Tensor:
        return batch

    def postprocess(self, result: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"y": result}


class Plain:
    """A class without features."""

    signature = Letters.signature
    load, preprocess = Letters.load, Letters.preprocess
    forward, postprocess = Letters.forward, Letters.postprocess


class Half(Plain):
    """Declares features that it does not compute."""

    features = Letters.features


class Featured(World):
    """A server of `Letters`, with a feature cache."""

    model: Letters
    guarded: GuardedStore | None

    async def ask(self, *texts: str, **headers: str) -> httpx.Response:
        return await self.http.post(
            "/v1/models/m:predict",
            json={"instances": list(texts)},
            headers={name.replace("_", "-"): value for name, value in headers.items()},
        )

    async def counts(self) -> dict[str, float]:
        """Return the number of features by source."""
        seen = await balanced_metrics(self)
        return {
            name.removeprefix("headroom_feature_cache_"): count
            for name, count in seen.items()
            if name.startswith(("headroom_feature_cache_hits", "headroom_feature_cache_misses"))
            and count
        }

    def hold(self) -> None:
        self.model.free.clear()

    def release(self) -> None:
        self.model.free.set()


Serve = Callable[..., Awaitable[Featured]]


@pytest.fixture
async def serve() -> AsyncIterator[Serve]:
    worlds: list[Featured] = []

    async def make(
        *,
        store: ByteStore | None = None,
        max_bytes: int = 1 << 20,
        max_waiting: int = 32,
        stall_s: float = 60.0,
    ) -> Featured:
        model = Letters()
        engine: Any = TorchEngine(lambda _: Loaded(model, model.signature), threads=1)
        guarded = None if store is None else GuardedStore(store, time.monotonic)
        options = LevelOptions(max_bytes, 60.0, time.monotonic, guarded)
        runner = Runner(
            "m",
            [engine],
            WarmUpPlan(max_batch_size=4, requests=1, max_latency_s=5.0, timeout_s=30.0),
            Limits(max_batch_size=4, max_waiting=max_waiting, stall_timeout_s=stall_s),
            features=FeatureSource(engine, Cache("m", options)),
        )
        app = Application(Models.of(runner), max_body_bytes=4096)
        transport = httpx.ASGITransport(app=app)
        http = httpx.AsyncClient(transport=transport, base_url="http://server")
        world = Featured(app, [engine], runner, http)
        world.model, world.guarded = model, guarded
        worlds.append(world)
        runner.start()
        await until(lambda: runner.ready)
        if guarded is not None:
            await until(lambda: guarded.enabled)
        model.asked.clear()
        return world

    yield make
    for world in worlds:
        world.release()
        world.runner.stop()
        await world.http.aclose()


def answer(text: str) -> dict[str, int]:
    return {"sum": sum(text.encode()[:8]), "length": len(text)}


# ---- the engine


def test_batches_mix_features_that_are_there_with_those_that_are_not() -> None:
    engine = TorchEngine(ClassModel(f"{__name__}:Letters", None), threads=1)
    engine.load()
    texts = Letters.signature.inputs[0]
    works = [Work(1, {"text": texts.numbers([one], "x")}) for one in ("ab", "c", "")]
    works[1] = engine.featured(works[1])
    assert works[1].inputs == {"codes": array("i", [99, *[0] * 7]), "size": array("q", [1])}
    assert engine.featured(works[1]) is works[1]
    outputs = run(engine, works)
    assert [one["sum"][0] for one in outputs] == [195, 99, 0]
    assert [one["length"][0] for one in outputs] == [2, 1, 0]


def test_features_have_the_length_of_their_request_and_batches_pad_them() -> None:
    engine = TorchEngine(ClassModel(f"{__name__}:Scaled", None), threads=1)
    engine.load()
    short, long = Work(1, {"x": array("f", [1, 2])}, 2), Work(1, {"x": array("f", [3] * 7)}, 7)
    outputs = run(engine, [engine.featured(short), long], 8)
    assert [list(one["y"]) for one in outputs] == [[3, 5], [7] * 7]


@pytest.mark.parametrize(
    ("name", "needed", "message"),
    [
        ("Plain", True, "must be unset unless every class has features and featurize; Plain has"),
        ("Half", False, "must have both features and featurize, or neither; it lacks featurize"),
    ],
)
def test_class_whose_features_do_not_fit_is_not_loaded(
    name: str, needed: bool, message: str
) -> None:
    engine = TorchEngine(ClassModel(f"{__name__}:{name}", None), threads=1, needs_features=needed)
    with pytest.raises(LoadError, match=message):
        engine.load()


@pytest.mark.parametrize("features", [[TensorSpec("a", "FP32")], (TensorSpec("a", "FP32", (-1,)),)])
def test_wrong_declarations_are_named(features: Any) -> None:
    model = Letters()
    model.features = features
    engine = TorchEngine(lambda _: Loaded(model, model.signature), threads=1)
    with pytest.raises(LoadError, match="features"):
        engine.load()


# ---- one process


async def test_equal_inputs_are_featurized_once_per_tenant(serve: Serve) -> None:
    world = await serve()
    for text in ("one", "two", "one"):
        assert (await world.ask(text)).json()["predictions"] == [answer(text)]
    assert (await world.ask("one", x_tenant="other")).json()["predictions"] == [answer("one")]
    assert world.model.asked == [[b"one"], [b"two"], [b"one"]]
    assert await world.counts() == {"hits_total{inputs,memory}": 1, "misses_total{inputs}": 3}


async def test_several_items_are_one_entry(serve: Serve) -> None:
    world = await serve()
    for _ in range(2):
        found = (await world.ask("a", "bc")).json()["predictions"]
        assert found == [answer("a"), answer("bc")]
    assert world.model.asked == [[b"a", b"bc"]]


async def test_equal_requests_at_once_are_featurized_once(serve: Serve) -> None:
    world = await serve()
    world.hold()
    asking = [asyncio.create_task(world.ask("one")) for _ in range(8)]
    await until(lambda: world.model.asked == [[b"one"]])
    world.release()
    answers = await asyncio.gather(*asking)
    assert [one.json()["predictions"] for one in answers] == [[answer("one")]] * 8
    assert world.model.asked == [[b"one"]]
    assert await world.counts() == {"hits_total{inputs,flight}": 7, "misses_total{inputs}": 1}


async def test_inputs_that_fail_fail_alone_and_are_not_kept(serve: Serve) -> None:
    world = await serve()
    answers = await asyncio.gather(*(world.ask(text) for text in ("wrong", "fine", "wrong")))
    assert [one.status_code for one in answers] == [500, 200, 500]
    assert "no text" not in answers[0].text
    assert world.model.asked.count([b"wrong"]) == 2
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_total{failed}"] == 2
    assert seen["headroom_feature_cache_entries"] == 1


async def test_a_leader_that_expires_leaves_the_work_to_the_next(serve: Serve) -> None:
    world = await serve()
    world.hold()
    leader = asyncio.create_task(world.ask("one", x_request_timeout="0.05"))
    await until(lambda: world.model.asked == [[b"one"]])
    follower = asyncio.create_task(world.ask("one"))
    assert (await leader).status_code == 504
    world.release()
    assert (await follower).json()["predictions"] == [answer("one")]
    assert (await balanced_metrics(world))["headroom_requests_total{expired}"] == 1


async def test_features_that_hang_end_with_an_error(serve: Serve) -> None:
    world = await serve(stall_s=0.2)
    world.hold()
    assert (await world.ask("one")).status_code == 500


async def test_requests_that_wait_for_features_are_bounded(serve: Serve) -> None:
    world = await serve(max_waiting=2)
    world.hold()
    waiting = [asyncio.create_task(world.ask(text)) for text in ("a", "b")]
    await until(lambda: world.model.asked == [[b"a"]])
    refused = await world.ask("c")
    assert (refused.status_code, "retry-after" in refused.headers) == (429, True)
    world.release()
    assert [one.status_code for one in await asyncio.gather(*waiting)] == [200, 200]
    seen = await balanced_metrics(world)
    assert seen["headroom_requests_refused_total{queue_full}"] == 1


async def test_memory_is_bounded_in_bytes(serve: Serve) -> None:
    each = 768 + 2 * 128 + 8 * 4 + 8
    world = await serve(max_bytes=3 * each)
    for number in range(5):
        await world.ask(str(number))
    seen = await balanced_metrics(world)
    assert seen["headroom_feature_cache_entries"] == 3
    assert seen["headroom_feature_cache_bytes"] == 3 * each
    assert seen["headroom_feature_cache_evictions_total"] == 2


async def test_accepted_requests_get_their_features_while_the_server_drains(serve: Serve) -> None:
    world = await serve()
    world.hold()
    accepted = asyncio.create_task(world.ask("one"))
    await until(lambda: world.model.asked == [[b"one"]])
    world.runner.drain()
    world.runner.close_intake()
    idle = asyncio.create_task(world.runner.wait_idle())
    assert (await world.ask("two")).status_code == 503
    assert not idle.done()
    world.release()
    assert (await accepted).json()["predictions"] == [answer("one")]
    await asyncio.wait_for(idle, 5)


# ---- the second level


async def test_replicas_share_features(serve: Serve) -> None:
    store = MemoryStore()
    one, other = await serve(store=store), await serve(store=store)
    await one.ask("one")
    await until(lambda: bool(store.values))
    assert (await other.ask("one")).json()["predictions"] == [answer("one")]
    assert other.model.asked == []
    assert await other.counts() == {"hits_total{inputs,redis}": 1}


async def test_without_redis_the_process_level_serves(serve: Serve) -> None:
    store = MemoryStore()
    world = await serve(store=store)
    store.error = DOWN
    for text in ("a", "b", "c", "d", "a", "b"):
        assert (await world.ask(text)).json()["predictions"] == [answer(text)]
    assert await world.counts() == {"hits_total{inputs,memory}": 2, "misses_total{inputs}": 4}
    seen = await balanced_metrics(world)
    assert seen["headroom_cache_redis_enabled"] == 0
    assert seen["headroom_cache_redis_failures_total"] > 0


@pytest.mark.parametrize("poison", ["garbage", "cut", "of another request"])
async def test_a_poisoned_entry_costs_one_computation(serve: Serve, poison: str) -> None:
    store = MemoryStore()
    one = await serve(store=store)
    await one.ask("one")
    await one.ask("two")
    await until(lambda: len(store.values) == 2)
    first, second = store.values
    value = {
        "garbage": b"x" * 56,
        "cut": store.values[first].value[:-1],
        "of another request": store.values[second].value,
    }[poison]
    store.values[first] = StoredValue(value, 60.0)
    other = await serve(store=store)
    for _ in range(2):
        assert (await other.ask("one")).json()["predictions"] == [answer("one")]
    assert other.model.asked == [[b"one"]]


# ---- settings


def settings(**fields: Any) -> Settings:
    return Settings(feature_cache_bytes=1 << 20, **fields)


def refusal(given: Settings) -> str:
    store = ModelStore(given, partial(build_runner, given))
    try:
        check_applicable(given, store.sources())
    except LoadError as error:
        return str(error)
    return ""


def test_the_setting_is_refused_where_no_class_computes(tmp_path: Path) -> None:
    (tmp_path / "model.toml").write_text('architecture = "mlp"\n[parameters]\nsizes = [4, 3]\n')
    for given in (
        settings(engine="emulated"),
        settings(model_uri=f"file://{tmp_path}"),
    ):
        assert "HEADROOM_FEATURE_CACHE_BYTES must be unset unless a model generates" in refusal(
            given
        )
    assert not refusal(settings(model_class="a:B"))


async def test_the_setting_gives_a_class_its_cache() -> None:
    given = settings(model_class=f"{__name__}:Letters", model_name="m")
    runner = build_runner(given, ModelSource("m"))
    assert runner.looks_up
    assert runner.snapshot().features is not None
    runner.stop()
