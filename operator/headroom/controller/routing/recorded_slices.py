"""Reads the slices in which an earlier operator recorded the ports of services.

Routing begins once they are read. A namespace that refuses, or an object that is too large to read,
which any tenant can make, keeps no other namespace's services waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Sequence

from headroom.controller.ports import Cluster, Manifest
from headroom.errors import AnswerTooLarge, ClusterError, Forbidden
from headroom.resources.endpoint_slice import MANAGED_BY_SELECTOR

_log = logging.getLogger(__name__)

AGAIN_S = 1.0
REFUSALS = 10
"""Refusals of a namespace until its services are given ports as new ones are: mostly the same."""


async def recorded_slices(
    cluster: Cluster, namespaces: Sequence[str], served: Collection[str]
) -> list[Manifest]:
    """Return them, in all namespaces at once or in some; `served` have services.

    Waits for as long as the API server does not answer.
    """
    try:
        return [
            one for namespace in namespaces or (None,) for one in await _slices(cluster, namespace)
        ]
    except AnswerTooLarge as error:
        _log.warning("the slices of gateways are read by namespace: %s", error)
    return [one for namespace in sorted(served) for one in await _slices(cluster, namespace)]


async def _slices(cluster: Cluster, namespace: str | None) -> list[Manifest]:
    """Return those of a namespace; of none where it goes on refusing. Raises AnswerTooLarge."""
    refusals = 0
    while True:
        try:
            return await cluster.list_all(
                "discovery.k8s.io/v1", "EndpointSlice", namespace, MANAGED_BY_SELECTOR
            )
        except ClusterError as error:
            _log.warning("the slices of gateways could not be read: %s", error)
            if namespace is None and isinstance(error, AnswerTooLarge):
                raise
            refusals += isinstance(error, AnswerTooLarge | Forbidden)
            if namespace is not None and refusals >= REFUSALS:
                return []
        await asyncio.sleep(AGAIN_S)
