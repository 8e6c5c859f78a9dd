"""Output of `headroom plan`: a report as text or JSON, an error with exit code 2, numbers."""

# ruff: noqa: PLC0415  (help is shown without the planner)

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from headroom.cli.cluster_options import Output
from headroom.cli.messages import say

if TYPE_CHECKING:
    from rich.console import RenderableType


MOST_COLUMNS = 1000
NO_REDUNDANCY = (
    "1 replica: nothing is served while it restarts or its node is lost; minReplicas: 2 avoids that"
)


@contextmanager
def exit_on_invalid_input() -> Iterator[None]:
    """Print the error and exit with 2 for input that cannot be planned, measured or read."""
    from headroom.errors import Unmeasurable
    from headroom.planner.errors import ImpossiblePlan

    try:
        yield
    except (ImpossiblePlan, Unmeasurable, ValueError, OSError) as error:
        say(f"error: {error}")
        raise typer.Exit(2) from None


def show(report: object, views: list[RenderableType] | RenderableType, output: Output) -> None:
    """Print the report as JSON, or its views as text; no column of a table is cut."""
    if output is Output.JSON:
        typer.echo(json.dumps(report, indent=2, allow_nan=False))
        return
    from rich.console import Console, Group
    from rich.measure import Measurement

    shown = Group(*views) if isinstance(views, list) else views
    console = Console(highlight=False, soft_wrap=True)
    widest = console.options.update(max_width=MOST_COLUMNS)
    console.width = max(console.width, Measurement.get(console, widest, shown).maximum)
    console.print(shown)


def ms(seconds: float) -> str:
    """Format a latency; `unbounded` where the queue grows without bound."""
    if math.isinf(seconds):
        return "unbounded"
    if seconds >= 999.5:
        return f"{seconds:.0f} s"
    if seconds >= 9.995:
        return f"{seconds:.3g} s"
    return f"{1000 * seconds:.0f} ms" if seconds >= 0.0995 else f"{1000 * seconds:.3g} ms"


def rate(rps: float) -> str:
    """Format requests per second."""
    return f"{rps:.0f}/s" if rps >= 999.5 else f"{rps:.3g}/s"


def span(seconds: float) -> str:
    """Format a time as in a resource, to the millisecond."""
    from headroom.api.durations import Duration

    return str(Duration.of_seconds(round(seconds, 3)))


def finite(value: float) -> float | None:
    """Return the value for JSON, which has no infinity: None is unbounded."""
    return value if math.isfinite(value) else None


def counted(number: int, noun: str) -> str:
    """Format a count: 1 replica, 2 replicas."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
