"""Pages that take long to parse leave the loop to other namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headroom.event_loop_shares import EventLoopShares
from headroom.telemetry.errors import TelemetryError
from support.virtual_time import VirtualTimeLoop

LARGE, USUAL = 1 << 18, 15_000


class Loop:
    """Parses pages that take CPU time, which only this clock shows."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.shares = EventLoopShares(lambda: self.spent_s)

    async def tick(self, owner: str, pages: int, page_s: float, size: int = LARGE) -> None:
        def parse() -> None:
            self.spent_s += page_s

        await asyncio.gather(*(self.shares.run(owner, size, parse) for _ in range(pages)))


def now_s() -> float:
    return asyncio.get_running_loop().time()


def run(scenario: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(scenario)


@pytest.mark.parametrize("owners", [1, 4, 100])
def test_hostile_pages_leave_most_of_the_loop_to_others(owners: int) -> None:
    """400 pages of 100 ms: another's page is parsed at once, after one of theirs at most."""

    async def scenario() -> None:
        loop = Loop()
        hostile = [
            asyncio.create_task(loop.tick(f"h{owner}", 400 // owners, 0.1))
            for owner in range(owners)
        ]
        for _ in range(10):
            await asyncio.sleep(0)
        assert loop.spent_s < 0.11
        began_s = now_s()
        await loop.tick("victim", 20, 0.0001, USUAL)
        assert now_s() == began_s
        await asyncio.gather(*hostile)
        assert loop.spent_s == pytest.approx(40.002)
        assert now_s() - began_s > 2.0 * loop.spent_s

    run(scenario())


def test_slow_pages_of_two_namespaces_are_parsed_in_turns() -> None:
    async def scenario() -> None:
        loop = Loop()
        hostile = asyncio.create_task(loop.tick("h", 100, 0.1))
        await asyncio.sleep(0.1)
        began_s = now_s()
        await loop.tick("v", 1, 0.03)
        assert now_s() - began_s < 0.7  # two pages of the other, with their pauses
        hostile.cancel()
        await asyncio.gather(hostile, return_exceptions=True)

    run(scenario())


def test_usual_pages_are_never_paused() -> None:
    async def scenario() -> None:
        loop = Loop()
        began_s = now_s()
        await loop.tick("a", 400, 0.0001, USUAL)
        assert now_s() == began_s

    run(scenario())


def test_small_pages_that_are_always_new_are_paused_in_the_end() -> None:
    """100 pages of 6 ms every two seconds would take 30 % of the loop."""

    async def scenario() -> None:
        loop = Loop()
        for _ in range(10):
            await loop.tick("a", 100, 0.006, USUAL)
        assert now_s() > 2.0 * loop.spent_s

    run(scenario())


def test_page_that_is_rejected_counts_as_well() -> None:
    async def scenario() -> None:
        loop = Loop()

        def parse() -> None:
            loop.spent_s += 0.1
            raise TelemetryError("no page")

        began_s = now_s()
        with pytest.raises(TelemetryError):
            await loop.shares.run("a", LARGE, parse)
        assert now_s() - began_s == pytest.approx(0.3)

    run(scenario())


def test_work_is_bounded_where_the_machine_gives_the_loop_a_fifth_of_a_processor() -> None:
    """The time in which others ran filled the bucket faster than the work emptied it."""
    done = 0

    async def scenario() -> None:
        machine = asyncio.get_running_loop()
        assert isinstance(machine, VirtualTimeLoop)
        loop = Loop()

        def render() -> None:
            nonlocal done
            done += 1
            loop.spent_s += 0.004
            machine.jump(0.02)

        for _ in range(200):
            loop.shares.run_now("a", 1, render)

    run(scenario())
    assert done < 25
