"""`python -m reliability [PART...]`: show the promises under faults; 0 only if all of them hold."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from bench.figures import Figure, all_hold, at_least, at_most, shown, table
from cluster import ClusterError, ControlPlane, provision
from cluster.layout import Cache
from cluster.progress import OnConsole
from reliability import outages, telemetry
from reliability.crash_scenarios import SCENARIOS
from reliability.crashes import explore_all
from reliability.ground import Ground, ground

HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 120
CORES = os.cpu_count() or 1
SIDE_BY_SIDE = 4 * CORES
"""Most of a run is waiting: for windows, for holds, for a fault to pass."""
SEQUENCES = 200_000
CRASH_POINTS, CRASH_SCENARIOS = 40, 6

Say = Callable[[str], None]


def measure_telemetry(say: Say) -> Sequence[Figure]:
    """Generated telemetry through text, samples and decision."""
    outcome = telemetry.run_side_by_side(SEQUENCES, CORES)
    for wrong in outcome.wrongs[:20]:
        say(wrong)
    return (
        at_least("generated sequences", outcome.sequences, SEQUENCES, "", 0),
        at_most(
            "removals from missing data, and numbers out of bounds", len(outcome.wrongs), 0, ""
        ),
        shown("pages with a fault", f"{sum(outcome.faults.values())}"),
        shown("sequences in which a removal was right, and came", f"{outcome.removals}"),
    )


async def measure_crashes(on: Ground, say: Say) -> Sequence[Figure]:
    """SIGKILL before and after every write of every scenario."""
    struck, wrong, scenarios = 0, 0, set()
    async for verdict in explore_all(on, SCENARIOS, side_by_side=SIDE_BY_SIDE, lease=True):
        if verdict.struck:
            struck += 1
            scenarios.add(verdict.point.partition(":")[0])
        if not verdict.holds:
            wrong += 1
            say(f"{verdict.point}: {'; '.join(verdict.wrongs)}")
    return (
        at_least("distinct crash points", struck, CRASH_POINTS, "", 0),
        at_least("scenarios with crashes", len(scenarios), CRASH_SCENARIOS, "", 0),
        at_most("crashes with another end, another scale action, or a loss", wrong, 0, "", 0),
    )


async def measure_outages(on: Ground, say: Say) -> Sequence[Figure]:
    """Each fault on each verb for a minute, under load."""
    suffered = []
    async for outage in outages.suffer_all(on, outages.cells(), side_by_side=SIDE_BY_SIDE):
        suffered.append(outage)
        if not outage.holds:
            say(f"{outage}: {outage.decided_s:.1f} s; {'; '.join(outage.wrongs)}")
    slowest_s = max(one.decided_s for one in suffered)
    wrong = sum(1 for one in suffered if one.wrongs)
    return (
        shown("faults, each on one verb for a minute", f"{len(suffered)}"),
        at_most(
            "from the end of a fault to the decision, slowest", slowest_s, outages.BOUND_S, " s"
        ),
        at_most("faults with a wrong write or none", wrong, 0, "", 0),
    )


TITLES = {
    "telemetry": "Generated telemetry",
    "crashes": "Killed around every write",
    "outages": "Every fault on every verb",
}
ON_A_CLUSTER: dict[str, Callable[[Ground, Say], Awaitable[Sequence[Figure]]]] = {
    "crashes": measure_crashes,
    "outages": measure_outages,
}


def main(argv: Sequence[str] | None = None) -> int:
    """Show the parts that are named, or all, and return the exit status."""
    wanted = _parser().parse_args(argv).part or list(TITLES)
    console = Console(highlight=False)
    if not console.is_terminal:
        console = Console(highlight=False, width=WIDTH_WITHOUT_TERMINAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    broken: list[str] = []

    def say(text: str) -> None:
        console.print(f"[red]wrong:[/red] {escape(text)}", soft_wrap=True)

    def show(part: str, figures: Sequence[Figure]) -> None:
        console.print(table(TITLES[part], figures))
        console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]\n")
        broken.extend(figure.name for figure in figures if not all_hold([figure]))

    try:
        if "telemetry" in wanted:
            show("telemetry", measure_telemetry(say))
        if parts := [part for part in ON_A_CLUSTER if part in wanted]:
            provision.ensure_control_plane(Cache.of_this_user(), OnConsole(console))
            with ControlPlane() as plane, tempfile.TemporaryDirectory() as scratch:
                asyncio.run(_on(plane, Path(scratch), parts, show, say))
    except ClusterError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted: nothing that was started is left running.")
        return INTERRUPTED
    if broken:
        console.print(f"[red]Not held:[/red] {escape('; '.join(broken))}.", soft_wrap=True)
        return FAILED
    console.print("[green]All promises hold.[/green]")
    return HELD


async def _on(
    plane: ControlPlane,
    scratch: Path,
    parts: Sequence[str],
    show: Callable[[str, Sequence[Figure]], None],
    say: Say,
) -> None:
    async with ground(plane, scratch) as on:
        for part in parts:
            show(part, await ON_A_CLUSTER[part](on, say))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reliability", description=__doc__, allow_abbrev=False)
    words = f"of {', '.join(TITLES)}; all by default"
    parser.add_argument("part", nargs="*", type=_part, help=words)
    return parser


def _part(text: str) -> str:
    if text not in TITLES:
        raise argparse.ArgumentTypeError(f"a part is one of {', '.join(TITLES)}; got {text!r}")
    return text


if __name__ == "__main__":
    sys.exit(main())
