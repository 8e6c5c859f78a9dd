"""The goals as rows: goal, measured value, whether it holds. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bench.figures import Figure, at_least, at_most, shown
from decision_study import hindsight, judge, judge_faults
from decision_study.field import Field
from decision_study.judge_faults import Verdict
from decision_study.records import CLAIRVOYANT, IDEAL, OURS
from headroom.simulator.report.number_format import counted


def figures_of(
    field: Field, smooth: Sequence[str], claims: Sequence[Verdict], faults: Sequence[Verdict]
) -> tuple[Figure, ...]:
    """Return every figure for which there are results; `smooth` are the cells without jumps."""
    return (
        *_smooth(field, smooth),
        *_ideal(field),
        *_hindsight(field),
        *_one_setting(field),
        *_claims(claims),
        *_faults(faults),
        *_flaps(field),
    )


def of_decision(measured: Sequence[Figure]) -> tuple[Figure, ...]:
    """Return the timings of `decide()` that have a bound, as promises."""
    return tuple(
        replace(figure, name=f"8 {figure.name}") for figure in measured if figure.holds is not None
    )


def _smooth(field: Field, smooth: Sequence[str]) -> list[Figure]:
    cells = [cell for cell in field.cells if cell in smooth]
    means = field.means(OURS, cells)
    if means is None:
        return []
    where = counted(len(cells), "smooth cell")
    rows = [at_least(f"1 attainment, {where}", 100 * means[0], 98.4, " %", 2)]
    if means[1] is not None:
        rows.append(at_most(f"1 cost over the clairvoyant's, {where}", means[1], 1.12, "x", 3))
    return rows


def _ideal(field: Field) -> list[Figure]:
    found = judge.against_ideal(field)
    if found is None:
        return []
    where = counted(len(field.cells), "cell")
    name = f"2 attainment minus the ideal reactive's, {where}"
    rows = [at_least(name, 100 * found[0], -0.3, " points", 2)]
    if found[1] is not None:
        rows.append(at_most("2 cost over the ideal reactive's", found[1], 0.9, "x", 3))
    return rows


def _hindsight(field: Field) -> list[Figure]:
    found = hindsight.hindsight(field)
    rows = []
    feasible, every = found.kept(field.feasible), found.kept(frozenset(field.cells))
    if feasible is not None:
        count = sum(cell in field.feasible for cell in found.decided)
        name = f"3 not beaten by any peer tuned in hindsight, {counted(count, 'feasible cell')}"
        rows.append(at_least(name, 100 * feasible, 90, " %"))
        costly = found.kept(field.feasible, above_clairvoyant=True)
        name = "3 the same against points that cost no less than a clairvoyant under the ceiling"
        rows.append(shown(name, "" if costly is None else f"{100 * costly:.1f} %"))
    if every is not None:
        rows.append(shown(f"3 the same in all {len(found.decided)} cells", f"{100 * every:.1f} %"))
        close = sum(loss.within_interval for loss in found.losses)
        name = "3 cells lost, of these within the 95 % interval over seeds"
        rows.append(shown(name, f"{len(found.losses)}, {close}"))
        rows.extend(_hindsight_of(field, bound) for bound in (CLAIRVOYANT, IDEAL))
    return rows


def _hindsight_of(field: Field, bound: str) -> Figure:
    """Return the share of the third promise that a bound would keep."""
    kept = hindsight.hindsight(field, bound).kept(field.feasible)
    name = f"3 what the {bound}, a bound, would have"
    return shown(name, "" if kept is None else f"{100 * kept:.1f} %")


def _one_setting(field: Field) -> list[Figure]:
    found = judge.one_settings(field)
    if not found:
        return []
    costs = [
        (each.relative_cost, each.cheapest) for each in found if each.relative_cost is not None
    ]
    name = "4 cheapest single setting of a peer that reaches Headroom's attainment"
    if costs:
        cost, setting = min(costs)
        rows = [at_least(f"{name}: {setting}", cost, 1.5, "x", 2)]
    else:
        rows = [Figure(name=name, promised="at least 1.5x", measured="none reaches it", holds=True)]
    worst = max(found, key=lambda each: each.beaten_share)
    name = f"4 cells in which one single setting beats Headroom: {worst.most_beating}"
    rows.append(at_most(name, 100 * worst.beaten_share, 2, " %"))
    share = judge.most_beaten_share(field, CLAIRVOYANT)
    known = "" if share is None else f"{100 * share:.1f} %"
    return [*rows, shown(f"4 what the {CLAIRVOYANT}, a bound, would have", known)]


def _claims(verdicts: Sequence[Verdict]) -> list[Figure]:
    lost = judge_faults.most_lost(verdicts)
    if lost is None:
        return []
    name = f"5 lost after 10 min to a capacity wrong by 1.5x, at most: {lost[1]}"
    return [at_most(name, 100 * lost[0], 1, " points", 2)]


def _faults(verdicts: Sequence[Verdict]) -> list[Figure]:
    lost = judge_faults.most_lost(verdicts)
    if lost is None:
        return []
    removals = sum(verdict.blind_removals for verdict in verdicts)
    name = f"6 lost to a fault of telemetry, at most: {lost[1]}"
    return [
        at_most("6 scale-downs while signals are missing", removals, 0, "", 0),
        at_most(name, 100 * lost[0], 1, " points", 2),
    ]


def _flaps(field: Field) -> list[Figure]:
    worst = judge.most_flaps(field)
    if worst is None:
        return []
    counted_once = [point.undone_per_hour for point in field.ours.values()]
    most = [each for each in counted_once if each is not None]
    undone = f"{max(most):.2f}" if len(most) == len(counted_once) else ""
    return [
        at_most(f"7 flaps an hour, worst cell: {worst.cell}", worst.flaps_per_hour, 2, "", 2),
        shown("7 all steps up after the same removal counted as one, worst cell", undone),
        shown("7 flaps an hour in the worst single run", f"{_most_in_a_run(field):.2f}"),
        shown("7 flaps an hour, mean over cells", f"{_mean_flaps(field):.2f}"),
    ]


def _most_in_a_run(field: Field) -> float:
    return max(point.most_flaps_per_hour for point in field.ours.values())


def _mean_flaps(field: Field) -> float:
    return judge.mean_flaps(list(field.ours.values()))
