"""Reads the slices in which an earlier operator recorded the ports of services.

Routing begins once they are read. A namespace that refuses, or an object that is too large to read,
which any tenant can make, keeps no other namespace's services waiting.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Sequence

from headroom.controller.ports import Cluster, Manifest
from headroom.errors import AnswerTooLarge, ClusterError, Forbidden
from headroom.repeated_failures import RepeatedFailures, pause_after_s
from headroom.resources.endpoint_slice import MANAGED_BY_SELECTOR

_log = logging.getLogger(__name__)

AGAIN_S = 1.0
REFUSALS = 10
"""Refusals of a namespace until its services are given ports as new ones are: mostly the same."""


async def recorded_slices(
    cluster: Cluster,
    namespaces: Sequence[str],
    served: Collection[str],
    unread: Collection[str] = (),
) -> list[Manifest]:
    """Return them, in all namespaces at once or in some; `served` have services.

    Waits for as long as the API server does not answer, but not for the `unread` namespaces, of
    which the services could not be read.
    """
    if namespaces:
        return await _of(cluster, namespaces, unread)
    try:
        return await slices_of(cluster, None)
    except AnswerTooLarge as error:
        _log.warning("the slices of gateways are read by namespace: %s", error)
    return await _of(cluster, sorted(served), unread)


async def slices_of(
    cluster: Cluster, namespace: str | None, *, patient: bool = True
) -> list[Manifest]:
    """Return those of a namespace; of none where it goes on refusing, or at once if not `patient`.

    Raises AnswerTooLarge without a namespace.
    """
    refusals, failures = 0, RepeatedFailures()
    while True:
        try:
            return await cluster.list_all(
                "discovery.k8s.io/v1", "EndpointSlice", namespace, MANAGED_BY_SELECTOR
            )
        except ClusterError as error:
            if failures.is_news(error):
                _log.warning("the slices of gateways could not be read: %s", error)
            if namespace is None and isinstance(error, AnswerTooLarge):
                raise
            refusals += isinstance(error, AnswerTooLarge | Forbidden)
            if namespace is not None and (refusals >= REFUSALS or not patient):
                return []
            pause_s = pause_after_s(error, AGAIN_S)
        await asyncio.sleep(pause_s)


async def _of(
    cluster: Cluster, namespaces: Iterable[str], unread: Collection[str]
) -> list[Manifest]:
    reads = (slices_of(cluster, one, patient=one not in unread) for one in namespaces)
    return [one for slices in await asyncio.gather(*reads) for one in slices]
