"""The device's thread with engines that fail, run out of memory, or take long on the host."""

from __future__ import annotations

import time

import pytest

from headroom_server.device.batches import ExecutedBatch
from headroom_server.device.lookahead import worth_staging
from headroom_server.device.pipeline import pays, pays_mostly
from headroom_server.device.warming import WarmShape
from headroom_server.engine import DeviceLostError, OutOfMemoryError, StageTimes, Work
from headroom_server.lifecycle import Phase
from headroom_server.scheduling.entries import SealedBatch
from support.device_thread import POISON, Echo, World, started, together, values

pytestmark = pytest.mark.clock


@pytest.mark.parametrize("step", ["stage", "execute", "finish"])
@pytest.mark.parametrize("host_s", [0.0, 0.002], ids=["inline", "pipelined"])
def test_bad_request_fails_alone(step: str, host_s: float) -> None:
    with started(Echo(fails_in=step, stage_s=host_s, finish_s=host_s)) as world:
        assert world.thread.pipelined is (host_s > 0)
        together(world, 1, 2, 3, POISON, 5, 6, 7, 8)
        world.until(lambda: len(world.ended()) == 9)
        assert world.ended() == {
            100: "ok", 1: "ok", 2: "ok", 3: "ok", POISON: "failed", 5: "ok", 6: "ok", 7: "ok",
            8: "ok",
        }  # fmt: skip
        assert world.doubts == []


def test_batch_out_of_memory_is_halved_and_later_ones_are_smaller() -> None:
    with started(Echo(room=8)) as world:
        world.engine.room = 4
        together(world, 1, 2, 3, 4, 5, 6, 7, 8)
        world.until(lambda: len(world.ended()) == 9)
        assert set(world.ended().values()) == {"ok"}
        assert world.thread.budget_share == 0.5
        assert [len(one) for one in world.engine.executed] == [1, 8, 4, 4]
        world.done.clear()
        together(world, 1, 2, 3, 4, 5, 6)
        world.until(lambda: len(world.ended()) == 7)
        assert [len(one) for one in world.engine.executed[4:]] == [1, 4, 2], "no second failure"


def test_request_that_needs_too_much_memory_fails_alone_and_makes_no_later_batch_smaller() -> None:
    """It failed half of its batch, and batches of one item followed for 800 batches."""
    with started(Echo(error=OutOfMemoryError("it alone needs more than there is"))) as world:
        for _ in range(4):
            together(world, 1, POISON, 3, 4, 5, 6, 7, 8)
            world.until(lambda: len(world.ended()) == 9)
            failed = [number for number, end in world.ended().items() if end == "failed"]
            assert failed == [POISON]
            assert world.thread.budget_share == 1.0
            world.done.clear()
        assert world.doubts == []


def test_device_without_any_memory_is_probed() -> None:
    with started(Echo()) as world:
        world.engine.room = 0
        together(world, *range(1, 9))
        world.until(lambda: len(world.ended()) == 9)
        assert set(world.ended().values()) == {"failed"}
        world.until(lambda: world.doubts == [True])
        assert len(world.engine.executed) < 20
        world.engine.room = 8
        world.until(lambda: world.doubts == [True, False])


def test_always_failing_engine_is_probed_and_recovers() -> None:
    with started(Echo()) as world:
        world.engine.broken.set()
        together(world, *range(1, 9))
        world.until(lambda: len(world.ended()) == 9)
        assert set(world.ended().values()) == {"failed"}
        # alone, the whole, its half: three in a row; the request of zeros decides
        assert world.engine.executed == [[100], [1, 2, 3, 4, 5, 6, 7, 8], [1, 2, 3, 4], [0]]
        world.until(lambda: world.doubts == [True])
        world.engine.executed.clear()
        world.done.clear()
        world.send(1)
        world.until(lambda: len(world.ended()) == 1)
        assert world.engine.executed == [[1]], "one attempt"
        world.engine.broken.clear()
        world.until(lambda: world.doubts == [True, False])
        assert world.failure == ""


@pytest.mark.parametrize("step", ["stage", "execute"])
@pytest.mark.parametrize("host_s", [0.0, 0.002], ids=["inline", "pipelined"])
def test_lost_device_ends_the_thread(step: str, host_s: float) -> None:
    error = DeviceLostError("CUDA error: an illegal memory access was encountered")
    with started(Echo(fails_in=step, error=error, finish_s=host_s)) as world:
        together(world, 1, POISON)
        world.until(lambda: "illegal memory access" in world.failure)
        world.until(lambda: not world.thread.alive)


def test_requests_expiring_during_isolation_are_not_executed() -> None:
    with started(Echo(stage_s=0.0)) as world:
        world.engine.fails_in = "execute"
        world.engine.slow_failure_s = 0.3
        together(world, POISON, 2, 3, 4, deadline_s=time.monotonic() + 0.25)
        world.until(lambda: len(world.ended()) == 5)
        assert world.ended() == {
            100: "ok", POISON: "expired", 2: "expired", 3: "expired", 4: "expired"
        }  # fmt: skip
        assert len(world.engine.executed) == 2


def test_host_work_runs_in_parallel_with_the_device() -> None:
    with started(Echo(stage_s=0.06, execute_s=0.06, finish_s=0.06), max_batch_size=2) as world:
        began_s = time.monotonic()
        together(world, 1, 2, 3, 4, 5, 6, 7, 8)
        world.until(lambda: len(world.ended()) == 9)
        took_s = time.monotonic() - began_s
        assert set(world.ended().values()) == {"ok"}
        assert "lookahead" in world.engine.threads["stage"]
        assert world.engine.threads["finish"] == {"finisher"}
        assert world.engine.threads["execute"] == {"device"}
        assert took_s < 5 * 0.18 * 0.8, "one after the other they would take 0.9 s"
        assert [len(one) for one in world.engine.executed] == [1, 2, 2, 2, 2]


def test_late_request_joins_a_batch_staged_without_it() -> None:
    with started(Echo(stage_s=0.002)) as world:
        world.engine.free.clear()
        world.send(100)
        world.until(lambda: world.engine.executed == [[100]])
        world.send(1, 2)
        world.until(lambda: [1, 2] in world.engine.staged)
        world.send(3)
        world.engine.free.set()
        world.until(lambda: len(world.ended()) == 4)
        assert world.engine.executed == [[100], [1, 2, 3]]


@pytest.mark.parametrize(
    ("items", "staged", "expected"),
    [
        (1, 0, True),
        (2, 1, True),
        (3, 2, False),
        (4, 2, True),
        (7, 4, False),
        (8, 7, True),
        (8, 8, False),
        (1, 2, False),
    ],
)
def test_growing_batch_is_staged_again_at_twice_its_size_and_when_full(
    items: int, staged: int, expected: bool
) -> None:
    assert worth_staging(items, staged, 8) is expected


@pytest.mark.parametrize(
    ("stages", "expected"),
    [
        (StageTimes(0.0, 0.00001, 0.01, 0.00001), False),
        (StageTimes(0.0003, 0.0002, 0.01, 0.0001), True),
        (StageTimes(0.0003, 0.0002, 0.1, 0.0001), False),
        (StageTimes(0.005, 0.0, 0.1, 0.0), True),
    ],
    ids=["nothing", "6 % of 10 ms", "0.6 % of 100 ms", "5 ms of preprocessing"],
)
def test_host_work_gets_threads_if_it_takes_long_enough(stages: StageTimes, expected: bool) -> None:
    assert pays(stages) is expected


def test_single_late_wake_up_in_warm_up_has_no_effect() -> None:
    quick, late = StageTimes(0.0, 0.00001, 0.01, 0.00001), StageTimes(0.0, 0.002, 0.01, 0.0)
    one_late = [WarmShape(items, 0, 0.01, (quick,)) for items in (1, 2, 3)]
    assert not pays_mostly([*one_late, WarmShape(4, 0, 0.01, (late,))])
    small_alone = [WarmShape(1, 0, 0.01, (quick, quick, quick)), WarmShape(8, 0, 0.01, (late,))]
    assert pays_mostly(small_alone), "what small batches do says nothing of large ones"


def test_compile_phase_exists_only_if_the_engine_compiles() -> None:
    with started(Echo(compiles=True)) as world:
        assert world.phases == [Phase.LOAD, Phase.COMPILE, Phase.WARM, Phase.SELFTEST]
        assert world.warm is not None
        assert world.warm.compiled == "compiled"
        assert [shape.items for shape in world.warm.shapes] == list(range(1, 9))


def test_next_batch_is_taken_before_the_last_is_reported_if_requests_wait() -> None:
    heard: list[str] = []

    class Noting(World):
        def _take(self) -> SealedBatch[Work]:
            sealed = super()._take()
            heard.extend(f"took {number:g}" for number in values([e.payload for e in sealed.batch]))
            return sealed

        def on_executed(self, done: ExecutedBatch[Work]) -> None:
            super().on_executed(done)
            heard.extend(
                f"sealed {number:g}" for number in values([e.payload for e in done.sealed.batch])
            )

    with started(Echo(), max_batch_size=1, make=Noting) as world:
        together(world, 1.0, 2.0)
        world.until(lambda: len(world.done) == 3)
    assert heard == ["took 100", "took 1", "sealed 100", "took 2", "sealed 1", "sealed 2"]
