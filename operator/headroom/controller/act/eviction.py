"""Evict the pod of a replica that is replaced or overloaded; its workload creates another.

An eviction respects PodDisruptionBudgets, so a pod is not deleted while too many others are
unavailable. It names the UID: a successor of the same name is never evicted.
"""

from __future__ import annotations

from headroom.api import InferenceService
from headroom.controller.act.state import ActState
from headroom.controller.gather.gather_tick import Gathered
from headroom.controller.ports import Cluster
from headroom.errors import Conflict, Forbidden, NotFound, NotLeading, Rejected, Unavailable
from headroom.scaling.values.decision import Decision

FORBIDDEN_AGAIN_AFTER_S = 600.0
"""An eviction that RBAC forbids is tried again after this; capacity is added meanwhile."""
KINDS = frozenset({"Deployment", "StatefulSet"})
"""Kinds whose controllers create another pod; a pod of another kind may be part of a group."""


def objection(
    service: InferenceService, gathered: Gathered, state: ActState, now_s: float, *, blocked: bool
) -> str:
    """Return why slow or failing replicas are not replaced; empty if they are. Pure.

    `blocked`: something else scales the workload.
    """
    if not service.spec.scaling.replace_slow_replicas:
        return "scaling.replaceSlowReplicas is false"
    return _prevented(service, gathered, state, now_s, blocked=blocked)


def rebalancing_objection(
    service: InferenceService, gathered: Gathered, state: ActState, now_s: float, *, blocked: bool
) -> str:
    """Return why replicas are not evicted to spread connections; empty if they are. Pure."""
    if not service.spec.scaling.rebalance_connections:
        return "scaling.rebalanceConnections is false"
    return _prevented(service, gathered, state, now_s, blocked=blocked)


def _prevented(
    service: InferenceService, gathered: Gathered, state: ActState, now_s: float, *, blocked: bool
) -> str:
    """Return why no pod is evicted."""
    scaling, workload = service.spec.scaling, gathered.deployment
    if scaling.mode != "Auto":
        return f"scaling.mode is {scaling.mode}"
    if blocked:
        return "something else scales the workload, see AbleToScale"
    if workload is not None and workload.get("kind", "Deployment") not in KINDS:
        return "only pods of Deployments and StatefulSets are replaced"
    if now_s < state.evicts_again_s:
        return state.eviction_refused
    return ""


async def evict(
    cluster: Cluster,
    service: InferenceService,
    gathered: Gathered,
    decision: Decision,
    state: ActState,
    now_s: float,
) -> tuple[str, str]:
    """Evict the pod that the decision names; return its name if it was, else why it was not.

    Raises NotLeading.
    """
    found = decision.replacement
    if found is None or not found.deletes:
        return "", ""
    name = next((one.name for one in gathered.pods if one.pod.uid == found.pod), "")
    if not name:
        return "", ""
    try:
        await cluster.evict(service.namespace, name, found.pod)
    except NotLeading:
        raise
    except (NotFound, Conflict):  # it is gone
        return "", ""
    except Forbidden as error:
        state.evicts_again_s = now_s + FORBIDDEN_AGAIN_AFTER_S
        state.eviction_refused = f"the eviction of {name} was forbidden: {error}"
        return "", state.eviction_refused
    except (Unavailable, Rejected) as error:  # 429: a PodDisruptionBudget allows no disruption now
        return "", f"{name} was not evicted: {error}"
    return name, ""
