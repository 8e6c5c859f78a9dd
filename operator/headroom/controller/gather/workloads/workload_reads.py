"""Reads the workload of a service and its pods, for one service or for several at once."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from headroom.api import InferenceService
from headroom.controller.gather.workloads.listed_parts import ListedParts, Name, Part
from headroom.controller.gather.workloads.workload import Workload, read_workload
from headroom.controller.ports import Cluster, Manifest
from headroom.resources import names


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The workload of a service, and the pods that its selector selects."""

    workload: Workload | None
    pods: Sequence[Manifest]
    own: bool
    """All of it was read for this tick."""


async def read_alone(cluster: Cluster, service: InferenceService) -> Seen:
    """Read the workload of one service, and its pods. Raises TargetUnusable, or ClusterError.

    No pod belongs to a Deployment that does not exist, whatever its labels say.
    """
    workload = await read_workload(cluster, service)
    if workload is None:
        return Seen(workload=None, pods=(), own=True)
    pods = await cluster.list_all("v1", "Pod", service.namespace, workload.selector)
    return Seen(workload=workload, pods=pods, own=True)


async def list_together(
    cluster: Cluster, namespace: str | None, wanted: Collection[Name]
) -> dict[Name, Part]:
    """Read Deployments of several services, then their pods, as one alone. Raises CrowdedError."""
    parts = ListedParts(wanted)
    services = sorted({name for _, name in wanted})
    selector = f"{names.SERVICE_LABEL} in ({','.join(services)})"
    await cluster.list_all("apps/v1", "Deployment", namespace, selector, parts.take_deployment)
    await cluster.list_at("v1", "Pod", namespace, selector, parts.take_pod)
    return parts.found()
