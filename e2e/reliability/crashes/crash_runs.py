"""Explores every point at which an operator can crash, several at a time, keeping what ended."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import asdict

from pydantic import TypeAdapter

from reliability.crashes.crash_scenarios import Scenario
from reliability.crashes.crashes import Baseline, Point, Side, explore, unharmed
from reliability.crashes.verdicts import Verdict
from reliability.testbed.admin import Refused
from reliability.testbed.testbed import SharedCluster
from reliability.testbed.world import NotReached
from results import Results

PART = "crashes"
_BASELINES = TypeAdapter(Baseline)


class CrashRuns:
    """Runs on one cluster, this many side by side; those in `results` are not repeated."""

    def __init__(self, on: SharedCluster, side_by_side: int, results: Results | None) -> None:
        self._on = on
        self._room = asyncio.Semaphore(side_by_side)
        self._results = results

    async def baseline(self, scenario: Scenario) -> Baseline | NotReached | Refused:
        """Return what a scenario does without a crash, or why it cannot be played."""
        results, key = self._results, f"{scenario.name} unharmed"
        row = results.get(PART, key) if results else None
        if row is not None:
            return _BASELINES.validate_python(row)
        try:
            async with self._room:
                baseline = await unharmed(self._on, scenario)
        except (NotReached, Refused) as error:
            return error
        if results is not None:
            results.put(PART, key, _BASELINES.dump_python(baseline, mode="json"))
        return baseline

    async def verdict(self, scenario: Scenario, baseline: Baseline, point: Point) -> Verdict:
        """Return what a crash at one point of a scenario leads to."""
        results = self._results
        row = results.get(PART, str(point)) if results else None
        if row is not None:
            return Verdict(**{**row, "wrongs": tuple(row["wrongs"])})
        async with self._room:
            verdict = await explore(self._on, scenario, baseline, point)
        if results is not None:
            results.put(PART, str(point), asdict(verdict))
        return verdict


async def explore_all(
    on: SharedCluster,
    scenarios: Sequence[Scenario],
    *,
    side_by_side: int,
    sides: Collection[Side] = tuple(Side),
    results: Results | None = None,
) -> AsyncIterator[Verdict]:
    """Explore every point of the scenarios, several at a time, as they end; those kept at once.

    Their order is drawn, so that a run that is interrupted has seen something of every scenario.
    """
    runs = CrashRuns(on, side_by_side, results)
    baselines = await asyncio.gather(*map(runs.baseline, scenarios))
    chosen: list[tuple[Scenario, Baseline, Point]] = []
    for scenario, baseline in zip(scenarios, baselines, strict=True):
        if isinstance(baseline, NotReached | Refused):
            yield Verdict(point=scenario.name, reached=False, wrongs=(f"unharmed: {baseline}",))
            continue
        chosen += [
            (scenario, baseline, point)
            for point in baseline.points
            if point.side in sides and scenario.explores(point.words)
        ]
    random.Random(len(chosen)).shuffle(chosen)
    tasks = [asyncio.create_task(runs.verdict(*one)) for one in chosen]
    try:
        for run in asyncio.as_completed(tasks):
            yield await run
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
