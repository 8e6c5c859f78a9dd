"""Between two large bodies the event loop serves everything else, and every client has its turn."""

from __future__ import annotations

import asyncio

import pytest

from headroom_server.web.inference.parsing_turns import ROUNDS, SMALL_BYTES, ParsingTurns

LARGE = SMALL_BYTES + 1


@pytest.mark.parametrize(("size", "rounds_each"), [(LARGE, ROUNDS), (SMALL_BYTES, 0)])
async def test_loop_parses_one_large_body_in_several_rounds(size: int, rounds_each: int) -> None:
    turns, parsed, rounds = ParsingTurns(), 0, 0

    async def parse() -> None:
        nonlocal parsed
        await turns.wait(size, "a")
        parsed += 1

    tasks = [asyncio.create_task(parse()) for _ in range(20)]
    while parsed < len(tasks):
        await asyncio.sleep(0)  # a probe needs several of these
        rounds += 1
    assert rounds >= rounds_each * len(tasks)


async def test_client_with_one_body_waits_for_one_body_of_each_other_client() -> None:
    turns, order = ParsingTurns(), list[str]()

    async def parse(client: str) -> None:
        await turns.wait(LARGE, client)
        order.append(client)

    await asyncio.gather(*(parse(client) for client in ["flood"] * 50 + ["a", "b"]))
    assert {"a", "b"} < set(order[:5])


async def test_client_that_leaves_gives_its_turn_to_the_next() -> None:
    turns = ParsingTurns()
    tasks = [asyncio.create_task(turns.wait(LARGE, "a")) for _ in range(3)]
    await asyncio.sleep(0)
    tasks[0].cancel()
    tasks[1].cancel()
    async with asyncio.timeout(5.0):
        await tasks[2]
