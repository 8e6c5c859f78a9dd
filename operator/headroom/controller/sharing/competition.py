"""Pools of services that compete for accelerators, and each service as the others see it. No I/O.

A pool is a resource and a placement: the node selector, node affinity and tolerations of the pods.
A service is in a pool of each extended resource that its pods request. Only services whose
replicas are written take part: one in Recommend mode has nothing to give.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.api import InferenceService
from headroom.controller.sharing.pool import Pool
from headroom.controller.sharing.pool_member import Seen
from headroom.resources import accelerators
from headroom.scaling.accelerator_allocation import Demand
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.observation import Allocation, Observation, Pod, PodState

_PoolKey = tuple[str, str]


@dataclass(slots=True)
class Competition:
    """The pools, and which service is in which."""

    _pools: dict[_PoolKey, Pool] = field(default_factory=dict)
    _keys_of: dict[str, frozenset[_PoolKey]] = field(default_factory=dict)

    def allocation(self, uid: str) -> Allocation | None:
        """Return the share of a service; None if nothing is withheld from it."""
        found = (self._pools[key].allocation(uid) for key in self._keys_of.get(uid, ()))
        withheld = [one for one in found if one is not None]
        return min(withheld, key=lambda one: one.replicas, default=None)

    def note(
        self,
        service: InferenceService,
        deployment: Mapping[str, Any],
        observation: Observation,
        decision: Decision,
        *,
        writable: bool = True,
    ) -> str:
        """Observe a tick; return which services yield to this one, empty if none does.

        One whose replicas are not `writable` keeps what it has, and nothing is withheld from it.
        `deployment` is the manifest that its replicas follow; one whose kind has its pod template
        elsewhere takes no part.
        """
        template = accelerators.template_of(deployment)
        if template is None or service.spec.scaling.mode != "Auto":
            self.forget(service.uid)
            return ""
        held = accelerators.of_template(template)
        where = placement(template.get("spec") or {}) if held else ""
        keys = frozenset((resource, where) for resource in held)
        self._leave(service.uid, self._keys_of.get(service.uid, frozenset()) - keys)
        if not keys:
            self._keys_of.pop(service.uid, None)
            return ""
        self._keys_of[service.uid] = keys
        yielding = []
        for key in sorted(keys):
            pool = self._pools.setdefault(key, Pool())
            resource = key[0]
            pool.note(
                seen(service, observation, decision, resource, held[resource], writable=writable),
                decision.time_s,
            )
            yielding.append(pool.preempted_by(service.uid))
        return ", ".join(dict.fromkeys(one for one in yielding if one))

    def compete(self, uid: str, other: str) -> bool:
        """Return whether two services draw from the same pool; True while that is not known."""
        ours, theirs = self._keys_of.get(uid), self._keys_of.get(other)
        return ours is None or theirs is None or not ours.isdisjoint(theirs)

    def restart(self) -> None:
        """Forget all pools, as a restart of the operator does: the clock went back."""
        self._pools.clear()
        self._keys_of.clear()

    def forget(self, uid: str) -> None:
        """Remove a service that is deleted, or takes no part any more."""
        self._leave(uid, self._keys_of.pop(uid, frozenset()))

    def _leave(self, uid: str, keys: Iterable[_PoolKey]) -> None:
        for key in keys:
            self._pools[key].forget(uid)
            if not self._pools[key]:
                del self._pools[key]


def seen(
    service: InferenceService,
    observation: Observation,
    decision: Decision,
    resource: str,
    count: int,
    *,
    writable: bool = True,
) -> Seen:
    """Return the accelerators that a service holds, lacks and wants, as the others see them.

    `count` are those of one replica. A pod holds its accelerators from when it has a node until it
    is gone. A surge replica of a rollout, beyond those that are wanted, is no shortage.
    """
    placed = [pod for pod in observation.pods if pod.scheduled_s is not None]
    leaving = sum(pod.state is PodState.TERMINATING for pod in placed)
    allocated = len(placed) - leaving
    desired, floor = decision.alone, decision.floor_replicas
    if not writable:  # whatever it would need: others find it unchanged
        desired, floor = max(observation.current, allocated), max(floor, allocated)
    refused = sum(_lacks(pod, resource) for pod in observation.pods)
    return Seen(
        title=f"{service.namespace}/{service.name}",
        demand=Demand(
            name=service.uid,
            priority=service.spec.scaling.priority,
            desired=desired,
            allocated=allocated,
            floor=floor,
            accelerators=count,
        ),
        leaving=leaving,
        writable=writable,
        refused=min(refused, max(0, desired - allocated)),
    )


def _lacks(pod: Pod, resource: str) -> bool:
    """Return whether the scheduler says that the pod lacks this resource, not a taint, say."""
    said = rf"Insufficient {re.escape(resource)}(?![-\w]|\.\w)"  # not nvidia.com/gpu.shared
    return pod.state is PodState.UNSCHEDULABLE and re.search(said, pod.detail) is not None


def placement(pod: Mapping[str, Any]) -> str:
    """Return where a pod with this spec may run, as a text to compare."""
    affinity = pod.get("affinity") or {}
    parts = (pod.get("nodeSelector"), affinity.get("nodeAffinity"), pod.get("tolerations"))
    return json.dumps([part or None for part in parts], sort_keys=True)
