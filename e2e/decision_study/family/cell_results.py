"""Results of one cell of a family: Headroom, bounds and peers. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from decision_study.family.kept import Kept
from decision_study.family.members import MEMBERS
from decision_study.records import CLAIRVOYANT, IDEAL

KEPT = 0.95
"""The promise: this share of the requests in time. All members promise the 95th percentile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Single:
    """One setting of a peer in all feasible cells."""

    setting: str
    kept: int
    """Cells whose promise it keeps."""
    cost: float
    """GPU-hours in these cells in sum, over Headroom's."""
    attainment: float
    """Mean over cells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """Headroom and the bounds in one cell."""

    name: str
    ours: Kept
    yardstick: Kept | None
    """The cheapest clairvoyant that keeps the promise, or the one that misses least."""
    ideal: Kept | None

    @property
    def load(self) -> str:
        """The class of its workload."""
        return self.name.split("-", 2)[-1] if self.name[:4] != "hard" else self.name

    @property
    def feasible(self) -> bool:
        """Whether the clairvoyant keeps the promise."""
        return self.yardstick is not None and self.yardstick.attainment >= KEPT

    @property
    def kept(self) -> bool:
        """Whether Headroom keeps the promise after the first hour."""
        return self.ours.attainment >= KEPT

    @property
    def asks(self) -> str:
        """Behaviour of its clients."""
        return MEMBERS[self.name].asks if self.name in MEMBERS else "hard row"

    @property
    def below(self) -> float:
        """The clairvoyant's attainment minus Headroom's; 0 where Headroom's is higher."""
        best = self.yardstick.attainment if self.yardstick is not None else 0.0
        return max(0.0, best - self.ours.attainment)

    @property
    def cost_ratio(self) -> float:
        """Headroom's GPU-hours over the yardstick's, after the first hour."""
        if self.yardstick is None or self.yardstick.gpu_hours <= 0:
            return 1.0
        return self.ours.gpu_hours / self.yardstick.gpu_hours


def cells_of(records: Iterable[Kept], ours: str) -> list[CellResult]:
    """Return the cells in which Headroom ran with this setting."""
    by_cell: dict[str, list[Kept]] = {}
    for record in records:
        by_cell.setdefault(record.job.cell, []).append(record)
    found = []
    for name, rows in by_cell.items():
        own = [row for row in rows if row.job.setting == ours]
        if own:
            clairvoyant = [row for row in rows if row.job.autoscaler == CLAIRVOYANT]
            ideal = [row for row in rows if row.job.autoscaler == IDEAL]
            found.append(
                CellResult(
                    name=name,
                    ours=own[0],
                    yardstick=yardstick(clairvoyant),
                    ideal=yardstick(ideal),
                )
            )
    return sorted(found, key=lambda cell: cell.name)


def yardstick(rows: Sequence[Kept]) -> Kept | None:
    """Return the cheapest that keeps the promise, or the one that misses least."""
    keeping = [row for row in rows if row.attainment >= KEPT]
    if keeping:
        return min(keeping, key=lambda row: row.gpu_hours)
    return max(rows, key=lambda row: row.attainment, default=None)
