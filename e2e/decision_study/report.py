"""Combines figures and tables into the report, and writes its files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import RenderableType

from bench.figures import Figure, table
from decision_study import judge_faults, plot, promises, tables
from decision_study.cells import CELLS
from decision_study.faults_cells import CLAIMS, EXTRAS, FAULTS
from decision_study.field import Field
from decision_study.points import Point, points_of
from decision_study.records import OURS, Record
from decision_study.tables import Grid
from headroom.simulator.report.write import write_atomically

_CLASSES = {cell.name: cell.workload for cell in CELLS}
_SMOOTH = tuple(cell.name for cell in CELLS if cell.smooth)
_ORDER = {cell.name: index for index, cell in enumerate(CELLS)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The content that is printed and written."""

    field: Field
    figures: tuple[Figure, ...]
    grids: tuple[Grid, ...]

    def for_terminal(self) -> list[RenderableType]:
        """Return the tables to print, the goals last."""
        grids = [tables.for_terminal(grid) for grid in self.grids if grid.rows]
        return [*grids, table("Goals", self.figures)]


def of(records: Iterable[Record], measured: Sequence[Figure] = ()) -> Report:
    """Return the report of these records; `measured` are figures that do not come from runs."""
    rows = list(records)
    compared = [row for row in rows if row.job.cell not in EXTRAS]
    compared.sort(key=lambda row: _ORDER.get(row.job.cell, len(_ORDER)))
    field = Field(points_of(compared))
    extras = [row for row in rows if row.job.cell in EXTRAS]
    claims, faults = judge_faults.claims(CLAIMS, extras), judge_faults.faults(FAULTS, extras)
    figures = promises.figures_of(field, _SMOOTH, claims, faults)
    grids = [
        tables.policies(field, _CLASSES),
        tables.single_settings(field),
        tables.cell_by_cell(field),
        tables.losses(field),
        tables.cases("Cost claimed wrong: attainment after the first 10 minutes", claims),
        tables.cases("Faults", faults),
    ]
    return Report(field=field, figures=(*figures, *measured), grids=tuple(grids))


def write(report: Report, folder: Path) -> tuple[Path, ...]:
    """Write Markdown, JSON and the plot atomically; return their paths."""
    parts = [tables.promises(report.figures), *(grid for grid in report.grids if grid.rows)]
    texts = {
        "table.md": "\n".join(map(tables.as_markdown, parts)),
        "proof.json": json.dumps(_data(report), indent=1),
    }
    means = report.field.means(OURS, report.field.cells)
    if means is not None and means[1] is not None:
        texts["front.svg"] = plot.front(report.field)
    for name, text in texts.items():
        write_atomically(folder / name, text)
    return tuple(folder / name for name in texts)


def _data(report: Report) -> dict[str, object]:
    return {
        "figures": [asdict(figure) for figure in report.figures],
        "points": [_point(point) for point in report.field.points],
        "tables": [asdict(grid) for grid in report.grids],
    }


def _point(point: Point) -> dict[str, object]:
    return {
        "cell": point.cell,
        "autoscaler": point.autoscaler,
        "knobs": dict(point.knobs),
        "seeds": point.seeds,
        "attainment": asdict(point.attainment),
        "gpu_hours": asdict(point.gpu_hours),
        "cost_ratio": point.cost_ratio,
        "flaps_per_hour": point.flaps_per_hour,
    }
