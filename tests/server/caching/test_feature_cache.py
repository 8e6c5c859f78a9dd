"""Features: one computation per key, leaders that fail or leave, bounds, the second level."""

from __future__ import annotations

import asyncio
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import combinations

import pytest

from headroom_server.caching.feature_values import (
    MAX_VALUE_BYTES,
    FeatureInput,
    FeatureKind,
    Numbers,
    decoded,
    encoded,
    key_of,
    numbers_of,
    size_of,
)
from headroom_server.caching.features import (
    MAX_FOLLOWERS,
    CachedEmbedder,
    FeatureCache,
)
from headroom_server.caching.flights import Source
from headroom_server.caching.levels import LevelOptions
from headroom_server.caching.store import ByteStore, GuardedStore, StoredValue
from headroom_server.errors import DisconnectedError
from support.memory_store import DOWN, MemoryStore
from support.server_world import until

pytestmark = pytest.mark.clock

ASKED = FeatureInput(FeatureKind.TOKENS, "m", "a", "text")
OTHERS = [
    ASKED._replace(kind=FeatureKind.EMBEDDING),
    ASKED._replace(identity="n"),
    ASKED._replace(tenant="b"),
    ASKED._replace(text="texts"),
]


@dataclass
class Computing:
    """Each computation waits for its result from the test."""

    begun: list[asyncio.Future[Sequence[int]]] = field(default_factory=list)

    async def __call__(self) -> Sequence[int]:
        self.begun.append(asyncio.get_running_loop().create_future())
        return await self.begun[-1]

    async def until_begun(self, count: int) -> None:
        await until(lambda: len(self.begun) == count)


@dataclass
class Bench:
    """A cache whose time the test sets."""

    max_bytes: int = 1 << 20
    store: ByteStore | None = None
    now_s: float = 0.0

    def __post_init__(self) -> None:
        clock = lambda: self.now_s  # noqa: E731
        self.guarded = None if self.store is None else GuardedStore(self.store, clock)
        self.cache = FeatureCache(LevelOptions(self.max_bytes, 60.0, clock, self.guarded))
        self.computing = Computing()

    async def connected(self) -> Bench:
        guarded = self.guarded
        assert guarded is not None
        self.cache.start()
        await until(lambda: guarded.enabled)
        return self

    def ask(self, asked: FeatureInput = ASKED) -> asyncio.Task[Numbers]:
        return asyncio.create_task(self.cache.feature(asked, self.computing))

    async def at_once(self, asked: FeatureInput, numbers: Sequence[int]) -> Numbers:
        async def compute() -> Sequence[int]:
            return numbers

        return await self.cache.feature(asked, compute)

    def sources(self) -> dict[str, int]:
        counts: dict[str, int] = {}
        for (_, source), count in self.cache.counts().by_source.items():
            counts[str(source)] = counts.get(str(source), 0) + count
        return {source: count for source, count in counts.items() if count}


async def turns(count: int = 5) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


# ---- keys and values


def test_kind_model_tenant_and_text_are_the_key() -> None:
    keys = [key_of(one) for one in (ASKED, *OTHERS)]

    assert all(one != other for one, other in combinations(keys, 2))
    assert key_of(ASKED._replace()) == keys[0]


@pytest.mark.parametrize("kind", FeatureKind)
def test_a_value_survives_the_store_and_a_damaged_one_is_ignored(kind: FeatureKind) -> None:
    numbers, key = numbers_of(kind, [1, 2, 3]), key_of(ASKED)
    value = encoded(key, numbers)

    assert decoded(key, kind, value) == numbers
    for damaged in (b"", b"x" * 40, value[:-1], encoded(key_of(OTHERS[0]), numbers)):
        assert decoded(key, kind, damaged) is None


# ---- one process


async def test_equal_inputs_are_computed_once_and_kept_until_they_expire() -> None:
    bench = Bench()
    equal = [bench.ask() for _ in range(20)]
    await turns()
    assert len(bench.computing.begun) == 1
    bench.computing.begun[0].set_result([1, 2])
    assert await asyncio.gather(*equal) == [array("I", [1, 2])] * 20
    bench.now_s = 59.9
    assert await bench.ask() == array("I", [1, 2])
    assert bench.sources() == {"computed": 1, "flight": 19, "memory": 1}
    bench.now_s = 60.0
    assert await bench.at_once(ASKED, [3]) == array("I", [3])
    assert bench.cache.running == 0


@pytest.mark.parametrize("other", OTHERS)
async def test_what_differs_is_computed_apart(other: FeatureInput) -> None:
    bench = Bench()
    assert list(await bench.at_once(ASKED, [1])) == [1]
    assert list(await bench.at_once(other, [2])) == [2]
    assert list(await bench.at_once(ASKED, [3])) == [1]


async def test_after_a_failure_each_follower_computes_and_nothing_of_it_is_kept() -> None:
    bench = Bench()
    asking = [bench.ask() for _ in range(3)]
    await turns()
    bench.computing.begun[0].set_exception(OSError("down"))
    await bench.computing.until_begun(3)
    bench.computing.begun[1].set_exception(OSError("down"))
    assert bench.cache.counts().levels.entries == 0
    bench.computing.begun[2].set_result([1])
    ends = await asyncio.gather(*asking, return_exceptions=True)
    assert [type(end) for end in ends] == [OSError, OSError, array]
    assert bench.cache.running == 0


@pytest.mark.parametrize("leaves", ["cancelled", "disconnected"])
async def test_a_leader_that_leaves_hands_over_to_one_follower(leaves: str) -> None:
    bench = Bench()
    leader, *followers = [bench.ask() for _ in range(4)]
    await turns()
    if leaves == "cancelled":
        leader.cancel()
    else:
        bench.computing.begun[0].set_exception(DisconnectedError())
    await bench.computing.until_begun(2)
    await turns()
    assert len(bench.computing.begun) == 2
    bench.computing.begun[1].set_result([1])
    assert await asyncio.gather(*followers) == [array("I", [1])] * 3
    assert leader.done()
    assert bench.cache.running == 0
    await asyncio.gather(leader, return_exceptions=True)


async def test_a_follower_that_is_cancelled_when_it_is_to_lead_passes_it_on() -> None:
    bench = Bench()
    leader, second, third = [bench.ask() for _ in range(3)]
    await turns()
    bench.computing.begun[0].set_exception(DisconnectedError())
    # after the leader's turn, which hands over, and before that of the follower
    asyncio.get_running_loop().call_soon(second.cancel)
    await bench.computing.until_begun(2)
    bench.computing.begun[1].set_result([1])
    assert await third == array("I", [1])
    ends = await asyncio.gather(leader, second, return_exceptions=True)
    assert [type(end) for end in ends] == [DisconnectedError, asyncio.CancelledError]
    assert bench.cache.running == 0


async def test_all_that_wait_may_be_cancelled() -> None:
    bench = Bench()
    asking = [bench.ask() for _ in range(3)]
    await turns()
    for one in asking:
        one.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    assert bench.cache.running == 0
    assert list(await bench.at_once(ASKED, [1])) == [1]


async def test_followers_are_bounded() -> None:
    bench = Bench()
    asking = [bench.ask() for _ in range(MAX_FOLLOWERS + 3)]
    await turns()
    assert len(bench.computing.begun) == 3
    for one in bench.computing.begun:
        one.set_result([1])
    await asyncio.gather(*asking)
    assert bench.sources() == {"computed": 3, "flight": MAX_FOLLOWERS}


async def test_memory_is_bounded_in_bytes() -> None:
    each = size_of(numbers_of(FeatureKind.TOKENS, range(100)))
    bench = Bench(max_bytes=3 * each)
    for number in range(5):
        await bench.at_once(ASKED._replace(text=str(number)), range(100))
        assert bench.cache.counts().levels.size <= 3 * each
    counts = bench.cache.counts()
    assert (counts.levels.entries, counts.levels.size, counts.levels.evicted) == (3, 3 * each, 2)


async def test_large_features_are_returned_and_not_kept() -> None:
    store = MemoryStore()
    bench = await Bench(store=store).connected()
    assert len(await bench.at_once(ASKED, range(MAX_VALUE_BYTES // 4 + 1))) > MAX_VALUE_BYTES // 4
    await turns()
    assert (bench.cache.counts().levels.entries, store.values) == (0, {})


# ---- the second level


async def test_replicas_share_features_and_their_age() -> None:
    store = MemoryStore()
    one, other = await Bench(store=store).connected(), await Bench(store=store).connected()
    await one.at_once(ASKED, [1, 2])
    await until(lambda: bool(store.values))
    store.values = {key: replace_left(found) for key, found in store.values.items()}
    equal = [other.ask() for _ in range(3)]
    assert await asyncio.gather(*equal) == [array("I", [1, 2])] * 3
    assert other.sources() == {"redis": 1, "flight": 2}
    other.now_s, store.values = 2.0, {}
    assert list(await other.at_once(ASKED, [9])) == [9]


def replace_left(found: StoredValue) -> StoredValue:
    return found._replace(left_s=2.0)


async def test_a_damaged_value_costs_one_computation() -> None:
    store = MemoryStore()
    store.values[key_of(ASKED)] = StoredValue(b"garbage", 60.0)
    bench = await Bench(store=store).connected()
    assert list(await bench.at_once(ASKED, [1])) == [1]


async def test_without_redis_the_process_level_serves() -> None:
    store = MemoryStore()
    bench = await Bench(store=store).connected()
    store.error = DOWN
    for number in range(4):
        await bench.at_once(ASKED._replace(text=str(number)), [number])
    assert bench.guarded is not None
    assert not bench.guarded.enabled
    for number in range(4):
        assert list(await bench.at_once(ASKED._replace(text=str(number)), [9])) == [number]
    assert bench.sources() == {"computed": 4, "memory": 4}
    assert bench.cache.counts().levels.store_failures


# ---- embeddings


async def test_a_text_is_embedded_once_per_tenant() -> None:
    asked: list[str] = []

    async def embed(text: str) -> Sequence[float]:
        asked.append(text)
        await asyncio.sleep(0)
        return [0.5, 0.25]

    bench = Bench()
    embedder = CachedEmbedder(bench.cache, "e", embed)
    found = await asyncio.gather(*(embedder("q", "a") for _ in range(5)))
    found += [await embedder("q", "a"), await embedder("q", "b")]

    assert found == [array("f", [0.5, 0.25])] * 7
    assert asked == ["q", "q"]
    assert bench.cache.counts().by_source[FeatureKind.EMBEDDING, Source.MEMORY] == 1
