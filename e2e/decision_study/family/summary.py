"""The compact tables for tuning: per class of workload, and the worst cells. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean

from decision_study.family.cell_results import KEPT, CellResult, Single
from decision_study.family.kept import Kept
from decision_study.tables import Grid


def _table(title: str, groups: Mapping[str, Sequence[CellResult]], note: str = "") -> Grid:
    return Grid(
        title=title,
        columns=(
            *("class", "cells", "feasible", "kept %", "hours kept %", "attainment %"),
            *("below clairvoyant", "most below", "ideal reactive %"),
            *("cost", "cost where both keep", "ideal's cost", "flaps/h", "worst"),
        ),
        rows=tuple(_class(name, cells) for name, cells in groups.items()),
        note=note,
    )


def classes(cells: Sequence[CellResult]) -> Grid:
    """Return one row per class of workload, and one for all."""
    groups: dict[str, Sequence[CellResult]] = {}
    for load in sorted({cell.load for cell in cells}):
        groups[load] = [cell for cell in cells if cell.load == load]
    return _table("After the first hour, by class of workload", groups | {"all": cells})


def asking(cells: Sequence[CellResult]) -> Grid:
    """Return one row per kind of clients."""
    groups: dict[str, Sequence[CellResult]] = {}
    for asks in sorted({cell.asks for cell in cells}):
        groups[asks] = [cell for cell in cells if cell.asks == asks]
    return _table(
        "After the first hour, by clients",
        groups,
        "Kept: Headroom attains 95 %, in feasible cells; so do the attainments count. Cost: "
        "GPU-hours over those of the cheapest clairvoyant that keeps the promise, in sum. Below "
        "clairvoyant: points, mean and most. Flaps: with removals undone within 15 min.",
    )


def _class(name: str, cells: Sequence[CellResult]) -> tuple[str, ...]:
    feasible = [cell for cell in cells if cell.feasible]
    both = [cell for cell in feasible if cell.kept]
    hours = [hour.attainment >= KEPT for cell in feasible for hour in cell.ours.hours[1:]]
    below = [100 * cell.below for cell in feasible]
    ideal = [cell.ideal.attainment for cell in feasible if cell.ideal is not None]
    flaps = [cell.ours.flaps_per_hour for cell in cells]
    return (
        name,
        str(len(cells)),
        str(len(feasible)),
        _percent([cell.kept for cell in feasible]),
        _percent(hours),
        _percent([cell.ours.attainment for cell in feasible]),
        f"{fmean(below):.1f}" if below else "-",
        f"{max(below):.1f}" if below else "-",
        _percent(ideal),
        _ratio([(c.ours, c.yardstick) for c in cells]),
        _ratio([(c.ours, c.yardstick) for c in both]),
        _ratio([(c.ideal, c.yardstick) for c in cells]),
        f"{fmean(flaps):.1f}" if flaps else "-",
        f"{max(flaps, default=0):.1f}",
    )


def _percent(values: Sequence[float]) -> str:
    return f"{100 * fmean(values):.1f}" if values else "-"


def _ratio(pairs: Sequence[tuple[Kept | None, Kept | None]]) -> str:
    known = [(a.gpu_hours, b.gpu_hours) for a, b in pairs if a is not None and b is not None]
    below = sum(hours for _, hours in known)
    return f"{sum(hours for hours, _ in known) / below:.2f}" if below > 0 else "-"


def settings(found: Sequence[Single]) -> Grid:
    """Return the settings of peers that keep the most cells, and every peer's best one."""
    best: dict[str, Single] = {}
    for single in found:
        best.setdefault(single.setting.partition("(")[0], single)
    rows = list(dict.fromkeys([*found[:10], *best.values()]))
    return Grid(
        title="Each peer with one setting for all feasible cells",
        columns=("setting", "cells kept", "attainment %", "GPU-hours over Headroom's"),
        rows=tuple(
            (each.setting, str(each.kept), _percent([each.attainment]), f"{each.cost:.2f}")
            for each in rows
        ),
        note="The ten that keep the most cells, then the best one of each peer.",
    )


def worst(cells: Sequence[CellResult], count: int, described: Callable[[str], str]) -> Grid:
    """Return the feasible cells with the lowest attainment, and what they are."""
    feasible = sorted((c for c in cells if c.feasible), key=lambda cell: cell.ours.attainment)
    return Grid(
        title="The worst feasible cells",
        columns=(
            *("cell", "attainment %", "by hour", "ideal reactive %", "clairvoyant %"),
            *("cost", "ideal's cost", "flaps/h", "what it is"),
        ),
        rows=tuple((*_worst(cell), described(cell.name)) for cell in feasible[:count]),
    )


def _worst(cell: CellResult) -> tuple[str, ...]:
    by_hour = ", ".join(f"{100 * hour.attainment:.0f}" for hour in cell.ours.hours)
    return (
        cell.name,
        _percent([cell.ours.attainment]),
        by_hour,
        _percent([cell.ideal.attainment] if cell.ideal else []),
        _percent([cell.yardstick.attainment] if cell.yardstick else []),
        f"{cell.cost_ratio:.2f}",
        _ratio([(cell.ideal, cell.yardstick)]),
        f"{cell.ours.flaps_per_hour:.1f}",
    )


def hard(cells: Sequence[CellResult]) -> Grid:
    """Return one row per hard row: Headroom and the bounds."""
    return Grid(
        title="Hard rows, after the first hour",
        columns=(
            *("row", "attainment %", "by hour", "ideal reactive %", "clairvoyant %"),
            *("cost over the ideal reactive's", "over the clairvoyant's", "flaps/h"),
        ),
        rows=tuple(
            (
                cell.name.removeprefix("hard-"),
                _percent([cell.ours.attainment]),
                ", ".join(f"{100 * hour.attainment:.0f}" for hour in cell.ours.hours),
                _percent([cell.ideal.attainment] if cell.ideal else []),
                _percent([cell.yardstick.attainment] if cell.yardstick else []),
                _ratio([(cell.ours, cell.ideal)]),
                f"{cell.cost_ratio:.2f}",
                f"{cell.ours.flaps_per_hour:.1f}",
            )
            for cell in cells
        ),
    )
