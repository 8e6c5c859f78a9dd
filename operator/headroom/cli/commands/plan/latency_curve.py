"""Prints and draws the latency of planned replicas by utilization."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.commands.plan.output import counted, ms
from headroom.planner.curve_plot import FORMATS, curve_picture
from headroom.planner.errors import ImpossiblePlan
from headroom.planner.replicas import PERCENTILES, ReplicaPlan
from headroom.planner.utilization_curve import utilization_curve

CURVE_POINTS = 14
"""Every 7 % up to 98 %."""


def write_plot(plan: ReplicaPlan, path: Path) -> None:
    """Draw the curve in the format of the file's ending; create the file's folder.

    Raises ImpossiblePlan, OSError.
    """
    try:
        picture = curve_picture(plan, picture_kind(path))
    except ImportError:
        raise ImpossiblePlan(
            "--out needs matplotlib, which is not installed: pip install 'headroom[simulator]'"
        ) from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(picture)


def picture_kind(path: Path) -> str:
    """Return the format that a file's ending names. Raises ImpossiblePlan."""
    kind = path.suffix.removeprefix(".")
    if kind not in FORMATS:
        endings = ", ".join("." + one for one in FORMATS)
        raise ImpossiblePlan(f"--out must end with {endings}; got {path.name!r}. Rename the file.")
    return kind


def curve_of(plan: ReplicaPlan) -> tuple[list[dict[str, Any]], RenderableType]:
    """Return the latency of the planned replicas by utilization, as JSON and table."""
    curve = utilization_curve(plan.service, plan.replicas, CURVE_POINTS)
    names = [f"p{100 * p:g}" for p in PERCENTILES]
    table = Table(
        box=None, pad_edge=False, title=counted(plan.replicas, "replica"), title_justify="left"
    )
    for column in ("utilization", "arrivals", *names):
        table.add_column(column, justify="right")
    rows = zip(curve.utilization, curve.arrival_rps, curve.latency_s, strict=True)
    report = []
    for busy, rate_rps, latency_s in rows:
        table.add_row(f"{100 * busy:.0f} %", f"{rate_rps:.4g}/s", *map(ms, latency_s))
        entry = {"utilization": float(busy), "arrivalRps": float(rate_rps)}
        entry |= {f"{name}Seconds": float(one) for name, one in zip(names, latency_s, strict=True)}
        report.append(entry)
    return report, Group(Text(), table)
