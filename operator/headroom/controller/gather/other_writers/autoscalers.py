"""Workloads that an HPA scales: one LIST per namespace and minute, not per service.

A service that was created after the last LIST causes another one, and so does the first write
of a workload by an HPA, and a service that waits for an HPA to be deleted. KEDA's ScaledObjects
create HPAs, which are named by their owner. Where HPAs may not be listed none is known; what they
write is then still noticed by its field manager.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.controller.gather.pods.pod_ownership import controller_of
from headroom.controller.ports import Cluster
from headroom.errors import ClusterError, Forbidden, NotFound

_log = logging.getLogger(__name__)

LIST_EVERY_S = 60.0
LIST_FOR_NEW_EVERY_S = 2.0
"""Many services that are created together share a LIST."""
LIST_IN_CONFLICT_EVERY_S = 10.0
"""Short, because a user who deleted the HPA waits for the first decision."""
CLOCK_SKEW_S = 2.0
"""Tolerated clock difference between the API server, which dates the service, and this process."""

Scaled = tuple[str, str, str]
"""Group, kind and name of what is scaled."""


@dataclass(slots=True)
class _Namespace:
    """HPAs found in one namespace."""

    found: Mapping[Scaled, str] | None = None
    listed_s: float = 0.0
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    complaint: str = ""
    written: set[Scaled] = field(default_factory=set)
    """Workloads whose replicas an HPA wrote last."""

    def note(self, scaled: Scaled, *, wrote: bool | None) -> bool:
        """Note whether an HPA wrote the replicas; return whether one did and had not before."""
        if wrote is None:
            return False
        new = wrote and scaled not in self.written
        (self.written.add if wrote else self.written.discard)(scaled)
        return new


class Autoscalers:
    """The HPAs as last listed."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    async def of(
        self,
        cluster: Cluster,
        namespace: str,
        scaled: Scaled,
        now_s: float,
        *,
        created_s: float = 0.0,
        wrote: bool | None = None,
        blocks: bool = False,
    ) -> str:
        """Name the HPA that scales this workload of a service created then; empty if none does.

        `wrote`: whether an HPA wrote the replicas in force; None if unknown. `blocks`: whether an
        HPA keeps the service from writing.
        Raises ClusterError where nothing is known yet and the API does not answer.
        """
        known = self._namespaces.setdefault(namespace, _Namespace())
        overwritten = known.note(scaled, wrote=wrote)
        if known.found is None:
            async with known.first:
                if known.found is None:
                    known.found = await _listed(cluster, namespace, known)
                    known.listed_s = now_s
        elif overwritten or is_due(
            known.listed_s, now_s, created_s, waits=blocks and scaled in known.found
        ):
            known.listed_s = now_s
            try:
                known.found = await _listed(cluster, namespace, known)
            except ClusterError as error:
                known.written.discard(scaled)
                _complain(known, namespace, error)
        return known.found.get(scaled, "")


def is_due(listed_s: float, now_s: float, created_s: float, *, waits: bool = False) -> bool:
    """Return whether the HPAs have to be listed again for a service that was created then.

    `waits`: whether it waits for one of them to be deleted.
    """
    new = listed_s < created_s + CLOCK_SKEW_S
    settled_s = LIST_IN_CONFLICT_EVERY_S if waits else LIST_EVERY_S
    return not 0.0 <= now_s - listed_s < (LIST_FOR_NEW_EVERY_S if new else settled_s)


async def _listed(cluster: Cluster, namespace: str, known: _Namespace) -> dict[Scaled, str]:
    try:
        found = await cluster.list_all("autoscaling/v2", "HorizontalPodAutoscaler", namespace)
    except (Forbidden, NotFound) as error:
        _complain(known, namespace, error)
        return {}
    known.complaint = ""
    return {scaled_by(one): named(one) for one in found}


def scaled_by(autoscaler: Mapping[str, Any]) -> Scaled:
    """Return the target of an HPA."""
    target = autoscaler["spec"]["scaleTargetRef"]
    group, slash, _ = str(target.get("apiVersion", "")).partition("/")
    return group if slash else "", str(target["kind"]), str(target["name"])


def named(autoscaler: Mapping[str, Any]) -> str:
    """Name an HPA by the object that a user would delete: its controller, where it has one."""
    made_by = controller_of(autoscaler)
    own = f"HorizontalPodAutoscaler {autoscaler['metadata']['name']}"
    return f"{made_by['kind']} {made_by['name']} (its {own})" if made_by else own


def _complain(known: _Namespace, namespace: str, error: ClusterError) -> None:
    if str(error) != known.complaint:
        known.complaint = str(error)
        _log.warning("HPAs in %s cannot be listed: %s", namespace, error)
