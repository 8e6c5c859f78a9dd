"""`python -m decision_study`: perform missing runs and report; exits 0 if every figure holds."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape

import terminal
from bench import decision
from bench.figures import Figure, all_hold
from decision_study import options, plan, promises, records, report, running
from decision_study.family import command, excess_command, reactive_command
from decision_study.points import points_of
from decision_study.progress import bar
from decision_study.records import Job, Record

HELD, FAILED, INTERRUPTED = 0, 1, 130
FOLDER = Path(__file__).parents[2] / ".decision_study"
RUNS = FOLDER / "runs.jsonl"
WIDTH_WITHOUT_TERMINAL = 170


def main(argv: Sequence[str] | None = None) -> int:
    """Run, report, and return the exit status; `family` and its tables are studies of their own."""
    given = sys.argv[1:] if argv is None else argv
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    if given[:1] == ["family"]:
        return command.main(given[1:])
    if given[:1] == ["excess"]:
        return excess_command.main(given[1:])
    if given[:1] == ["reactive"]:
        return reactive_command.main(given[1:])
    asked = options.parsed(argv)
    console = terminal.console(width_without_terminal=WIDTH_WITHOUT_TERMINAL)
    if asked.fresh:
        RUNS.unlink(missing_ok=True)
    interrupted, failures = False, 0
    try:
        if not asked.report_only:
            failures = _run(asked, console)
    except KeyboardInterrupt:
        interrupted = True
    except ChildProcessError as error:
        console.print(f"[red]error:[/red] {error}; finished runs are kept", soft_wrap=True)
        failures = 1
    figures = _report(asked, console, whole=not interrupted)
    if interrupted:
        console.print("Interrupted: the report covers the finished runs; run again to continue.")
        return INTERRUPTED
    broken = [figure.name for figure in figures if not all_hold([figure])]
    if broken:
        console.print(f"[red]Not held:[/red] {escape('; '.join(broken))}.", soft_wrap=True)
    return FAILED if broken or failures else HELD


def _run(asked: options.Options, console: Console) -> int:
    """Perform missing runs: the sweep, then more seeds; return how many failed."""
    grids = options.grids(asked.extent)
    failures = _phase("sweep", plan.first(asked.extent, grids), asked.jobs, console)
    known = _known(asked.extent, grids)
    swept = [record for job, record in known.items() if job.seed == plan.SWEEP_SEED]
    further = plan.second(asked.extent, grids, points_of(swept))
    return failures + _phase("seeds", further, asked.jobs, console)


def _known(extent: plan.Extent, grids: plan.Grids) -> dict[Job, Record]:
    """Return all valid records of the extent."""
    kept = records.load(RUNS)
    jobs = plan.every(extent, grids)
    return records.current(kept, jobs)


def _phase(name: str, jobs: Sequence[Job], workers: int, console: Console) -> int:
    kept = records.load(RUNS)
    done = records.current(kept, jobs)
    times = {(job.cell, job.autoscaler): record.wall_s for job, record in kept.items()}
    missing = [job for job in jobs if job not in done]
    weights = {job: running.expected_s(job, times) for job in missing}
    missing.sort(key=lambda job: -weights[job])
    console.print(f"{name}: {len(done)} runs exist, {len(missing)} to go")
    if not missing:
        return 0
    began_s, spent_s, failed = time.monotonic(), 0.0, 0
    with bar(console) as shown:
        task = shown.add_task(name, total=sum(weights.values()), ended=f"0/{len(missing)}")
        ended = 0

        def finished(job: Job, result: Record | Exception) -> None:
            nonlocal spent_s, failed, ended
            ended += 1
            if isinstance(result, Record):
                records.append(RUNS, result)
                spent_s += result.wall_s
            else:
                failed += 1
                words = f"{job.cell}, {job.setting}, seed {job.seed}"
                kind = type(result).__name__
                shown.console.print(f"[red]failed:[/red] {escape(f'{words}: {kind}: {result}')}")
            shown.update(task, advance=weights[job], ended=f"{ended}/{len(missing)}")

        running.carry_out(missing, workers=workers, finished=finished, perform=running.perform)
    lasted_s = time.monotonic() - began_s
    console.print(f"{name}: {lasted_s:.0f} s, {spent_s:.0f} s of runs")
    return failed


def _report(asked: options.Options, console: Console, *, whole: bool) -> Sequence[Figure]:
    """Print and write the report; return the figures."""
    known = _known(asked.extent, options.grids(asked.extent))
    if not known:
        console.print("There are no results yet.")
        return ()
    measured = promises.of_decision(decision.measure()) if asked.alone and whole else ()
    found = report.of(known.values(), measured)
    for each in found.for_terminal():
        console.print(each)
    for path in report.write(found, FOLDER):
        console.print(f"wrote {path}", soft_wrap=True)
    return found.figures


if __name__ == "__main__":
    sys.exit(main())
