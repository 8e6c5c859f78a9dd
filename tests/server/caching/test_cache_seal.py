"""Sealed values in a shared store: only holders of the secret make answers."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom_server.caching.seal import DIGEST_BYTES, Opened, Seal
from headroom_server.caching.sealed_store import SealedStore
from headroom_server.caching.store import StoredValue
from headroom_server.engine import LoadError
from headroom_server.runtime.caches import second_level_of
from headroom_server.settings import Settings

SECRET = "s3cret-of-thirty-two-characters!"
SEAL = Seal(SECRET)
KEY, OTHER = bytes(range(32)), bytes(32)


@given(st.binary(max_size=100), st.integers(0, 2**40), st.data())
def test_sealed_value_opens_for_its_name_and_no_changed_bit(
    value: bytes, until_s: int, data: st.DataObject
) -> None:
    name = SEAL.name(KEY)
    sealed = SEAL.sealed(name, value, until_s)
    assert SEAL.opened(name, sealed) == Opened(value, until_s)
    at = data.draw(st.integers(0, len(sealed) * 8 - 1))
    changed = bytearray(sealed)
    changed[at // 8] ^= 1 << at % 8
    assert SEAL.opened(name, bytes(changed)) is None
    assert SEAL.opened(name, sealed[: data.draw(st.integers(0, len(sealed) - 1))]) is None
    assert SEAL.opened(SEAL.name(OTHER), sealed) is None
    stranger = Seal(SECRET + "x")
    assert stranger.opened(name, sealed) is None
    assert stranger.name(KEY) != name


def test_digest_of_a_name_is_not_the_digest_of_a_value() -> None:
    """Otherwise what is stored under a name would show how to seal something."""
    name = SEAL.name(KEY)
    assert SEAL.sealed(b"", b"", 0.0)[:DIGEST_BYTES] != SEAL.name(bytes(8))
    assert SEAL.opened(name, name + bytes(8)) is None


@dataclass
class Memory:
    values: dict[bytes, bytes] = field(default_factory=dict)
    left_s: float = 60.0

    async def get(self, key: bytes) -> StoredValue | None:
        found = self.values.get(key)
        return None if found is None else StoredValue(found, self.left_s)

    async def put(self, key: bytes, value: bytes, ttl_s: float) -> None:
        self.values[key] = value

    async def ping(self) -> None: ...

    async def close(self) -> None: ...


async def test_sealed_store_returns_what_it_stored_and_hides_the_key() -> None:
    memory = Memory()
    store = SealedStore(memory, SEAL, lambda: 1000.0)
    await store.put(KEY, b"value", 30.0)
    assert await store.get(KEY) == StoredValue(b"value", 30.0)
    assert await store.get(OTHER) is None
    assert KEY not in memory.values


@pytest.mark.parametrize(
    "written", [b"", b"value", bytes(64), Seal(SECRET[::-1]).sealed(SEAL.name(KEY), b"value", 1e9)]
)
async def test_sealed_store_with_a_value_of_another_key_raises(written: bytes) -> None:
    store = SealedStore(Memory({SEAL.name(KEY): written}), SEAL, lambda: 1000.0)
    with pytest.raises(ValueError, match="without HEADROOM_CACHE_REDIS_KEY"):
        await store.get(KEY)


async def test_sealed_store_with_a_value_moved_from_another_key_raises() -> None:
    memory = Memory()
    store = SealedStore(memory, SEAL, lambda: 1000.0)
    await store.put(OTHER, b"value", 30.0)
    memory.values[SEAL.name(KEY)] = memory.values[SEAL.name(OTHER)]
    with pytest.raises(ValueError, match="without HEADROOM_CACHE_REDIS_KEY"):
        await store.get(KEY)


async def test_sealed_store_with_a_value_that_was_put_back_ends_it_in_time() -> None:
    memory, now_s = Memory(left_s=1e9), 1000.0
    store = SealedStore(memory, SEAL, lambda: now_s)
    await store.put(KEY, b"value", 30.0)
    now_s = 1031.0
    assert await store.get(KEY) is None


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        pytest.param(
            {"cache_redis_url": "redis://host", "cache_redis_key": SECRET},
            "HEADROOM_CACHE_REDIS_URL must have a password",
            id="no password",
        ),
        pytest.param(
            {"cache_redis_url": "redis://:hidden@host"},
            "HEADROOM_CACHE_REDIS_KEY must have at least 32 characters; got 0",
            id="no key",
        ),
        pytest.param(
            {"cache_redis_url": "rediss://:hidden@host", "cache_redis_key": "hidden"},
            "HEADROOM_CACHE_REDIS_KEY must have at least 32 characters; got 6",
            id="a short key",
        ),
        pytest.param(
            {
                "cache_redis_url": "redis://host",
                "cache_redis_key": "hidden",
                "cache_redis_trusted": True,
            },
            "HEADROOM_CACHE_REDIS_KEY must have at least 32 characters; got 6",
            id="trusted, and a short key",
        ),
    ],
)
def test_unprotected_redis_is_refused(settings: dict[str, object], said: str) -> None:
    with pytest.raises(LoadError) as caught:
        second_level_of(Settings.model_validate(settings))
    assert said in str(caught.value)
    assert "HEADROOM_CACHE_REDIS_TRUSTED=true" in str(caught.value)
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize(
    "settings",
    [
        {"cache_redis_url": "redis://:pw@host", "cache_redis_key": SECRET},
        {"cache_redis_url": "redis://host?password=pw", "cache_redis_key": SECRET},
        {"cache_redis_url": "unix:///run/redis.sock", "cache_redis_key": SECRET},
        {"cache_redis_url": "redis://host", "cache_redis_trusted": True},
    ],
)
async def test_protected_or_trusted_redis_is_used(settings: dict[str, object]) -> None:
    level = second_level_of(Settings.model_validate(settings))
    assert level is not None
    assert SECRET not in repr(Settings.model_validate(settings))
    await level.close()
