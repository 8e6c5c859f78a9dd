"""Find the pods of a workload: those whose chain of controllers reaches its UID.

Any pod may have the labels, and a name may be used again; a UID is unique.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from headroom.controller.ports import Cluster
from headroom.errors import Forbidden, NotFound, Rejected

BELIEVED_FOR = 16
"""Calls: half a minute of ticks at least, spread over as long again."""
DEEPEST = 6
"""Controllers between a pod and its workload: a LeaderWorkerSet's worker has four."""

_RawPod = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stranger:
    """A selected pod whose controllers may not be read."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class _Unread:
    """A controller that is not there, or may not be read."""

    left: int
    """For how many more calls that is believed: 1000 stray pods would cost 1000 reads per tick. Not
    for good: an API server that starts finds no custom kind."""
    times: int = 0
    """How often in a row it was refused: the first time it is read again at once."""
    why: str = ""
    """The answer for an owner that may not be read: any pod may name a Secret as its controller."""


@dataclass(slots=True)
class PodOwnership:
    """The controllers that were looked up for one workload, by UID; each is read once."""

    _above: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    _unread: dict[str, _Unread] = field(default_factory=dict)

    async def of(
        self, cluster: Cluster, pods: Sequence[_RawPod], workload_uid: str
    ) -> tuple[list[_RawPod], list[Stranger]]:
        """Return the pods of the workload, and those whose owner cannot be read.

        Raises ClusterError where the API does not answer.
        """
        ours: list[_RawPod] = []
        strangers: list[Stranger] = []
        passed: set[str] = set()
        for pod in pods:
            try:
                if await self._reaches(cluster, pod, workload_uid, passed):
                    ours.append(pod)
            except (Forbidden, Rejected) as error:
                name = str(pod["metadata"]["name"])
                strangers.append(Stranger(name=name, why=f"its owner cannot be read: {error}"))
        self._above = {uid: above for uid, above in self._above.items() if uid in passed}
        self._unread = {
            uid: replace(one, left=one.left - 1)
            for uid, one in self._unread.items()
            if uid in passed and (one.left > 0 or one.why)
        }
        return ours, strangers

    async def _reaches(
        self, cluster: Cluster, pod: _RawPod, workload_uid: str, passed: set[str]
    ) -> bool:
        controller = controller_of(pod)
        for _ in range(DEEPEST):
            if controller is None:
                return False
            uid = controller["uid"]
            if uid == workload_uid:
                return True
            passed.add(uid)
            if (unread := self._unread.get(uid)) is not None and unread.left >= 0:
                if unread.why:
                    raise Forbidden(unread.why)
                return False
            if uid not in self._above:
                try:
                    self._above[uid] = await _read(
                        cluster, controller, pod["metadata"]["namespace"]
                    )
                except NotFound:
                    self._unread[uid] = _Unread(_believed_for(uid))
                    return False
                except (Forbidden, Rejected) as error:
                    times = 0 if unread is None else unread.times
                    left = min(2**times - 1, _believed_for(uid))
                    self._unread[uid] = _Unread(left, min(times + 1, 10), str(error))
                    raise
            self._unread.pop(uid, None)
            controller = self._above[uid]
        return False


def _believed_for(uid: str) -> int:
    return BELIEVED_FOR + crc32(uid.encode()) % BELIEVED_FOR


def controller_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the owner reference of what controls the object; None where nothing does."""
    owners: Sequence[Mapping[str, Any]] = manifest["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


async def _read(
    cluster: Cluster, reference: Mapping[str, Any], namespace: str
) -> Mapping[str, Any] | None:
    """Read a controller; return what controls it in turn. Raises NotFound where it is another."""
    found = await cluster.get(
        reference["apiVersion"], reference["kind"], namespace, reference["name"]
    )
    if found["metadata"].get("uid") != reference["uid"]:
        raise NotFound(f"{reference['kind']} {namespace}/{reference['name']} is another by now")
    return controller_of(found)
