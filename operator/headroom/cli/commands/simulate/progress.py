"""How far the runs are: a bar for all, and one for each that is under way. Silent without a TTY."""

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
    """Bars on a console while it is entered."""

    def __init__(self, console: Console, runs: Sequence[Run]) -> None:
        self._runs = runs
        self._under_way: dict[int, TaskID] = {}
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
        """Begin to show."""
        self._all.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Take the bars away: what remains is the table."""
        self._all.stop()

    def show(self, shares: Sequence[float], ended: int) -> None:
        """Show the share of every run that is done, in 0..1, and how many have ended."""
        said = f"{ended}/{len(self._runs)}"
        self._all.update(self._total, completed=sum(shares), ended=said)
        for index, share in enumerate(shares):
            if 0 < share < 1 and index not in self._under_way:
                name = escape(self._runs[index].label)
                self._under_way[index] = self._all.add_task(name, total=1.0, ended="")
            if index in self._under_way:
                if share >= 1:
                    self._all.remove_task(self._under_way.pop(index))
                else:
                    self._all.update(self._under_way[index], completed=share)
