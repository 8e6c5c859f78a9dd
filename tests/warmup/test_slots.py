"""Slots for warm-up requests: shared by namespaces, none lost."""

from __future__ import annotations

import asyncio
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.fair_share import FairShare
from headroom.fair_slots import FairSlots


class Pods:
    """Pods that hold a slot until they are let go."""

    def __init__(self, most: int) -> None:
        self.slots = FairSlots(most)
        self.held: dict[str, int] = {}
        self._tasks: list[tuple[str, asyncio.Task[None], asyncio.Event]] = []

    async def ask(self, owner: str, count: int = 1) -> None:
        for _ in range(count):
            let_go = asyncio.Event()
            self._tasks.append((owner, asyncio.create_task(self._hold(owner, let_go)), let_go))
        await self.settle()

    async def let_go(self, owner: str) -> None:
        for name, _, event in self._tasks:
            if name == owner:
                event.set()
        await self.settle()

    async def cancel(self, at: int) -> None:
        if self._tasks:
            self._tasks[at % len(self._tasks)][1].cancel()
        await self.settle()

    def forget(self) -> None:
        for _, task, _ in self._tasks:
            task.cancel()

    def errors(self) -> list[BaseException]:
        ended = [task for _, task, _ in self._tasks if task.done() and not task.cancelled()]
        return [error for task in ended if (error := task.exception()) is not None]

    async def settle(self) -> None:
        for _ in range(5):
            await asyncio.sleep(0)

    async def _hold(self, owner: str, let_go: asyncio.Event) -> None:
        async with self.slots.slot(owner):
            self.held[owner] = self.held.get(owner, 0) + 1
            try:
                await let_go.wait()
            finally:
                self.held[owner] -= 1


async def test_silent_pods_of_one_namespace_leave_slots_to_others() -> None:
    pods = Pods(256)
    await pods.ask("hostile", 1000)
    assert pods.held == {"hostile": 128}
    await pods.ask("victim", 16)
    assert pods.held["victim"] == 16


async def test_slots_of_a_namespace_that_ends_are_granted_to_those_that_wait() -> None:
    pods = Pods(12)
    await pods.ask("a", 10)
    await pods.ask("b", 10)
    assert pods.held == {"a": 6, "b": 3}
    await pods.let_go("a")
    assert pods.held == {"a": 0, "b": 6}


async def test_pods_that_are_forgotten_at_once_lose_no_slot() -> None:
    """Those with a slot give it back while those that wait are cancelled too, not removed yet."""
    pods = Pods(8)
    await pods.ask("a", 40)
    pods.forget()
    await pods.settle()
    assert pods.errors() == []
    assert pods.slots.held == 0
    await pods.ask("b", 9)
    assert pods.held["b"] == 4


async def test_owners_that_wait_are_granted_in_turns() -> None:
    pods = Pods(2)
    await pods.ask("a", 1)
    for owner in "abc":
        await pods.ask(owner, 20)
    await pods.let_go("a")
    assert pods.held == {"a": 0, "b": 1, "c": 1}


async def test_amounts_are_granted_within_the_sum() -> None:
    slots = FairSlots(100)
    async with slots.slot("a", 50):
        waiting = asyncio.create_task(slots.slot("a", 10).__aenter__())
        async with slots.slot("b", 50):
            assert slots.held == 100
        await asyncio.sleep(0)
        assert not waiting.done()
    await waiting
    assert slots.held == 10


async def _cpu_of_a_turn_s(owners: int) -> float:
    slots = FairSlots(48)

    async def turn(owner: str) -> None:
        async with slots.slot(owner):
            await asyncio.sleep(0)

    begun_s = time.process_time()
    await asyncio.gather(*(turn(f"owner-{number % owners}") for number in range(3000)))
    return (time.process_time() - begun_s) / 3000


@pytest.mark.clock
async def test_turn_among_a_thousand_owners_costs_little_more_than_among_fifty() -> None:
    """It was 20 times as much: each slot that was given back asked every owner that waits.

    The least of three counts: a garbage collection of the whole process is no cost of a turn.
    """
    of_fifty_s = min([await _cpu_of_a_turn_s(50) for _ in range(3)])
    of_a_thousand_s = min([await _cpu_of_a_turn_s(1000) for _ in range(3)])
    assert of_a_thousand_s < 5 * of_fifty_s


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(("ask", "go", "cancel")), st.integers(0, 5)), max_size=40)
)
def test_no_slot_is_lost_or_granted_twice(steps: list[tuple[str, int]]) -> None:
    async def scenario() -> None:
        pods = Pods(6)
        for step, number in steps:
            owner = "abcdef"[number]
            if step == "ask":
                await pods.ask(owner, 3)
            elif step == "go":
                await pods.let_go(owner)
            else:
                await pods.cancel(number * 7)
            assert sum(pods.held.values()) <= 6
        for owner in "abcdef":
            await pods.let_go(owner)
        assert sum(pods.held.values()) == 0
        await pods.ask("g", 9)
        assert pods.held["g"] == 3

    asyncio.run(scenario())


def test_share_of_n_owners_is_one_of_n_plus_one() -> None:
    share = FairShare(100)
    for _ in range(100):
        for owner in "abcd":
            if share.fits(owner, 1):
                share.take(owner, 1)
    assert [share.held_by(owner) for owner in "abcd"] == [20] * 4
    share.give_back("a", 20)
    assert (share.held, share.held_by("a")) == (60, 0)
