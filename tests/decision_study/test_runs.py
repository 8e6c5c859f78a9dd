"""Runs of the study, the records that are kept, and the conditions for a new run."""

from __future__ import annotations

import math
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from decision_study import options, plan
from decision_study.cells import CELLS, Cell
from decision_study.faults_cells import EXTRAS, QUICK_EXTRAS, claimed
from decision_study.points import points_of
from decision_study.records import (
    Job,
    Record,
    append,
    current,
    from_row,
    load,
    record_of,
    setting_name,
    settled_attainment,
)
from decision_study.versions import version_of
from headroom.simulator.autoscalers import sweep_grids
from headroom.simulator.outcome import Move, Outcome
from headroom.simulator.scenario import FaultKind
from support.fakes_decision_study import RECORD, record
from support.fakes_outcome import outcome, timeline

GRIDS: plan.Grids = {"keda": ({}, {"x": 1.0}, {"x": 2.0}, {"x": 3.0, "y": 1.0})}


def extent(**changes: object) -> plan.Extent:
    usual = plan.Extent(cells=("a", "b"), autoscalers=("headroom", "keda", "clairvoyant"))
    return replace(usual, **changes)  # type: ignore[arg-type]


def test_first_phase_sweeps_peers_with_one_seed_and_runs_rest_with_all() -> None:
    jobs = plan.first(extent(extras=("claim",)), GRIDS)
    # 2 cells x (5 + 4 + 5), and 5 seeds of the extra
    assert len(jobs) == len(set(jobs)) == 33
    assert {job.seed for job in jobs if job.autoscaler == "keda"} == {1}
    assert {job.autoscaler for job in jobs if job.cell == "claim"} == {"headroom"}


def test_second_phase_runs_fronts_and_requested_defaults() -> None:
    swept = [
        record("a", "keda", attainment=0.98, gpu_hours=10.0),
        record("a", "keda:x=1", attainment=0.99, gpu_hours=9.0),
        record("a", "keda:x=2", attainment=0.97, gpu_hours=8.0),
        record("a", "headroom", attainment=1.0, gpu_hours=1.0),
        record("b", "keda", attainment=0.98, gpu_hours=10.0),
    ]
    jobs = plan.second(extent(seeds=3), GRIDS, points_of(swept))
    settings = [(job.cell, job.setting) for job in jobs]
    assert len(jobs) == 3 * 3
    assert set(settings) == {
        ("a", "keda(x=1)"),
        ("a", "keda(x=2)"),
        ("b", "keda"),
    }
    assert set(jobs) <= set(plan.every(extent(seeds=3), GRIDS))
    both = plan.second(extent(seeds=3, seed_defaults=True), GRIDS, points_of(swept))
    assert {(j.cell, j.setting) for j in both} == {*settings, ("a", "keda")}


def test_second_phase_runs_settings_that_beat_headroom() -> None:
    swept = [
        record("b", "keda", attainment=0.98, gpu_hours=10.0),
        record("b", "keda:x=1", attainment=0.975, gpu_hours=10.5),
        record("b", "keda:x=2", attainment=0.965, gpu_hours=10.5),
        record("b", "headroom", attainment=0.97, gpu_hours=11.0),
    ]
    jobs = plan.second(extent(seeds=3), GRIDS, points_of(swept))
    assert {job.setting for job in jobs} == {"keda", "keda(x=1)"}
    assert len(jobs) == 2 * 3


def test_part_of_grid_has_defaults_and_spans_the_rest() -> None:
    settings = tuple({"x": float(index)} for index in range(14))
    picked = [int(each["x"]) for each in plan.spread(settings, 4)]
    assert picked == [0, 3, 7, 11]
    assert plan.spread(settings, 1) == settings[:1]
    assert plan.spread(settings, None) == settings


def test_complete_study_is_every_cell_and_autoscaler() -> None:
    asked = options.parsed([])
    jobs = plan.first(asked.extent, options.grids(asked.extent))
    settings = sum(len(grid) for grid in sweep_grids.GRIDS.values())
    assert len(jobs) == len(CELLS) * (settings + 4 * 5) + len(EXTRAS) * 5
    assert asked.alone


def test_quick_study_covers_every_workload_and_plant() -> None:
    asked = options.parsed(["--quick"])
    chosen = [cell for cell in CELLS if cell.name in asked.extent.cells]
    assert len(chosen) == len(plan.QUICK) == 16
    assert {cell.workload for cell in chosen} == {cell.workload for cell in CELLS}
    assert {cell.plant for cell in chosen} == {cell.plant for cell in CELLS}
    assert set(asked.extent.extras) == QUICK_EXTRAS
    jobs = plan.first(asked.extent, options.grids(asked.extent))
    assert len(jobs) == 16 * (15 * 4 + 4) + len(QUICK_EXTRAS)


def test_partial_study_includes_the_bounds() -> None:
    asked = options.parsed(
        ["--cells", "ramp/heavy/*,step/*/4/*", "--autoscalers", "keda", "--defaults-only"]
    )
    assert len(asked.extent.cells) == 2 + 3
    assert asked.extent.autoscalers == ("keda", "clairvoyant", "ideal-reactive")
    assert asked.extent.extras == ()
    assert not asked.alone


@pytest.mark.parametrize(
    ("argv", "rule"),
    [
        (["--cells", "nothing/*"], "no cell matches 'nothing/*'"),
        (["--autoscalers", "kedaa"], "got 'kedaa'"),
        (["--seeds", "0"], "must be a whole number >= 1; got '0'"),
    ],
)
def test_invalid_arguments_are_rejected_with_the_rule(
    argv: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        options.parsed(argv)
    assert ended.value.code == 2
    assert rule in capsys.readouterr().err


def test_records_read_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "runs.jsonl"
    rows = [record("a", "keda:x=0.5", seed, p95_s=None) for seed in (1, 2)]
    for row in rows:
        append(path, row)
    assert list(load(path).values()) == rows
    assert load(tmp_path / "none") == {}


LAYOUT: dict[str, object] = asdict(RECORD)


@pytest.mark.parametrize(
    "row", [{}, {**LAYOUT, "more": 1}, {**LAYOUT, "job": 3}, {**LAYOUT, "removals_s": None}]
)
def test_row_of_another_layout_is_no_record(row: dict[str, object]) -> None:
    assert from_row(row) is None


def test_last_record_of_a_job_counts_if_its_version_is_current(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    old = record("a", "keda", version="plant 0, cells 1, keda 1")
    new = record("a", "keda", version=version_of("keda"), gpu_hours=3.0)
    append(path, old)
    append(path, new)
    assert current(load(path), [new.job]) == {new.job: new}
    append(path, old)
    assert current(load(path), [new.job]) == {}


def recorded(job: Job, ended: Outcome) -> Record:
    return record_of(job, ended, version="v", wall_s=1.0, duration_s=5400.0, cold_start_s=40.0)


def test_record_of_headroom_counts_undone_removals() -> None:
    course_of = [(100.0, 5, 4), (200.0, 4, 6), (202.0, 6, 9), (300.0, 9, 8), (310.0, 8, 7)]
    course_of += [(411.0, 7, 8), (500.0, 8, 7), (560.0, 7, 9), (600.0, 9, 10), (640.0, 10, 8)]
    moves = [
        Move(time_s=time_s, before=before, after=after, reason="", message="")
        for time_s, before, after in course_of
    ]
    ended = outcome(moves=moves)
    # within 40 + 60 s: 200 s after 100 s, 560 s after 500 s; 411 s is 101 s after 310 s
    found = recorded(Job(cell="a", autoscaler="headroom"), ended)
    assert found.undone == 2
    assert from_row(asdict(found)) == found
    assert recorded(Job(cell="a", autoscaler="keda"), ended).undone is None


def test_record_has_the_figures_of_its_outcome() -> None:
    job = Job(cell="a", autoscaler="keda")
    ended = outcome(p95_s=math.inf, flaps=3)
    found = recorded(job, ended)
    assert (found.attainment, found.gpu_hours, found.p95_s) == (0.98, 4.0, None)
    assert found.flaps_per_hour == 2.0
    assert from_row(asdict(found)) == found


def test_settled_attainment_starts_after_ten_minutes_and_weighs_by_arrivals() -> None:
    samples = timeline(
        times_s=[600.0, 900.0, 1200.0, 1500.0],
        attainment=[0.5, 0.9, 1.0, math.nan],
        arrival_rps=[10.0, 30.0, 10.0, 50.0],
    )
    assert settled_attainment(outcome(timeline_=samples)) == pytest.approx(0.925)


def test_setting_name_lists_knobs_in_order() -> None:
    assert setting_name("keda", {"b": 2.0, "a": 0.5}) == "keda(a=0.5, b=2)"


@pytest.mark.parametrize("cell", [c for c in CELLS if c.plant == "heavy"], ids=lambda c: c.name)
def test_cell_makes_a_scenario(cell: Cell) -> None:
    scenario = cell.scenario()
    assert scenario.name == cell.name
    assert 3400 < scenario.duration_s <= 14_400
    (workload,) = scenario.workloads
    assert workload.spec.cold_start.median_s == pytest.approx(cell.cold_start_s)


def test_cells_are_at_least_forty_with_unique_names() -> None:
    assert len({cell.name for cell in CELLS}) == len(CELLS) >= 40
    assert not {cell.name for cell in CELLS} & set(EXTRAS)


def test_cases_have_base_and_faults_in_their_scenario() -> None:
    for case in EXTRAS.values():
        assert case.base_name is None or case.base_name in EXTRAS
    case = EXTRAS["step/heavy/4/60s/Random+node-lost-blind"]
    scenario = case.scenario()
    assert {each.kind for each in scenario.faults} == {FaultKind.NODE_LOSS, FaultKind.SCRAPE_LOSS}
    assert all(each.end_s < scenario.duration_s for each in scenario.faults)


def test_claim_of_more_speed_divides_the_time() -> None:
    server = CELLS[2].spec().server
    assert claimed(server, 1.5).full_rps == pytest.approx(1.5 * server.full_rps)
    scenario = EXTRAS["llm-hour/heavy/4/60s/Random+claim-1.5x-fast"].scenario()
    advertised = scenario.workloads[0].spec.advertised
    assert advertised is not None
    assert advertised.fixed_s == pytest.approx(0.1)
