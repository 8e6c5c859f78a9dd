"""The figures of a study from its runs."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from generation_study.cells import LLMD, Cell
from generation_study.records import Record
from generation_study.settings import HEADROOM, PEERS, Setting
from headroom.simulator.generation.outcome import TokenScore

MIX = "mix-"
POINTS, COST = 0.001, 0.02
"""Differences that are not reported: a tenth of a point of attainment, 2 % of the GPU-hours."""
Runs = Mapping[tuple[Cell, Setting], Record]


@dataclass(frozen=True, kw_only=True)
class CellResult:
    """One cell: Headroom, the cheapest clairvoyant that keeps the promises, the cheapest peer."""

    cell: Cell
    headroom: TokenScore
    clairvoyant: TokenScore | None
    peer: tuple[Setting, TokenScore] | None
    rivals: tuple[TokenScore, ...] = ()
    """Every setting of every peer."""

    @property
    def feasible(self) -> bool:
        """Whether a clairvoyant keeps the promises."""
        return self.clairvoyant is not None

    @property
    def excess(self) -> float | None:
        """GPU-hours over the clairvoyant's."""
        if self.clairvoyant is None:
            return None
        return self.headroom.gpu_hours / self.clairvoyant.gpu_hours

    @property
    def undercut(self) -> bool:
        """Whether a peer's setting is cheaper, or keeps the promises where Headroom does not."""
        if self.peer is None:
            return False
        return not self.headroom.kept or self.peer[1].gpu_hours < self.headroom.gpu_hours

    def beaten(self, *, points: float = 0.0, cost: float = 0.0) -> bool:
        """Return whether a peer's setting is no worse in both, and better in one beyond tolerance.

        As in the study of requests (`decision_study.family.verdicts.beats`).
        """
        ours = self.headroom
        for rival in self.rivals:
            more = rival.attainment - ours.attainment
            less = 1.0 - rival.gpu_hours / ours.gpu_hours
            if more >= 0.0 and less >= 0.0 and (more > points or less > cost):
                return True
        return False


def results(runs: Runs) -> list[CellResult]:
    """Return the result of every cell that Headroom has run."""
    found = []
    for cell in sorted({cell for cell, _ in runs}):
        own = runs.get((cell, HEADROOM))
        if own is None:
            continue
        of_cell = [record for (other, _), record in runs.items() if other == cell]
        clairvoyants = [r.score for r in of_cell if r.setting.kind == "clairvoyant"]
        peers = [r for r in of_cell if r.setting.kind in PEERS]
        keeping = [r for r in peers if r.score.kept]
        best = min(keeping, key=lambda r: r.score.gpu_hours, default=None)
        kept = [score for score in clairvoyants if score.kept]
        found.append(
            CellResult(
                cell=cell,
                headroom=own.score,
                clairvoyant=min(kept, key=lambda score: score.gpu_hours, default=None),
                peer=None if best is None else (best.setting, best.score),
                rivals=tuple(r.score for r in peers),
            )
        )
    return found


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One promised figure and what was measured."""

    name: str
    promised: str
    measured: str
    holds: bool


def figures(found: Iterable[CellResult], runs: Runs) -> list[Figure]:
    """Return the figures that the runs allow."""
    cells = [one for one in found if one.cell.workload != LLMD]
    feasible = [one for one in cells if one.feasible]
    out: list[Figure] = []
    if feasible:
        out.extend(_over(feasible, runs))
    mixes = [one for one in cells if one.cell.workload.startswith(MIX)]
    if mixes:
        longest = max(mixes, key=lambda one: one.headroom.longest_broken_s / one.cell.start_s)
        broken_s, start_s = longest.headroom.longest_broken_s, longest.cell.start_s
        out.append(
            _figure(
                "8 prompts double: longest time broken",
                "at most two start-ups",
                f"{broken_s:g} s at starts of {start_s:g} s",
                broken_s <= 2 * start_s,
            )
        )
    published = [one for one in found if one.cell.workload == LLMD]
    for one in published:
        score = one.headroom
        out.append(
            Figure(
                name="5 llm-d's stages",
                promised="at least 98 % at 5.6 replicas or fewer",
                measured=f"{100 * score.attainment:.1f} % at {score.mean_replicas:.2f} replicas",
                holds=score.attainment >= 0.98 and score.mean_replicas <= 5.6,
            )
        )
    return out


def _over(feasible: list[CellResult], runs: Runs) -> list[Figure]:
    count = len(feasible)
    kept = sum(one.headroom.kept for one in feasible) / count
    mean = sum(one.excess or 0.0 for one in feasible) / count
    flaps = [one.headroom.flaps_per_hour for one in feasible]
    full = sum(one.headroom.full_share for one in feasible) / count
    return [
        _figure(
            "1 promises kept in feasible cells",
            "at least 96 %",
            f"{100 * kept:.0f} %",
            kept >= 0.96,
        ),
        _figure("2 GPU-hours over the clairvoyant's", "at most 1.25", f"{mean:.2f}", mean <= 1.25),
        *_against_peers(feasible, runs),
        _figure(
            "7 looks with memory above 95 %", "at most 0.5 %", f"{100 * full:.2f} %", full <= 0.005
        ),
        _figure(
            "10 flaps an hour, mean and worst",
            "1; 4",
            f"{sum(flaps) / count:.1f}; {max(flaps):.1f}",
            sum(flaps) / count <= 1 and max(flaps) <= 4,
        ),
    ]


def _against_peers(feasible: list[CellResult], runs: Runs) -> list[Figure]:
    """Return the figures over the cells in which peers ran; none without any."""
    met = [one for one in feasible if one.rivals]
    if not met:
        return []
    unbeaten = sum(not one.beaten() for one in met) / len(met)
    near = sum(not one.beaten(points=POINTS, cost=COST) for one in met) / len(met)
    cheapest = sum(not one.undercut for one in met) / len(met)
    single = _single(met, runs)
    name, ratio = single if single is not None else ("none keeps as many", math.inf)
    return [
        _figure(
            "3 cheapest single setting",
            "at least 1.5",
            name if single is None else f"{ratio:.2f} ({name})",
            ratio >= 1.5,
        ),
        _figure(
            "4 not beaten by any setting of a peer in hindsight; ignoring 0.1 points and 2 %",
            "at least 88 %",
            f"{100 * unbeaten:.0f} %; {100 * near:.0f} %",
            unbeaten >= 0.88,
        ),
        _figure(
            "4 stricter: no setting keeps the promises with fewer GPU-hours, whatever the margin",
            "at least 88 %",
            f"{100 * cheapest:.0f} %",
            cheapest >= 0.88,
        ),
    ]


def _single(feasible: list[CellResult], runs: Runs) -> tuple[str, float] | None:
    """Return the cheapest peer setting with as many kept cells, and its cost over Headroom's."""
    cells = [one.cell for one in feasible]
    ours = sum(one.headroom.kept for one in feasible)
    cost = sum(one.headroom.gpu_hours for one in feasible)
    best: tuple[str, float] | None = None
    for setting in sorted({s for _, s in runs if s.kind in PEERS}):
        scores = _scores(runs, setting, cells)
        if len(scores) < len(cells) or sum(score.kept for score in scores) < ours:
            continue
        ratio = sum(score.gpu_hours for score in scores) / cost
        if best is None or ratio < best[1]:
            best = (setting.name, ratio)
    return best


def _scores(runs: Runs, setting: Setting, cells: Collection[Cell]) -> list[TokenScore]:
    return [runs[cell, setting].score for cell in cells if (cell, setting) in runs]


def _figure(name: str, promised: str, measured: str, holds: bool) -> Figure:
    return Figure(name=name, promised=promised, measured=measured, holds=holds)
