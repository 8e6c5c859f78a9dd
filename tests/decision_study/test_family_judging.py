"""Record of a run of the family, and the judgement of a set."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

import looks
import results
from decision_study.family import cell_results, command, hard, kept, peers, summary, verdicts
from decision_study.family.kept import Kept
from decision_study.family.measures import flap_times_s, hours_of, total
from decision_study.versions import family_version_of
from headroom.simulator.autoscalers import catalogue
from headroom.simulator.outcome import Move
from simulator.autoscalers.fakes_view import truth
from support.fakes_family import run
from support.fakes_outcome import outcome, timeline

OURS = "headroom"


def test_first_hour_does_not_count_and_a_short_run_counts_whole() -> None:
    ours = run(OURS, 0.97, 5.0)
    assert ours.attainment == pytest.approx(0.97)
    assert ours.gpu_hours == 5.0
    assert replace(ours, hours=ours.hours[:1]).attainment == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("course", "flaps", "undone"),
    [
        pytest.param([(100, -1), (150, 1), (155, 1), (700, 1)], [150, 155], [150, 155], id="soon"),
        pytest.param([(100, -1), (700, 1), (702, 1)], [], [700], id="within 15 min, once"),
        pytest.param([(100, -1), (1001, 1)], [], [], id="later than 15 min"),
        pytest.param([(100, 1), (200, 1)], [], [], id="nothing was removed"),
        pytest.param(
            [(0, -1), (600, 2), (720, -2), (1200, 2)], [], [600, 1200], id="surges each 10 min"
        ),
    ],
)
def test_flaps_and_undone_removals_of_a_replica_history(
    course: list[tuple[float, int]], flaps: list[float], undone: list[float]
) -> None:
    moves = [
        Move(time_s=at_s, before=10, after=10 + change, reason="", message="")
        for at_s, change in course
    ]
    assert flap_times_s(moves, 30.0) == (flaps, undone)


def test_hours_split_requests_by_arrival_and_gpu_time_by_sample() -> None:
    samples = timeline(
        samples=720, step_s=10.0, ready=[2.0] * 360 + [6.0] * 360, warming=[0.0] * 720
    )
    moves = [
        Move(time_s=at_s, before=2, after=after, reason="", message="")
        for at_s, after in ((3500.0, 1), (3620.0, 6))
    ]
    ended = replace(
        outcome(timeline_=samples, moves=moves),
        minute_requests=np.repeat([10, 20], 60),
        minute_missed=np.array([0] * 60 + [2] * 30 + [1] * 30),
    )
    first, second = hours_of(ended, duration_s=7200.0, cold_start_s=90.0)
    assert (first.requests, first.missed, first.late_minutes) == (600, 0, 0)
    # 2 of 20 is more than 5 %, and 1 of 20 is not
    assert (second.requests, second.missed, second.late_minutes) == (1200, 90, 30)
    assert first.gpu_hours == pytest.approx(2.0)
    assert second.gpu_hours == pytest.approx(6.0, abs=0.01)
    assert (first.flaps, second.flaps, second.undone) == (0, 1, 1)
    assert total([first, second]).attainment == pytest.approx(1 - 90 / 1800)


def test_record_reads_back_and_counts_while_its_version_is_current(tmp_path: Path) -> None:
    path = tmp_path / "family.jsonl"
    old = run("keda:x", 0.9, 1.0)
    new = replace(old, version=family_version_of("keda"), operations=9)
    kept.append(path, old)
    assert kept.current(kept.load(path), [old.job]) == {}
    kept.append(path, new)
    assert kept.current(kept.load(path), [old.job]) == {new.job: new}
    assert kept.from_row({**asdict(new), "more": 1}) is None


def test_yardstick_is_the_cheapest_that_keeps_or_else_misses_least() -> None:
    rows = [run("clairvoyant", 0.90, 1.0), run("clairvoyant:a", 0.96, 3.0)]
    rows.append(run("clairvoyant:b", 0.99, 4.0))
    assert cell_results.yardstick(rows) == rows[1]
    assert cell_results.yardstick(rows[:1]) == rows[0]
    assert cell_results.yardstick([]) is None


@pytest.mark.parametrize(
    ("share", "hours", "strictly", "beyond_tolerance"),
    [
        pytest.param(0.98, 9.0, True, True, id="better in both"),
        pytest.param(0.97, 10.0, False, False, id="equal"),
        pytest.param(0.971, 9.9, True, False, id="by 0.1 points and 1 %"),
        pytest.param(0.97, 9.7, True, True, id="3 % cheaper"),
        pytest.param(0.969, 5.0, False, False, id="it misses more"),
        pytest.param(1.0, 10.1, False, False, id="it costs more"),
    ],
)
def test_peer_beats_only_if_no_worse_in_both(
    share: float, hours: float, strictly: bool, beyond_tolerance: bool
) -> None:
    ours, rival = run(OURS, 0.97, 10.0), run("keda", share, hours)
    assert verdicts.beats(rival, ours) == strictly
    near = verdicts.beats(rival, ours, points=verdicts.POINTS + 1e-9, cost=verdicts.COST)
    assert near == beyond_tolerance


def judged() -> list[Kept]:
    """Three cells: one kept, one broken, one infeasible; one peer keeps both feasible ones."""
    cells = ("develop-000-jumps", "develop-001-modulated", "develop-002-self-exciting")
    shares = {
        OURS: (0.99, 0.90, 0.5),
        "clairvoyant": (0.98, 0.98, 0.6),
        "ideal-reactive": (0.98, 0.94, 0.6),
        "keda": (0.96, 0.96, 0.5),
    }
    costs = {OURS: 11.0, "clairvoyant": 10.0, "ideal-reactive": 12.0, "keda": 22.0}
    return [
        run(setting, share, costs[setting], cell, undone=3 if setting == OURS else 0)
        for setting, each in shares.items()
        for cell, share in zip(cells, each, strict=True)
    ]


def test_figures_judge_feasible_cells_and_name_the_cheapest_setting() -> None:
    rows = judged()
    cells = cell_results.cells_of(rows, OURS)
    assert [cell.feasible for cell in cells] == [True, True, False]
    rivals = verdicts.rivals_of(rows, OURS)
    assert {row.job.autoscaler for each in rivals.values() for row in each} == {"keda"}
    found = {figure.name: figure for figure in verdicts.figures(cells, rivals)}
    kept_ = found["1 promise kept, 2 feasible cells of 3"]
    assert (kept_.measured, kept_.holds) == ("50.0 %", False)
    cheapest = found["3 cheapest single setting of a peer that keeps as many cells: keda"]
    assert (cheapest.measured, cheapest.holds) == ("2.00x", True)
    cost = found["2 cost over the clairvoyant's, mean of the 1 cells that both keep"]
    assert (cost.measured, cost.holds) == ("1.10x", True)
    assert found["5 flaps an hour, mean over cells"].measured == "3.00"
    assert found["4 not beaten by any setting of a peer in hindsight, 2 cells: strictly"].holds


def test_figure_of_peers_says_when_none_keeps_as_many() -> None:
    rows = [row for row in judged() if row.job.autoscaler != "keda"]
    rows.append(run("keda", 0.5, 1.0))
    cells = cell_results.cells_of(rows, OURS)
    found = verdicts.figures(cells, verdicts.rivals_of(rows, OURS))
    assert any(figure.measured == "none does" and figure.holds for figure in found)


def test_tables_have_a_row_per_class_and_the_worst_cell_first() -> None:
    cells = cell_results.cells_of(judged(), OURS)
    assert [row[0] for row in summary.classes(cells).rows] == [
        *("jumps", "modulated", "self-exciting", "all"),
    ]
    worst = summary.worst(cells, 5, lambda name: f"what {name} is")
    assert [row[0] for row in worst.rows] == ["develop-001-modulated", "develop-000-jumps"]
    assert worst.rows[0][-1] == "what develop-001-modulated is"


def test_hard_rows_are_compared_with_the_ideal_reactive() -> None:
    rows = [run(OURS, 0.90, 16.0, "hard-x"), run("ideal-reactive", 0.96, 10.0, "hard-x")]
    cells = cell_results.cells_of(rows, OURS)
    assert verdicts.hard_figures(cells, ()) == ()
    points, cost = verdicts.hard_figures(cells, ("hard-x",))
    assert (points.measured, points.holds) == ("-6.0 points", False)
    assert (cost.measured, cost.holds) == ("1.60x", False)


def test_promised_rows_exist() -> None:
    assert set(hard.PROMISED) < set(hard.ROWS)


def test_every_setting_of_a_peer_exists_and_differs() -> None:
    jobs = peers.jobs("c", 1)
    assert len({job.setting for job in jobs}) == len(jobs)
    for job in jobs:
        catalogue.make(job.autoscaler, truth(), dict(job.knobs))


def test_looks_at_judge_are_counted_with_their_reason(tmp_path: Path) -> None:
    record = tmp_path / "looks.jsonl"
    assert looks.note(record, "first", 2) == 1
    assert looks.note(record, "second", 1) == 2
    with pytest.raises(ValueError, match="must have a reason"):
        looks.note(record, " ", 1)
    assert [(row["reason"], row["cells"]) for row in results.load(record)] == [
        *(("first", 2), ("second", 1)),
    ]


def test_judge_is_not_shown_without_a_look(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = tmp_path / "looks.jsonl"
    assert command.main(["--set", "judge", "--report-only"], tmp_path, record) == 0
    assert "not shown" in capsys.readouterr().out
    assert not record.exists()
    assert not list(tmp_path.glob("*.md"))


def test_small_part_of_the_family_runs_resumes_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = ["--class", "growth", "--sample", "1", "--jobs", "1"]
    command.main(argv, tmp_path, tmp_path / "looks.jsonl")
    assert "0 runs exist, 7 to go" in capsys.readouterr().out
    command.main(argv, tmp_path, tmp_path / "looks.jsonl")
    shown = capsys.readouterr().out
    assert "7 runs exist, 0 to go" in shown
    assert "develop-005-growth" in shown
    assert "1 promise kept" in (tmp_path / "family-develop.md").read_text()


@pytest.mark.parametrize(
    ("argv", "rule"),
    [
        (["--class", "jump"], "one of jumps, "),
        (["--clients", "all"], "one of alone, limited, users, retrying; got 'all'"),
        (["--headroom-knobs", "x=1"], "got 'x'"),
    ],
)
def test_invalid_arguments_are_rejected_with_the_rule(
    argv: list[str], rule: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(argv)
    assert ended.value.code == 2
    assert rule in capsys.readouterr().err
