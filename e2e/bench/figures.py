"""A figure: its bound, its measured value, whether it holds; and the table of figures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One row."""

    name: str
    measured: str
    promised: str = ""
    holds: bool | None = None
    """None without a goal: the row is for comparison."""


def shown(name: str, measured: str) -> Figure:
    """Show a figure without a goal."""
    return Figure(name=name, measured=measured)


def at_most(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Compare with an upper bound; a value that is not a number does not hold."""
    return Figure(
        name=name,
        measured=f"{value:.{digits}f}{unit}",
        promised=f"at most {bound:g}{unit}",
        holds=value <= bound,
    )


def at_least(name: str, value: float, bound: float, unit: str, digits: int = 1) -> Figure:
    """Compare with a lower bound."""
    return Figure(
        name=name,
        measured=f"{value:.{digits}f}{unit}",
        promised=f"at least {bound:g}{unit}",
        holds=value >= bound,
    )


def all_hold(figures: Sequence[Figure]) -> bool:
    """Return whether no promise is broken."""
    return all(figure.holds is not False for figure in figures)


def table(title: str, figures: Sequence[Figure]) -> Table:
    """Lay out the figures of one part."""
    rows = Table(title=title, title_justify="left", title_style="bold", expand=False)
    rows.add_column("figure")
    rows.add_column("bound", justify="right")
    rows.add_column("measured", justify="right")
    rows.add_column("within")
    for figure in figures:
        rows.add_row(figure.name, figure.promised, figure.measured, _verdict(figure))
    return rows


def _verdict(figure: Figure) -> str:
    if figure.holds is None:
        return ""
    if figure.holds:
        return "[green]yes[/green]"
    return "[red]NO[/red]"
