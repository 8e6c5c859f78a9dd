"""What fronts and the device process say to each other, and where large tensors lie meanwhile."""

from __future__ import annotations

from array import array
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom_server.datatypes import Numbers
from headroom_server.errors import (
    AbandonedError,
    DisconnectedError,
    ExpiredError,
    FailedError,
    QueueFullError,
    RefusedError,
    RequestError,
    UnknownModelError,
)
from headroom_server.fronts import catalogue, wire
from headroom_server.fronts.arena import GRAIN_BYTES, Arena, rounded
from headroom_server.fronts.catalogue import Known
from headroom_server.fronts.client_connection import Bounds
from headroom_server.fronts.frames import Frames, Kind, frame
from headroom_server.fronts.front import Opening
from headroom_server.fronts.wire import Blob, Submit
from headroom_server.scheduling.terms import SloClass, Terms
from headroom_server.tensors import Signature, TensorSpec

KEYS = st.integers(0, 2**64 - 1)
BLOBS = st.one_of(
    st.lists(st.binary(max_size=20), max_size=5).map(
        lambda parts: Blob(tuple(map(len, parts)), wire.INLINE, b"".join(parts))
    ),
    st.builds(
        Blob,
        st.lists(st.integers(0, 2**32 - 1), max_size=5).map(tuple),
        st.integers(0, 2**62),
        st.just(b""),
    ),
)
TERMS = st.builds(
    Terms,
    st.none() | st.floats(0, 86_400, allow_nan=False),
    st.integers(0, 9),
    st.text(st.characters(max_codepoint=127), max_size=128),
)
SUBMITS = st.builds(
    Submit,
    KEYS,
    st.integers(0, 2**32 - 1),
    st.floats(0, 1e9),
    TERMS,
    st.integers(1, 1024),
    st.integers(0, 2**31),
    BLOBS,
)


def payload(frame: bytes) -> bytes:
    ((_, found),) = Frames().feed(frame)
    return found


@given(SUBMITS)
@settings(max_examples=30)
def test_a_request_is_read_as_it_was_written(said: Submit) -> None:
    assert wire.read_submit(payload(wire.submit(said))) == said


@given(KEYS, BLOBS, st.floats(0, 1e9))
@settings(max_examples=30)
def test_outputs_visits_and_keys_are_read_as_they_were_written(
    key: int, blob: Blob, retire_at_s: float
) -> None:
    assert wire.read_outputs(payload(wire.outputs(key, blob))) == (key, blob)
    found = wire.read_visit(payload(wire.visit(key, retire_at_s, blob)))
    assert found == (key, retire_at_s, blob)
    assert wire.read_key(payload(wire.cancel(key))) == key


@given(st.lists(st.tuples(st.sampled_from(Kind), st.binary(max_size=40))), st.data())
@settings(max_examples=30)
def test_frames_are_the_same_however_the_stream_is_cut(
    said: list[tuple[Kind, bytes]], data: st.DataObject
) -> None:
    stream = b"".join(frame(kind, content) for kind, content in said)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    frames = Frames()
    found: list[tuple[int, bytes]] = []
    for begin, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        found += frames.feed(stream[begin:end])
    assert found == [(int(kind), content) for kind, content in said]


def test_a_kind_that_there_is_not_is_an_error() -> None:
    with pytest.raises(ValueError, match="a kind of frame from 1 to 11; got 12"):
        Frames().feed(b"\x00\x00\x00\x00\x0c")


@pytest.mark.parametrize(
    ("error", "status", "retry_after_s"),
    [
        (FailedError("the device failed"), 500, None),
        (RefusedError("not ready", retry_after_s=1), 503, 1),
        (QueueFullError("at most 8 items", retry_after_s=30), 429, 30),
        (ExpiredError("the deadline passed"), 504, None),
        (AbandonedError("the server stopped"), 503, None),
        (UnknownModelError("this server serves 'm'; got 'ö'"), 404, None),
        (DisconnectedError(), 499, None),
    ],
)
def test_an_error_comes_back_as_what_it_was(
    error: RequestError, status: int, retry_after_s: int | None
) -> None:
    key, found = wire.read_error(payload(wire.error(7, error)))
    assert (key, type(found), found.message) == (7, type(error), error.message)
    assert found.status == status
    assert getattr(found, "retry_after_s", None) == retry_after_s


def test_small_things_are_read_as_they_were_written() -> None:
    assert wire.read_state(payload(wire.state(draining=True, crowded=False))) == (True, False)
    assert wire.read_invalid(payload(wire.invalid(3, "not_json"))) == (3, "not_json")
    assert wire.read_release(payload(wire.release(Blob((3, 4), 128)))) == (128, 7)
    opening = Opening(wire.VERSION, 3, 4, 5, 6, 7, Bounds(1024, 15.0, 120.0))
    assert Opening.loads(opening.dumps()) == opening
    with pytest.raises(ValueError, match=f"wire version {wire.VERSION}; got 99"):
        Opening.loads(opening._replace(wire_version=99).dumps())


def test_tensors_are_the_same_on_the_other_side() -> None:
    specs = (TensorSpec("x", "FP64", (2,)), TensorSpec("s", "BYTES"))
    tensors: dict[str, Numbers] = {
        "s": array("B", b"\x01\x00\x00\x00a"),
        "x": array("d", [1.5, -2.0]),
    }
    parts = [memoryview(part) for part in wire.in_order(specs, tensors)]
    assert [len(part) for part in parts] == [16, 5]
    assert wire.by_name(specs, parts) == tensors


def test_a_catalogue_is_read_as_it_was_written() -> None:
    plain = Signature(inputs=(TensorSpec("x", "FP64", (2,)),), outputs=(TensorSpec("sum", "FP64"),))
    dynamic = Signature(
        inputs=(TensorSpec("ids", "INT64", (-1,)),),
        outputs=(TensorSpec("y", "FP32", (-1, 8)),),
        lengths=(16, 64),
        batches=(1, 8),
        mask=TensorSpec("mask", "INT64", (-1,)),
    )
    models = [
        Known(0, "m", "1", True, 8, {}, plain),
        Known(4, "b", "12", False, 8, {"default": SloClass(3, 0.5)}, dynamic),
    ]
    assert catalogue.loads(catalogue.dumps(models)) == models


# ---- the arena


def test_blocks_are_taken_first_fit_and_given_back_in_any_order() -> None:
    arena = Arena.of(4 * GRAIN_BYTES)
    places = []
    for size in (1, GRAIN_BYTES, GRAIN_BYTES + 1):
        taken = arena.take(size)
        assert taken is not None
        arena, begin = taken
        places.append(begin)
    assert places == [0, 64, 128]
    assert arena.holes == ()
    assert arena.take(0) is None
    arena = arena.give(64, 64)
    assert arena.holes == ((64, 128),)
    assert arena.take(65) is None
    arena = arena.give(128, 65).give(0, 1)
    assert arena == Arena.of(256)
    with pytest.raises(ValueError, match="partly free"):
        arena.give(0, 1)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 9)), max_size=60))
@settings(max_examples=30)
def test_blocks_never_overlap_and_nothing_is_lost(steps: list[tuple[int, int]]) -> None:
    arena = Arena.of(16 * GRAIN_BYTES)
    held: list[tuple[int, int]] = []
    for size, which in steps:
        taken = arena.take(size)
        if taken is not None and which < 6:
            arena, begin = taken
            held.append((begin, size))
        elif held:
            arena = arena.give(*held.pop(which % len(held)))
        used = [(begin, begin + rounded(size)) for begin, size in held]
        spans = sorted([*used, *arena.holes])
        assert spans[0][0] == 0
        assert spans[-1][1] == 16 * GRAIN_BYTES
        assert all(a[1] == b[0] for a, b in pairwise(spans))
    for block in held:
        arena = arena.give(*block)
    assert arena == Arena.of(16 * GRAIN_BYTES)
