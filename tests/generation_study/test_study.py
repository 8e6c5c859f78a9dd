"""The study: its cells, its kept runs and its figures."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from generation_study import __main__ as study
from generation_study import causes, cells, figures, records, settings
from generation_study.cells import Cell
from generation_study.records import Record
from generation_study.settings import HEADROOM, Setting
from headroom.simulator.generation.autoscalers.catalogue import autoscaler
from headroom.simulator.generation.outcome import TokenScore
from headroom.simulator.generation.run import simulate_tokens

SCORE = TokenScore(
    requests=100,
    attainment=1.0,
    kept=True,
    first_token_s=(0.1, 0.2, 0.3),
    output_token_s=(0.01, 0.02, 0.03),
    missed_first=0,
    missed_output=0,
    unanswered=0,
    gpu_hours=10.0,
    mean_replicas=5.0,
    peak_replicas=8,
    full_share=0.0,
    preempted=0,
    moves=4,
    flaps=0,
    flaps_per_hour=0.0,
    broken_minutes=0,
    longest_broken_s=0.0,
    iterations=1000,
    wall_s=0.1,
)
CELL = Cell(workload="family-0", engine="llama-8b-h100", start_s=30.0)
CLAIRVOYANT = settings.CLAIRVOYANTS[0]
PEER = Setting(kind="hpa-kv")


def _runs(**scores: TokenScore) -> figures.Runs:
    names = {"headroom": HEADROOM, "clairvoyant": CLAIRVOYANT, "peer": PEER}
    return {
        (CELL, names[name]): Record(cell=CELL, setting=names[name], score=score)
        for name, score in scores.items()
    }


def test_splits_of_the_family_share_no_member() -> None:
    develop, judge = (cells.family(split, 40) for split in ("develop", "judge"))

    assert not {one.workload for one in develop} & {one.workload for one in judge}
    assert {one.start_s for one in judge} == set(cells.STARTS_S)


@pytest.mark.parametrize("cell", cells.family("develop", 2) + cells.mixes("develop")[:1])
def test_drawn_cell_needs_a_few_replicas(cell: Cell) -> None:
    requests = cells.requests_of(cell)

    needed = cells._replicas(cells.service_of(cell).engine, requests, cells.service_of(cell))
    assert 4.0 < needed < 6.5
    assert requests.duration_s > 5_000


def test_mix_doubles_its_prompts_half_way_at_the_same_rate() -> None:
    requests = cells.requests_of(cells.mixes("develop")[0])
    late = requests.arrival_s > requests.duration_s / 2

    prompts = requests.prompt_tokens
    assert prompts[late].mean() == pytest.approx(2 * prompts[~late].mean(), rel=0.1)
    assert late.mean() == pytest.approx(0.5, abs=0.03)


def test_kept_runs_of_another_version_and_torn_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "runs.jsonl"
    record = Record(cell=CELL, setting=CLAIRVOYANT, score=SCORE)
    records.append(path, record)
    written = path.read_text(encoding="ascii")
    earlier = written.replace(records.digest(CLAIRVOYANT.kind), "earlier")
    path.write_text(f'{earlier}{written}{{"version": "', encoding="ascii")

    assert records.load(path) == {(CELL, CLAIRVOYANT): record}
    path.write_text(earlier, encoding="ascii")
    assert not records.load(path)


def test_runs_of_peers_outlive_a_change_of_the_decision() -> None:
    assert records.digest(PEER.kind) == records.digest(CLAIRVOYANT.kind)
    assert records.digest(PEER.kind) != records.digest(HEADROOM.kind)


@pytest.mark.parametrize(
    ("rates", "ready", "waits"),
    [
        ([4.0] * 60, [5] * 60, False),
        ([6.0] * 60, [5] * 60, True),
        ([6.0] * 12 + [1.0] * 48, [5] * 60, False),
    ],
    ids=["enough", "too few", "worked off"],
)
def test_requests_wait_from_a_shortage_until_it_is_worked_off(
    rates: list[float], ready: list[float], waits: bool
) -> None:
    queue = causes.waiting(np.array(rates), np.array(ready, dtype=float))

    assert (queue[-10:].max() > 0.0) == waits


def _against(peer: TokenScore, *, ours: TokenScore = SCORE) -> figures.CellResult:
    [found] = figures.results(_runs(headroom=ours, clairvoyant=SCORE, peer=peer))
    return found


@pytest.mark.parametrize(
    ("attainment", "gpu_hours", "strictly", "nearly"),
    [
        (0.98, 9.9, True, False),
        (0.98, 9.7, True, True),
        (0.9805, 10.0, True, False),
        (0.982, 10.0, True, True),
        (0.979, 5.0, False, False),
        (1.0, 10.1, False, False),
        (0.98, 10.0, False, False),
    ],
)
def test_setting_beats_if_it_is_no_worse_in_both_and_better_in_one(
    attainment: float, gpu_hours: float, strictly: bool, nearly: bool
) -> None:
    peer = replace(SCORE, attainment=attainment, gpu_hours=gpu_hours)
    found = _against(peer, ours=replace(SCORE, attainment=0.98))

    assert found.beaten() == strictly
    assert found.beaten(points=figures.POINTS, cost=figures.COST) == nearly
    assert found.excess == 1.0


def test_setting_undercuts_if_it_keeps_the_promises_with_fewer_gpu_hours() -> None:
    cheaper = replace(SCORE, attainment=0.96, gpu_hours=9.0)

    assert _against(cheaper).undercut
    assert not _against(replace(cheaper, kept=False)).undercut
    assert _against(replace(cheaper, gpu_hours=11.0), ours=replace(SCORE, kept=False)).undercut


def test_figures_against_peers_need_peers() -> None:
    runs = _runs(headroom=SCORE, clairvoyant=SCORE)
    names = [one.name for one in figures.figures(figures.results(runs), runs)]

    assert any(name.startswith("1 ") for name in names)
    assert not any(name.startswith(("3 ", "4 ")) for name in names)


def test_cell_that_no_clairvoyant_keeps_counts_in_no_figure() -> None:
    runs = _runs(headroom=SCORE, clairvoyant=replace(SCORE, kept=False))

    assert figures.figures(figures.results(runs), runs) == []


def test_single_setting_must_keep_as_many_cells_to_count() -> None:
    dear = replace(SCORE, gpu_hours=16.0)
    runs = _runs(headroom=SCORE, clairvoyant=SCORE, peer=dear)

    named = {one.name: one for one in figures.figures(figures.results(runs), runs)}

    assert named["3 cheapest single setting"].measured == "1.60 (hpa-kv)"
    assert all(one.holds for one in named.values())


def test_look_at_judge_without_a_reason_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        study.main(["--split", "judge", "--why", " "])
    assert "--split judge must have a reason" in capsys.readouterr().err


@pytest.mark.parametrize(("broken_s", "holds"), [(180.0, True), (240.0, False)])
def test_change_of_mix_breaks_the_promise_for_two_starts_at_most(
    broken_s: float, holds: bool
) -> None:
    score = replace(SCORE, longest_broken_s=broken_s)
    cell = cells.mixes("develop")[0]
    runs = {(cell, HEADROOM): Record(cell=cell, setting=HEADROOM, score=score)}

    found = {one.name[0]: one for one in figures.figures(figures.results(runs), runs)}

    assert found["8"].holds is holds


def test_doubled_prompts_break_the_promise_for_two_starts_at_most() -> None:
    """The first twenty minutes after the change, of the mix with the fewest requests."""
    cell = next(one for one in cells.mixes("develop") if one.engine == "qwen3-8b-l40s")
    requests = cells.requests_of(cell)
    around = np.abs(requests.arrival_s - requests.duration_s / 2) < 1200.0
    chosen = requests.taken(around)
    chosen = replace(chosen, arrival_s=chosen.arrival_s - chosen.arrival_s[0])

    outcome = simulate_tokens(cells.begun(cell), chosen, autoscaler(HEADROOM.kind), 1)

    assert outcome.score.longest_broken_s <= 2 * cell.start_s
    assert max(move.after for move in outcome.moves) > (cells.begun(cell).initial_replicas or 0)
