"""Redis as second level: Debian's server if installed, and a fake of it."""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from headroom_server.caching.cache import Cache
from headroom_server.caching.feature_values import FeatureInput, FeatureKind
from headroom_server.caching.features import FeatureCache
from headroom_server.caching.flights import Source
from headroom_server.caching.generated import CachedChoice
from headroom_server.caching.generation_cache import GeneratedSource, GenerationCache, Question
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.redis_store import RedisStore
from headroom_server.caching.seal import Seal
from headroom_server.caching.sealed_store import SealedStore
from headroom_server.caching.store import LOOKUP_S, GuardedStore, StoredValue
from headroom_server.generation.values import FinishReason, SampledToken
from support.server_world import Start, balanced_metrics, until

pytestmark = pytest.mark.clock

KEY = bytes(range(32))
SERVER = shutil.which("redis-server")


@dataclass
class FakeRedis:
    """GET, SET with PX, PTTL and PING of the protocol, version 2."""

    values: dict[bytes, tuple[bytes, float]] = field(default_factory=dict)
    answer_of: Callable[[FakeRedis, list[bytes]], Awaitable[bytes]] | None = None
    """Sent in place of the normal reply."""
    writers: list[asyncio.StreamWriter] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.writers.append(writer)
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError, ValueError):
            while True:
                command = await _command(reader)
                answer = self.answer_of or FakeRedis.answer
                writer.write(await answer(self, command))
                await writer.drain()
        writer.close()

    async def answer(self, command: list[bytes]) -> bytes:
        name, *rest = command
        value, until_s = self.values.get(rest[0], (None, 0.0)) if rest else (None, 0.0)
        left_s = until_s - time.monotonic()
        if name == b"GET":
            return b"$-1\r\n" if value is None else b"$%d\r\n%s\r\n" % (len(value), value)
        if name == b"PTTL":
            return b":%d\r\n" % (-2 if value is None else left_s * 1000)
        if name == b"SET":
            self.values[rest[0]] = (rest[1], time.monotonic() + int(rest[3]) / 1000)
            return b"+OK\r\n"
        if name in (b"PING", b"CLIENT"):
            return b"+OK\r\n"
        return b"-ERR unknown command\r\n"


async def _command(reader: asyncio.StreamReader) -> list[bytes]:
    parts = []
    for _ in range(int((await reader.readuntil(b"\r\n"))[1:])):
        size = int((await reader.readuntil(b"\r\n"))[1:])
        parts.append((await reader.readexactly(size + 2))[:-2])
    return parts


@contextlib.asynccontextmanager
async def fake_redis(fake: FakeRedis) -> AsyncIterator[str]:
    server = await asyncio.start_server(fake.serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    yield f"redis://127.0.0.1:{port}/0?protocol=2"
    server.close()
    for writer in fake.writers:
        writer.close()


@contextlib.asynccontextmanager
async def real_redis(folder: Path) -> AsyncIterator[str]:
    path = folder / "redis.sock"
    options = {"port": 0, "unixsocket": path, "save": "", "appendonly": "no", "dir": folder}
    arguments = [str(part) for name, value in options.items() for part in (f"--{name}", value)]
    assert SERVER is not None
    process = await asyncio.create_subprocess_exec(
        SERVER, *arguments, stdout=asyncio.subprocess.DEVNULL
    )
    try:
        await until(path.exists)
        yield f"unix://{path}"
    finally:
        process.terminate()
        await process.wait()


@pytest.fixture(params=["fake", "real"] if SERVER else ["fake"])
async def url(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[str]:
    redis = real_redis(tmp_path) if request.param == "real" else fake_redis(FakeRedis())
    async with redis as address:
        yield address


async def test_redis_value_is_shared_until_it_expires(url: str) -> None:
    one, other = RedisStore(url), RedisStore(url)
    value = bytes(range(256)) * 300
    assert await other.get(KEY) is None
    await one.put(KEY, value, 5.0)
    found = await other.get(KEY)
    assert found is not None
    assert found.value == value
    assert 4.0 < found.left_s <= 5.0
    await one.put(KEY, value, 0.001)
    await asyncio.sleep(0.01)
    assert await other.get(KEY) is None
    await one.close()
    await other.close()


async def test_guarded_redis_connects_before_the_first_lookup(url: str) -> None:
    guarded = GuardedStore(RedisStore(url), time.monotonic)
    guarded.start()
    await until(lambda: guarded.enabled)
    guarded.put(KEY, b"value", 60.0)
    await guarded.close()
    guarded = GuardedStore(RedisStore(url), time.monotonic)
    guarded.start()
    await until(lambda: guarded.enabled)
    found = await guarded.get(KEY)
    assert found is not None
    assert (found.value, guarded.failures) == (b"value", 0)
    await guarded.close()


async def hangs(_: FakeRedis, __: list[bytes]) -> bytes:
    await asyncio.sleep(30)
    return b""


async def garbage(_: FakeRedis, __: list[bytes]) -> bytes:
    return b"HTTP/1.1 400 Bad Request\r\n\r\n"


async def cuts(_: FakeRedis, __: list[bytes]) -> bytes:
    raise ConnectionError


async def errors(_: FakeRedis, __: list[bytes]) -> bytes:
    return b"-OOM command not allowed when used memory > 'maxmemory'.\r\n"


async def of_another_type(_: FakeRedis, __: list[bytes]) -> bytes:
    return b"*2\r\n:1\r\n:2\r\n"


@pytest.mark.parametrize("trouble", [hangs, garbage, cuts, errors, of_another_type])
async def test_misbehaving_redis_is_bounded_and_paused(
    trouble: Callable[[FakeRedis, list[bytes]], Awaitable[bytes]],
) -> None:
    fake = FakeRedis()
    async with fake_redis(fake) as url:
        guarded = GuardedStore(RedisStore(url), time.monotonic)
        guarded.start()
        await until(lambda: guarded.enabled)
        fake.answer_of = trouble
        took_s = []
        for _ in range(3):
            began_s = time.perf_counter()
            assert await guarded.get(KEY) is None
            took_s.append(time.perf_counter() - began_s)
        assert min(took_s) < LOOKUP_S + 0.1  # a crowded machine only adds
        assert max(took_s) < 5.0
        assert (guarded.enabled, guarded.failures) == (False, 3)
        await guarded.close()


async def test_lookup_after_a_timeout_gets_its_own_answer() -> None:
    fake = FakeRedis()

    async def slow(one: FakeRedis, command: list[bytes]) -> bytes:
        answer = await one.answer(command)
        await asyncio.sleep(2 * LOOKUP_S)
        return answer

    async with fake_redis(fake) as url:
        guarded = GuardedStore(RedisStore(url), time.monotonic)
        guarded.start()
        await until(lambda: guarded.enabled)
        fake.values = {
            b"headroom:" + key: (key, time.monotonic() + 60.0) for key in (b"one", b"two")
        }
        fake.answer_of = slow
        assert await guarded.get(b"one") is None
        fake.answer_of = None
        found = await guarded.get(b"two")
        assert found is not None
        assert found.value == b"two"
        await guarded.close()


async def test_redis_without_a_listener_is_never_used() -> None:
    guarded = GuardedStore(RedisStore("redis://127.0.0.1:1/0"), time.monotonic)
    guarded.start()
    await asyncio.sleep(0.05)
    assert not guarded.enabled
    await guarded.close()


async def test_pending_redis_writes_are_bounded() -> None:
    fake = FakeRedis()
    async with fake_redis(fake) as url:
        guarded = GuardedStore(RedisStore(url), time.monotonic)
        guarded.start()
        await until(lambda: guarded.enabled)
        for index in range(100):
            guarded.put(b"%d" % index, b"value", 60.0)
        assert 30 <= guarded.unwritten <= 40  # at most 64 at a time
        await guarded.close()


def test_stored_value_has_its_remaining_time() -> None:
    assert StoredValue(b"", 1.5).left_s == 1.5


async def test_replicas_share_answers_through_redis(start: Start, url: str) -> None:
    worlds, levels = [], []
    for _ in range(2):
        level = GuardedStore(RedisStore(url), time.monotonic)
        options = LevelOptions(1 << 20, 60.0, time.monotonic, level)
        worlds.append(await start(cache=Cache("m/1", options)))
        levels.append(level)
        await until(lambda level=level: level.enabled)  # type: ignore[misc]
    one, other = worlds
    for _ in range(2):
        assert (await one.predict([1.0, 2.0])).json() == {"predictions": [3.0]}
    await levels[0].close()
    assert (await other.predict([1.0, 2.0])).json() == {"predictions": [3.0]}
    assert (one.engine.batches, other.engine.batches) == ([1], [])
    seen = await balanced_metrics(other)
    assert seen["headroom_cache_hits_total{redis}"] == 1
    assert (seen["headroom_cache_redis_enabled"], seen["headroom_cache_redis_failures_total"]) == (
        1,
        0,
    )
    await levels[1].close()


async def test_generated_answer_is_shared_by_replicas_until_it_expires(url: str) -> None:
    stores = [GuardedStore(RedisStore(url), time.monotonic) for _ in range(2)]
    one, other = (
        GenerationCache(LevelOptions(1 << 20, 60.0, time.monotonic, store)) for store in stores
    )
    for cache, store in zip((one, other), stores, strict=True):
        cache.start()
        await until(lambda store=store: store.enabled)  # type: ignore[misc]
    answer = (CachedChoice((SampledToken(5), SampledToken(6)), FinishReason.STOP),)
    missed = await one.look(Question(KEY))
    assert missed.hit is None
    missed.keep(answer)
    looked = await one.look(Question(KEY))
    assert looked.hit is not None
    assert (looked.hit.source, looked.hit.answer) == (GeneratedSource.MEMORY, answer)
    async with asyncio.timeout(5):
        while (shared := await other.look(Question(KEY))).hit is None:  # noqa: ASYNC110 - Redis
            await asyncio.sleep(0.01)
    assert (shared.hit.source, shared.hit.answer) == (GeneratedSource.STORE, answer)
    again = await other.look(Question(KEY))
    assert again.hit is not None
    assert again.hit.source is GeneratedSource.MEMORY
    for store in stores:
        await store.close()


async def test_generated_answers_do_without_redis() -> None:
    fake = FakeRedis()
    async with fake_redis(fake) as url:
        store = GuardedStore(RedisStore(url), time.monotonic)
        cache = GenerationCache(LevelOptions(1 << 20, 60.0, time.monotonic, store))
        cache.start()
        await until(lambda: store.enabled)
        fake.answer_of = cuts
        answer = (CachedChoice((SampledToken(5),), FinishReason.STOP),)
        for number in range(4):
            missed = await cache.look(Question(bytes([number]) * 32))
            assert missed.hit is None
            missed.keep(answer)
        looked = await cache.look(Question(bytes([0]) * 32))
        assert looked.hit is not None
        assert looked.hit.source is GeneratedSource.MEMORY
        await until(lambda: not store.enabled)
        assert cache.counts().levels.store_failures
        await store.close()


async def test_sealed_features_are_shared_by_replicas(url: str) -> None:
    def sealed() -> GuardedStore:
        store = SealedStore(RedisStore(url), Seal("0" * 32), time.time)
        return GuardedStore(store, time.monotonic)

    async def compute() -> list[int]:
        return [1, 2, 3]

    async def not_again() -> list[int]:
        raise AssertionError("the other replica has computed it")

    asked = FeatureInput(FeatureKind.TOKENS, "m", "a", "text")
    for step in (compute, not_again):
        store = sealed()
        features = FeatureCache(LevelOptions(1 << 20, 60.0, time.monotonic, store))
        features.start()
        await until(lambda store=store: store.enabled)  # type: ignore[misc]
        assert list(await features.feature(asked, step)) == [1, 2, 3]
        await store.close()
    assert features.counts().by_source[FeatureKind.TOKENS, Source.STORE] == 1
