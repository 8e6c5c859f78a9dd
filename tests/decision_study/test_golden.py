"""The decision, its peers and the plant repeat recorded figures; a change raises a version."""

from __future__ import annotations

import pytest

from decision_study import golden, golden_figures
from decision_study.versions import version_of
from headroom.simulator.autoscalers import catalogue

AGAIN = (
    "if the change is meant, raise a version in e2e/decision_study/versions.py and run "
    "`python -m decision_study.golden --record`"
)


@pytest.mark.parametrize("scenario", golden_figures.scenarios())
def test_figures_of_golden_scenario_equal_recorded_ones(scenario: str) -> None:
    found: dict[str, golden_figures.Figures] = {}
    for autoscaler in golden_figures.autoscalers(scenario):
        found |= golden_figures.measured(scenario, autoscaler)
    assert golden.differences(found, golden.recorded()) == [], AGAIN


def test_inputs_of_all_cells_equal_recorded_ones() -> None:
    assert golden.differences(golden_figures.inputs(), golden.recorded()) == [], AGAIN


def test_constants_of_decision_equal_recorded_ones() -> None:
    assert golden.differences(golden_figures.constants(), golden.recorded()) == [], AGAIN


def test_golden_scenarios_cover_every_autoscaler() -> None:
    covered = [
        name for each in golden_figures.scenarios() for name in golden_figures.autoscalers(each)
    ]
    assert {name for name in catalogue.names() if covered.count(name) >= 3} == set(
        catalogue.names()
    )


RUN: dict[str, golden_figures.Figures] = {
    "a/b/keda": {"version": "1", "requests": 10, "gpu_hours": 2.5}
}


@pytest.mark.parametrize(
    ("changed", "refused"),
    [
        ({"requests": 11}, ["a/b/keda"]),
        ({"gpu_hours": 2.5000001}, ["a/b/keda"]),
        ({"version": "2", "requests": 11}, []),
        ({}, []),
    ],
)
def test_recording_with_moved_figures_needs_raised_version(
    changed: golden_figures.Figures, refused: list[str]
) -> None:
    moved = {"a/b/keda": {**RUN["a/b/keda"], **changed}}
    assert golden.unversioned(moved, RUN) == refused
    assert len(golden.differences(moved, RUN)) == len(changed)


def test_rounding_of_last_digit_is_no_difference() -> None:
    rounded = {"a/b/keda": {**RUN["a/b/keda"], "gpu_hours": 2.5 * (1 + 1e-15)}}
    assert golden.differences(rounded, RUN) == []


@pytest.mark.parametrize(("now", "lines"), [([1.0, 2.0], 0), ([1.0, 2.0, 3.0], 0), ([1.0, 2.5], 1)])
def test_new_constant_is_no_change_and_another_value_is(now: list[float], lines: int) -> None:
    expected = {golden_figures.CONSTANTS: {"version": "1", "numbers": [1.0, 2.0]}}
    found = {golden_figures.CONSTANTS: {"version": "1", "numbers": now}}
    assert len(golden.differences(found, expected)) == lines


def test_version_names_what_decides_a_run() -> None:
    assert version_of("keda") != version_of("knative")
    assert version_of("keda").startswith("plant ")
