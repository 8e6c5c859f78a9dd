"""The open loop: each request is sent at its time, whatever happened to earlier ones.

A request's latency runs from that instant, so a generator that cannot keep up shows as latency
instead of hiding it (no coordinated omission). The run ends when every request has its outcome.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from load.client import Ending
from load.messages import Message, Progress, Summary, Window
from load.outcomes import Outcome, Result
from load.statistics import Tally, Windows, merged

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
    """Since progress was said last."""
    late: Tally = field(default_factory=Tally)
    failures: Counter[str] = field(default_factory=Counter)
    due: int = 0
    in_flight: int = 0
    retried: int = 0

    def add(self, result: Result, target_s: float) -> None:
        """Count one request's end."""
        self.windows.add(result, target_s)
        self.second.add(result, target_s)
        self.retried += result.retried
        late = Result(due_s=result.due_s, latency_s=result.late_s, outcome=Outcome.OK)
        self.late.add(late, target_s)
        if result.outcome is not Outcome.OK:
            self.failures[f"{result.outcome}: {result.detail}"] += 1


class Generator:
    """Replays instants through an asker, and says what it sees."""

    def __init__(
        self,
        asker: Asker,
        arrivals_s: Sequence[float],
        limits: Limits,
        say: Callable[[Message], None],
    ) -> None:
        self._asker, self._arrivals_s, self._limits, self._say = asker, arrivals_s, limits, say
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
                await self._send_all(began_s, requests)
        finally:
            reporter.cancel()
        return self._conclude()

    async def _send_all(self, began_s: float, requests: asyncio.TaskGroup) -> None:
        clock = asyncio.get_running_loop().time
        for number, due_s in enumerate(self._arrivals_s):
            wait_s = began_s + due_s - clock()
            if wait_s > 0.0 and await self._stopped_within(wait_s):
                return
            self._records.due += 1
            if self._records.in_flight >= self._limits.max_in_flight:
                self._end(Result(due_s=due_s, latency_s=0.0, outcome=Outcome.UNSENT))
                continue
            self._records.in_flight += 1
            requests.create_task(self._one(number, due_s, began_s))

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
            )
        )

    def _end(self, result: Result) -> None:
        self._records.add(result, self._limits.target_s)

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
            connections=self._asker.connections,
            late_p99_s=self._records.late.quantile_s(LATE_PERCENTILE) or 0.0,
            failures=tuple(self._records.failures.most_common(SHOWN_FAILURES)),
            interrupted=self._stopped.is_set(),
        )
        self._say(summary)
        return summary
