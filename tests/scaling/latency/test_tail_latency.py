"""The tail-latency model against theory, a plain simulation and itself."""

from __future__ import annotations

import csv
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from headroom.scaling.latency import latency_table_axes as axes
from headroom.scaling.latency.latency_tables import stored_table
from headroom.scaling.latency.tail_latency import TailLatency
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing
from latency_tables import validation_points
from latency_tables.surface import cell
from scaling.latency.tail_latency_points import POINTS
from support.reference_queue import percentile as simulated

Array = NDArray[np.float64]
POOLING = (Routing.LEAST_IN_FLIGHT, Routing.POWER_OF_TWO, Routing.CENTRAL)
"""Routers that find a free replica."""
PERCENTILES = (0.9, 0.95, 0.99)
PROMISED = ("Random", "LeastInFlight")


def points(*, low: bool = False) -> list[dict[str, str]]:
    """The simulated points; `low`: of hardly loaded replicas whose batches cost little."""
    with POINTS.open(encoding="utf-8") as file:
        every = list(csv.DictReader(file))
    return [point for point in every if (int(point["seed"]) >= validation_points.POINTS) is low]


def cost_of(point: dict[str, str]) -> CostModel:
    """A full batch takes 1 s."""
    batch, ratio = int(point["batch"]), float(point["per_item_over_fixed"])
    fixed_s = 1 / (1 + batch * ratio) if batch > 1 else 1.0
    return CostModel(
        fixed_s=fixed_s,
        per_item_s=ratio * fixed_s if batch > 1 else 0.0,
        max_batch=batch,
        cv=float(point["cv"]),
    )


def error(point: dict[str, str], percentile: float) -> float:
    """Relative error of the model at a simulated point; above zero is to the safe side."""
    cost, replicas = cost_of(point), int(point["replicas"])
    tail = TailLatency(cost=cost, percentile=percentile, routing=Routing(point["routing"]))
    rate_rps = float(point["utilization"]) * replicas * cost.full_batch_rps
    return tail.latency_s(rate_rps, replicas) / float(point[f"p{100 * percentile:g}"]) - 1


def errors(kept: Callable[[dict[str, str]], bool], *, low: bool = False) -> tuple[Array, Array]:
    """Errors at the points kept, and the simulation's own half-widths; [points x percentiles]."""
    pairs = [(point, p) for point in points(low=low) if kept(point) for p in PERCENTILES]
    widths = [float(point[f"p{100 * p:g}_half_width"]) for point, p in pairs]
    return np.array([error(point, p) for point, p in pairs]), np.array(widths)


def test_model_of_random_and_least_in_flight_is_within_5_percent() -> None:
    # 540 points of the operating range: utilization 0.2 to 0.95, N and B to 32, a / t0 and cv to 1
    found, widths = errors(lambda point: point["routing"] in PROMISED)
    assert len(found) == 1620
    assert np.mean(np.abs(found) <= 0.05 + widths) >= 0.99
    assert np.mean(np.abs(found) <= 0.05) >= 0.96
    assert np.median(np.abs(found)) < 0.01
    assert np.mean(np.abs(found)) == pytest.approx(0.01301, abs=5e-5)


OUTSIDE = {
    # many replicas without variation: the load from which full batches form at once
    ("LeastInFlight", 24, 8, 0.464, 0.9): -0.138,
    ("LeastInFlight", 24, 8, 0.464, 0.95): -0.085,
    ("LeastInFlight", 17, 8, 0.425, 0.95): -0.064,
    ("LeastInFlight", 9, 16, 0.431, 0.95): -0.068,
    ("LeastInFlight", 21, 32, 0.452, 0.95): -0.066,
    ("LeastInFlight", 21, 32, 0.781, 0.9): -0.058,
    # many replicas, hardly loaded
    ("LeastInFlight", 23, 4, 0.249, 0.9): 0.074,
    ("LeastInFlight", 23, 4, 0.249, 0.95): 0.064,
    ("LeastInFlight", 29, 4, 0.379, 0.9): -0.053,
}
"""Every comparison of random and least-in-flight routing that is further off than 5 % and what the
simulation itself is unsure of, with its error; below zero is to the unsafe side."""


def test_model_errors_above_5_percent_are_listed() -> None:
    outside = {
        (point["routing"], int(point["replicas"]), int(point["batch"]), load, percentile): off
        for point in points()
        for percentile in PERCENTILES
        if point["routing"] in PROMISED
        for load, off in [(float(point["utilization"]), error(point, percentile))]
        if abs(off) > 0.05 + float(point[f"p{100 * percentile:g}_half_width"])
    }
    assert outside.keys() == OUTSIDE.keys()
    for name, off in outside.items():
        assert off == pytest.approx(OUTSIDE[name], abs=0.005)


def test_model_of_other_routings_is_mostly_within_5_percent() -> None:
    found, widths = errors(lambda point: point["routing"] not in PROMISED)
    assert len(found) == 810
    assert np.mean(np.abs(found) <= 0.05 + widths) >= 0.93
    assert np.mean(found > -0.1 - widths) >= 0.99
    # 46 of 810 further off, 1.5 % to the safe side on average: known, and any change is looked at
    assert np.sum(np.abs(found) > 0.05 + widths) == 46
    assert np.mean(np.abs(found)) == pytest.approx(0.02395, abs=5e-5)
    assert np.mean(found) == pytest.approx(0.01498, abs=5e-5)


def test_model_of_hardly_loaded_replicas_is_mostly_within_5_percent() -> None:
    found, widths = errors(lambda point: point["routing"] in PROMISED, low=True)
    assert len(found) == 360
    assert np.mean(np.abs(found) <= 0.05 + widths) >= 0.95
    assert found.min() > -0.1  # it was -0.42 before the tables had these loads and fixed shares
    assert np.mean(np.abs(found)) == pytest.approx(0.01649, abs=5e-5)
    others, widths = errors(lambda point: point["routing"] not in PROMISED, low=True)
    assert len(others) == 180
    assert np.mean(np.abs(others) <= 0.05 + widths) >= 0.8
    assert np.mean(np.abs(others)) == pytest.approx(0.03419, abs=5e-5)


def test_simulated_points_are_precise_enough() -> None:
    _, widths = errors(lambda point: True)
    assert np.median(widths) < 0.01
    assert np.mean(widths < 0.05) > 0.9


@pytest.mark.parametrize(
    ("routing", "fleet"), [(Routing.RANDOM, 0), (Routing.LEAST_IN_FLIGHT, 1), (Routing.CENTRAL, 0)]
)
def test_shipped_table_matches_its_generator(routing: Routing, fleet: int) -> None:
    replicas, place = axes.FLEETS[routing][fleet], fleet + (routing is not Routing.RANDOM)
    made = cell(routing, replicas, axes.BATCHES[2] ** -0.4, axes.BATCHES[2], 0.3)
    shipped = stored_table(routing)[place, axes.EXPONENTS.index(0.4), 2, axes.CVS.index(0.3)]
    assert np.abs(made - shipped).max() <= 0.51 * axes.STEP


@pytest.mark.parametrize("seed", range(8))
def test_model_at_random_points_agrees_with_a_simulation(seed: int) -> None:
    stored = points()
    point = stored[int(np.random.default_rng(seed).integers(len(stored)))]
    cost, replicas = cost_of(point), int(point["replicas"])
    routing, utilization = Routing(point["routing"]), min(0.85, float(point["utilization"]))
    expected = simulated(cost, routing, replicas, utilization, 0.95, requests=60_000, seed=seed)
    tail = TailLatency(cost=cost, percentile=0.95, routing=routing)
    rate_rps = utilization * replicas * cost.full_batch_rps
    assert tail.latency_s(rate_rps, replicas) == pytest.approx(expected, rel=0.12)


@pytest.mark.parametrize(
    ("routing", "replicas", "slots", "cv", "utilization"),
    [
        (Routing.RANDOM, 1, 4, 0.0, 0.6),
        (Routing.RANDOM, 3, 8, 1.0, 0.7),
        (Routing.LEAST_IN_FLIGHT, 4, 2, 1.0, 0.8),
        (Routing.CENTRAL, 6, 8, 1.0, 0.85),
        (Routing.POWER_OF_TWO, 4, 8, 0.5, 0.85),
        (Routing.ROUND_ROBIN, 4, 8, 1.0, 0.8),
    ],
)
def test_model_of_slots_agrees_with_a_simulation(
    routing: Routing, replicas: int, slots: int, cv: float, utilization: float
) -> None:
    cost = CostModel(fixed_s=1.0, per_item_s=0.0, max_batch=1, cv=cv, slots=slots)
    expected = simulated(cost, routing, replicas, utilization, 0.95, requests=80_000)
    tail = TailLatency(cost=cost, percentile=0.95, routing=routing)
    rate_rps = utilization * replicas * cost.full_batch_rps
    assert tail.latency_s(rate_rps, replicas) == pytest.approx(expected, rel=0.08)
