"""Between two large bodies the event loop serves everything else."""

from __future__ import annotations

import asyncio

import pytest

from headroom_server.web.parsing_turns import SMALL_BYTES, ParsingTurns


@pytest.mark.parametrize(("size", "most"), [(SMALL_BYTES + 1, 1), (SMALL_BYTES, 20)])
async def test_loop_parses_one_large_body_at_a_time(size: int, most: int) -> None:
    turns, parsed = ParsingTurns(), 0

    async def parse() -> None:
        nonlocal parsed
        await turns.wait(size)
        parsed += 1

    tasks = [asyncio.create_task(parse()) for _ in range(20)]
    steps = []
    while parsed < len(tasks):
        before = parsed
        await asyncio.sleep(0)  # one turn of the loop, as a probe would need several
        steps.append(parsed - before)
    assert max(steps) == most


async def test_client_that_leaves_gives_its_turn_to_the_next() -> None:
    turns = ParsingTurns()
    tasks = [asyncio.create_task(turns.wait(SMALL_BYTES + 1)) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    async with asyncio.timeout(5.0):
        await tasks[2]
