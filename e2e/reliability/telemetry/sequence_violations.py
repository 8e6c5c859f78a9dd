"""Detects forbidden results of faulty telemetry: replicas out of bounds, needed ones removed."""

from __future__ import annotations

from headroom.scaling import Decision, Direction
from headroom.scaling.values.replica_defect import Defect
from reliability.telemetry.trials import Trial


def violation_of(trial: Trial, decision: Decision, silent: bool, *, needed: bool) -> str:
    """Return which rule the decision breaks; empty if none."""
    if not trial.min_replicas <= decision.replicas <= trial.max_replicas:
        return f"{decision.replicas} replicas are out of bounds"
    found = decision.replacement
    if found is not None and found.deletes and found.defect is Defect.OVERLOADED:
        if needed:
            return f"{found.pod} is evicted, though all are needed"
        if silent:
            return "an eviction to spread connections while a replica is silent"
    if decision.direction is not Direction.DOWN:
        return ""
    if decision.replicas < trial.replicas and needed:
        return f"{decision.replicas} of {trial.replicas} replicas, though all are needed"
    if silent:
        return "a removal while a replica is silent"
    return ""
