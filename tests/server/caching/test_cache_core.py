"""The cache's pure parts: eviction, expiry, keys, encoding, and the circuit breaker."""

from __future__ import annotations

import tracemalloc
from array import array
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.caching.breaker import LONGEST_PAUSE_S, Breaker
from headroom_server.caching.keys import Keys
from headroom_server.caching.lru import CachedValue, Lru
from headroom_server.caching.values import decoded, encoded, size_of
from headroom_server.engine import Work
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from headroom_server.typed_arrays import Numbers

TWO = Signature(
    inputs=(TensorSpec("a", "FP32", (2,)), TensorSpec("b", "INT64", (-1,))),
    outputs=(TensorSpec("y", "FP32", (2,)), TensorSpec("z", "INT64", (-1,))),
    lengths=(4,),
)


def two(a: list[float], b: list[int], length: int = 0) -> Work:
    return Work(len(a) // 2, {"a": array("f", a), "b": array("q", b)}, length or len(b))


def test_lru_evicts_least_recently_used_within_byte_limit() -> None:
    lru: Lru[str] = Lru(max_bytes=30)
    for key in (b"a", b"b", b"c"):
        lru.put(key, CachedValue(key.decode(), 10, 100.0), 0.0)
    assert lru.get(b"a", 0.0) == "a"
    lru.put(b"d", CachedValue("d", 15, 100.0), 0.0)  # 45 of 30: b and c, used before a, go
    assert [lru.get(key, 0.0) for key in (b"a", b"b", b"c", b"d")] == ["a", None, None, "d"]
    assert (lru.size, len(lru), lru.evicted) == (25, 2, 2)


def test_lru_value_expires_and_is_replaced() -> None:
    lru: Lru[str] = Lru(max_bytes=30)
    lru.put(b"a", CachedValue("old", 10, 5.0), 0.0)
    assert (lru.get(b"a", 4.9), lru.get(b"a", 5.0), lru.size) == ("old", None, 0)
    lru.put(b"a", CachedValue("old", 10, 5.0), 0.0)
    lru.put(b"a", CachedValue("new", 20, 9.0), 0.0)
    assert (lru.get(b"a", 8.0), lru.size, lru.evicted) == ("new", 20, 0)


def test_lru_value_above_the_limit_is_not_stored() -> None:
    lru: Lru[str] = Lru(max_bytes=30)
    lru.put(b"a", CachedValue("a", 10, 5.0), 0.0)
    lru.put(b"b", CachedValue("b", 31, 5.0), 0.0)
    assert (lru.get(b"a", 0.0), lru.get(b"b", 0.0)) == ("a", None)


def test_new_values_of_a_tenant_leave_another_what_it_uses() -> None:
    lru: Lru[int] = Lru(max_bytes=100)
    lru.put(b"steady", CachedValue(1, 10, 1e9, "steady"), 0.0)
    for number in range(1000):
        lru.put(number.to_bytes(4), CachedValue(number, 10, 1e9, "flood"), 0.0)
        if number % 20 == 0:
            assert lru.get(b"steady", 0.0) == 1
    assert (lru.size, len(lru)) == (100, 10)


def test_expired_value_of_another_tenant_makes_room_at_once() -> None:
    lru: Lru[int] = Lru(max_bytes=30)
    lru.put(b"old", CachedValue(0, 10, 5.0, "small"), 0.0)
    for key in (b"a", b"b"):
        lru.put(key, CachedValue(1, 10, 9.0, "large"), 4.0)
    lru.put(b"c", CachedValue(2, 10, 9.0, "large"), 5.0)
    assert [lru.get(key, 5.0) is None for key in (b"old", b"a", b"b", b"c")] == [True] + [False] * 3


@settings(max_examples=200)
@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"a", b"b", b"c", b"d"]),
            st.none() | st.integers(1, 12),
            st.integers(0, 3),
        ),
        max_size=40,
    )
)
def test_lru_behaves_like_a_list_in_order_of_use(
    steps: list[tuple[bytes, int | None, int]],
) -> None:
    """Each step looks up (None) or stores a value of this size, fresh for 5 s, after this time."""
    lru: Lru[int] = Lru(max_bytes=20)
    model: list[tuple[bytes, int, float]] = []
    now_s = 0.0
    for key, size, later in steps:
        now_s += later
        known = next((one for one in model if one[0] == key), None)
        model = [one for one in model if one[0] != key]
        if size is None:
            fresh = known is not None and known[2] > now_s
            model += [known] if fresh and known else []
            assert lru.get(key, now_s) == (known[1] if fresh and known else None)
        else:
            lru.put(key, CachedValue(size, size, now_s + 5), now_s)
            model.append((key, size, now_s + 5))
            while sum(one[1] for one in model) > 20:
                model.pop(0)
        assert lru.size == sum(one[1] for one in model) <= 20


def test_cache_size_covers_held_memory() -> None:
    count = 1000
    lru: Lru[Mapping[str, Numbers]] = Lru(max_bytes=1 << 30)
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    for index in range(count):
        outputs: dict[str, Numbers] = {"y": array("f", bytes(400)), "z": array("q", bytes(80))}
        key = index.to_bytes(32, "little")
        lru.put(key, CachedValue(outputs, size_of(outputs), float(index)), 0.0)
    grown = tracemalloc.get_traced_memory()[0] - before
    tracemalloc.stop()
    assert 0.7 * lru.size < grown < lru.size


SAME = two([1, 2], [3, 4])


@pytest.mark.parametrize(
    ("identity", "signature", "work", "same"),
    [
        ("m/1", TWO, two([1, 2], [3, 4]), True),
        ("m/2", TWO, SAME, False),
        ("m/1", Signature(TWO.inputs, TWO.outputs, (8,)), SAME, False),
        ("m/1", TWO, two([1, 3], [3, 4]), False),
        ("m/1", TWO, two([1, 2], [4, 3]), False),
        ("m/1", TWO, two([1, 2], [3, 4, 0]), False),
        ("m/1", TWO, Work(2, SAME.inputs, 1), False),
        ("m/1", TWO, two([1, -0.0], [3, 4]), False),
    ],
    ids=[
        "the same numbers",
        "another version",
        "another signature",
        "another number",
        "another order",
        "padded by the client",
        "other items of the same bytes",
        "another zero",
    ],
)
def test_key_is_equal_for_equal_model_and_numbers(
    identity: str, signature: Signature, work: Work, same: bool
) -> None:
    key = Keys("m/1", TWO).key(SAME)
    assert len(key) == 32
    assert (Keys(identity, signature).key(work) == key) is same


def test_key_ignores_the_order_of_inputs() -> None:
    turned = Work(SAME.items, dict(reversed([*SAME.inputs.items()])), SAME.length)
    assert Keys("m", TWO).key(turned) == Keys("m", TWO).key(SAME)


OUTPUTS: dict[str, Numbers] = {"y": array("f", [0.5, -2]), "z": array("q", [7, -(2**62)])}


def test_encoded_value_round_trips() -> None:
    key = bytes(32)
    assert decoded(key, encoded(key, OUTPUTS, TWO.outputs), SAME, TWO.outputs) == OUTPUTS


@given(st.binary(max_size=60))
def test_foreign_bytes_are_not_a_value(value: bytes) -> None:
    assert decoded(bytes(32), value, SAME, TWO.outputs) is None


@pytest.mark.parametrize("at", [0, 15, 16, 30])
def test_damaged_value_is_ignored(at: int) -> None:
    value = bytearray(encoded(bytes(32), OUTPUTS, TWO.outputs))
    value[at] ^= 1
    assert decoded(bytes(32), bytes(value), SAME, TWO.outputs) is None
    assert decoded(bytes(32), bytes(value[:-1]), SAME, TWO.outputs) is None


def test_value_of_another_key_or_shape_is_ignored() -> None:
    value = encoded(bytes(32), OUTPUTS, TWO.outputs)
    assert decoded(bytes(31) + b"1", value, SAME, TWO.outputs) is None
    assert decoded(bytes(32), value, two([1, 2], [3, 4, 5]), TWO.outputs) is None
    assert decoded(bytes(32), value, two([1, 2], [3]), TWO.outputs) is None


def test_breaker_starts_open() -> None:
    breaker = Breaker()
    assert (breaker.closed, breaker.probe(0.0), breaker.probe(9.0)) == (False, True, False)
    breaker.probed(9.5, ok=True)
    assert (breaker.closed, breaker.probe(10.0)) == (True, False)


def test_breaker_opens_after_three_failures_in_a_row() -> None:
    breaker = closed()
    assert [breaker.failed(0.0), breaker.failed(0.1)] == [False, False]
    breaker.answered()
    assert [breaker.failed(0.2), breaker.failed(0.3), breaker.failed(0.4)] == [False, False, True]
    assert not breaker.closed
    assert (breaker.probe(1.3), breaker.probe(1.4)) == (False, True)


def test_breaker_pause_ignores_failures_of_earlier_lookups() -> None:
    breaker = closed()
    assert [breaker.failed(at_s) for at_s in (0.0, 0.0, 0.0, 0.5, 0.9)].count(True) == 1
    assert breaker.probe(1.0)


def test_breaker_pause_grows_if_only_probes_succeed() -> None:
    breaker, now_s, pauses = closed(), 0.0, []
    for _ in range(7):
        for _ in range(3):
            breaker.failed(now_s)
        opened_s = now_s
        while not breaker.probe(now_s):
            now_s += 0.5
        pauses.append(now_s - opened_s)
        breaker.probed(now_s, ok=True)
    assert pauses == [1, 2, 4, 8, 16, LONGEST_PAUSE_S, LONGEST_PAUSE_S]
    breaker.answered()
    for _ in range(3):
        breaker.failed(now_s)
    assert breaker.probe(now_s + 1.0)


def closed() -> Breaker:
    breaker = Breaker()
    assert breaker.probe(0.0)
    breaker.probed(0.0, ok=True)
    return breaker
