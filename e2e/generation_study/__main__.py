"""`python -m generation_study`: the study of autoscalers of generating services."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

import looks
from generation_study import (
    causes,
    cells,
    figures,
    learned,
    records,
    report,
    rules_table,
    running,
    settings,
    speed,
)
from generation_study.fidelity import command as fidelity
from headroom.simulator.generation.autoscalers.catalogue import KINDS

FOLDER = Path(__file__).parents[2] / ".generation_study"
LOOKS = Path(__file__).parent / "looks.jsonl"
COMMANDS = ("study", "stages", "speed", "fidelity", "learned", "compile", "causes", "rules")
ENGINES = ("llama-8b-h100", "qwen3-32b-tp2-h100", "llama-70b-tp4-h100")


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="generation_study", description=__doc__)
    parser.add_argument("command", nargs="?", choices=COMMANDS, default="study")
    parser.add_argument("--quick", action="store_true", help="fewer cells; peers at defaults")
    parser.add_argument("--split", choices=("develop", "judge"), default="develop")
    parser.add_argument("--why", default="", help="why judge is looked at")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument(
        "--only", nargs="+", choices=tuple(KINDS), default=(), help="run these autoscalers alone"
    )
    parser.add_argument(
        "--workloads", nargs="+", default=(), help="rules: of these alone, as family-10 reasoning"
    )
    parser.add_argument("--record", action="store_true", help="fidelity: play vLLM again")
    parser.add_argument("--report", action="store_true", help="run nothing")
    asked = parser.parse_args(arguments)
    if _looks_at_judge(asked) and not asked.why.strip():
        parser.error("--split judge must have a reason, which is recorded: --why TEXT; got none")
    return asked


def _looks_at_judge(asked: argparse.Namespace) -> bool:
    return asked.split == "judge" and not asked.report and asked.command != "stages"


def main(arguments: Sequence[str] | None = None) -> int:
    """Perform what is asked; 0 if every figure holds."""
    asked = _parsed(arguments)
    console = Console(highlight=False)
    if asked.command == "speed":
        return speed.main(console)
    speed.compiled()
    if asked.command == "fidelity":
        return fidelity.main(console, record=asked.record)
    if asked.command == "learned":
        return learned.main(console, asked.jobs)
    if asked.command == "rules":
        return rules_table.main(console, asked.jobs, asked.workloads)
    if asked.command == "compile":
        return 0
    wanted = _cells(asked)
    chosen = settings.all_settings(grids=not asked.quick)
    if asked.only:
        chosen = tuple(each for each in chosen if each.kind in asked.only)
    if _looks_at_judge(asked):
        looks.note(LOOKS, asked.why, len(wanted))
    path = FOLDER / "runs.jsonl"
    for setting in chosen:  # of the sources that run, not of those that are edited meanwhile
        records.digest(setting.kind)
    known = records.load(path)
    if asked.command == "causes":
        console.print(causes.table(wanted, known, asked.jobs, console))
        return 0
    missing = {
        cell: rest
        for cell in wanted
        if (rest := [each for each in chosen if (cell, each) not in known])
    }
    if missing and not asked.report:
        running.carry_out(missing, asked.jobs, console, lambda one: records.append(path, one))
    runs = {
        key: one
        for key, one in records.load(path).items()
        if key[0] in set(wanted) and key[1] in set(chosen)
    }
    return _report(runs, console)


def _cells(asked: argparse.Namespace) -> list[cells.Cell]:
    if asked.command == "stages":
        return [cells.published()]
    if asked.quick:
        traces = cells.traces(("llama-8b-h100",), (100.0,))[:2]
        return [cells.published(), *traces, *cells.family(asked.split, 10)]
    traces = cells.traces(ENGINES, cells.STARTS_S)
    members = cells.family(asked.split, 40)
    return [cells.published(), *traces, *cells.mixes(asked.split), *members]


def _report(runs: figures.Runs, console: Console) -> int:
    results = figures.results(runs)
    found = figures.figures(results, runs)
    for table in (
        report.of_settings(runs, results),
        report.of_stages(runs),
        report.worst(results),
        report.of_figures(found),
    ):
        console.print(table)
    FOLDER.mkdir(exist_ok=True)
    report.picture(runs, results, FOLDER / "study.svg")
    console.print(f"wrote {FOLDER / 'study.svg'}", soft_wrap=True)
    return 0 if all(one.holds for one in found) else 1


if __name__ == "__main__":
    sys.exit(main())
