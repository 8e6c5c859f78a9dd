"""Decides how many replicas a service needs. Pure.

decide(policy, state, observation) -> (decision, state)

- decider runs the steps in their order; post_rules follow it in the controller
- steps, rules and explanation know the state of a service; all else knows only values
- what a replica carries: cost, latency, generation; serving_model is their common interface
- what arrives: windows, demand, forecast; evidence judges it
- what a service asks for: promise, limits; replacement of single replicas
- accelerator_allocation divides a pool among services
- frozen and mathematics: what all parts use
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headroom.scaling.values.decision import (
    Counterfactual,
    Decision,
    LimitApplied,
    Recommendation,
    ReplicaCounts,
)
from headroom.scaling.values.decision_reason import Direction, Reason
from headroom.scaling.values.demand import Demand, DemandKnown, Obstacle
from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import (
    Allocation,
    CostModel,
    Observation,
    Pod,
    PodSample,
    PodState,
)
from headroom.scaling.values.policy import Policy, RateLimit, Routing
from headroom.scaling.values.signals import Freshness, Signal, Signals

if TYPE_CHECKING:
    from headroom.scaling.decider import decide
    from headroom.scaling.state.state import State

__all__ = [
    "Allocation",
    "CostModel",
    "Counterfactual",
    "Decision",
    "Demand",
    "DemandKnown",
    "Direction",
    "Freshness",
    "LatencyCounts",
    "LimitApplied",
    "Observation",
    "Obstacle",
    "Pod",
    "PodSample",
    "PodState",
    "Policy",
    "RateLimit",
    "Reason",
    "Recommendation",
    "ReplicaCounts",
    "Routing",
    "Signal",
    "Signals",
    "State",
    "decide",
]

_STANDS_IN = {"State": "state.state", "decide": "decider"}


def __getattr__(name: str) -> object:
    """Import `decide` and `State` on first use: code that needs only values loads faster."""
    if name not in _STANDS_IN:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_STANDS_IN[name]}"), name)
