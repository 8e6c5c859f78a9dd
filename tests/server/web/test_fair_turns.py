"""Turns are shared by clients, and a client's by its tenants."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from headroom_server.web.inference.fair_turns import FairTurns

Who = tuple[str, str]
FLOOD: Who = ("flood", "")


async def served(waiting: Sequence[Who]) -> list[Who]:
    """The order in which those are served that wait behind a first one."""
    turns, order, go_on = FairTurns(), list[Who](), asyncio.Event()

    async def first() -> None:
        async with turns.turn("first"):
            await go_on.wait()

    async def one(who: Who) -> None:
        async with turns.turn(*who):
            order.append(who)
            await asyncio.sleep(0)

    tasks = [asyncio.create_task(first())]
    await asyncio.sleep(0)
    tasks += [asyncio.create_task(one(who)) for who in waiting]
    await asyncio.sleep(0)
    go_on.set()
    await asyncio.gather(*tasks)
    return order


@pytest.mark.parametrize(
    ("waiting", "who", "place"),
    [
        pytest.param([FLOOD] * 30 + [("a", "")], ("a", ""), 1, id="another client"),
        pytest.param(
            [("gate", "loud")] * 30 + [("gate", "quiet")],
            ("gate", "quiet"),
            1,
            id="another tenant of a client",
        ),
        pytest.param(
            [("flood", f"made up {number}") for number in range(30)] + [("a", "")],
            ("a", ""),
            1,
            id="made-up tenants",
        ),
        pytest.param([FLOOD] * 3, FLOOD, 0, id="a client alone"),
    ],
)
async def test_place_in_the_order(waiting: list[Who], who: Who, place: int) -> None:
    order = await served(waiting)
    assert sorted(order) == sorted(waiting)
    assert order.index(who) == place


async def test_one_that_leaves_is_skipped_and_one_at_a_time_is_served() -> None:
    turns, inside, most = FairTurns(), 0, 0

    async def one() -> None:
        nonlocal inside, most
        async with turns.turn("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    tasks = [asyncio.create_task(one()) for _ in range(20)]
    await asyncio.sleep(0)
    for task in tasks[1::2]:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert most == 1
    async with asyncio.timeout(5.0):
        await one()
