"""Pages that take long to parse leave the loop to other services."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from headroom.controller.gather.parsing_turns import ParsingTurns
from headroom.telemetry.errors import TelemetryError
from virtual_time import VirtualTimeLoop


class Loop:
    """Parses pages that take CPU time, which only this clock shows."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self.turns = ParsingTurns(lambda: self.spent_s)

    async def tick(self, pages: int, page_s: float) -> None:
        turns = self.turns.begin()

        def parse() -> None:
            self.spent_s += page_s

        await asyncio.gather(*(turns.parse(parse) for _ in range(pages)))


def run(story: Coroutine[Any, Any, None]) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        runner.run(story)


def test_hostile_pages_leave_most_of_the_loop_to_others() -> None:
    """80 pages of 100 ms in 4 services: a stranger's 10 steps wait for 1 s at most."""

    async def story() -> None:
        loop = Loop()
        hostile = [asyncio.create_task(loop.tick(20, 0.1)) for _ in range(4)]
        for _ in range(10):
            await asyncio.sleep(0)
        assert loop.spent_s < 1.0
        began_s = asyncio.get_running_loop().time()
        await asyncio.gather(*hostile)
        assert loop.spent_s == pytest.approx(8.0)
        assert asyncio.get_running_loop().time() - began_s > 2.0 * loop.spent_s

    run(story())


def test_usual_pages_are_never_paused() -> None:
    async def story() -> None:
        loop = Loop()
        began_s = asyncio.get_running_loop().time()
        await loop.tick(400, 0.0001)
        assert asyncio.get_running_loop().time() == began_s

    run(story())


def test_page_that_is_rejected_counts_as_well() -> None:
    async def story() -> None:
        loop = Loop()
        turns = loop.turns.begin()

        def parse() -> None:
            loop.spent_s += 0.1
            raise TelemetryError("no page")

        began_s = asyncio.get_running_loop().time()
        with pytest.raises(TelemetryError):
            await turns.parse(parse)
        assert asyncio.get_running_loop().time() - began_s == pytest.approx(0.3)

    run(story())
