"""The part `scale-1000` of `make reliability`: its options and its progress bar."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from bench.figures import Figure
from reliability.scale_1000.addresses import MOST_SERVICES, PODS_OF_A_SERVICE
from reliability.scale_1000.measuring import measure
from reliability.scale_1000.stage import Wanted
from reliability.testbed.testbed import SharedCluster
from results import Results

TITLE = "1000 services"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the sizes."""
    of = parser.add_argument_group("scale-1000")
    usual = Wanted()
    of.add_argument(
        "--services",
        type=_sizes,
        default=usual.services,
        help="numbers of services, increasing; e.g. 10,100,1000,5000",
    )
    of.add_argument(
        "--pods",
        type=_number(1, PODS_OF_A_SERVICE - 2),
        default=usual.pods,
        help="pods per service",
    )
    of.add_argument(
        "--unrelated",
        type=_number(0, 100_000),
        default=usual.unrelated,
        help="pods of unrelated workloads",
    )
    of.add_argument(
        "--watch",
        type=_number(1, 3600),
        default=int(usual.watch_s),
        help="seconds to watch each size",
    )


async def show(
    on: SharedCluster, given: argparse.Namespace, results: Results, console: Console
) -> Sequence[Figure]:
    """Measure as the options say what is not kept, with a bar for each step."""
    wanted = Wanted(
        services=given.services, pods=given.pods, unrelated=given.unrelated, watch_s=given.watch
    )
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:

        def bar(title: str, total: int) -> Callable[[int], object]:
            task = progress.add_task(title, total=total)
            if not console.is_terminal:  # where no bar shows, a line does
                console.print(f"[dim]{time.strftime('%X')} {title}, {total}[/dim]")
            return lambda come: progress.update(task, completed=come)

        def tell(found: Sequence[Figure]) -> None:
            for one in found:
                console.print(f"[dim]{one.name}: {one.measured}[/dim]")

        return await measure(on, wanted, results, bar, tell)


def _sizes(text: str) -> tuple[int, ...]:
    sizes = tuple(int(one) for one in text.split(",") if one.isdecimal())
    if (
        not sizes
        or list(sizes) != sorted(set(sizes))
        or not 0 < sizes[0] <= sizes[-1] <= MOST_SERVICES
    ):
        rule = f"increasing numbers from 1 to {MOST_SERVICES}, as in 10,100,1000"
        raise argparse.ArgumentTypeError(f"services must be {rule}; got {text!r}")
    return sizes


def _number(least: int, most: int) -> Callable[[str], int]:
    def read(text: str) -> int:
        if not text.isdecimal() or not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(
                f"must be a whole number from {least} to {most}; got {text!r}"
            )
        return int(text)

    return read
