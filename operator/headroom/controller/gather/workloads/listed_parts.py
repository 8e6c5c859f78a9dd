"""Keeps each service's objects of a LIST for several services, and drops the rest while it is read.

Any tenant may put a service's label on its own objects. A hundred such Deployments of 1.3 MB each,
kept until the list was complete, ended the operator of the whole cluster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from headroom.controller.gather.workloads.pruned import pruned
from headroom.controller.ports import Manifest
from headroom.resources.names import SERVICE_LABEL

MOST_STRANGE = 256
"""Objects of a LIST that belong to none of its services."""
MOST_PODS = 500
"""Pods of one service; more are read by its own ticks alone."""

Name = tuple[str, str]
"""Namespace and name of a service."""
Part = tuple[Manifest | None, Sequence[Manifest]]
"""The Deployment of a service, and the pods that have its label."""
_KIND = {"apiVersion": "apps/v1", "kind": "Deployment"}  # which the items of a LIST lack


class CrowdedError(Exception):
    """Too many objects have these names as a label for a LIST to be shared."""

    def __init__(self, names: Collection[str]) -> None:
        super().__init__(f"too many objects have the label {SERVICE_LABEL}: {sorted(names)}")
        self.names = names


class ListedParts:
    """Takes the objects of a LIST one by one, keeps those of its services, and returns none."""

    def __init__(self, wanted: Collection[Name]) -> None:
        self._wanted = frozenset(wanted)
        self._deployments: dict[Name, Manifest] = {}
        self._pods: dict[Name, list[Manifest]] = {}
        self._strange: Counter[str] = Counter()

    def take_deployment(self, deployment: Manifest) -> None:
        """Keep it if a service of the LIST made it: it has the service's name. Or CrowdedError."""
        of = _labelled(deployment)
        if of in self._wanted and deployment["metadata"]["name"] == of[1]:
            self._deployments[of] = pruned(_KIND | deployment)
        else:
            self._pass_by(of[1])

    def take_pod(self, pod: Manifest) -> None:
        """Keep it if it has the label of a service of the LIST. Raises CrowdedError."""
        of = _labelled(pod)
        if of not in self._deployments:
            self._pass_by(of[1])
            return
        pods = self._pods.setdefault(of, [])
        pods.append(pod)
        if len(pods) > MOST_PODS:
            raise CrowdedError([of[1]])

    def found(self) -> dict[Name, Part]:
        """Return the part of each service that has a Deployment."""
        return {name: (one, self._pods.get(name, ())) for name, one in self._deployments.items()}

    def _pass_by(self, name: str) -> None:
        self._strange[name] += 1
        if self._strange.total() > MOST_STRANGE:
            even = MOST_STRANGE / (2 * len(self._wanted))
            raise CrowdedError([name for name, count in self._strange.items() if count > even])


def _labelled(one: Manifest) -> Name:
    metadata = one["metadata"]
    return metadata["namespace"], (metadata.get("labels") or {}).get(SERVICE_LABEL, "")
