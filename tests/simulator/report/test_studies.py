"""Sweeps and ablations: winners and the effect of components, by hand."""

from __future__ import annotations

import io

import pytest
from rich.console import Console, RenderableType

from headroom.simulator.report.studies import effects, settings_of, tuned
from headroom.simulator.report.study_table import ablated, swept
from headroom.simulator.report.summary import summarized
from support.fakes_outcome import outcome


def shown(renderable: RenderableType) -> str:
    console = Console(width=140, record=True, file=io.StringIO())
    console.print(renderable)
    return console.export_text()


SWEPT = [
    outcome("headroom", within=980, gpu_hours=4.0),
    outcome("clairvoyant", within=999, gpu_hours=1.0),
    outcome("hpa", within=970, gpu_hours=5.0),
    outcome("hpa(target=1)", within=985, gpu_hours=6.0),
    outcome("hpa(target=2)", within=960, gpu_hours=3.0),
    outcome("hpa(target=3)", within=950, gpu_hours=3.5),
    outcome("aiad", within=980, gpu_hours=3.9),
]


def test_sweep_keeps_best_front_and_points_that_beat_headroom() -> None:
    hpa, aiad = tuned(summarized(SWEPT))
    assert (hpa.peer, hpa.settings) == ("hpa", 4)
    assert [p.autoscaler for p in hpa.front] == ["hpa(target=2)", "hpa", "hpa(target=1)"]
    assert hpa.beating == ()
    assert [p.autoscaler for p in aiad.beating or ()] == ["aiad"]  # as many misses, cheaper


def test_sweep_without_headroom_compares_nothing() -> None:
    (hpa,) = tuned(summarized([outcome("hpa")]))
    assert hpa.beating is None
    assert "did not run" in shown(swept([hpa]))


def test_sweep_tries_every_setting_and_defaults_without_grid() -> None:
    grids: dict[str, tuple[dict[str, float], ...]] = {"hpa": ({}, {"target": 2.0})}
    assert settings_of(["hpa", "clairvoyant"], grids) == (
        ("hpa", {}),
        ("hpa", {"target": 2.0}),
        ("clairvoyant", {}),
    )


def test_sweep_table_names_points_that_beat_headroom() -> None:
    text = shown(swept(tuned(summarized(SWEPT))))
    assert "1 of 5 settings beat Headroom: aiad." in text
    assert "3.9" in next(line for line in text.splitlines() if "beats Headroom" in line)


def test_ablation_compares_pairs_of_one_seed() -> None:
    whole = [outcome(seed=1, within=980, gpu_hours=4.0), outcome(seed=2, within=990, gpu_hours=2.0)]
    less = [
        outcome("less", seed=1, within=970, gpu_hours=5.0, flaps=3),
        outcome("less", seed=2, within=980, gpu_hours=2.5, flaps=3),
        outcome("less", seed=9, within=0, gpu_hours=99.0),
    ]
    (effect,) = effects(whole, {"burst": less})
    assert effect.attainment_lost.mean == pytest.approx(0.01)
    assert effect.attainment_lost.half_width == pytest.approx(0.0, abs=1e-9)
    assert effect.cost_ratio.mean == pytest.approx(1.25)
    assert effect.flaps_added.mean == 2.0
    row = next(line for line in shown(ablated([effect])).splitlines() if "burst" in line)
    assert row.split() == ["burst", "97.50", "%", "+1.00", "±0.00", "1.250", "±0.000", "+2.00",
                           "±0.00"]  # fmt: skip


def test_ablation_separates_services_and_skips_unpaired_runs() -> None:
    whole = [outcome(service="a"), outcome(service="b")]
    found = effects(whole, {"burst": [outcome(service="b"), outcome(service="c")]})
    assert [(effect.service, effect.component) for effect in found] == [("b", "burst")]
