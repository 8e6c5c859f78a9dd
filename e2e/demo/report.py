"""The final report: targets, measured values, cost, and the reasons of decisions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from demo.changes import changes
from demo.checks import percent, seconds_text
from demo.occupancy import cold_starts_s, gpu_seconds, occupancies
from demo.recording import Recording, Run
from demo.requirements import Check
from load.outcomes import Outcome
from load.statistics import Tally, merged

MINUTE_S = 60.0


def render(recording: Recording, checks: Sequence[Check]) -> RenderableType:
    """Lay out the whole report."""
    if recording.summary is None or not recording.snapshots:
        return _checks(checks)
    missed = [("missed", f"{count} x {what}") for what, count in recording.summary.failures]
    return laid_out([*figures(recording), *missed], recording, checks)


def laid_out(rows: Sequence[tuple[str, str]], run: Run, checks: Sequence[Check]) -> RenderableType:
    """Lay out the figures of any run with its decisions and checks."""
    said = [Text(f"\n{one.otherwise}") for one in checks if one.otherwise and not one.held]
    return Group(_figures(rows), _decisions(run), _checks(checks), *said)


def write(shown: RenderableType, folder: Path, console: Console) -> None:
    """Print the report, and write it into the folder."""
    console.print(shown)
    with (folder / "report.txt").open("w") as file:
        Console(file=file, width=160).print(shown)


def figures(recording: Recording) -> Iterator[tuple[str, str]]:
    """Each figure of the run by name."""
    assert recording.summary is not None
    tally, summary = recording.summary.tally, recording.summary
    service = recording.snapshots[-1].service
    share = service.percentile / 100
    yield "requests", f"{summary.requests}: {_outcomes(tally)}"
    yield (
        "SLO attainment",
        f"{percent(tally.attainment)} of all requests within {service.target_s:g} s",
    )
    yield (
        f"p{service.percentile}",
        f"{seconds_text(tally.quantile_s(share))}; p50 {seconds_text(tally.quantile_s(0.5))}",
    )
    minutes = list(by_minute(recording))
    kept = sum(1 for minute in minutes if minute.holds(share))
    yield (
        "minutes within the SLO",
        f"{kept} of {len(minutes)}: " + ", ".join(percent(minute.attainment) for minute in minutes),
    )
    yield from cost(recording)
    yield (
        "connections",
        f"{summary.connections} opened, {summary.retried} requests retried on a fresh one",
    )


def cost(run: Run) -> Iterator[tuple[str, str]]:
    """Yield the cost of the replicas, and the time of their starts."""
    holds = occupancies(run.snapshots, run.start_s, run.end_s)
    spent = gpu_seconds(holds)
    peak = max((snapshot.gpus_held for snapshot in run.during()), default=0)
    static = peak * run.duration_s
    saved = 1.0 - spent / static if static else 0.0
    yield "GPU-seconds", f"{spent:.0f}, held by {len(holds)} pods"
    yield "compared with the peak", f"{peak} GPUs throughout: {static:.0f} ({percent(saved)} saved)"
    cold = cold_starts_s(run.snapshots, run.start_s)
    if cold:
        yield (
            "cold start",
            f"{median(cold):g} s median, {cold[-1]:g} s longest, of {len(cold)} pods",
        )


def by_minute(recording: Recording) -> Iterator[Tally]:
    """The requests that were due in each minute of the replay."""
    minutes: dict[int, list[Tally]] = {}
    for window in recording.windows:
        minutes.setdefault(int(window.start_s // MINUTE_S), []).append(window.tally)
    for _, tallies in sorted(minutes.items()):
        yield merged(tallies)


def _outcomes(tally: Tally) -> str:
    return ", ".join(
        f"{tally.outcomes[outcome]} {outcome}"
        for outcome in Outcome
        if tally.outcomes[outcome] or outcome in (Outcome.OK, Outcome.LOST)
    )


def _figures(rows: Sequence[tuple[str, str]]) -> Table:
    table = Table(title="\nThe run", title_justify="left", show_header=False, box=None)
    table.add_column(style="cyan", no_wrap=True)
    table.add_column()
    for name, value in rows:
        table.add_row(name, value)
    return table


def _decisions(run: Run) -> Table:
    table = Table(title="\nDecisions", title_justify="left", box=None)
    for heading in ("at", "replicas", "reason", "message"):
        table.add_column(heading, no_wrap=heading != "message")
    for change in changes(run.snapshots):
        at_s = run.since_start_s(change.time_s)
        decision = change.decision
        table.add_row(
            f"{at_s:.0f} s" if at_s >= 0 else "before",
            f"{change.before} → {change.after}",
            decision.reason if decision else "none",
            decision.because if decision else "no decision was seen",
        )
    return table


def _checks(checks: Sequence[Check]) -> Table:
    table = Table(title="\nChecks", title_justify="left", box=None)
    for heading in ("", "check", "measured", "required"):
        table.add_column(heading, no_wrap=not heading)
    for check in checks:
        mark = Text("held", style="green") if check.held else Text("FAILED", style="bold red")
        table.add_row(mark, check.name, check.measured, check.required)
    return table
