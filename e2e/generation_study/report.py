"""The tables and the picture of a study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
from matplotlib.figure import Figure as Drawing
from rich.table import Table

from generation_study.cells import LLMD, Cell
from generation_study.figures import CellResult, Figure, Runs
from generation_study.settings import PEERS, Setting


def of_figures(figures: Sequence[Figure]) -> Table:
    """Return the figures with their goals."""
    table = Table("figure", "goal", "measured", "holds")
    for one in figures:
        table.add_row(one.name, one.promised, one.measured, "yes" if one.holds else "[red]no[/red]")
    return table


def of_settings(runs: Runs, results: Sequence[CellResult]) -> Table:
    """Return every setting over the feasible cells: kept, GPU-hours over the clairvoyant's."""
    table = Table("autoscaler", "cells kept", "attainment", "GPU-hours / clairvoyant", "flaps/h")
    feasible = [one for one in results if one.feasible and one.cell.workload != LLMD]
    best = {one.cell: one.clairvoyant.gpu_hours for one in feasible if one.clairvoyant}
    for setting in sorted({setting for _, setting in runs}, key=lambda each: each.name):
        scores = [(cell, runs[cell, setting].score) for cell in best if (cell, setting) in runs]
        if not scores:
            continue
        count = len(scores)
        table.add_row(
            setting.name,
            f"{sum(score.kept for _, score in scores)}/{count}",
            f"{100 * sum(score.attainment for _, score in scores) / count:.1f} %",
            f"{sum(score.gpu_hours / best[cell] for cell, score in scores) / count:.2f}",
            f"{sum(score.flaps_per_hour for _, score in scores) / count:.1f}",
        )
    return table


def of_stages(runs: Runs) -> Table:
    """Return llm-d's stages: attainment as they count it, and mean replicas."""
    table = Table("autoscaler", "attainment", "mean replicas", "p90 TTFT", "p90 TPOT")
    for (cell, setting), record in sorted(runs.items(), key=lambda item: item[0][1].name):
        if cell.workload != LLMD:
            continue
        score = record.score
        missed = score.missed_first + score.missed_output
        table.add_row(
            setting.name,
            f"{100 * (1 - missed / score.requests):.1f} %",
            f"{score.mean_replicas:.2f}",
            f"{score.first_token_s[1]:.2f} s",
            f"{1000 * score.output_token_s[1]:.0f} ms",
        )
    return table


def worst(results: Sequence[CellResult]) -> Table:
    """Return the ten cells with the lowest attainment, then the highest cost."""
    table = Table("cell", "attainment", "GPU-hours / clairvoyant", "TTFT p95", "TPOT p95", "full")
    cells = [one for one in results if one.feasible and one.cell.workload != LLMD]
    cells.sort(key=lambda one: (one.headroom.kept, -(one.excess or 0), one.headroom.attainment))
    for one in cells[:10]:
        score = one.headroom
        table.add_row(
            one.cell.name,
            f"{100 * score.attainment:.1f} %",
            f"{one.excess:.2f}",
            f"{score.first_token_s[2]:.2f} s",
            f"{1000 * score.output_token_s[2]:.0f} ms",
            f"{100 * score.full_share:.1f} %",
        )
    return table


def picture(runs: Runs, results: Sequence[CellResult], path: Path) -> None:
    """Draw cells kept over GPU-hours for every setting, as SVG."""
    mpl.rcParams["svg.hashsalt"] = "headroom"
    feasible = [one for one in results if one.feasible and one.cell.workload != LLMD]
    best = {one.cell: one.clairvoyant.gpu_hours for one in feasible if one.clairvoyant}
    drawing = Drawing(figsize=(8, 5), layout="constrained")
    axes = drawing.subplots()
    for kind in ("headroom", "clairvoyant", "ideal-reactive", *PEERS):
        points = [_point(runs, setting, best) for setting in {s for _, s in runs if s.kind == kind}]
        shown = [point for point in points if point is not None]
        if shown:
            axes.scatter(
                [x for x, _ in shown],
                [y for _, y in shown],
                label=kind,
                s=90 if kind == "headroom" else 25,
                marker="*" if kind == "headroom" else "o",
            )
    axes.set_xlabel("GPU-hours over the cheapest clairvoyant's")
    axes.set_ylabel("share of cells with every promise kept")
    axes.set_ylim(-0.02, 1.02)
    if axes.collections:
        axes.legend(fontsize="x-small")
    drawing.savefig(path, metadata={"Date": None})


def _point(runs: Runs, setting: Setting, best: dict[Cell, float]) -> tuple[float, float] | None:
    scores = [
        (cell, r.score) for (cell, each), r in runs.items() if each == setting and cell in best
    ]
    if not scores:
        return None
    count = len(scores)
    cost = sum(score.gpu_hours / best[cell] for cell, score in scores) / count
    return cost, sum(score.kept for _, score in scores) / count
