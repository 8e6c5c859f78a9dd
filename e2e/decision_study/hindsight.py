"""Headroom against every peer that is tuned per cell in hindsight. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from decision_study.field import Field
from decision_study.points import Point
from decision_study.records import OURS
from headroom.simulator.report.comparison import Estimate, estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Margin:
    """A peer's point minus Headroom's over the seeds in common; below 0 is better for the peer."""

    misses: Estimate
    gpu_hours: Estimate

    @property
    def beats(self) -> bool:
        """Whether the peer is no worse in both, and better in one."""
        misses, hours = self.misses.mean, self.gpu_hours.mean
        return misses <= 0 and hours <= 0 and (misses < 0 or hours < 0)

    @property
    def certain(self) -> bool | None:
        """Whether both 95 % intervals are at or below 0; None without intervals."""
        widths = (self.misses.half_width, self.gpu_hours.half_width)
        if widths[0] is None or widths[1] is None:
            return None
        return self.misses.mean + widths[0] <= 0 and self.gpu_hours.mean + widths[1] <= 0


def margin(point: Point, ours: Point) -> Margin | None:
    """Return the margin of a peer's point over Headroom's; None without common seeds."""
    shared = [(point.by_seed[s], ours.by_seed[s]) for s in point.by_seed if s in ours.by_seed]
    if not shared:
        return None
    return Margin(
        misses=estimate([our.attainment - its.attainment for its, our in shared]),
        gpu_hours=estimate([its.gpu_hours - our.gpu_hours for its, our in shared]),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """A cell in which a peer, tuned in hindsight, beats Headroom."""

    cell: str
    ours: Point
    winners: tuple[tuple[Point, Margin], ...]
    """Cheapest first."""

    @property
    def above_clairvoyant(self) -> bool:
        """Whether a winner costs at least what the clairvoyant pays to keep the ceiling."""
        return any(not below_clairvoyant(point) for point, _ in self.winners)

    @property
    def within_interval(self) -> bool:
        """Whether no winner is better beyond the 95 % interval over seeds."""
        return all(margin.certain is False for _, margin in self.winners)


@dataclass(frozen=True, slots=True, kw_only=True)
class Hindsight:
    """Headroom against every peer tuned per cell in hindsight."""

    decided: tuple[str, ...]
    """Cells in which at least one peer's point has all of Headroom's seeds."""
    losses: tuple[Loss, ...]

    def kept(self, cells: frozenset[str], *, above_clairvoyant: bool = False) -> float | None:
        """Return the share of these cells, as far as decided, that no peer's point beats.

        With `above_clairvoyant`, points that cost less than the clairvoyant's do not count.
        """
        decided = [cell for cell in self.decided if cell in cells]
        lost = [loss for loss in self.losses if loss.above_clairvoyant or not above_clairvoyant]
        beaten = sum(loss.cell in cells for loss in lost)
        return 1 - beaten / len(decided) if decided else None


def below_clairvoyant(point: Point) -> bool:
    """Return whether it costs less than the clairvoyant; False if that did not run."""
    return point.cost_ratio is not None and point.cost_ratio < 1


def hindsight(field: Field, setting: str = OURS) -> Hindsight:
    """Return the cells that Headroom, or a bound, loses to a point of any peer."""
    decided: list[str] = []
    losses: list[Loss] = []
    for cell, ours in field.by_setting.get(setting, {}).items():
        if cell not in field.cells:
            continue
        rivals = [p for p in field.peers if p.cell == cell and set(ours.seeds) <= set(p.seeds)]
        if not rivals:
            continue
        decided.append(cell)
        margins = [(rival, margin(rival, ours)) for rival in rivals]
        winners = [(rival, its) for rival, its in margins if its is not None and its.beats]
        if winners:
            winners.sort(key=lambda each: each[0].cost)
            losses.append(Loss(cell=cell, ours=ours, winners=tuple(winners)))
    return Hindsight(decided=tuple(decided), losses=tuple(losses))
