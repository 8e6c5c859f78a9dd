"""Evaluates each service when it is due, and survives any exception of a tick.

A heap of due times; a maximum of concurrent ticks, shared by namespaces; a deadline for each. A
service is never evaluated twice at a time, and one that hangs, fails or is rejected delays no
other. Intervals use the event loop's clock, so a test may make them virtual.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

from headroom.controller.scheduling import tick_period
from headroom.controller.scheduling.change_turns import ChangeTurns
from headroom.controller.scheduling.retry_pause import AT_ONCE_S, FailureStreak
from headroom.controller.scheduling.tick_failures import TickFailures
from headroom.controller.scheduling.tick_places import TickPlaces

HEARTBEAT_S = 1.0


class Ticked(Protocol):
    """Takes the figures of one tick: how long it took, how late it began, how it ended."""

    def __call__(self, seconds: float, lag_s: float, outcome: str) -> None:
        """Count it."""
        ...


@dataclass(slots=True)
class _Entry:
    """One service's place in the schedule."""

    due_s: float
    phase: float
    """Position of its ticks in the period, 0 to 1, so that services do not synchronize."""
    running: asyncio.Task[None] | None = None
    changed: bool = False
    changed_s: float = -math.inf
    """Time when its last tick for a change was due."""
    streak: FailureStreak = field(default_factory=FailureStreak)
    begun: bool = False
    """Whether it has been evaluated. Its first tick counts from its beginning: all are due at once
    then, and a service that waited for long would have another one at once."""


@dataclass(slots=True)
class Scheduler:
    """Runs `tick` for each service every `period_s`; of very many, less often."""

    tick: Callable[[str], Awaitable[None]]
    on_failure: Callable[[str, Exception], Awaitable[None]]
    """Called after each failure: it has nothing to do where it has said so before."""
    on_ticked: Ticked
    period_s: float
    name_of: Callable[[str], str] = str
    """Name of a service in the log."""
    owner_of: Callable[[str], str] = str
    """The namespace of a service, which has a share of the concurrent ticks."""
    deadline_s: float = 20.0
    concurrency: int = 48
    """A tick waits for two answers of the API: half a second each, and these are 48 a second."""
    chance: random.Random = field(default_factory=random.Random)
    _entries: dict[str, _Entry] = field(default_factory=dict)
    _heap: list[tuple[float, int, str]] = field(default_factory=list)
    _order: itertools.count[int] = field(default_factory=itertools.count)
    _wake: asyncio.Event = field(default_factory=asyncio.Event)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _turns: ChangeTurns = field(default_factory=ChangeTurns)
    _places: TickPlaces = field(init=False)
    _failures: TickFailures = field(init=False)
    last_round_s: float | None = None
    """Time when the schedule was last processed, on the event loop's clock."""

    def __post_init__(self) -> None:
        """Begin with every place free."""
        self._places = TickPlaces(self.concurrency)
        self._failures = TickFailures(
            on_failure=self.on_failure,
            name_of=self.name_of,
            deadline_s=self.deadline_s,
        )

    def evaluate_soon(self, uid: str) -> None:
        """Make a service due now, or as soon as it may be again; add it if it is new."""
        now_s = asyncio.get_running_loop().time()
        entry = self._entries.get(uid)
        if entry is None:
            self._entries[uid] = _Entry(due_s=now_s, phase=self.chance.random())
        elif entry.running:
            entry.changed = True
            return
        else:
            at_s = self._turns.next_s(self.owner_of(uid), entry.changed_s, now_s)
            if entry.due_s <= at_s:
                return  # it keeps its place among those that wait
            self._turns.take(self.owner_of(uid), now_s)
            now_s = entry.changed_s = at_s
        self._push(uid, now_s)

    def remove(self, uid: str) -> None:
        """Remove a service, and cancel its running tick.

        A tick that hung while the service was deleted would create orphans.
        """
        entry = self._entries.pop(uid, None)
        if entry is not None and entry.running is not None:
            entry.running.cancel()

    def due_within(self, seconds: float) -> list[tuple[float, str]]:
        """Return the services that are due so soon or being evaluated, and since when, in order."""
        horizon_s = asyncio.get_running_loop().time() + seconds
        return sorted(
            (entry.due_s, uid) for uid, entry in self._entries.items() if entry.due_s <= horizon_s
        )

    def overdue_s(self) -> float:
        """Seconds by which the most overdue service is late while there is room to evaluate it.

        Where every place of its namespace is taken, it is the API that is slow, or its pods are,
        and each tick ends at its deadline.
        """
        now_s = asyncio.get_running_loop().time()
        return max(
            (
                now_s - entry.due_s
                for uid, entry in self._entries.items()
                if self._places.fits(self.owner_of(uid))
            ),
            default=0.0,
        )

    async def run(self) -> None:
        """Evaluate due services until cancelled; running evaluations are then cancelled as well."""
        loop = asyncio.get_running_loop()
        try:
            while True:
                self.last_round_s = loop.time()
                self._wake.clear()
                self._start_due(loop.time())
                pause_s = HEARTBEAT_S
                if self._heap:
                    pause_s = min(HEARTBEAT_S, max(0.0, self._heap[0][0] - loop.time()))
                try:
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                except TimeoutError:
                    continue
        finally:
            for task in self._running:
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    def _push(self, uid: str, due_s: float) -> None:
        self._entries[uid].due_s = due_s
        heapq.heappush(self._heap, (due_s, next(self._order), uid))
        self._wake.set()

    def _start_due(self, now_s: float) -> None:
        while self._heap and self._heap[0][0] <= now_s:
            due_s, _, uid = heapq.heappop(self._heap)
            self._places.wait(self.owner_of(uid), due_s, uid)
        for owner, due_s, uid in self._places.granted():
            entry = self._entries.get(uid)
            if entry is None or entry.running or entry.due_s != due_s:
                continue  # removed, or scheduled again since
            task = asyncio.create_task(self._run_one(uid, entry, now_s - due_s))
            entry.running = task
            self._running.add(task)
            self._places.take(owner)
            task.add_done_callback(partial(self._finished, owner))

    def _finished(self, owner: str, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._places.give_back(owner)
        self._wake.set()

    async def _run_one(self, uid: str, entry: _Entry, lag_s: float) -> None:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        pause_s: float | None = None
        try:
            async with asyncio.timeout(self.deadline_s):
                await self.tick(uid)
        except Exception as error:  # noqa: BLE001  (the one place: no service's trouble may reach another)
            outcome = type(error).__name__
            pause_s = await self._after_failure(uid, entry.streak, error, begun_s)
        else:
            outcome = "ok"
            entry.streak.ends()
        now_s = loop.time()
        self.on_ticked(seconds=now_s - begun_s, lag_s=lag_s, outcome=outcome)
        entry.running = None
        if self._entries.get(uid) is not entry:
            return
        if entry.changed:
            owner = self.owner_of(uid)
            entry.changed_s = self._turns.next_s(owner, entry.changed_s, now_s)
            entry.changed, pause_s = False, entry.changed_s - now_s
            self._turns.take(owner, now_s)
        if not entry.begun:
            entry.begun, entry.due_s = True, begun_s
        self._push(uid, self._next_s(entry, now_s, pause_s))

    async def _after_failure(
        self, uid: str, streak: FailureStreak, error: Exception, begun_s: float
    ) -> float:
        """Report the failure, and return the pause until the next attempt."""
        if streak.is_tried_at_once(error):
            return AT_ONCE_S
        await self._failures.report(uid, streak, error)
        passed_s = asyncio.get_running_loop().time() - begun_s
        return streak.pause_s(error, self._period_s(), passed_s, self.chance.random())

    def _next_s(self, entry: _Entry, now_s: float, pause_s: float | None) -> float:
        """Return when a service is due next: its phase is kept, and missed ticks are skipped."""
        if pause_s is not None:
            return now_s + pause_s
        return max(now_s, tick_period.next_slot_s(entry.due_s, self._period_s(), entry.phase))

    def _period_s(self) -> float:
        return tick_period.period_s(self.period_s, len(self._entries))
