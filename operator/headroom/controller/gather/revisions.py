"""Read which pods of a Deployment have its latest template, where a rollout may be stuck."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from headroom.controller.gather.pods.pod_ownership import controller_of
from headroom.controller.gather.pods.pod_state import is_terminating
from headroom.controller.gather.workloads.pruned import pruned
from headroom.controller.ports import Cluster, Manifest
from headroom.controller.sharing.competition import placement
from headroom.errors import NotFound
from headroom.resources import accelerators
from headroom.resources.object_conditions import is_true
from headroom.scaling.values.observation import Observation, PodState

MOST_READ = 8
"""ReplicaSets: a rollout has two, and some more where several followed each other at once."""
_REVISION = "deployment.kubernetes.io/revision"

_RawPod = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Revisions:
    """The pods of the latest template, and whether earlier pods free its resources."""

    latest: frozenset[str] = frozenset()
    """Their UIDs."""
    gives_accelerators: bool = True
    """Any earlier pod holds the accelerators that a latest one requests, and where it may run."""
    gives_all: bool = True
    """The containers of both request the same of everything, and may run in the same places."""


def lacks_room(deployment: Manifest, observation: Observation) -> bool:
    """Return whether a rollout that its controller has seen has a pod that finds no room."""
    status, generation = deployment.get("status") or {}, deployment["metadata"].get("generation")
    if not observation.rolling or status.get("observedGeneration") != generation:
        return False
    refused = is_true(deployment, "ReplicaFailure")
    return refused or observation.count(PodState.UNSCHEDULABLE) > 0


async def read_revisions(
    cluster: Cluster, deployment: Manifest, pods: Sequence[_RawPod]
) -> Revisions | None:
    """Read the ReplicaSets of the pods; None where they do not tell. Raises ClusterError.

    A Deployment gives its revision to the ReplicaSet of its latest template.
    """
    names = {
        owner["uid"]: owner["name"]
        for pod in pods
        if not is_terminating(pod) and (owner := controller_of(pod)) is not None
    }
    revision = _revision(deployment)
    if not revision or len(names) > MOST_READ:
        return None
    namespace, sets = deployment["metadata"]["namespace"], dict[str, Manifest]()
    for uid, name in names.items():
        try:
            found = await cluster.get("apps/v1", "ReplicaSet", namespace, name)
        except NotFound:
            return None
        sets[uid] = pruned(found)
    return _compared(deployment, revision, sets, pods)


def _compared(
    deployment: Manifest, revision: str, sets: Mapping[str, Manifest], pods: Sequence[_RawPod]
) -> Revisions:
    newest = {uid for uid, one in sets.items() if _revision(one) == revision}
    latest = (pod for pod in pods if (controller_of(pod) or {}).get("uid") in newest)
    earlier = [one for uid, one in sets.items() if uid not in newest]
    places = all(_placement(one) == _placement(deployment) for one in earlier)
    return Revisions(
        latest=frozenset(pod["metadata"]["uid"] for pod in latest),
        gives_accelerators=places and all(_holds_enough(one, deployment) for one in earlier),
        gives_all=places and all(_requests(one) == _requests(deployment) for one in earlier),
    )


def _holds_enough(earlier: Manifest, latest: Manifest) -> bool:
    held = accelerators.of_workload(earlier) or {}
    wanted = accelerators.of_workload(latest) or {}
    return all(held.get(name, 0) >= count for name, count in wanted.items())


def _placement(one: Manifest) -> str:
    return placement((accelerators.template_of(one) or {}).get("spec") or {})


def _revision(one: Manifest) -> str:
    return str((one["metadata"].get("annotations") or {}).get(_REVISION, ""))


def _requests(one: Manifest) -> list[Any]:
    """Return the resources that a template's containers request, in their order."""
    pod = (accelerators.template_of(one) or {}).get("spec") or {}
    containers = [*(pod.get("initContainers") or ()), *(pod.get("containers") or ())]
    return [container.get("resources") or {} for container in containers]
