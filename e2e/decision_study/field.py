"""All points of a comparison, by setting and by cell; which cells are feasible. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from decision_study.points import Point, mean_over
from decision_study.records import CLAIRVOYANT, OURS
from headroom.simulator.report.comparison import is_bound

FEASIBLE = 0.95


@dataclass(frozen=True)
class Field:
    """All points of the comparison, cells in their order."""

    points: tuple[Point, ...]

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """Cells in which Headroom ran; all if it ran in none."""
        every = tuple(dict.fromkeys(p.cell for p in self.points))
        return tuple(cell for cell in every if cell in self.ours) or every

    @cached_property
    def by_setting(self) -> Mapping[str, Mapping[str, Point]]:
        """Points by setting, then cell."""
        found: dict[str, dict[str, Point]] = {}
        for point in self.points:
            found.setdefault(point.setting, {})[point.cell] = point
        return found

    @cached_property
    def ours(self) -> Mapping[str, Point]:
        """Headroom's points by cell."""
        return self.by_setting.get(OURS, {})

    @cached_property
    def peers(self) -> tuple[Point, ...]:
        """Every point of a peer."""
        return tuple(p for p in self.points if p.autoscaler != OURS and not is_bound(p.autoscaler))

    @cached_property
    def feasible(self) -> frozenset[str]:
        """Cells in which the clairvoyant reaches the SLO."""
        known = self.by_setting.get(CLAIRVOYANT, {})
        return frozenset(c for c, point in known.items() if point.attainment.mean >= FEASIBLE)

    @cached_property
    def infeasible(self) -> frozenset[str]:
        """Cells in which it ran and does not."""
        return frozenset(self.by_setting.get(CLAIRVOYANT, {})) - self.feasible

    def means(self, setting: str, cells: Sequence[str]) -> tuple[float, float | None] | None:
        """Return a setting's mean attainment and cost ratio; None unless it ran in all cells."""
        by_cell = self.by_setting.get(setting, {})
        if not cells or not all(cell in by_cell for cell in cells):
            return None
        return mean_over(by_cell[cell] for cell in cells)
