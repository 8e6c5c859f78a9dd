"""Judges the promises of the comparison from its points, by these definitions. Pure.

- The mean over cells of a cell's attainment, and of its GPU-hours over the clairvoyant's.
- A point beats another if it misses no more *and* costs no more, and less in one of both, over
  their common seeds.
- Tuned in hindsight: the points of peers that ran with all of Headroom's seeds decide; these
  include the front of every cell's sweep.
- A cell is feasible if the clairvoyant attains 95 %.
- The clairvoyant keeps the utilization ceiling; cheaper points may break it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from decision_study.field import Field
from decision_study.hindsight import margin
from decision_study.points import Point
from decision_study.records import IDEAL, OURS


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
