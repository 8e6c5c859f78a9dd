"""Warm-up, self-test and the emulated device, on a clock that only sleeping moves."""

from __future__ import annotations

from array import array

import pytest

from headroom_server.device.emulated_engine import EmulatedEngine
from headroom_server.device.warming import WarmShape, cold_round, self_test, shapes, warm_rounds
from headroom_server.engine import Work
from headroom_server.repository.model_uri import directory
from headroom_server.signature import Signature
from headroom_server.tensors import TensorSpec
from support.server_world import run

pytestmark = pytest.mark.clock


class Clock:
    """Time passes by sleeping, and each sleep ends `late_s` too late."""

    def __init__(self, late_s: float = 0.0) -> None:
        self.now_s = 100.0
        self.late_s = late_s

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds + self.late_s


def emulated(clock: Clock, fixed_s: float = 0.006) -> EmulatedEngine:
    return EmulatedEngine(
        fixed_cost_s=fixed_s,
        per_item_cost_s=0.0005,
        load_s=2.0,
        input_size=2,
        clock=clock,
        sleep=clock.sleep,
    )


def row(*values: float) -> Work:
    return Work(len(values) // 2, {"x": array("d", values)})


def test_emulated_engine_takes_its_time_and_sums_rows() -> None:
    clock = Clock()
    engine = emulated(clock)
    engine.load()
    assert clock.now_s == pytest.approx(102.0)
    outputs = run(engine, [row(1, 2), row(3, 4, 5, 6)])
    assert [list(one["sum"]) for one in outputs] == [[3.0], [7.0, 11.0]]
    assert clock.now_s == pytest.approx(102.0 + 0.006 + 3 * 0.0005)


def test_emulated_engine_compensates_late_wake_ups() -> None:
    clock = Clock(late_s=0.0002)
    engine = emulated(clock)
    for _ in range(100):
        run(engine, [row(1, 2)])
    assert clock.now_s == pytest.approx(100.0 + 100 * 0.0065, abs=0.0003)


def test_very_late_wake_up_does_not_make_later_batches_free() -> None:
    clock = Clock(late_s=0.5)
    engine = emulated(clock)
    run(engine, [row(1, 2)])
    clock.late_s = 0.0
    began_s = clock.now_s
    run(engine, [row(1, 2)])
    assert clock.now_s - began_s >= 0.0054


def on_warm(
    engine: EmulatedEngine, clock: Clock, max_batch_size: int, requests: int
) -> list[WarmShape]:
    signature = engine.load()
    wanted = shapes(signature, max_batch_size)
    cold = cold_round(engine, signature, wanted, clock=clock, checkpoint=lambda: None)
    return warm_rounds(
        engine, signature, cold, requests=requests, clock=clock, checkpoint=lambda: None
    )


def test_warm_up_executes_every_batch_size_cold_and_timed() -> None:
    clock = Clock()
    warm = on_warm(emulated(clock), clock, max_batch_size=4, requests=1)
    assert [(shape.items, shape.length) for shape in warm] == [(1, 0), (2, 0), (3, 0), (4, 0)]
    for shape in warm:
        expected_s = 0.006 + 0.0005 * shape.items
        assert shape.first_s == pytest.approx(expected_s)
        assert [stages.execute_s for stages in shape.later] == [pytest.approx(expected_s)]
    more = on_warm(emulated(clock), clock, max_batch_size=4, requests=41)
    assert [len(shape.later) for shape in more] == [4] * 4, "10 requests a round, one round cold"


def test_warm_up_executes_every_length() -> None:
    clock = Clock()
    engine = EmulatedEngine(
        fixed_cost_s=0.006,
        per_item_cost_s=0.0005,
        per_token_cost_s=0.0001,
        lengths=(16, 64),
        load_s=0.0,
        input_size=1,
        clock=clock,
        sleep=clock.sleep,
    )
    warm = on_warm(engine, clock, max_batch_size=2, requests=1)
    got = {(shape.items, shape.length): shape.later[0].execute_s for shape in warm}
    # 6 ms + 0.5 ms and 1.6 or 6.4 ms for each item
    assert got == {
        (1, 16): pytest.approx(0.0081),
        (2, 16): pytest.approx(0.0102),
        (1, 64): pytest.approx(0.0129),
        (2, 64): pytest.approx(0.0198),
    }
    works = [Work(1, {"x": array("d", [1, 2, 3])}, 3), Work(2, {"x": array("d", [1, 2, 3, 4])}, 2)]
    assert [list(one["sum"]) for one in run(engine, works, 16)] == [[6.0], [3.0, 7.0]]


def test_emulated_engine_slows_down_after_a_time() -> None:
    clock = Clock()
    engine = EmulatedEngine(
        fixed_cost_s=0.006,
        per_item_cost_s=0.0005,
        load_s=5.0,
        input_size=1,
        slow_after_s=1.0,
        slow_factor=2.0,
        clock=clock,
        sleep=clock.sleep,
    )
    engine.load()
    taken_s = []
    for _ in range(2):
        before_s = clock()
        run(engine, [Work(1, {"x": array("d", [1])})], 0)
        taken_s.append(clock() - before_s)
        clock.sleep(1.0)
    assert taken_s == [pytest.approx(0.0065), pytest.approx(0.013)]


def test_warm_up_executes_only_the_models_batch_sizes() -> None:
    x, y = (TensorSpec("x", "FP64", (2,)),), (TensorSpec("y", "FP64"),)
    signature = Signature(x, y, batches=(1, 2, 4, 8))
    assert shapes(signature, 4) == [(1, 0), (2, 0), (4, 0)]
    assert shapes(signature, 3) == [(1, 0), (2, 0), (4, 0)], "three are padded to four"
    with pytest.raises(ValueError, match="a batch must be from 1 to 8; got 9"):
        shapes(signature, 9)


@pytest.mark.parametrize(("max_latency_s", "passed"), [(0.0066, True), (0.0064, False)])
def test_self_test_compares_p95_with_the_maximum(max_latency_s: float, passed: bool) -> None:
    clock = Clock()
    engine = emulated(clock)
    result = self_test(
        engine,
        engine.load(),
        requests=16,
        max_latency_s=max_latency_s,
        clock=clock,
        checkpoint=lambda: None,
    )
    assert result.p95_s == pytest.approx(0.0065)
    assert result.passed is passed


@pytest.mark.parametrize(
    ("single_s", "expected"), [(0.01, 16), (0.21, 5), (3.0, 4)], ids=["fast", "heavy", "very slow"]
)
def test_self_test_of_a_slow_model_takes_about_a_second(single_s: float, expected: int) -> None:
    clock = Clock()
    engine = emulated(clock, fixed_s=single_s)
    on_self_test = 0

    def count() -> None:
        nonlocal on_self_test
        on_self_test += 1

    self_test(engine, engine.load(), requests=16, max_latency_s=9.0, clock=clock, checkpoint=count)
    assert on_self_test == expected


@pytest.mark.parametrize(
    ("uri", "path"),
    [
        ("", None),
        ("file:///data/resnet", "/data/resnet"),
        ("pvc://models/resnet50", "/models/resnet50"),
        ("pvc://models", "/models"),
    ],
)
def test_model_uri_is_a_directory_of_the_container(uri: str, path: str | None) -> None:
    got = directory(uri)
    assert (None if got is None else str(got)) == path


@pytest.mark.parametrize(
    "uri",
    ["s3://b/m", "/data", "file://host/data", "pvc:///m", "pvc://c/../x", "file:///a/%2e%2e/b"],
)
def test_other_model_uri_is_refused(uri: str) -> None:
    with pytest.raises(ValueError, match=r"a model URI .*got"):
        directory(uri)
