"""Costs and points at which the tail-latency model is held against others."""

from __future__ import annotations

from pathlib import Path

from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Routing

VISION = CostModel(fixed_s=0.006, per_item_s=0.0005, max_batch=8)
HEAVY = CostModel(fixed_s=0.150, per_item_s=0.060, max_batch=4)
SINGLE = CostModel(fixed_s=0.300, per_item_s=0.0, max_batch=1, cv=1.0)

HIGHEST_UTILIZATION = [
    (HEAVY, 1.5, Routing.RANDOM, {4: 0.87, 12: 0.87, 40: 0.87}),
    (HEAVY, 1.5, Routing.LEAST_IN_FLIGHT, {4: 0.96, 12: 0.98, 40: 0.99}),
    (HEAVY, 1.5, Routing.ROUND_ROBIN, {4: 0.96, 12: 0.98, 40: 0.99}),
    (HEAVY, 1.5, Routing.CENTRAL, {4: 0.96, 12: 0.98, 40: 0.99}),
    (SINGLE, 2.0, Routing.RANDOM, {4: 0.53, 12: 0.53, 40: 0.53}),
    (SINGLE, 2.0, Routing.ROUND_ROBIN, {4: 0.66, 12: 0.71, 40: 0.71}),
    (SINGLE, 2.0, Routing.POWER_OF_TWO, {4: 0.81, 12: 0.88, 40: 0.91}),
    (SINGLE, 2.0, Routing.LEAST_IN_FLIGHT, {4: 0.84, 12: 0.94, 40: 0.98}),
    (SINGLE, 2.0, Routing.CENTRAL, {4: 0.86, 12: 0.95, 40: 0.98}),
]
"""Utilization at which 5 % of the requests miss, from simulations of whole services."""


POINTS = Path(__file__).with_name("surface_points.csv")
"""Made by `python -m latency_tables.validation_points tests/scaling/latency/surface_points.csv`."""
