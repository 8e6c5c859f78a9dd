"""Judgement of the promises, on results worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.figures import Figure, at_most, shown
from decision_study import hindsight, judge, judge_faults
from decision_study.cells import CELLS
from decision_study.faults_cells import Case
from decision_study.field import Field
from decision_study.points import points_of
from decision_study.promises import figures_of, of_decision
from decision_study.tables import as_markdown, losses, policies, single_settings
from headroom.simulator.scenario import Fault, FaultKind
from support.fakes_decision_study import Runs, field, record

TWO_CELLS: Runs = {
    "a": {
        "headroom": [(99.0, 11.0), (98.0, 12.0)],
        "clairvoyant": [(99.0, 10.0), (99.0, 10.0)],
        "ideal-reactive": [(99.0, 13.0), (99.0, 13.0)],
        "keda": [(98.0, 20.0), (98.0, 20.0)],
        "keda:x=1": [(99.5, 22.0)],
        "aiad": [(98.7, 11.4), (98.7, 11.4)],
    },
    "b": {
        "headroom": [(97.0, 5.0), (97.0, 5.0)],
        "clairvoyant": [(94.0, 4.0), (94.0, 4.0)],
        "ideal-reactive": [(97.5, 6.0), (97.5, 6.0)],
        "keda": [(99.0, 8.0), (99.0, 8.0)],
        "keda:x=1": [(98.0, 10.0)],
        "aiad": [(90.0, 4.0), (90.0, 4.0)],
    },
}


def figure(figures: tuple[Figure, ...], start: str) -> Figure:
    return next(each for each in figures if each.name.startswith(start))


def test_means_are_over_cells_of_means_over_seeds() -> None:
    # a: 98.5 % at (1.1 + 1.2) / 2; b: 97 % at 5 / 4
    assert field(TWO_CELLS).means("headroom", ("a", "b")) == pytest.approx((0.9775, 1.2))
    assert field(TWO_CELLS).means("headroom", ("a",)) == pytest.approx((0.985, 1.15))


def test_setting_without_all_cells_has_no_mean() -> None:
    runs = {"a": TWO_CELLS["a"], "b": {"headroom": [(97.0, 5.0)]}}
    assert field(runs).means("keda", ("a", "b")) is None
    ours = field(runs).means("headroom", ("a", "b"))
    assert ours is not None
    assert ours[0] == pytest.approx(0.9775)
    assert ours[1] is None


def test_ideal_reactive_is_compared_by_attainment_and_cost_ratio() -> None:
    # 97.75 % - (99 + 97.5) / 2 %; 1.2 over (1.3 + 1.5) / 2
    assert judge.against_ideal(field(TWO_CELLS)) == pytest.approx((-0.005, 1.2 / 1.4))


def test_cell_is_feasible_if_clairvoyant_attains_95_percent() -> None:
    assert field(TWO_CELLS).feasible == {"a"}


def test_cell_is_lost_to_a_point_better_in_one_and_no_worse_in_the_other() -> None:
    found = hindsight.hindsight(field(TWO_CELLS))
    # aiad in a: 98.7 > 98.5 at 11.4 < 11.5; keda:x=1 has one seed of two and decides nothing
    assert [(loss.cell, loss.winners[0][0].setting) for loss in found.losses] == [("a", "aiad")]
    assert found.kept(frozenset("ab")) == 0.5
    assert found.kept(frozenset("a")) == 0.0
    assert found.kept(frozenset("c")) is None


def test_loss_states_whether_it_is_certain_over_seeds() -> None:
    # Cost: 11.4 - 11 and 11.4 - 12: mean -0.1, and wide with two seeds.
    (loss,) = hindsight.hindsight(field(TWO_CELLS)).losses
    its = loss.winners[0][1]
    assert its.gpu_hours.mean == pytest.approx(-0.1)
    assert its.gpu_hours.half_width == pytest.approx(12.706 * 0.5)  # stdev 0.7071 / sqrt(2)
    assert loss.within_interval
    sure = field({"a": {"headroom": [(98.0, 10.0), (98.1, 10.0)], "aiad": [(99.0, 9.0)] * 2}})
    (loss,) = hindsight.hindsight(sure).losses
    # Misses: -1.0 and -0.9 points: -0.95 +- 12.706 x 0.05, below 0 throughout.
    assert loss.winners[0][1].certain is True
    assert not loss.within_interval


@pytest.mark.parametrize(
    ("percent", "hours", "beats"),
    [
        (99.0, 9.0, True),
        (98.0, 9.0, True),
        (99.0, 10.0, True),
        (98.0, 10.0, False),
        (97.9, 5.0, False),
        (100.0, 10.1, False),
    ],
)
def test_point_beats_if_no_worse_in_both_and_better_in_one(
    percent: float, hours: float, beats: bool
) -> None:
    found = field({"a": {"headroom": [(98.0, 10.0)], "keda": [(percent, hours)]}})
    assert bool(hindsight.hindsight(found).losses) is beats


@pytest.mark.parametrize(("hours", "kept"), [(9.9, 1.0), (10.0, 0.0), (10.5, 0.0)])
def test_points_cheaper_than_clairvoyant_can_be_excluded(hours: float, kept: float) -> None:
    runs = {"headroom": [(98.0, 11.0)], "clairvoyant": [(99.0, 10.0)], "keda": [(98.5, hours)]}
    found = hindsight.hindsight(field({"a": runs}))
    assert found.kept(frozenset("a")) == 0.0
    assert found.kept(frozenset("a"), above_clairvoyant=True) == kept


def test_bounds_are_judged_like_headroom() -> None:
    # a: aiad misses more than either; b: it costs no more than the clairvoyant, and misses more
    cheaper: Runs = {**TWO_CELLS, "b": {**TWO_CELLS["b"], "aiad": [(94.5, 3.9), (94.5, 3.9)]}}
    runs = field(cheaper)
    assert [loss.cell for loss in hindsight.hindsight(runs, "clairvoyant").losses] == ["b"]
    assert hindsight.hindsight(runs, "ideal-reactive").losses == ()
    assert judge.most_beaten_share(runs, "clairvoyant") == 0.5
    assert judge.most_beaten_share(runs, "ideal-reactive") == 0.0
    assert judge.most_beaten_share(runs, "oracle") is None  # it did not run


def test_bounds_never_beat_headroom() -> None:
    found = field({"a": {"headroom": [(98.0, 10.0)], "oracle": [(99.0, 5.0)]}})
    assert hindsight.hindsight(found) == hindsight.Hindsight(decided=(), losses=())


def test_one_setting_is_the_cheapest_that_reaches_headrooms_mean() -> None:
    by_peer = {each.peer: each for each in judge.one_settings(field(TWO_CELLS))}
    # keda: (98 + 99) / 2 = 98.5 % at (2 + 2) / 2; keda:x=1: 98.75 % at (2.2 + 2.5) / 2
    assert by_peer["keda"].cheapest == "keda"
    assert by_peer["keda"].relative_cost == pytest.approx(2.0 / 1.2)
    assert by_peer["keda"].beaten_share == 0.0
    assert by_peer["aiad"].cheapest is None  # 94.35 %
    assert (by_peer["aiad"].most_beating, by_peer["aiad"].beaten_share) == ("aiad", 0.5)


def test_promises_that_are_broken_do_not_hold() -> None:
    figures = figures_of(field(TWO_CELLS), ("a",), (), ())
    broken = {each.name[0] for each in figures if each.holds is False}
    # 1: 1.15x the clairvoyant's cost; 2: half a point below the ideal reactive; 3: aiad beats
    # Headroom in a; 4: in half of the cells
    assert broken == {"1", "2", "3", "4"}


def test_peer_without_sufficient_setting_has_no_cost() -> None:
    runs = {"a": {name: TWO_CELLS["a"][name] for name in ("headroom", "clairvoyant", "keda")}}
    row = figure(figures_of(field(runs), (), (), ()), "4 cheapest")
    assert (row.measured, row.holds) == ("none reaches it", True)


def test_figures_without_results_are_empty() -> None:
    assert figures_of(field({}), (), (), ()) == ()


def test_decision_cost_with_a_bound_is_a_promise() -> None:
    measured = [at_most("50 pods", 1.2, 1.0, " ms"), shown("3 pods", "0.5 ms")]
    (row,) = of_decision(measured)
    assert (row.name, row.promised, row.holds) == ("8 50 pods", "at most 1 ms", False)


def test_flaps_per_hour_name_the_worst_cell() -> None:
    calm = [record("a", "headroom", seed, flaps=1) for seed in (1, 2)]  # in two hours
    wild = [record("b", "headroom", 1, flaps=3), record("b", "headroom", 2, flaps=6)]
    worst = judge.most_flaps(Field(points_of([*calm, *wild])))
    assert worst is not None
    assert (worst.cell, worst.flaps_per_hour, worst.most_flaps_per_hour) == ("b", 2.25, 3.0)


def test_flaps_after_one_removal_count_once_if_recorded() -> None:
    a, b = record("a", "headroom", undone=3), record("b", "headroom", undone=4)  # in two hours
    for rows, shown_ in (([a, b], "2.00"), ([a, replace(b, undone=None)], "")):
        figures = figures_of(Field(points_of(rows)), (), (), ())
        row = figure(figures, "7 all steps up after the same removal")
        assert (row.measured, row.holds) == (shown_, None)


CALM = Case(cell=CELLS[0], what="calm")
BLIND = Case(
    cell=CELLS[0],
    what="blind",
    base="calm",
    faults=(Fault(kind=FaultKind.SCRAPE_LOSS, start_s=100.0, duration_s=120.0),),
    blind_s=(110.0, 220.0),
)


def test_fault_is_compared_with_its_base_by_seed() -> None:
    rows = [
        record(CALM.name, "headroom", 1, attainment=0.99),
        record(CALM.name, "headroom", 2, attainment=0.97),
        record(BLIND.name, "headroom", 1, attainment=0.98, removals_s=(110.0, 110.5, 220.0)),
        record(BLIND.name, "headroom", 2, attainment=0.965, removals_s=(221.0,)),
    ]
    calm, blind = judge_faults.faults((CALM, BLIND), rows)
    assert calm.lost is None
    assert blind.lost is not None
    assert blind.lost.mean == pytest.approx((0.01 + 0.005) / 2)
    assert blind.blind_removals == 2
    most = judge_faults.most_lost((calm, blind))
    assert most is not None
    assert most[1] == BLIND.name
    figures = figures_of(field({}), (), (), (calm, blind))
    assert [(f.measured, f.holds) for f in figures] == [("2", False), ("0.75 points", True)]


def test_unpromised_case_decides_nothing() -> None:
    shown = replace(BLIND, promised=False)
    rows = [
        record(CALM.name, "headroom", attainment=0.99),
        record(shown.name, "headroom", attainment=0.5),
    ]
    assert judge_faults.most_lost(judge_faults.faults((CALM, shown), rows)) is None


def test_wrong_claim_is_compared_after_ten_minutes() -> None:
    rows = [
        record(CALM.name, "headroom", attainment=0.9, settled_attainment=0.99),
        record(BLIND.name, "headroom", attainment=0.9, settled_attainment=0.96),
    ]
    verdicts = judge_faults.claims((CALM, BLIND), rows)
    (row,) = figures_of(field({}), (), verdicts, ())
    assert (row.measured, row.holds) == ("3.00 points", False)


def test_tables_mark_missing_runs_and_winners() -> None:
    found = field(TWO_CELLS)
    grid = policies(found, {"a": "smooth", "b": "jumps"})
    assert grid.columns == ("autoscaler, defaults", "smooth", "jumps", "all")
    assert grid.rows[0] == ("headroom", "98.5/1.15", "97.0/1.25", "97.8/1.20")
    assert [row[0] for row in grid.rows][1:] == ["keda", "aiad", "clairvoyant", "ideal-reactive"]
    assert single_settings(found).rows[1][:4] == ("aiad", "none reaches it", "-", "-")
    (lost,) = losses(found).rows
    assert lost[:3] == ("a", "1", "aiad")
    assert lost[3].startswith("+0.20 ±")
    assert lost[5:] == ("within", "")
    assert "| a | 1 | aiad | +0.20 ±" in as_markdown(losses(found))
