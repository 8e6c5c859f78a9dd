"""The decision: pure, knows nothing of Kubernetes, no clock, no I/O.

decide(policy, state, observation) -> (decision, state)
"""

from headroom.scaling.decider import decide
from headroom.scaling.state import State
from headroom.scaling.values import (
    CostModel,
    Counterfactual,
    Decision,
    Direction,
    Freshness,
    Grant,
    LatencyCounts,
    LimitApplied,
    Observation,
    Pod,
    PodSample,
    PodState,
    Policy,
    RateLimit,
    Reason,
    Recommendation,
    ReplicaCounts,
    Routing,
    Signal,
    Signals,
)

__all__ = [
    "CostModel",
    "Counterfactual",
    "Decision",
    "Direction",
    "Freshness",
    "Grant",
    "LatencyCounts",
    "LimitApplied",
    "Observation",
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
