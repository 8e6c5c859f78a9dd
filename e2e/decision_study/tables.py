"""The results as tables, the same for a terminal and for Markdown. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rich.table import Table
from rich.text import Text

from bench.figures import Figure
from decision_study.field import Field
from decision_study.hindsight import Loss, below_clairvoyant, hindsight
from decision_study.judge import OneSetting, one_settings
from decision_study.judge_faults import Verdict
from decision_study.records import CLAIRVOYANT, IDEAL, OURS
from headroom.simulator.report.comparison import Estimate

NOT_RUN = "-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grid:
    """A table, independent of its format."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def for_terminal(grid: Grid) -> Table:
    """Lay out a grid with rich."""
    table = Table(
        title=grid.title,
        title_justify="left",
        title_style="bold",
        caption=Text(grid.note) if grid.note else None,
        caption_justify="left",
    )
    table.add_column(grid.columns[0], overflow="fold")
    for column in grid.columns[1:]:
        table.add_column(column, justify="right", overflow="fold")
    for row in grid.rows:
        ours = row[0] == OURS
        table.add_row(*(Text(cell) for cell in row), style="bold" if ours else "")
    return table


def as_markdown(grid: Grid) -> str:
    """Write a grid as Markdown."""

    def line(cells: Sequence[str]) -> str:
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"

    ruler = "|" + "---|" + "---:|" * (len(grid.columns) - 1)
    body = "\n".join((line(grid.columns), ruler, *map(line, grid.rows)))
    note = f"\n\n{grid.note}" if grid.note else ""
    return f"### {grid.title}\n\n{body}{note}\n"


def promises(figures: Sequence[Figure]) -> Grid:
    """Return one row per figure."""
    verdicts = {True: "yes", False: "NO", None: ""}
    return Grid(
        title="Goals",
        columns=("figure", "goal", "measured", "holds"),
        rows=tuple((f.name, f.promised, f.measured, verdicts[f.holds]) for f in figures),
    )


def policies(field: Field, classes: Mapping[str, str]) -> Grid:
    """Attainment and cost by class of workload; `classes` maps each cell to its class."""
    columns = [*dict.fromkeys(classes[cell] for cell in field.cells), "all"]
    cells = {
        column: [c for c in field.cells if column in ("all", classes[c])] for column in columns
    }
    settings = [setting for setting in field.by_setting if "(" not in setting]
    peers = [s for s in settings if s not in (OURS, CLAIRVOYANT, IDEAL)]
    ordered = [s for s in (OURS, *peers, CLAIRVOYANT, IDEAL) if s in settings]
    return Grid(
        title="Attainment % / GPU-hours over the clairvoyant's",
        columns=("autoscaler, defaults", *columns),
        rows=tuple(
            (setting, *(_means(field, setting, cells[column]) for column in columns))
            for setting in ordered
        ),
        note="Means over cells; peers at their defaults. The last two are bounds that know the "
        "arrivals; both pay the cold start.",
    )


def _means(field: Field, setting: str, cells: Sequence[str]) -> str:
    means = field.means(setting, cells)
    if means is None:
        return NOT_RUN
    cost = NOT_RUN if means[1] is None else f"{means[1]:.2f}"
    return f"{100 * means[0]:.1f}/{cost}"


def single_settings(field: Field) -> Grid:
    """Return each peer with one setting for all cells."""
    return Grid(
        title="Each peer with one setting for all cells",
        columns=(
            "peer",
            "cheapest that reaches Headroom's attainment",
            "attainment %",
            "cost over Headroom's",
            "beats Headroom in most cells",
            "cells beaten %",
        ),
        rows=tuple(_single(each) for each in one_settings(field)),
    )


def _single(found: OneSetting) -> tuple[str, ...]:
    return (
        found.peer,
        found.cheapest or "none reaches it",
        NOT_RUN if found.attainment is None else f"{100 * found.attainment:.2f}",
        NOT_RUN if found.relative_cost is None else f"{found.relative_cost:.2f}",
        found.most_beating if found.beaten_share > 0 else "none in any",
        f"{100 * found.beaten_share:.1f}",
    )


def cell_by_cell(field: Field) -> Grid:
    """Return Headroom and the bounds in every cell, and the peers that beat it."""
    lost = {loss.cell: loss for loss in hindsight(field).losses}
    return Grid(
        title="Cell by cell",
        columns=("cell", "clairvoyant %", "ideal reactive", OURS, "flaps/h", "beaten by"),
        rows=tuple(
            (
                _marked(field, cell),
                _means(field, CLAIRVOYANT, [cell]).split("/", 1)[0],
                _means(field, IDEAL, [cell]),
                _means(field, OURS, [cell]),
                f"{field.ours[cell].flaps_per_hour:.2f}",
                lost[cell].winners[0][0].setting if cell in lost else "",
            )
            for cell in field.cells
            if cell in field.ours
        ),
        note="Attainment % / GPU-hours over the clairvoyant's; mean over seeds. Not feasible: the "
        "clairvoyant misses more than 5 %. Beaten by: the cheapest point of a peer, tuned "
        "for this cell in hindsight, that is better in one and no worse in the other.",
    )


def _marked(field: Field, cell: str) -> str:
    return f"{cell} (not feasible)" if cell in field.infeasible else cell


def losses(field: Field) -> Grid:
    """Return every lost cell with its cheapest winner and the one that misses least."""
    rows = [row for loss in hindsight(field).losses for row in _loss(field, loss)]
    return Grid(
        title="Cells lost to a peer tuned in hindsight",
        columns=(
            *("cell", "winners", "winner", "misses less, points", "GPU-hours less, %"),
            *("95 % interval", "cheaper than the clairvoyant"),
        ),
        rows=tuple(rows),
        note="Per cell the winner that costs least and the one that misses least. Paired by seed, "
        "± the 95 % interval over seeds (Student's t). Within: the difference is not certain. The "
        "clairvoyant knows all arrivals and keeps the ceiling; cheaper points can hardly keep it.",
    )


def _loss(field: Field, loss: Loss) -> list[tuple[str, ...]]:
    words = {True: "beyond", False: "within", None: "one seed"}
    best = min(loss.winners, key=lambda each: each[0].misses)
    shown = [loss.winners[0]] if best is loss.winners[0] else [loss.winners[0], best]
    return [
        (
            _marked(field, loss.cell),
            str(len(loss.winners)),
            winner.setting,
            _signed(margin.misses, -100),
            _signed(margin.gpu_hours, -100 / loss.ours.cost),
            words[margin.certain],
            "yes" if below_clairvoyant(winner) else "",
        )
        for winner, margin in shown
    ]


def cases(title: str, verdicts: Sequence[Verdict]) -> Grid:
    """Return wrong claims, or faults, each with its base."""
    return Grid(
        title=title,
        columns=("case", "attainment %", "compared with", "points lost", "removals while blind"),
        rows=tuple(
            (
                verdict.case.name,
                f"{100 * verdict.attainment.mean:.2f}",
                verdict.case.base or "",
                NOT_RUN if verdict.lost is None else _signed(verdict.lost, 100),
                str(verdict.blind_removals) if verdict.case.blind_s else "",
            )
            for verdict in verdicts
        ),
    )


def _signed(value: Estimate, factor: float) -> str:
    mean = f"{factor * value.mean:+.2f}"
    return mean if value.half_width is None else f"{mean} ±{abs(factor) * value.half_width:.2f}"
