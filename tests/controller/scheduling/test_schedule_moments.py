"""The schedule to the moment: lag, requested pauses, a heartbeat, overdue services."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import Awaitable, Callable

import pytest

from headroom.controller.scheduling.scheduler import Scheduler
from headroom.errors import Conflict, NotFound, Unavailable
from support.virtual_time import VirtualTimeLoop

TickResult = Callable[[], Awaitable[None]]


class Watched:
    """A scheduler alone, and what it reports of its ticks."""

    def __init__(self, does: TickResult) -> None:
        self.does = does
        self.begun_s: list[float] = []
        self.said: list[tuple[float, float, str]] = []
        self.reported: list[str] = []
        self.scheduler = Scheduler(
            tick=self._tick,
            on_failure=self._failed,
            on_ticked=lambda seconds, lag_s, outcome: self.said.append((seconds, lag_s, outcome)),
            period_s=2.0,
            chance=random.Random(11),
        )

    async def _tick(self, uid: str) -> None:
        self.begun_s.append(asyncio.get_running_loop().time())
        await self.does()

    async def _failed(self, uid: str, error: Exception) -> None:
        self.reported.append(str(error))

    def gaps_s(self) -> list[float]:
        return [later - one for one, later in itertools.pairwise(self.begun_s)]


def play(watched: Watched, scenario: Callable[[Scheduler], Awaitable[None]]) -> None:
    async def run() -> None:
        task = asyncio.create_task(watched.scheduler.run())
        await scenario(watched.scheduler)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(run())


def lasting(seconds: float, error: Exception | None = None) -> TickResult:
    async def tick() -> None:
        await asyncio.sleep(seconds)
        if error is not None:
            raise error

    return tick


async def hang() -> None:
    await asyncio.Event().wait()


def of(count: int, seconds: float) -> Callable[[Scheduler], Awaitable[None]]:
    async def scenario(scheduler: Scheduler) -> None:
        for number in range(count):
            scheduler.evaluate_soon(f"uid-{number}")
        await asyncio.sleep(seconds)

    return scenario


def test_tick_reports_duration_and_lag() -> None:
    watched = Watched(lasting(0.3))
    play(watched, of(49, 1.0))  # 48 at once: the 49th begins when the first are done
    assert [seconds for seconds, _, _ in watched.said] == pytest.approx([0.3] * 49)
    assert [lag_s for _, lag_s, _ in watched.said] == pytest.approx([0.0] * 48 + [0.3])
    assert {outcome for _, _, outcome in watched.said} == {"ok"}


def test_hanging_tick_is_cancelled_after_twenty_seconds() -> None:
    watched = Watched(hang)
    play(watched, of(1, 21.0))
    [(seconds, lag_s, outcome)] = watched.said
    assert (seconds, lag_s) == pytest.approx((20.0, 0.0))
    assert outcome == "TimeoutError"


def test_idle_scheduler_shows_that_it_is_alive() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        for _ in range(20):
            await asyncio.sleep(0.7)
            assert scheduler.last_round_s is not None
            assert asyncio.get_running_loop().time() - scheduler.last_round_s <= 1.0

    play(Watched(lasting(0.0)), scenario)
    slow = Watched(hang)

    async def full(scheduler: Scheduler) -> None:
        await of(60, 0.1)(scheduler)
        await scenario(scheduler)

    play(slow, full)


def test_overdue_service_is_reported_while_slots_are_free() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        assert scheduler.overdue_s() == 0.0
        await of(47, 5.0)(scheduler)
        assert scheduler.overdue_s() == pytest.approx(5.0)
        scheduler.evaluate_soon("last")
        await asyncio.sleep(1.0)
        assert scheduler.overdue_s() == 0.0

    play(Watched(hang), scenario)


@pytest.mark.parametrize("asked_s", [9.0, 30.0])
def test_retry_after_is_kept_in_full(asked_s: float) -> None:
    watched = Watched(lasting(0.0, Unavailable("busy", retry_after_s=asked_s)))
    play(watched, of(1, 10 * asked_s))
    assert len(watched.gaps_s()) >= 8
    assert all(asked_s <= gap_s <= 1.051 * asked_s for gap_s in watched.gaps_s())
    assert max(watched.gaps_s()) > 1.01 * asked_s


def test_failures_back_off_by_periods() -> None:
    watched = Watched(lasting(0.5, ValueError("x")))
    play(watched, of(1, 60.0))
    bounds_s = [2.0, 4.0, *[6.0] * 20]
    for gap_s, bound_s in zip(watched.gaps_s(), bounds_s, strict=False):
        assert 0.949 * bound_s <= gap_s <= bound_s
    assert len(watched.reported) == len(watched.gaps_s()) + 1, "as long as it lasts"


@pytest.mark.parametrize("error", [Conflict("modified"), NotFound("gone")])
def test_fourth_conflict_counts_as_failure(
    error: Exception,
) -> None:
    watched = Watched(lasting(0.0, error))
    play(watched, of(1, 10.0))
    gaps_s = watched.gaps_s()
    assert gaps_s[:3] == pytest.approx([0.02] * 3)
    assert 1.9 <= gaps_s[3] <= 2.0
    assert gaps_s[4:7] == pytest.approx([0.02] * 3)


def test_success_resets_failures(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    turns = itertools.count()

    async def every_third() -> None:
        if next(turns) % 3 != 2:
            raise ValueError("x")

    watched = Watched(every_third)
    play(watched, of(1, 40.0))
    gaps_s = watched.gaps_s()
    assert all(1.8 <= gap_s <= 2.0 for gap_s in gaps_s[0::3])
    assert all(3.8 <= gap_s <= 4.0 for gap_s in gaps_s[1::3])
    logged = caplog.text.count("tick failed: ValueError: x")
    assert caplog.text.count("Traceback") == logged >= 3
    assert 2 * logged - 1 <= len(watched.reported) <= 2 * logged, "two in a row are logged once"


def test_expected_failure_is_logged_without_traceback(caplog: pytest.LogCaptureFixture) -> None:
    watched = Watched(lasting(0.0, Unavailable("down")))
    play(watched, of(1, 10.0))
    assert "uid-0: tick failed: Unavailable: down" in caplog.text
    assert "Traceback" not in caplog.text


def test_change_keeps_the_cadence() -> None:
    async def scenario(scheduler: Scheduler) -> None:
        scheduler.evaluate_soon("uid")
        await asyncio.sleep(0.1)
        scheduler.evaluate_soon("uid")
        await asyncio.sleep(20.0)

    watched = Watched(lasting(0.3))
    play(watched, scenario)
    first_s, second_s, *others_s = watched.gaps_s()
    assert first_s == pytest.approx(0.3)
    assert 1.0 <= second_s <= 3.0
    assert others_s == pytest.approx([2.0] * len(others_s))


def test_long_tick_is_followed_at_once_and_none_is_made_up() -> None:
    watched = Watched(lasting(5.0))
    play(watched, of(1, 31.0))
    assert watched.gaps_s() == pytest.approx([5.0] * 6)
