"""Every autoscaler by name, and the grids that a sweep walks."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headroom.simulator.autoscalers.catalogue import BOUNDS, PEERS, make, names
from headroom.simulator.autoscalers.sweep_grids import GRIDS
from simulator.autoscalers.fakes_view import Flow, World, truth


def test_catalogue_has_unique_names() -> None:
    assert set(GRIDS) == {peer.kind for peer in PEERS}
    assert set(names()) >= {entry.kind for entry in (*PEERS, *BOUNDS)}


def test_name_lists_settings_that_differ_from_default() -> None:
    assert make("knative", truth()).name == "knative"
    assert make("knative", truth(), {"concurrency_batches": 0.5}).name == (
        "knative(concurrency_batches=0.5)"
    )
    assert make("keda", truth(), {"ignore_null_values": 0}).name == "keda(ignore_null_values=0)"
    assert make("keda", truth(), {"fallback_behavior": "currentReplicas"}).name == (
        "keda(fallback_behavior=currentReplicas)"
    )


@pytest.mark.parametrize(
    ("name", "knobs", "message"),
    [
        ("hpa", {}, "one of headroom, hpa-utilization, .*; got 'hpa'"),
        ("aiad", {"target": 1.0}, "aiad: a knob must be one of .*up_after_s.*; got target"),
        ("aiad", {"window_s": 0.0}, "aiad: window_s must be a number > 0; got 0"),
        ("aiad", {"up_after_s": -1.0}, "aiad: up_after_s must be a number >= 0; got -1"),
        ("aiad", {"up_after_s": float("nan")}, "got nan"),
        ("aiad", {"up_after_s": float("inf")}, "got inf"),
        ("aiad", {"up_after_s": "soon"}, "aiad: up_after_s must be a number; got 'soon'"),
        ("keda", {"ignore_null_values": 2}, "keda: ignore_null_values must be 0 or 1; got 2"),
        ("keda", {"fallback_replicas": 1.5}, "fallback_replicas must be a whole number; got 1.5"),
        ("keda", {"fallback_behavior": "max"}, "one of static, currentReplicas, .*got 'max'"),
    ],
)
def test_invalid_names_knobs_and_values_are_rejected(
    name: str, knobs: dict[str, float | str], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make(name, truth(), knobs)


@pytest.mark.parametrize("name", sorted(GRIDS))
def test_grid_starts_with_defaults_and_varies_each_main_knob(name: str) -> None:
    grid = GRIDS[name]
    assert grid[0] == {}
    assert len(grid) <= 14
    assert len({tuple(sorted(setting.items())) for setting in grid}) == len(grid)
    defaults = next(peer for peer in PEERS if peer.kind == name).knobs()
    for setting in grid:
        assert all(value != defaults[knob] for knob, value in setting.items())
        make(name, truth(), setting)
    alone = [knob for setting in grid if len(setting) == 1 for knob in setting]
    assert max(alone.count(knob) for knob in set(alone)) >= 6


@pytest.mark.parametrize("name", names())
def test_every_autoscaler_answers_without_history_and_under_load(name: str) -> None:
    known = truth(arrivals_per_s=None, latency_ratio=0.7)
    peer, world = make(name, known), World.of(3)
    assert peer.period_s > 0
    assert peer.scrape_s > 0
    first = peer.evaluate(world.view())
    assert first.replicas >= 0
    world.run(120, Flow(rps=50, busy=0.8, running=5, waiting=1), every_s=5)
    assert 0 <= world.ask(peer).replicas <= 50
    later = replace(world.view(), replicas=0, pods=())
    assert peer.evaluate(later).replicas >= 0


@pytest.mark.parametrize(
    "name", sorted({peer.kind for peer in PEERS} - {"static-peak", "static-mean", "keda"})
)
def test_nothing_changes_before_the_first_scrape(name: str) -> None:
    assert World.of(3).ask(make(name, truth())).replicas == 3
