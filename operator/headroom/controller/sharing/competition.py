"""Which services compete with each other, and what the others see of one. No I/O.

A pool is a resource and a placement: the node selector, node affinity and tolerations of the pods.
Only services whose replicas are written take part: one in Recommend mode has nothing to give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.api import InferenceService
from headroom.controller.sharing.pool import Pool
from headroom.controller.sharing.pool_member import Seen
from headroom.scaling.accelerator_allocation import Demand
from headroom.scaling.values import Allocation, Decision, Observation, Pod, PodState

_PoolKey = tuple[str, str]


@dataclass(slots=True)
class Competition:
    """The pools, and which service is in which."""

    _pools: dict[_PoolKey, Pool] = field(default_factory=dict)
    _key_of: dict[str, _PoolKey] = field(default_factory=dict)

    def allocation(self, uid: str) -> Allocation | None:
        """Return what a service may have; None if nothing is withheld from it."""
        pool = self._pool_of(uid)
        return None if pool is None else pool.allocation(uid)

    def note(
        self,
        service: InferenceService,
        deployment: Mapping[str, Any],
        observation: Observation,
        decision: Decision,
    ) -> str:
        """Observe a tick; return which services yield to this one, empty if none does.

        `deployment` is the manifest that its replicas follow; one whose kind has its pod template
        elsewhere takes no part.
        """
        resource, template = service.spec.accelerator.resource, deployment["spec"].get("template")
        count = accelerators_per_replica(service, template)
        if template is None or count == 0 or service.spec.scaling.mode != "Auto":
            self.forget(service.uid)
            return ""
        key = (resource, _placement(template["spec"]))
        if self._key_of.get(service.uid, key) != key:
            self.forget(service.uid)
        self._key_of[service.uid] = key
        pool = self._pools.setdefault(key, Pool())
        pool.note(seen(service, observation, decision, count), decision.time_s)
        return pool.preempted_by(service.uid)

    def forget(self, uid: str) -> None:
        """Remove a deleted service, or takes no part any more."""
        key = self._key_of.pop(uid, None)
        if key is None:
            return
        self._pools[key].forget(uid)
        if not self._pools[key]:
            del self._pools[key]

    def _pool_of(self, uid: str) -> Pool | None:
        key = self._key_of.get(uid)
        return None if key is None else self._pools[key]


def seen(
    service: InferenceService, observation: Observation, decision: Decision, accelerators: int
) -> Seen:
    """Return what the others see of a service: what it holds, lacks and wants.

    A pod holds its accelerators from when it has a node until it is gone.
    """
    resource = service.spec.accelerator.resource
    placed = [pod for pod in observation.pods if pod.scheduled_s is not None]
    leaving = sum(pod.state is PodState.TERMINATING for pod in placed)
    return Seen(
        title=f"{service.namespace}/{service.name}",
        demand=Demand(
            name=service.uid,
            priority=service.spec.scaling.priority,
            desired=decision.alone,
            allocated=len(placed) - leaving,
            floor=decision.floor_replicas,
            accelerators=accelerators,
        ),
        leaving=leaving,
        refused=sum(_lacks(pod, resource) for pod in observation.pods),
    )


def accelerators_per_replica(service: InferenceService, template: Mapping[str, Any] | None) -> int:
    """Count them; a target's own template says them."""
    accelerator = service.spec.accelerator
    if service.spec.target_ref is None:
        return accelerator.count
    containers = (template or {}).get("spec", {}).get("containers") or ()
    limits = [(one.get("resources") or {}).get("limits") or {} for one in containers]
    return sum(int(one.get(accelerator.resource, 0)) for one in limits)


def _lacks(pod: Pod, resource: str) -> bool:
    """Whether the scheduler says that this resource is what the pod lacks: a taint, say, is not."""
    said = rf"Insufficient {re.escape(resource)}(?![-\w]|\.\w)"  # not nvidia.com/gpu.shared
    return pod.state is PodState.UNSCHEDULABLE and re.search(said, pod.detail) is not None


def _placement(pod: Mapping[str, Any]) -> str:
    affinity = pod.get("affinity") or {}
    parts = (pod.get("nodeSelector"), affinity.get("nodeAffinity"), pod.get("tolerations"))
    return json.dumps([part or None for part in parts], sort_keys=True)
