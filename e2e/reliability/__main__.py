"""`python -m reliability [PART...]`: show the bounds under faults; exits with 0 if all hold."""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import terminal
from bench.figures import Figure, all_hold, table
from cluster import ClusterError, ControlPlane, provision
from cluster.layout import Cache
from cluster.progress import OnConsole
from reliability import parts
from reliability.attacks import part as attacks
from reliability.generation import generation
from reliability.scale_1000 import part as scale_1000
from reliability.soak import part as soak
from reliability.testbed.testbed import SharedCluster, shared_cluster

HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 120
Say = Callable[[str], None]
Measure = Callable[[SharedCluster, Say], Awaitable[Sequence[Figure]]]


TITLES = {
    "telemetry": "Generated telemetry",
    "crashes": "Operator killed or paused around every write",
    "outages": "Every fault on every verb",
    "leaders": "Two operators; the leader is stopped, killed or paused every 30 s",
    "scale-1000": scale_1000.TITLE,
    "soak": soak.TITLE,
    "attacks": attacks.TITLE,
    "generation": generation.TITLE,
}


class _Report:
    """Prints tables as they come, and keeps the names of figures beyond their bounds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.broken: list[str] = []

    def say(self, text: str) -> None:
        self.console.print(f"[red]wrong:[/red] {escape(text)}", soft_wrap=True)

    def show(self, part: str, figures: Sequence[Figure], title: str = "") -> None:
        self.console.print(table(title or TITLES[part], figures))
        self.console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]\n")
        self.broken.extend(figure.name for figure in figures if not all_hold([figure]))

    def show_attack(self, component: str, figures: Sequence[Figure]) -> None:
        self.show("attacks", figures, f"{attacks.TITLE}: {component}")


def main(argv: Sequence[str] | None = None) -> int:
    """Show the parts that are named, or all, and return the exit status."""
    given = _parser().parse_args(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    report = _Report(console)
    try:
        _measure(given, report)
    except ClusterError as error:
        console.print(f"[red]error:[/red] {escape(str(error))}", soft_wrap=True)
        return FAILED
    except KeyboardInterrupt:
        console.print("Interrupted. All started processes were stopped.")
        return INTERRUPTED
    if report.broken:
        console.print(f"[red]Failed:[/red] {escape('; '.join(report.broken))}.", soft_wrap=True)
        return FAILED
    console.print("[green]All figures are within their bounds.[/green]")
    return HELD


def _measure(given: argparse.Namespace, report: _Report) -> None:
    """Measure first what needs no cluster."""
    wanted, options = given.part or list(TITLES), parts.PartOptions.of(given)
    if "telemetry" in wanted:
        report.show("telemetry", parts.measure_telemetry(options, report.say))
    if "soak" in wanted:
        report.show("soak", soak.show(given, report.console))
    if "generation" in wanted:
        report.show("generation", generation.show(given, report.say))
    if "attacks" in wanted:
        asyncio.run(attacks.measure(attacks.PartOptions.of(given), report.show_attack, report.say))
    if chosen := {part: one for part, one in _on_a_cluster(given, report) if part in wanted}:
        provision.ensure_control_plane(Cache.of_this_user(), OnConsole(report.console))
        with ControlPlane() as plane, tempfile.TemporaryDirectory() as scratch:
            asyncio.run(_play_all(plane, Path(scratch), chosen, report, given.together))


def _on_a_cluster(given: argparse.Namespace, report: _Report) -> Iterator[tuple[str, Measure]]:
    """Yield the parts that need a cluster."""
    options = parts.PartOptions.of(given)
    if attacks.OPERATOR in attacks.chosen(attacks.PartOptions.of(given)):
        yield "attacks", partial(attacks.measure_operator, options=attacks.PartOptions.of(given))
    for name, one in parts.ON_A_CLUSTER.items():
        yield name, partial(one, options=options)
    yield "scale-1000", lambda on, _: scale_1000.show(on, given, options.results, report.console)


async def _play_all(
    plane: ControlPlane,
    scratch: Path,
    chosen: Mapping[str, Measure],
    report: _Report,
    together: bool,
) -> None:
    async def play(part: str, measure: Measure) -> None:
        report.show(part, await measure(on, report.say))

    async with shared_cluster(plane, scratch) as on:
        if not together:
            for part, measure in chosen.items():
                await play(part, measure)
            return
        async with asyncio.TaskGroup() as group:
            for part, measure in chosen.items():
                group.create_task(play(part, measure))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="reliability", description=__doc__, allow_abbrev=False)
    words = f"one or more of {', '.join(TITLES)}; all by default"
    parser.add_argument("part", nargs="*", type=_part, help=words)
    together = "run the parts that need a cluster at the same time"
    parser.add_argument("--together", action="store_true", help=together)
    parts.add_options(parser)
    scale_1000.add_options(parser)
    soak.add_options(parser)
    attacks.add_options(parser)
    generation.add_options(parser)
    return parser


def _part(text: str) -> str:
    if text not in TITLES:
        raise argparse.ArgumentTypeError(f"part must be one of {', '.join(TITLES)}; got {text!r}")
    return text


if __name__ == "__main__":
    sys.exit(main())
