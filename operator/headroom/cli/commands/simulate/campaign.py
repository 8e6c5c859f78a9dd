"""`headroom simulate`: what to run, carried out with progress, then table, JSON and page.

The table goes to standard output, progress and everything else that is said to standard error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.commands.simulate.progress import RunsProgress
from headroom.cli.commands.simulate.request import WITHOUT, Ports, Request, runs_of
from headroom.cli.commands.simulate.worker_pool import Study, carry_out
from headroom.simulator.ablation import effects
from headroom.simulator.outcome import Outcome
from headroom.simulator.report import number_format
from headroom.simulator.report.html_page import page
from headroom.simulator.report.json_report import written
from headroom.simulator.report.study_table import ablated, swept
from headroom.simulator.report.summary import summarized
from headroom.simulator.report.terminal_table import tables
from headroom.simulator.report.write import write_atomically
from headroom.simulator.sweep import tuned

INTERRUPTED = 130
_PIPE_COLUMNS = 170
"""Nobody resizes a pipe: a table in a file is as wide as it needs to be."""


def listed(ports: Ports) -> RenderableType:
    """Render what can be named: shipped scenarios, and autoscalers with their knobs."""
    scenarios = _grid("scenario", "what happens")
    for name, path in ports.scenarios.items():
        scenarios.add_row(Text(name), Text(_opening(path)))
    autoscalers = _grid("autoscaler", "what it does, and its knobs with their defaults")
    autoscalers.add_column("settings in a sweep", justify="right")
    for name, entry in ports.autoscalers.items():
        knobs = "  ".join(f"{knob}={default}" for knob, default in entry.knobs.items())
        about = Text(entry.law).append(f"\n{knobs}" if knobs else "", style="dim")
        autoscalers.add_row(Text(name), about, str(len(ports.grids.get(name, ({},)))))
    return Group(scenarios, Text(), autoscalers)


def _grid(*headers: str) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        grid.add_column(header)
    return grid


def _opening(path: Path) -> str:
    """Return the first paragraph of the comment that a scenario begins with, in one line."""
    lines = takewhile(lambda line: line.startswith("# "), path.read_text("utf-8").splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)


def simulate(request: Request, ports: Ports, out: Console, say: Console) -> int:
    """Carry the request out and return the exit code.

    Raises Misuse, ValueError for a malformed scenario, OSError where a file cannot be read.
    """
    runs = runs_of(request, ports)
    _check_writable(_files(request))
    jobs = min(len(runs), request.jobs or _cores())
    with RunsProgress(say, runs) as progress:
        study = carry_out(runs, ports.perform, jobs=jobs, watch=progress.show)
    outcomes = study.outcomes
    if outcomes:
        out.print(_reported(request, study))
        _write(_files(request), outcomes, say)
    return _verdict(study, len(runs), say)


def _reported(request: Request, study: Study) -> RenderableType:
    if request.ablate:
        whole: list[Outcome] = []
        without: dict[str, list[Outcome]] = {}
        for each in study.finished:
            element = dict(each.run.knobs).get(WITHOUT)
            target = whole if element is None else without.setdefault(str(element), [])
            target += each.outcomes
        return ablated(effects(whole, without))
    summaries = summarized(study.outcomes)
    if request.sweep:
        return Group(swept(tuned(summaries)), tables([row for row in summaries if row.on_front]))
    return tables(summaries)


def _files(request: Request) -> Mapping[Path, Callable[[Sequence[Outcome]], str]]:
    """Return where reports go, and what writes them."""
    wanted = [(request.json, written), (request.html, page)]
    if (folder := request.output) is not None:
        wanted += [(folder / "report.json", written), (folder / "report.html", page)]
    return {path: render for path, render in wanted if path is not None}


def _write(
    files: Mapping[Path, Callable[[Sequence[Outcome]], str]],
    outcomes: Sequence[Outcome],
    say: Console,
) -> None:
    for path, render in files.items():
        write_atomically(path, render(outcomes))
        say.print(Text(f"wrote {path}"))


def _check_writable(paths: Iterable[Path]) -> None:
    """Raise OSError before anything runs: nobody wants to learn it after an hour."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(0, "is a folder; name a file in it", str(path))
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(0, "the folder is not writable", str(path.parent))


def _verdict(study: Study, planned_runs: int, say: Console) -> int:
    for failed in study.failures:
        kind = "" if isinstance(failed.error, ValueError) else f"{type(failed.error).__name__}: "
        say.print(Text(f"error: {failed.run.label}: {kind}{failed.error}"))
    if study.interrupted:
        done = len(study.finished) - len(study.failures)
        kept = "the reports hold these" if done else "there is nothing to report"
        say.print(Text(f"interrupted: {done} of {planned_runs} runs were finished; {kept}"))
        return INTERRUPTED
    if study.failures:
        count = number_format.counted(len(study.failures), "run")
        say.print(Text(f"error: {count} of {planned_runs} failed; the others are reported"))
        return 1
    return 0


def consoles() -> tuple[Console, Console]:
    """Return standard output and standard error as consoles."""
    out = Console(highlight=False)
    if not out.is_terminal:
        out = Console(highlight=False, width=_PIPE_COLUMNS)
    return out, Console(stderr=True, highlight=False, soft_wrap=True)


def _cores() -> int:
    """Return the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
