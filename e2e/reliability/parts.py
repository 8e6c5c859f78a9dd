"""The parts of `make reliability`: measurements and figures.

Results for the same sources are in `.bench/reliability`; they are not measured again.
"""

from __future__ import annotations

import argparse
import math
import os
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from bench.figures import Figure, at_least, at_most, shown
from reliability.crashes.crash_runs import explore_all
from reliability.crashes.crash_scenarios import SCENARIOS
from reliability.crashes.crashes import Side
from reliability.leaders import leaders
from reliability.outages import outages
from reliability.outages.fault_sets import fault_sets
from reliability.outages.outage_lanes import run_outages
from reliability.telemetry import telemetry
from reliability.telemetry.lies import Lie
from reliability.telemetry.page_faults import Fault
from reliability.testbed.testbed import SharedCluster
from results import FOLDER, ROOT, Results, digest

CORES = os.cpu_count() or 1
SIDE_BY_SIDE = 4 * CORES
"""Most of a run is waiting: for windows, for holds, for a fault to pass."""
SEQUENCES, TREES = 500_000, 9400
"""A tree has some 54 sequences."""
CRASH_POINTS, CRASH_SCENARIOS = 40, 6

Say = Callable[[str], None]
SOURCES = (ROOT / "operator" / "headroom", ROOT / "e2e" / "reliability")


@dataclass(frozen=True, kw_only=True)
class PartOptions:
    """The options of the command line."""

    trees: int
    fault_s: float
    minutes: float
    seed: int
    side_by_side: int
    only: str
    """Cells whose name has this in it."""
    results: Results

    @classmethod
    def of(cls, given: argparse.Namespace) -> Self:
        """Take it from the options."""
        folder = Path(tempfile.mkdtemp()) if given.fresh else FOLDER / "reliability"
        return cls(
            trees=given.trees,
            fault_s=given.fault_seconds,
            minutes=given.minutes,
            seed=given.seed,
            side_by_side=given.side_by_side,
            only=given.only,
            results=Results(folder / f"{digest(SOURCES)}.jsonl"),
        )


def measure_telemetry(options: PartOptions, say: Say) -> Sequence[Figure]:
    """Generated telemetry through text, samples and decision."""
    outcome = telemetry.run_side_by_side(options.trees, CORES, options.results)
    for wrong in outcome.wrongs[:20]:
        say(wrong)
    return (
        at_least("generated sequences", outcome.sequences, SEQUENCES, "", 0),
        at_most(
            "wrong scale-downs, two steps up, exceptions, replicas out of bounds",
            len(outcome.wrongs),
            0,
            "",
        ),
        shown("decisions", f"{outcome.ticks}"),
        shown("pages with a fault or a lie", f"{sum(outcome.faults.values())}"),
        *(shown(f"of these {kind.value}", f"{outcome.faults[kind]}") for kind in (*Fault, *Lie)),
        shown("sequences followed for 20 min", f"{outcome.later}"),
        shown("restarts from a checkpoint", f"{outcome.restarts}"),
        at_most("sequences with two steps up because of one replica", outcome.steps_up, 0, "", 0),
        shown("sequences with a correct scale-down", f"{outcome.removals}"),
    )


async def measure_crashes(on: SharedCluster, say: Say, options: PartOptions) -> Sequence[Figure]:
    """SIGKILL before and after every write of every scenario, and SIGSTOP in it."""
    reached, wrong, scenarios = Counter[str](), 0, set()
    chosen = [one for one in SCENARIOS if options.only in one.name]
    async for verdict in explore_all(
        on, chosen, side_by_side=options.side_by_side, results=options.results
    ):
        scenario, _, rest = verdict.point.partition(": ")
        if verdict.reached:
            reached["stopped" if rest.startswith(Side.STOPPED) else "killed"] += 1
            scenarios.add(scenario)
        if not verdict.holds:
            wrong += 1
            say(f"{verdict.point}: {'; '.join(verdict.wrongs)}")
    return (
        at_least("distinct crash points", reached["killed"], CRASH_POINTS, "", 0),
        at_least("scenarios with crashes", len(scenarios), CRASH_SCENARIOS, "", 0),
        shown("writes that arrived after a take-over", f"{reached['stopped']}"),
        at_most(
            "crash points with another end state, another scale action, or lost state",
            wrong,
            0,
            "",
            0,
        ),
    )


async def measure_outages(on: SharedCluster, say: Say, options: PartOptions) -> Sequence[Figure]:
    """Each fault on each verb for a minute, under load."""
    ended = []
    chosen = [faults for faults in fault_sets() if options.only in faults.name]
    async for outage in run_outages(
        on,
        chosen,
        side_by_side=options.side_by_side,
        fault_s=options.fault_s,
        results=options.results,
    ):
        ended.append(outage)
        if not outage.holds:
            say(f"{outage}")
    slowest_s = max((one.decided_s for one in ended), default=math.nan)
    wrong = sum(1 for one in ended if one.wrongs)
    return (
        shown(f"faults of {options.fault_s:g} s, one verb or all", f"{len(ended)}"),
        shown("decisions due during faults", f"{3 * len(ended)}"),
        at_most("from the end of a fault to the last decision", slowest_s, outages.BOUND_S, " s"),
        at_most("faults with a wrong or missing write", wrong, 0, "", 0),
    )


async def measure_leaders(on: SharedCluster, say: Say, options: PartOptions) -> Sequence[Figure]:
    """Two operators, the leader disturbed every half a minute."""
    count = max(1, round(options.minutes * 60.0 / leaders.EVERY_S))
    rivalry = await leaders.contend(on, leaders.drawn(options.seed, count))
    for wrong in rivalry.wrongs:
        say(wrong)
    counts = Counter(rivalry.faults)
    return (
        shown(
            f"faults of the leader in {options.minutes:g} min (seed {options.seed})",
            f"{len(rivalry.faults)}",
        ),
        *(shown(f"of these {fault}", f"{counts[fault]}") for fault in leaders.LeaderFault),
        shown("accepted writes, all leaders", f"{rivalry.writes}"),
        shown("writes of earlier leaders, rejected with 409", f"{rivalry.late_writes_refused}"),
        at_most(
            "writes of earlier leaders accepted, scale-downs, extra scale actions",
            len(rivalry.wrongs),
            0,
            "",
            0,
        ),
        at_most(
            "take-over after SIGTERM, slowest",
            rivalry.slowest_s(leaders.LeaderFault.TERM),
            leaders.AFTER_SIGTERM_S,
            " s",
        ),
        at_most(
            "take-over after SIGKILL, slowest",
            rivalry.slowest_s(leaders.LeaderFault.KILL),
            leaders.AFTER_SIGKILL_S,
            " s",
        ),
    )


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of these parts."""
    add = parser.add_argument_group("telemetry, crashes, outages, leaders").add_argument
    add(
        "--trees",
        type=int,
        default=TREES,
        help="number of trees of generated telemetry (%(default)s)",
    )
    add("--only", default="", help="only crashes and outages with this text in their name")
    add(
        "--fault-seconds",
        type=float,
        default=outages.FAULT_S,
        help="length of an outage (%(default)g)",
    )
    add("--minutes", type=float, default=10.0, help="length of the part leaders (%(default)g)")
    add("--seed", type=int, default=1, help="seed of the faults (%(default)s)")
    add(
        "--side-by-side",
        type=int,
        default=SIDE_BY_SIDE,
        help="number of concurrent operators (%(default)s)",
    )
    add("--fresh", action="store_true", help="ignore results that exist for these sources")


ON_A_CLUSTER: dict[str, Callable[..., Awaitable[Sequence[Figure]]]] = {
    "crashes": measure_crashes,
    "outages": measure_outages,
    "leaders": measure_leaders,
}
