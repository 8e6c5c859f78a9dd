"""PURE. Judges the promises of the comparison from its points, by these definitions.

- The mean over cells of a cell's attainment, and of its GPU-hours over the clairvoyant's.
- A point beats another if it misses no more *and* costs no more, and less in one of both, over
  their common seeds.
- Tuned in hindsight: the points of peers that ran with all of Headroom's seeds decide; these
  include the front of every cell's sweep.
- A cell is feasible if the clairvoyant attains 95 %.
- The clairvoyant keeps the utilization ceiling; cheaper points may break it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean

from decision_study.points import Point, mean_over
from decision_study.records import CLAIRVOYANT, IDEAL, OURS
from headroom.simulator.report.comparison import Estimate, estimate, is_bound

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
    def dear_enough(self) -> bool:
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

    def kept(self, cells: frozenset[str], *, dear_enough: bool = False) -> float | None:
        """Return the share of these cells, as far as decided, that no peer's point beats.

        With `dear_enough`, points that cost less than the clairvoyant's do not count.
        """
        decided = [cell for cell in self.decided if cell in cells]
        lost = [loss for loss in self.losses if loss.dear_enough or not dear_enough]
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


@dataclass(frozen=True, slots=True, kw_only=True)
class OneSetting:
    """The results of one peer with a single setting for all cells."""

    peer: str
    cheapest: str | None
    """The cheapest setting that reaches Headroom's mean attainment; None if none does."""
    attainment: float | None
    relative_cost: float | None
    """Mean cost ratio of the cheapest over Headroom's."""
    most_beating: str
    """The setting that beats Headroom in the most cells."""
    beaten_share: float
    """Share of all cells beaten by that setting."""


def one_settings(field: Field) -> tuple[OneSetting, ...]:
    """Return one result per peer with a setting that ran in all of Headroom's cells."""
    ours = field.means(OURS, field.cells)
    if ours is None or ours[1] is None:
        return ()
    settings: dict[str, list[str]] = {}
    for point in field.peers:
        complete = field.means(point.setting, field.cells) is not None
        names = settings.setdefault(point.autoscaler, [])
        if complete and point.setting not in names:
            names.append(point.setting)
    return tuple(
        _one_setting(field, peer, names, ours[0], ours[1])
        for peer, names in settings.items()
        if names
    )


def _one_setting(
    field: Field, peer: str, settings: Sequence[str], attainment: float, cost: float
) -> OneSetting:
    reaching: list[tuple[float, float, str]] = []
    for setting in settings:
        means = field.means(setting, field.cells)
        if means is not None and means[1] is not None and means[0] >= attainment:
            reaching.append((means[1], means[0], setting))
    cheapest = min(reaching, default=None)
    shares = {setting: beaten_share(field, setting) for setting in settings}
    worst = max(shares, key=lambda setting: shares[setting])
    return OneSetting(
        peer=peer,
        cheapest=cheapest[2] if cheapest else None,
        attainment=cheapest[1] if cheapest else None,
        relative_cost=cheapest[0] / cost if cheapest else None,
        most_beating=worst,
        beaten_share=shares[worst],
    )


def beaten_share(field: Field, setting: str, beaten: str = OURS) -> float:
    """Return the share of Headroom's cells in which this setting beats it, or a bound."""
    theirs = field.by_setting[beaten]
    margins = [
        margin(point, theirs[cell])
        for cell, point in field.by_setting[setting].items()
        if cell in theirs and cell in field.cells
    ]
    return sum(each is not None and each.beats for each in margins) / len(field.cells)


def most_beaten_share(field: Field, beaten: str) -> float | None:
    """Return the share of cells won by the single setting that beats a bound most often."""
    settings = {point.setting for point in field.peers}
    if not set(field.cells) <= set(field.by_setting.get(beaten, {})):
        return None
    complete = (s for s in settings if field.means(s, field.cells) is not None)
    return max((beaten_share(field, setting, beaten) for setting in complete), default=None)


def against_ideal(field: Field) -> tuple[float, float | None] | None:
    """Return attainment minus the ideal reactive's, and the ratio of the mean cost ratios."""
    ours, ideal = field.means(OURS, field.cells), field.means(IDEAL, field.cells)
    if ours is None or ideal is None:
        return None
    ratio = None if ours[1] is None or ideal[1] is None else ours[1] / ideal[1]
    return ours[0] - ideal[0], ratio


def most_flaps(field: Field) -> Point | None:
    """Return Headroom's point in the cell with most flaps, by the mean over seeds."""
    return max(field.ours.values(), key=lambda point: point.flaps_per_hour, default=None)


def mean_flaps(points: Sequence[Point]) -> float:
    """Return flaps per hour, mean over cells."""
    return fmean(point.flaps_per_hour for point in points)
