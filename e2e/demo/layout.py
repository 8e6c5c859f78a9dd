"""The live view of any demo: rows of quantities, progress, and the last decisions that moved."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo.recording import Run, Snapshot, decisions
from demo.views import DecisionView

SHOWN_DECISIONS = 4
UNKNOWN = "?"
GOOD, BAD, BUSY, DIM = "green", "bold red", "yellow", "dim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One quantity: what it is now, and what it is held against."""

    name: str
    now: str
    bound: str = ""
    style: str = ""


def view(rows: Sequence[Row], snapshot: Snapshot, run: Run, title: str) -> RenderableType:
    """Lay out the rows with the load's progress and the last decisions that moved replicas."""
    table = Table(title=title, title_justify="left", show_header=False, min_width=72)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style=DIM, no_wrap=True)
    for row in rows:
        table.add_row(row.name, Text(row.now, style=row.style), row.bound)
    bar = Padding(ProgressBar(total=1.0, completed=run.share_done(snapshot), width=72))
    moves = decisions(run.during())[-SHOWN_DECISIONS:]
    lines = [Text(f"now       {reason_text(snapshot)}", overflow="ellipsis", no_wrap=True)]
    lines += [
        Text(
            f"at {run.since_start_s(move.time_s):3.0f} s  {move.current} → {move.replicas}  "
            + moved_text(move),
            style=DIM,
            overflow="ellipsis",
            no_wrap=True,
        )
        for move in moves
    ]
    return Group(table, bar, *lines)


def line(rows: Sequence[Row], snapshot: Snapshot, run: Run) -> str:
    """Say the same in one line, where there is no terminal."""
    at_s = max(0.0, run.since_start_s(snapshot.time_s)) if run.has_begun else 0.0
    cells = [f"{row.name} {row.now}" for row in rows]
    return f"{at_s:4.0f} s  " + " | ".join([*cells, reason_text(snapshot)])


def replicas_row(snapshot: Snapshot) -> Row:
    """Return the number of replicas by state."""
    service = snapshot.service
    return Row(
        name="replicas",
        now=replicas_text(snapshot),
        bound=f"{service.min_replicas} to {service.max_replicas}",
        style=BUSY if service.warming else "",
    )


def replicas_text(snapshot: Snapshot) -> str:
    """Return the number of replicas by state, as text."""
    service = snapshot.service
    parts = [f"{service.ready} ready", f"{service.warming} warming"]
    parts += [f"{service.unschedulable} unschedulable"] * bool(service.unschedulable)
    parts += [f"{service.broken} broken"] * bool(service.broken)
    return ", ".join([*parts, f"{snapshot.workload.replicas} desired"])


def reason_text(snapshot: Snapshot) -> str:
    """Return the reason for the number of replicas."""
    decision = snapshot.service.decision
    return f"{decision.reason}: {decision.message}" if decision else "no decision yet"


def moved_text(move: DecisionView) -> str:
    """Return the reason for the change, next to the numbers; a deciding rule is named once."""
    said = move.because
    return said if said.startswith(f"{move.reason} ") else f"{move.reason}: {said}"


def style(value: float | None, bound: float | None) -> str:
    """Return how to show a value with an upper bound."""
    if value is None or bound is None:
        return DIM
    return BAD if value > bound or math.isinf(value) else GOOD
