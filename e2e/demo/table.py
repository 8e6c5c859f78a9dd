"""The live view: one table from the last look and the generator's last seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from demo.checks import percent, seconds_text
from demo.recording import Look, Recording, arrivals_rps, decisions, recent, utilization
from demo.views import ServiceView
from load.outcomes import Outcome
from load.statistics import merged

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


def rows(look: Look, recording: Recording) -> list[Row]:
    """Everything that the live table shows."""
    service, lately = look.service, recent(recording.seconds)
    arrivals = arrivals_rps(recording.seconds)
    used, share = utilization(arrivals, service), service.percentile / 100
    tail_s = lately.quantile_s(share)
    depth = service.queue_depth or (service.cost.max_batch if service.cost else None)
    lost = merged(second.tally for second in recording.seconds).outcomes[Outcome.LOST]
    return [
        Row(
            name="arrivals",
            now=UNKNOWN if arrivals is None else f"{arrivals:.1f} /s",
            bound=_demand(service),
        ),
        Row(
            name="waiting",
            now=UNKNOWN if look.waiting is None else str(look.waiting),
            bound=f"at most {depth} per replica" if depth else "",
            style=_style(look.waiting, depth and depth * max(1, service.ready)),
        ),
        Row(
            name=f"p{service.percentile}, last 10 s",
            now=UNKNOWN if tail_s is None else seconds_text(tail_s),
            bound=f"target {service.target_s:g} s",
            style=_style(tail_s, service.target_s),
        ),
        Row(
            name="utilization",
            now=UNKNOWN if used is None else percent(used),
            bound=f"ceiling {percent(service.utilization_ceiling)}",
            style=_style(used, service.utilization_ceiling),
        ),
        Row(
            name="replicas",
            now=replicas_text(look),
            bound=f"{service.min_replicas} to {service.max_replicas}",
            style=BUSY if service.warming else "",
        ),
        Row(name="lost requests", now=str(lost), style=BAD if lost else ""),
    ]


def _demand(service: ServiceView) -> str:
    """Return the demand where arrivals do not show it."""
    demand = service.demand
    return f"demand {demand.rate}" if demand is not None and service.demand_is_bound else ""


def replicas_text(look: Look) -> str:
    """Return the number of replicas by state, as text."""
    service = look.service
    parts = [f"{service.ready} ready", f"{service.warming} warming"]
    parts += [f"{service.unschedulable} unschedulable"] * bool(service.unschedulable)
    parts += [f"{service.broken} broken"] * bool(service.broken)
    return ", ".join([*parts, f"{look.workload.replicas} desired"])


def reason_text(look: Look) -> str:
    """Why it is that many."""
    decision = look.service.decision
    return f"{decision.reason}: {decision.message}" if decision else "no decision yet"


def view(look: Look, recording: Recording, title: str) -> RenderableType:
    """Lay out the table with the replay's progress and the last decisions that moved replicas."""
    table = Table(title=title, title_justify="left", show_header=False, min_width=72)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(style=DIM, no_wrap=True)
    for row in rows(look, recording):
        table.add_row(row.name, Text(row.now, style=row.style), row.bound)
    bar = Padding(ProgressBar(total=1.0, completed=_share_done(look, recording), width=72))
    moves = decisions(recording.during())[-SHOWN_DECISIONS:]
    lines = [Text(f"now       {reason_text(look)}", overflow="ellipsis", no_wrap=True)]
    lines += [
        Text(
            f"at {recording.since_start_s(move.time_s):3.0f} s  {move.current} → {move.replicas}  "
            f"{move.reason}: {move.message}",
            style=DIM,
            overflow="ellipsis",
            no_wrap=True,
        )
        for move in moves
    ]
    return Group(table, bar, *lines)


def line(look: Look, recording: Recording) -> str:
    """Say the same in one line, where there is no terminal."""
    at_s = max(0.0, recording.since_start_s(look.time_s)) if recording.started else 0.0
    cells = [f"{row.name} {row.now}" for row in rows(look, recording)]
    return f"{at_s:4.0f} s  " + " | ".join([*cells, reason_text(look)])


def _share_done(look: Look, recording: Recording) -> float:
    if recording.started is None:
        return 0.0
    done_s = recording.since_start_s(look.time_s)
    return min(1.0, max(0.0, done_s / recording.started.duration_s))


def _style(value: float | None, bound: float | None) -> str:
    if value is None or bound is None:
        return DIM
    return BAD if value > bound or math.isinf(value) else GOOD
