"""Performs the missing runs of a study in a few processes, with a progress bar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from generation_study.cells import Cell, begun, requests_of
from generation_study.records import Record
from generation_study.settings import Setting
from headroom.simulator.generation.autoscalers.catalogue import autoscaler
from headroom.simulator.generation.run import simulate_tokens

SEED = 1


def perform(cell: Cell, setting: Setting) -> Record:
    """Perform one run."""
    make = autoscaler(setting.kind, **dict(setting.knobs))
    outcome = simulate_tokens(begun(cell), requests_of(cell), make, SEED)
    return Record(cell=cell, setting=setting, score=outcome.score)


def perform_cell(cell: Cell, settings: Sequence[Setting]) -> list[Record]:
    """Perform the runs of one cell, whose requests are drawn once."""
    return [perform(cell, setting) for setting in settings]


def carry_out(
    missing: dict[Cell, list[Setting]],
    workers: int,
    console: Console,
    finished: Callable[[Record], None],
) -> None:
    """Perform all missing runs; each is handed on as soon as its cell is done."""
    total = sum(len(settings) for settings in missing.values())
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
    )
    with bar, ProcessPoolExecutor(max_workers=workers) as pool:
        task = bar.add_task("runs", total=total)
        futures = [pool.submit(perform_cell, cell, settings) for cell, settings in missing.items()]
        for future in as_completed(futures):
            for record in future.result():
                finished(record)
                bar.advance(task)
