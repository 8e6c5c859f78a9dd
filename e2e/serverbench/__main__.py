"""`python -m serverbench`: take missing measurements, report all; exits with 0 if all hold."""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

import terminal
from bench.figures import Figure, all_hold, table
from results import FOLDER
from serverbench import options, plan, records
from serverbench.installing import ENVIRONMENTS, CannotInstallError, install
from serverbench.judgement.comparison import side_by_side
from serverbench.judgement.findings import Findings
from serverbench.judgement.judging import judged
from serverbench.measuring import SERVERS, Bench, fingerprint, unmeasured, visited
from serverbench.records import Key, Record

HELD, FAILED, INTERRUPTED = 0, 1, 130
WIDTH_WITHOUT_TERMINAL = 160
FILES = 16_384


def main(argv: Sequence[str] | None = None) -> int:
    """Measure, report, and return the exit status."""
    asked = options.parsed(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    _allow_files()
    interrupted = not asked.report_only and not _measured(asked, console)
    kept = _kept(asked)
    current = {key: record for key, record in kept.items() if _is_current(record, asked)}
    if asked.report_only and len(current) < len(kept):
        old = len(kept) - len(current)
        console.print(
            f"[yellow]{old} of {len(kept)} measurements were taken on older sources.[/yellow]"
        )
    found = Findings((kept if asked.report_only else current).values())
    figures = _report(asked, found, console)
    if interrupted:
        console.print("Interrupted. The report covers what was measured; run again to resume.")
        return INTERRUPTED
    broken = [figure.name for figure in figures if not all_hold([figure])]
    if broken:
        console.print(f"[red]Failed:[/red] {escape('; '.join(broken))}.", soft_wrap=True)
        return FAILED
    console.print("[green]All figures are within their bounds.[/green]")
    return HELD


def _kept(asked: options.Options) -> Mapping[Key, Record]:
    """Return all records of the requested measurements."""
    known = records.load(FOLDER / f"{asked.scale.name}.jsonl")
    wanted = plan.keys(asked.cases, asked.servers, asked.scale)
    return {key: known[key] for key in wanted if key in known}


def _is_current(record: Record, asked: options.Options) -> bool:
    """Return whether the record still describes what would be measured now."""
    return record.fingerprint == fingerprint(record.key, asked.scale, asked.soak_minutes)


def _measured(asked: options.Options, console: Console) -> bool:
    """Measure what is missing; whether it came to its end."""
    known = {} if asked.fresh else _kept(asked)
    done = {key for key, old in known.items() if _is_current(old, asked) and not old.error}
    wanted = plan.keys(asked.cases, asked.servers, asked.scale)
    missing = [key for key in wanted if key not in done]
    console.print(f"{len(done)} measurements are there, {len(missing)} to go")
    if not missing:
        return True
    with _progress(console) as progress:
        bar = progress.add_task("", total=None)
        bench = Bench(asked.scale, ENVIRONMENTS, asked.soak_minutes, _teller(progress, bar))
        try:
            _measure(asked, _installed(asked, missing, bench, console), bench, progress, bar)
        except KeyboardInterrupt:
            return False
    return True


def _installed(
    asked: options.Options, missing: Sequence[Key], bench: Bench, console: Console
) -> list[Key]:
    """Install the peers that are needed; return what can be measured."""
    gone = set()
    for peer in [peer for peer in asked.peers if any(key.server == peer for key in missing)]:
        try:
            bench.say(f"installing {peer}")
            install(peer)
        except CannotInstallError as error:
            gone.add(peer)
            own = [key for key in missing if key.server == peer]
            for record in unmeasured(own, bench, str(error)):
                _keep(asked, record, console)
    return [key for key in missing if key.server not in gone]


def _measure(
    asked: options.Options, keys: Sequence[Key], bench: Bench, progress: Progress, bar: TaskID
) -> None:
    def weight(key: Key) -> float:
        return plan.expected_s(key.case, asked.scale, asked.soak_minutes)

    progress.update(bar, total=sum(map(weight, keys)))
    for visit in plan.visits(keys, asked.servers):
        for record in visited(visit, bench):
            _keep(asked, record, progress.console)
            progress.advance(bar, weight(record.key))


def _keep(asked: options.Options, record: Record, console: Console) -> None:
    records.add(FOLDER / f"{asked.scale.name}.jsonl", record)
    if record.error:
        console.print(
            f"[yellow]{record.case} {record.server}:[/yellow] {escape(record.error)}",
            soft_wrap=True,
        )


def _report(asked: options.Options, found: Findings, console: Console) -> list[Figure]:
    """Print both tables and what is missing, and write them as JSON."""
    titles = [SERVERS[name].title for name in asked.servers]
    beside = side_by_side(found, asked.cases, asked.servers, titles)
    if beside is not None:
        console.print(beside)
    figures = judged(found, asked.cases, asked.servers)
    console.print(table("The model server", figures))
    errors = found.errors(asked.cases, asked.servers)
    for server, reason in errors:
        console.print(f"[yellow]Not measured: {server}:[/yellow] {escape(reason)}", soft_wrap=True)
    console.print(f"[dim]load average {os.getloadavg()[0]:.1f}[/dim]")
    report = {
        "scale": asdict(asked.scale),
        "cases": asked.cases,
        "figures": [asdict(figure) for figure in figures],
        "not_measured": errors,
        "records": [record.model_dump() for record in found.records],
    }
    path = FOLDER / f"{asked.scale.name}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(report, indent=1))
    return figures


def _allow_files() -> None:
    """Thousands of connections, here and in all that is started from here."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = FILES if most == resource.RLIM_INFINITY else min(FILES, most)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


def _progress(console: Console) -> Progress:
    return Progress(
        TextColumn("{task.description:<40}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=console,
        refresh_per_second=1,
    )


def _teller(progress: Progress, bar: TaskID) -> Callable[[str], None]:
    def say(what: str) -> None:
        progress.update(bar, description=what)
        if not progress.console.is_terminal:
            progress.console.print(what)

    return say


if __name__ == "__main__":
    sys.exit(main())
