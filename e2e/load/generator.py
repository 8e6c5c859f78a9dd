"""Sends requests when they are due, and counts how they end.

The open loop sends each request at its time, whatever happened to earlier ones: its latency runs
from that instant, so a generator that cannot keep up, or that waits for a free connection, shows as
latency instead of hiding it (no coordinated omission). In a closed loop each user waits for the
answer, thinks, and asks again. The run ends when every request has its outcome.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from load.messages import Message, Progress, Summary, Window
from load.outcomes import Ending, FirstTry, Outcome, Result
from load.statistics import Tally, Windows, merged
from load.users import Users

PROGRESS_INTERVAL_S = 1.0
SHOWN_FAILURES = 5
LATE_PERCENTILE = 0.99


class Asker(Protocol):
    """Sends one request and returns how it ended."""

    @property
    def connections(self) -> int:
        """Connections opened so far."""

    async def ask(self, number: int) -> Ending:
        """Send request `number` to its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The bounds of a run and its target."""

    target_s: float
    window_s: float = 10.0
    max_in_flight: int = 2000


@dataclass(slots=True)
class Records:
    """Counts of the run so far."""

    windows: Windows
    second: Tally = field(default_factory=Tally)
    """Outcomes since the last progress report."""
    late: Tally = field(default_factory=Tally)
    failures: Counter[str] = field(default_factory=Counter)
    due: int = 0
    in_flight: int = 0
    retried: int = 0
    tries: int = 0
    first: Tally = field(default_factory=Tally)
    """Outcomes of the first tries."""

    def add(self, result: Result, first: FirstTry | None, target_s: float) -> None:
        """Count one request's end; its first try's end, where that is another."""
        self.windows.add(result, target_s)
        self.second.add(result, target_s)
        self.retried += result.retried
        self.tries += result.tries
        self.first.add(result if first is None else _first_try(result, first), target_s)
        late = Result(due_s=result.due_s, latency_s=result.late_s, outcome=Outcome.OK)
        self.late.add(late, target_s)
        if result.outcome is not Outcome.OK:
            self.failures[f"{result.outcome}: {result.detail}"] += 1


def _first_try(result: Result, first: FirstTry) -> Result:
    latency_s = result.late_s + first.took_s
    return Result(due_s=result.due_s, latency_s=latency_s, outcome=first.outcome)


class Generator:
    """Sends the requests of a load through an asker, and reports progress and results."""

    def __init__(
        self,
        asker: Asker,
        load: Sequence[float] | Users,
        limits: Limits,
        say: Callable[[Message], None],
    ) -> None:
        self._asker, self._load, self._limits, self._say = asker, load, limits, say
        self._records = Records(Windows(limits.window_s))
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Send no more; what is in flight is waited for."""
        self._stopped.set()

    async def run(self) -> Summary:
        """Send everything, wait for every outcome, and say windows and summary."""
        began_s = asyncio.get_running_loop().time()
        reporter = asyncio.create_task(self._report(began_s))
        try:
            async with asyncio.TaskGroup() as requests:
                match self._load:
                    case Users() as users:
                        for index in range(users.count):
                            requests.create_task(self._user(users, index, began_s))
                    case arrivals_s:
                        await self._send_all(arrivals_s, began_s, requests)
        finally:
            reporter.cancel()
        return self._conclude()

    async def _send_all(
        self, arrivals_s: Sequence[float], began_s: float, requests: asyncio.TaskGroup
    ) -> None:
        clock = asyncio.get_running_loop().time
        for number, due_s in enumerate(arrivals_s):
            wait_s = began_s + due_s - clock()
            if wait_s > 0.0 and await self._stopped_within(wait_s):
                return
            self._records.due += 1
            if self._records.in_flight >= self._limits.max_in_flight:
                self._end(Result(due_s=due_s, latency_s=0.0, outcome=Outcome.UNSENT, tries=0))
                continue
            self._records.in_flight += 1
            requests.create_task(self._one(number, due_s, began_s))

    async def _user(self, users: Users, index: int, began_s: float) -> None:
        clock = asyncio.get_running_loop().time
        for think_s in users.pauses_s(index):
            due_s = clock() - began_s + think_s
            if due_s >= users.duration_s or await self._stopped_within(think_s):
                return
            number = self._records.due
            self._records.due += 1
            self._records.in_flight += 1
            await self._one(number, due_s, began_s)

    async def _stopped_within(self, wait_s: float) -> bool:
        try:
            await asyncio.wait_for(self._stopped.wait(), wait_s)
        except TimeoutError:
            return False
        return True

    async def _one(self, number: int, due_s: float, began_s: float) -> None:
        clock = asyncio.get_running_loop().time
        late_s = clock() - began_s - due_s
        ending = await self._asker.ask(number)
        self._records.in_flight -= 1
        self._end(
            Result(
                due_s=due_s,
                latency_s=clock() - began_s - due_s,
                outcome=ending.outcome,
                late_s=late_s,
                retried=ending.retried,
                detail=ending.detail,
                tries=ending.tries,
            ),
            ending.first,
        )

    def _end(self, result: Result, first: FirstTry | None = None) -> None:
        self._records.add(result, first, self._limits.target_s)

    async def _report(self, began_s: float) -> None:
        clock = asyncio.get_running_loop().time
        for second in range(1, 1 << 30):
            await asyncio.sleep(max(0.0, began_s + second * PROGRESS_INTERVAL_S - clock()))
            self._say(self._progress(clock() - began_s))

    def _progress(self, at_s: float) -> Progress:
        ended, self._records.second = self._records.second, Tally()
        return Progress(
            at_s=round(at_s, 3),
            due=self._records.due,
            in_flight=self._records.in_flight,
            tally=ended,
        )

    def _conclude(self) -> Summary:
        for start_s, tally in self._records.windows.items():
            self._say(Window(start_s=start_s, duration_s=self._limits.window_s, tally=tally))
        summary = Summary(
            requests=self._records.due,
            tally=merged(tally for _, tally in self._records.windows.items()),
            retried=self._records.retried,
            tries=self._records.tries,
            first=self._records.first,
            connections=self._asker.connections,
            late_p99_s=self._records.late.quantile_s(LATE_PERCENTILE) or 0.0,
            failures=tuple(self._records.failures.most_common(SHOWN_FAILURES)),
            interrupted=self._stopped.is_set(),
        )
        self._say(summary)
        return summary
