"""The replicas that a tick requests: the decision, unless it is advice or is blocked. Pure."""

from __future__ import annotations

from headroom.api import InferenceService
from headroom.controller.decide.external_scaling import next_replicas
from headroom.scaling import Decision, State


def would_scale(service: InferenceService, decision: Decision) -> bool:
    """Return whether the decision, if not blocked, adds, removes or evicts a replica."""
    if decision.replacement is not None and decision.replacement.deletes:
        return True
    return service.spec.scaling.mode != "Recommend" and decision.replicas != decision.current


def requested_replicas(
    service: InferenceService,
    decision: Decision,
    state: State,
    current: int,
    *,
    min_replicas: int,
    blocked: bool,
) -> int:
    """Return the replicas to request of a workload that has `current` requested replicas.

    `min_replicas` is what minReplicas and the schedules require now; `blocked` says that another
    writer scales the workload.
    """
    if blocked:
        return current
    if service.spec.scaling.mode == "External":
        now_s = decision.time_s
        return next_replicas(service, current, state.changes, now_s, min_replicas=min_replicas)
    return current if service.spec.scaling.mode == "Recommend" else decision.replicas
