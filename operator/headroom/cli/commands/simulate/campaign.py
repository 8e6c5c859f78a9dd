"""Runs a simulation with progress, then writes the table, the JSON and the HTML report.

The table goes to standard output, progress and messages to standard error.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path

from rich.console import Console, Group, RenderableType
from rich.table import Table
from rich.text import Text

from headroom.cli.cluster_options import Output
from headroom.cli.commands.simulate.options import SimulationOptions
from headroom.cli.commands.simulate.planned_runs import WITHOUT, Misuse, Ports, runs_of
from headroom.cli.commands.simulate.progress import RunsProgress
from headroom.cli.commands.simulate.worker_pool import Study, carry_out
from headroom.printable import printable
from headroom.simulator.outcome import Outcome
from headroom.simulator.report import number_format
from headroom.simulator.report.html_page import page
from headroom.simulator.report.json_report import written
from headroom.simulator.report.studies import effects, tuned
from headroom.simulator.report.study_table import ablated, swept
from headroom.simulator.report.summary import summarized
from headroom.simulator.report.terminal_table import tables
from headroom.simulator.report.write import write_atomically

INTERRUPTED = 130
_PIPE_COLUMNS = 170
"""Width of the table when standard output is not a terminal."""


_RENDERERS: Mapping[str, Callable[[Sequence[Outcome]], str]] = {".json": written, ".html": page}
"""Renderers by the file's suffix."""


def listed(ports: Ports) -> RenderableType:
    """List the shipped scenarios, and the autoscalers with their parameters."""
    scenarios = _grid("scenario", "load")
    for name, path in ports.scenarios.items():
        scenarios.add_row(Text(name), Text(_opening(path)))
    autoscalers = _grid("autoscaler", "description, and parameters with their defaults")
    autoscalers.add_column("settings in a sweep", justify="right")
    for name, entry in ports.autoscalers.items():
        knobs = "  ".join(f"{knob}={default}" for knob, default in entry.knobs.items())
        about = Text(entry.summary).append(f"\n{knobs}" if knobs else "", style="dim")
        autoscalers.add_row(Text(name), about, str(len(ports.grids.get(name, ({},)))))
    return Group(scenarios, Text(), autoscalers)


def _grid(*headers: str) -> Table:
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for header in headers:
        grid.add_column(header)
    return grid


def _opening(path: Path) -> str:
    """Return the first paragraph of a scenario's leading comment, in one line."""
    lines = takewhile(lambda line: line.startswith("# "), path.read_text("utf-8").splitlines())
    return " ".join(line.removeprefix("#").strip() for line in lines)


def simulate(options: SimulationOptions, ports: Ports, out: Console, say: Console) -> int:
    """Run the simulation and return the exit code.

    Raises Misuse, ValueError for a malformed scenario, OSError where a file cannot be read.
    """
    runs = runs_of(options, ports)
    _check_writable(_files(options))
    jobs = min(len(runs), options.jobs or _cores())
    with RunsProgress(say, runs) as progress:
        study = carry_out(runs, ports.perform, jobs=jobs, watch=progress.show)
    outcomes = study.outcomes
    if outcomes:
        if options.output is Output.JSON:
            print(written(outcomes), file=out.file)
        else:
            out.print(_reported(options, study))
        _write(_files(options), outcomes, say)
    return _verdict(study, len(runs), say)


def _reported(options: SimulationOptions, study: Study) -> RenderableType:
    if options.ablate:
        whole: list[Outcome] = []
        without: dict[str, list[Outcome]] = {}
        for each in study.finished:
            component = dict(each.run.knobs).get(WITHOUT)
            target = whole if component is None else without.setdefault(str(component), [])
            target += each.outcomes
        return ablated(effects(whole, without))
    summaries = summarized(study.outcomes)
    if options.sweep:
        return Group(swept(tuned(summaries)), tables([row for row in summaries if row.on_front]))
    return tables(summaries)


def _files(options: SimulationOptions) -> Mapping[Path, Callable[[Sequence[Outcome]], str]]:
    """Return the files of the reports, each with its renderer. Raises Misuse."""
    files: dict[Path, Callable[[Sequence[Outcome]], str]] = {}
    for path in options.out or ():
        if (render := _RENDERERS.get(path.suffix)) is not None:
            files[path] = render
        elif path.suffix and not path.is_dir():
            raise Misuse(f"--out must be a folder, .json or .html; got {path}")
        else:
            files |= {path / f"report{suffix}": one for suffix, one in _RENDERERS.items()}
    return files


def _write(
    files: Mapping[Path, Callable[[Sequence[Outcome]], str]],
    outcomes: Sequence[Outcome],
    say: Console,
) -> None:
    for path, render in files.items():
        write_atomically(path, render(outcomes))
        say.print(Text(f"wrote {printable(str(path))}"))


def _check_writable(paths: Iterable[Path]) -> None:
    """Raise OSError before the first run, which may take an hour."""
    for path in paths:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.is_dir():
            raise IsADirectoryError(0, "is a folder; name a file in it", str(path))
        if not os.access(path.parent, os.W_OK):
            raise PermissionError(0, "the folder is not writable", str(path.parent))


def _verdict(study: Study, planned_runs: int, say: Console) -> int:
    for failed in study.failures:
        kind = "" if isinstance(failed.error, ValueError) else f"{type(failed.error).__name__}: "
        error = f"{failed.run.label}: {kind}{failed.error}"
        say.print(Text(f"error: {printable(error)}"))
    if study.interrupted:
        done = len(study.finished) - len(study.failures)
        kept = "the reports contain these" if done else "nothing is reported"
        say.print(Text(f"interrupted: {done} of {planned_runs} runs finished; {kept}"))
        return INTERRUPTED
    if study.failures:
        count = number_format.counted(len(study.failures), "run")
        say.print(Text(f"error: {count} of {planned_runs} failed; the reports contain the rest"))
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
