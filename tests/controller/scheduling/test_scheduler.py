"""Every service is evaluated in its time, whatever the others do."""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import defaultdict
from collections.abc import Awaitable, Callable

import pytest

from headroom.controller.scheduling.scheduler import Scheduler
from headroom.errors import ClusterError, Conflict, Forbidden, Rejected, Unavailable
from support.virtual_time import VirtualTimeLoop


class Bench:
    """A scheduler of which each tick is noted with its time; `does` says what a tick does."""

    def __init__(
        self,
        concurrency: int = 16,
        deadline_s: float = 20.0,
        owner_of: Callable[[str], str] = str,
        on_failure: Callable[[str, Exception], Awaitable[None]] | None = None,
    ) -> None:
        self.does: dict[str, Callable[[], Awaitable[None]]] = {}
        self.begun_s: dict[str, list[float]] = defaultdict(list)
        self.failures: list[tuple[str, str]] = []
        self.outcomes: list[str] = []
        self.most_at_once = self._at_once = 0
        self.scheduler = Scheduler(
            tick=self._tick,
            on_failure=on_failure or self._failed,
            on_ticked=lambda seconds, lag_s, outcome: self.outcomes.append(outcome),
            period_s=2.0,
            owner_of=owner_of,
            concurrency=concurrency,
            deadline_s=deadline_s,
            chance=random.Random(3),
        )

    async def _tick(self, uid: str) -> None:
        self.begun_s[uid].append(asyncio.get_running_loop().time())
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await self.does.get(uid, quick)()
        finally:
            self._at_once -= 1

    async def _failed(self, uid: str, error: Exception) -> None:
        self.failures.append((uid, str(error)))


async def quick() -> None:
    await asyncio.sleep(0.01)


async def hang() -> None:
    await asyncio.Event().wait()


def raising(error: Exception) -> Callable[[], Awaitable[None]]:
    async def fail() -> None:
        raise error

    return fail


def play(
    bench: Bench, seconds: float, scenario: Callable[[], Awaitable[None]] | None = None
) -> None:
    async def run() -> None:
        task = asyncio.create_task(bench.scheduler.run())
        if scenario is not None:
            await scenario()
        else:
            for uid in bench.does:
                bench.scheduler.evaluate_soon(uid)
        await asyncio.sleep(seconds)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def test_service_is_evaluated_each_period_at_its_own_moment() -> None:
    bench = Bench()
    bench.does = {"a": quick, "b": quick}
    play(bench, 60.0)
    for times in bench.begun_s.values():
        first, *gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
        assert 28 <= len(times) <= 32
        assert 1.0 <= first <= 3.0
        assert all(gap == pytest.approx(2.0, abs=0.02) for gap in gaps)
    assert bench.begun_s["a"][1] != pytest.approx(bench.begun_s["b"][1], abs=0.02)


def test_namespace_whose_ticks_hang_delays_no_other() -> None:
    """With one line for all, 100 of them left the other service 3 of its 30 ticks."""
    bench = Bench(concurrency=48, owner_of=lambda uid: uid.partition("/")[0])
    bench.does = {"fine/a": quick, **{f"hostile/{number}": hang for number in range(100)}}
    play(bench, 60.0)
    assert len(bench.begun_s["fine/a"]) >= 28
    assert bench.most_at_once >= 40  # the only one that is slow has most of the places
    assert len({uid for uid in bench.begun_s if uid.startswith("hostile")}) == 100


def test_namespace_at_its_share_is_not_overdue() -> None:
    """Else its slow ticks would have the operator of all restarted."""
    bench = Bench(concurrency=16, deadline_s=200.0, owner_of=lambda uid: uid.partition("/")[0])
    bench.does = {"fine/a": quick, **{f"hostile/{number}": hang for number in range(40)}}
    overdue_s: list[float] = []

    async def scenario() -> None:
        for uid in bench.does:
            bench.scheduler.evaluate_soon(uid)
        await asyncio.sleep(100.0)
        overdue_s.append(bench.scheduler.overdue_s())

    play(bench, 1.0, scenario)
    assert overdue_s[0] < 5.0


def test_changes_in_a_row_cause_few_ticks() -> None:
    bench = Bench()
    bench.does = {"a": quick}

    async def scenario() -> None:
        for _ in range(1000):
            bench.scheduler.evaluate_soon("a")
            await asyncio.sleep(0.01)

    play(bench, 0.0, scenario)
    assert 15 <= len(bench.begun_s["a"]) <= 25


def test_changes_of_many_services_of_a_namespace_cause_few_ticks() -> None:
    bench = Bench(concurrency=48, owner_of=lambda uid: uid.partition("/")[0])
    bench.does = {"fine/a": quick, **{f"hostile/{number}": quick for number in range(100)}}

    async def scenario() -> None:
        for uid in bench.does:
            bench.scheduler.evaluate_soon(uid)
        await asyncio.sleep(10.0)
        bench.begun_s.clear()
        for _ in range(1000):
            for uid in bench.does:
                bench.scheduler.evaluate_soon(uid)
            await asyncio.sleep(0.01)

    play(bench, 0.0, scenario)
    usual = 100 * 10 / 2
    assert sum(map(len, bench.begun_s.values())) <= usual + 20 + 10 / 0.05 + 25
    assert len(bench.begun_s["fine/a"]) >= 15


def test_many_services_are_spread_over_a_longer_period() -> None:
    """Each of 400 services has its turn every 6 s; all were due at once, and that passes."""
    bench = Bench()
    bench.does = {f"s{number}": quick for number in range(400)}
    play(bench, 60.0)
    seconds = [0] * 6
    for times in bench.begun_s.values():
        gaps = [later - earlier for earlier, later in itertools.pairwise(times[2:])]
        assert all(gap == pytest.approx(6.0, abs=0.1) for gap in gaps)
        seconds[int(times[-1]) % 6] += 1
    assert max(seconds) <= 2 * 400 / 6


def test_hanging_service_delays_no_other() -> None:
    bench = Bench(deadline_s=5.0)
    bench.does = {"stuck": hang, "fine": quick}
    play(bench, 60.0)
    assert len(bench.begun_s["fine"]) >= 28
    assert bench.outcomes.count("TimeoutError") >= 2


def test_concurrent_ticks_are_bounded() -> None:
    async def slow() -> None:
        await asyncio.sleep(1.0)

    bench = Bench(concurrency=3)
    bench.does = {f"s{number}": slow for number in range(9)}
    play(bench, 30.0)
    assert bench.most_at_once == 3
    assert min(map(len, bench.begun_s.values())) >= 8


def test_slow_first_round_is_not_repeated_at_once() -> None:
    async def slow() -> None:
        await asyncio.sleep(1.0)

    bench = Bench(concurrency=10)
    bench.does = {f"s{number}": slow for number in range(400)}  # 40 s, in a period of 6 s
    play(bench, 50.0)
    assert len(bench.begun_s) == 400
    gaps = [times[1] - times[0] for times in bench.begun_s.values() if len(times) > 1]
    assert gaps
    assert min(gaps) >= 3.0


def test_service_is_never_evaluated_twice_at_a_time() -> None:
    async def slow() -> None:
        await asyncio.sleep(3.0)

    bench = Bench()
    bench.does = {"a": slow}

    async def scenario() -> None:
        for _ in range(20):
            bench.scheduler.evaluate_soon("a")
            await asyncio.sleep(0.5)

    play(bench, 10.0, scenario)
    assert bench.most_at_once == 1


def test_change_during_a_tick_causes_another_at_once() -> None:
    async def slow() -> None:
        await asyncio.sleep(1.0)

    bench = Bench()
    bench.does = {"a": slow}

    async def scenario() -> None:
        bench.scheduler.evaluate_soon("a")
        await asyncio.sleep(0.5)
        bench.scheduler.evaluate_soon("a")

    play(bench, 1.0, scenario)
    assert bench.begun_s["a"] == pytest.approx([0.0, 1.0])


def test_conflicts_are_retried_at_once_up_to_a_bound() -> None:
    bench = Bench()
    bench.does = {"a": raising(Conflict("modified"))}
    play(bench, 1.5)
    assert len(bench.begun_s["a"]) == 4
    assert bench.begun_s["a"][3] < 0.1


def test_failing_service_backs_off_and_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    bench.does = {"a": raising(ValueError("poison"))}
    play(bench, 600.0)
    times = bench.begun_s["a"]
    gaps = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert gaps[0] == pytest.approx(2.0, rel=0.06)
    assert gaps[-1] == pytest.approx(6.0, rel=0.06), "two periods and two seconds"
    assert caplog.text.count("tick failed") == 1
    assert bench.failures == [("a", "poison")] * len(times), "another condition may have come"


@pytest.mark.parametrize("error", [Unavailable("down"), Forbidden("no"), Rejected("no")])
def test_decision_after_a_fault_is_soon(error: ClusterError) -> None:
    bench = Bench()

    async def hangs() -> None:
        await asyncio.sleep(5.0)
        raise error

    bench.does = {"a": hangs}
    play(bench, 10_000.0)
    times = bench.begun_s["a"]
    assert times[-1] - times[-2] == pytest.approx(6.0, rel=0.06), "what it hung is in it"


def test_retry_after_of_the_api_is_respected() -> None:
    bench = Bench()
    bench.does = {"a": raising(Unavailable("busy", retry_after_s=30.0))}
    play(bench, 45.0)
    assert len(bench.begun_s["a"]) == 2


def test_unwritable_condition_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    async def unwritable(uid: str, error: Exception) -> None:
        raise Unavailable("the API is down")

    bench = Bench(on_failure=unwritable)
    bench.does = {"a": raising(ValueError("poison")), "b": quick}
    with caplog.at_level("INFO"):
        play(bench, 60.0)
    assert caplog.text.count("the API is down") == 1
    assert len(bench.begun_s["a"]) >= 4
    assert len(bench.begun_s["b"]) >= 28


def test_removed_service_is_not_evaluated_and_may_return() -> None:
    bench = Bench()
    bench.does = {"a": quick}

    async def scenario() -> None:
        bench.scheduler.evaluate_soon("a")
        await asyncio.sleep(1.0)
        bench.scheduler.remove("a")
        await asyncio.sleep(9.0)
        assert len(bench.begun_s["a"]) == 1
        bench.scheduler.evaluate_soon("a")

    play(bench, 3.0, scenario)
    assert len(bench.begun_s["a"]) == 3


def test_tick_of_a_removed_service_is_cancelled() -> None:
    bench, ended = Bench(), list[str]()

    async def go_on() -> None:
        try:
            await asyncio.sleep(5.0)
            ended.append("alone")
        except asyncio.CancelledError:
            ended.append("broken off")
            raise

    bench.does = {"a": go_on}

    async def scenario() -> None:
        bench.scheduler.evaluate_soon("a")
        await asyncio.sleep(1.0)
        bench.scheduler.remove("a")

    play(bench, 9.0, scenario)
    assert ended == ["broken off"]
    assert bench.failures == []


def test_hanging_api_does_not_look_like_a_stopped_scheduler() -> None:
    """A restart by the kubelet would fix nothing, and lose the history."""
    bench = Bench(concurrency=4)
    bench.does = {f"uid-{number}": hang for number in range(40)}

    async def scenario() -> None:
        for uid in bench.does:
            bench.scheduler.evaluate_soon(uid)
        for _ in range(150):
            await asyncio.sleep(1.01)
            assert bench.scheduler.overdue_s() < 60.0
        assert len(bench.begun_s) >= 28

    play(bench, 1.0, scenario)


def test_scheduler_lists_due_and_running_services_in_order() -> None:
    bench = Bench()
    bench.does = {"slow": lambda: asyncio.sleep(5.0)}
    found: list[tuple[float, str]] = []

    async def scenario() -> None:
        bench.scheduler.evaluate_soon("quick")
        await asyncio.sleep(1.0)
        bench.scheduler.evaluate_soon("slow")
        await asyncio.sleep(0.5)
        found.extend(bench.scheduler.due_within(0.1))
        found.extend(bench.scheduler.due_within(2.0))

    play(bench, 0.1, scenario)
    (slow_s, slow), *both = found
    assert slow == "slow"
    assert slow_s == pytest.approx(1.0)
    assert [uid for _, uid in both] == ["slow", "quick"]
    assert both == sorted(both)
