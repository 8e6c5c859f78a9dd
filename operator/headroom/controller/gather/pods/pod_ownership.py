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

REMEMBERED_CALLS = 16
"""Calls: half a minute of ticks at least, spread over as long again."""
MOST_REMEMBERED_CALLS = 128
"""Calls, for a controller that is not found again and again."""
MOST_READS = 64
"""Controllers that one call reads: others use the API server too, and other services are due."""
DEEPEST = 6
"""Controllers between a pod and its workload: a LeaderWorkerSet's worker has four."""

_RawPod = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnverifiedPod:
    """A selected pod whose controllers may not be read."""

    name: str
    why: str


@dataclass(frozen=True, slots=True)
class _Unread:
    """A controller that is not there, or may not be read."""

    left: int
    """For how many more calls this is remembered: 1000 stray pods would cost 1000 reads per tick.
    Not for good: an API server that starts finds no custom kind."""
    times: int = 0
    """Number in a row: a refused one is read again at once the first time."""
    why: str = ""
    """The answer for an owner that may not be read: any pod may name a Secret as its controller."""


class _Unresolved(Exception):  # noqa: N818  (no error: a later turn or call goes on)
    """A controller has to be read; `again`: it could not be, some calls ago."""

    def __init__(self, *, again: bool) -> None:
        super().__init__()
        self.again = again


@dataclass(frozen=True, slots=True)
class Owned:
    """The owners of the selected pods; a pod in no field belongs to another workload."""

    ours: tuple[_RawPod, ...] = ()
    unverified: tuple[UnverifiedPod, ...] = ()
    """Pods whose owner may not be read."""
    unresolved: tuple[_RawPod, ...] = ()
    """Pods whose owner is read by a later call; they may be the workload's."""


@dataclass(slots=True)
class PodOwnership:
    """The controllers that were looked up for one workload, by UID; each is read once."""

    _above: dict[str, Mapping[str, Any] | None] = field(default_factory=dict)
    _unread: dict[str, _Unread] = field(default_factory=dict)

    async def of(self, cluster: Cluster, pods: Sequence[_RawPod], workload_uid: str) -> Owned:
        """Return the pods by owner; unknown controllers are read, those of the oldest pods first.

        Raises ClusterError where the API does not answer.
        """
        call = _Call(cluster, workload_uid)
        ours, unverified, left = (
            dict[int, _RawPod](),
            dict[int, UnverifiedPod](),
            list(enumerate(pods)),
        )
        for call.reads_left in (None, MOST_READS):  # what is known takes no turn
            later = list[tuple[bool, str, int]]()
            for index, pod in left:
                try:
                    if await self._reaches(call, pod):
                        ours[index] = pod
                except _Unresolved as turn:
                    created = str(pod["metadata"].get("creationTimestamp", ""))
                    later.append((turn.again, created, index))
                except (Forbidden, Rejected) as error:
                    why = f"its owner cannot be read: {error}"
                    unverified[index] = UnverifiedPod(name=str(pod["metadata"]["name"]), why=why)
            left = [(index, pods[index]) for _, _, index in sorted(later)]
        self._above = {uid: above for uid, above in self._above.items() if uid in call.passed}
        self._unread = {
            uid: replace(one, left=one.left - 1)
            for uid, one in self._unread.items()
            if uid in call.passed
        }
        return Owned(
            tuple(ours[index] for index in sorted(ours)),
            tuple(unverified[index] for index in sorted(unverified)),
            tuple(pod for _, pod in left),
        )

    async def _reaches(self, call: _Call, pod: _RawPod) -> bool:
        controller = controller_of(pod)
        for _ in range(DEEPEST):
            if controller is None:
                return False
            uid = controller["uid"]
            if uid == call.workload_uid:
                return True
            call.passed.add(uid)
            remembered = uid in self._unread and self._unread[uid].left >= 0
            if uid not in self._above and not remembered:
                await self._look_up(call, controller, pod["metadata"]["namespace"])
            if uid in self._unread:
                if why := self._unread[uid].why:
                    raise Forbidden(why)
                return False
            controller = self._above[uid]
        return False

    async def _look_up(self, call: _Call, controller: Mapping[str, Any], namespace: str) -> None:
        """Read a controller, and note its own controller, or why that is not known."""
        uid = controller["uid"]
        unread = self._unread.get(uid)
        if call.reads_left is None or (not call.reads_left and unread is None):
            raise _Unresolved(again=unread is not None)
        if not call.reads_left:
            return  # the earlier answer holds
        call.reads_left -= 1
        times = 0 if unread is None else unread.times
        try:
            self._above[uid] = await _read(call.cluster, controller, namespace)
        except NotFound:
            left = min(_remembered_calls(uid) << times, MOST_REMEMBERED_CALLS)
            self._unread[uid] = _Unread(left, min(times + 1, 10))
        except (Forbidden, Rejected) as error:
            left = min(2**times - 1, _remembered_calls(uid))
            self._unread[uid] = _Unread(left, min(times + 1, 10), str(error))
        else:
            self._unread.pop(uid, None)


@dataclass(slots=True)
class _Call:
    """Searched owner of one call, its remaining reads, and the controllers that it passed."""

    cluster: Cluster
    workload_uid: str
    reads_left: int | None = None
    """None: nothing is read yet."""
    passed: set[str] = field(default_factory=set)


def _remembered_calls(uid: str) -> int:
    return REMEMBERED_CALLS + crc32(uid.encode()) % REMEMBERED_CALLS


def controller_of(manifest: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the owner reference of the object's controller; None where it has none."""
    owners: Sequence[Mapping[str, Any]] = manifest["metadata"].get("ownerReferences") or ()
    return next((owner for owner in owners if owner.get("controller")), None)


async def _read(
    cluster: Cluster, reference: Mapping[str, Any], namespace: str
) -> Mapping[str, Any] | None:
    """Read a controller; return its own controller. Raises NotFound where the UID is another."""
    found = await cluster.get(
        reference["apiVersion"], reference["kind"], namespace, reference["name"]
    )
    if found["metadata"].get("uid") != reference["uid"]:
        raise NotFound(
            f"{reference['kind']} {namespace}/{reference['name']} has another UID by now"
        )
    return controller_of(found)
