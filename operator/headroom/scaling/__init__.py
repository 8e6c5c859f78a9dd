"""Decides how many replicas a service needs. Pure.

decide(policy, state, observation) -> (decision, state)

- the steps: decider, learning, correcting, replacing, tick_model, evidence, rule_results,
  recommenders, rebalancing, limiting, explanation, decision_message, post_rules
- services that generate: generating, generation_judgement, generation_rules,
  generation_explanation
- models: latency_model, serving_model, bisection, chance, routing_transition,
  accelerator_allocation
- from tick to tick: state, last_hour, checkpoint_numbers
- values: tuning, pace, flags, frozen, latency_counts, replica_defect
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from headroom.scaling.latency_counts import LatencyCounts
from headroom.scaling.values.decision import (
    Counterfactual,
    Decision,
    Demand,
    DemandKnown,
    Direction,
    LimitApplied,
    Obstacle,
    Reason,
    Recommendation,
    ReplicaCounts,
)
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
    from headroom.scaling.state import State

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

_STANDS_IN = {"State": "state", "decide": "decider"}


def __getattr__(name: str) -> object:
    """Import `decide` and `State` on first use: code that needs only values loads faster."""
    if name not in _STANDS_IN:
        raise AttributeError(f"module {__name__} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_STANDS_IN[name]}"), name)
