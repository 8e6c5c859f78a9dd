"""Which workloads an HPA scales: one LIST per namespace and minute, not per service.

KEDA's ScaledObjects are HPAs underneath, named by their owner. Where they may not be listed none is
known of; what they write is then still noticed, as anybody's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.controller.gather.pod_ownership import controller_of
from headroom.controller.ports import Cluster
from headroom.errors import ClusterError, Forbidden, NotFound

_log = logging.getLogger(__name__)

LOOK_EVERY_S = 60.0

Scaled = tuple[str, str, str]
"""Group, kind and name of what is scaled."""


@dataclass(slots=True)
class _Namespace:
    """What was found in one namespace."""

    found: Mapping[Scaled, str] | None = None
    looked_s: float = 0.0
    first: asyncio.Lock = field(default_factory=asyncio.Lock)
    complaint: str = ""


class Autoscalers:
    """The HPAs as last listed."""

    def __init__(self) -> None:
        self._namespaces: dict[str, _Namespace] = {}

    async def of(self, cluster: Cluster, namespace: str, scaled: Scaled, now_s: float) -> str:
        """Name the HPA that scales this; empty where none is known.

        Raises ClusterError where nothing is known yet and the API does not answer.
        """
        known = self._namespaces.setdefault(namespace, _Namespace())
        if known.found is None:
            async with known.first:
                if known.found is None:
                    known.found = await _listed(cluster, namespace, known)
                    known.looked_s = now_s
        elif not 0.0 <= now_s - known.looked_s < LOOK_EVERY_S:
            known.looked_s = now_s
            try:
                known.found = await _listed(cluster, namespace, known)
            except ClusterError as error:
                _complain(known, namespace, error)
        return known.found.get(scaled, "")


async def _listed(cluster: Cluster, namespace: str, known: _Namespace) -> dict[Scaled, str]:
    try:
        found = await cluster.list_all("autoscaling/v2", "HorizontalPodAutoscaler", namespace)
    except (Forbidden, NotFound) as error:
        _complain(known, namespace, error)
        return {}
    known.complaint = ""
    return {scaled_by(one): named(one) for one in found}


def scaled_by(autoscaler: Mapping[str, Any]) -> Scaled:
    """Return what an HPA scales."""
    target = autoscaler["spec"]["scaleTargetRef"]
    group, slash, _ = str(target.get("apiVersion", "")).partition("/")
    return group if slash else "", str(target["kind"]), str(target["name"])


def named(autoscaler: Mapping[str, Any]) -> str:
    """Name an HPA by what a person would delete: that which made it, where something did."""
    made_by = controller_of(autoscaler)
    own = f"HorizontalPodAutoscaler {autoscaler['metadata']['name']}"
    return f"{made_by['kind']} {made_by['name']} (its {own})" if made_by else own


def _complain(known: _Namespace, namespace: str, error: ClusterError) -> None:
    if str(error) != known.complaint:
        known.complaint = str(error)
        _log.warning("HPAs in %s cannot be listed: %s", namespace, error)
