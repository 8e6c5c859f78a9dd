"""Progress bars: one for all runs, and one for each active run. Silent without a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType
from typing import Self

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    Progress,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from headroom.simulator.campaign import Run


class RunsProgress:
    """Progress bars on a console, as a context manager."""

    def __init__(self, console: Console, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._active: dict[int, TaskID] = {}
        shown = console.is_terminal
        self._all = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[ended]}"),
            TimeRemainingColumn(),
            console=console,
            transient=True,
            disable=not shown,
        )
        self._total = self._all.add_task("all runs", total=float(len(runs)), ended="")

    def __enter__(self) -> Self:
        """Show the bars."""
        self._all.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Remove the bars."""
        self._all.stop()

    def show(self, shares: Sequence[float], ended: int) -> None:
        """Show the completed share of each run, 0 to 1, and the number of finished runs."""
        count = f"{ended}/{len(self._runs)}"
        self._all.update(self._total, completed=sum(shares), ended=count)
        for index, share in enumerate(shares):
            if 0 < share < 1 and index not in self._active:
                name = escape(self._runs[index].label)
                self._active[index] = self._all.add_task(name, total=1.0, ended="")
            if index in self._active:
                if share >= 1:
                    self._all.remove_task(self._active.pop(index))
                else:
                    self._all.update(self._active[index], completed=share)
