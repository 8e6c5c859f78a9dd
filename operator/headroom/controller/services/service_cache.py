"""The InferenceServices as last seen, by UID.

The watch keeps it recent; a LIST, which replaces all of it, keeps it correct.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Collection, Iterable

from headroom.api.template_size import without_large_template
from headroom.controller.ports import Manifest
from headroom.controller.services.interning import Interner
from headroom.controller.services.target_owners import TargetOwners

_TOMBSTONES = 4096


class ServiceCache:
    """Calls `on_change` for new services and new specs, and `on_gone` for deleted ones."""

    def __init__(self, on_change: Callable[[str], None], on_gone: Callable[[str], None]) -> None:
        self._on_change = on_change
        self._on_gone = on_gone
        self._services: dict[str, Manifest] = {}
        self._by_name: dict[tuple[str, str], str] = {}
        self._first_seen: dict[str, int] = {}
        self._moment = 0
        self._tombstones: dict[str, int] = {}
        """The moment of each deletion, in order; each service of a LIST is looked up in it."""
        self.owners = TargetOwners()
        """Service that scales each target."""
        self.same = Interner()
        """Equal parts of services."""
        self.synced = asyncio.Event()
        """Whether everything that can be read has been seen once."""
        self.unread: frozenset[str] = frozenset()
        """Namespaces that could not be read since this process began: their services are unknown,
        which does not mean that there are none."""

    def __len__(self) -> int:
        """Count the services."""
        return len(self._services)

    def uids(self) -> tuple[str, ...]:
        """Return the UIDs of all services."""
        return tuple(self._services)

    def get(self, uid: str) -> Manifest | None:
        """Return the object as last seen."""
        return self._services.get(uid)

    def objects(self) -> tuple[Manifest, ...]:
        """Return all objects as last seen."""
        return tuple(self._services.values())

    def by_uid(self) -> dict[str, Manifest]:
        """Return all objects by UID."""
        return dict(self._services)

    def named(self, namespace: str, name: str) -> str | None:
        """Return the UID of the service of a name."""
        return self._by_name.get((namespace, name))

    def saw(self, service: Manifest) -> None:
        """Process one object.

        An older state than the known one, or one of a deleted object, is ignored.
        """
        uid = service["metadata"]["uid"]
        known = self._services.get(uid)
        if uid in self._tombstones or (known is not None and not _may_be_news(service, known)):
            return
        self._services[uid] = self._kept_of(service, known)
        self._by_name[_name(service)] = uid
        self.owners.saw(service)
        self._first_seen.setdefault(uid, self._moment)
        if known is None or _intent(known) != _intent(service):
            self._on_change(uid)

    def _kept_of(self, service: Manifest, known: Manifest | None) -> Manifest:
        """Drop managedFields, half of the object, and reuse the parts that are known already."""
        metadata = service["metadata"]
        parts = {"metadata": {k: v for k, v in metadata.items() if k != "managedFields"}}
        generation = metadata.get("generation")
        if known is not None and generation and known["metadata"].get("generation") == generation:
            parts |= {"spec": known["spec"]} if "spec" in known else {}
        elif "spec" in service:
            parts |= {"spec": self.same.json(without_large_template(service["spec"]))}
        status = service.get("status")
        if isinstance(status, dict) and "conditions" in status:
            parts |= {"status": status | {"conditions": self.same.json(status["conditions"])}}
        return service | parts

    def forget(self, uid: str) -> None:
        """Process a deletion.

        A UID is never used again, so states that arrive late are ignored.
        """
        self._tombstones[uid] = self._moment
        if len(self._tombstones) > _TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]
        self._drop(uid)

    def _drop(self, uid: str) -> None:
        self._first_seen.pop(uid, None)
        self.owners.forget(uid)
        gone = self._services.pop(uid, None)
        if gone is not None:
            if self._by_name.get(_name(gone)) == uid:  # else another has the name by now
                del self._by_name[_name(gone)]
            self._on_gone(uid)

    def kept(self, service: Manifest) -> Manifest:
        """Return the known object if it is equal: a LIST of a thousand is 30 MB."""
        known = self._services.get(service["metadata"]["uid"])
        version = service["metadata"].get("resourceVersion")
        same = known is not None and version == known["metadata"].get("resourceVersion")
        return known if known is not None and same and version else service

    def begin_list(self) -> int:
        """Mark the moment before a LIST.

        A service first seen after it may be missing from the answer.
        """
        self._moment += 1
        return self._moment

    def replace(
        self,
        services: Iterable[Manifest],
        begun: int,
        *,
        version: str = "",
        namespace: str | None = None,
        restored: bool = False,
        left_out: Collection[str] = (),
    ) -> None:
        """Process a LIST of one namespace, or of all, that began then.

        What it has `left_out` because it is too large, by UID, stays as it is known; an empty one
        stands for any.

        A service that is not in it is gone, also without an event; one that is older in it than it
        is known starts over, since the API server's history is another one: etcd was restored. But
        what is newer than the answer stays, which a lagging API server may give, unless the whole
        history is known to be `restored`: then the answer is the truth, also about deletions.
        """
        listed = {service["metadata"]["uid"]: service for service in services}
        if restored:
            self._tombstones = {uid: at for uid, at in self._tombstones.items() if at >= begun}
        as_of = int(version) if version.isdigit() and not restored else math.inf
        for uid, known in list(self._services.items()):
            if self._first_seen[uid] >= begun or _version(known) > as_of:
                continue
            if namespace not in (None, known["metadata"].get("namespace")):
                continue
            if uid not in listed:
                if "" not in left_out and uid not in left_out:
                    self.forget(uid)
            elif version.isdigit() and _is_of_another_history(listed[uid], known, restored):
                self._drop(uid)
        for service in listed.values():
            self.saw(service)


def _is_of_another_history(listed: Manifest, known: Manifest, restored: bool) -> bool:
    """Return whether a LIST contradicts `known` although it is not older: etcd was restored.

    Its generations are others as well: an equal one does not mean an equal spec.
    """
    difference = _version(listed) - _version(known)
    return difference != 0 if restored else difference < 0


def _name(service: Manifest) -> tuple[str, str]:
    return service["metadata"].get("namespace", ""), service["metadata"].get("name", "")


def _intent(service: Manifest) -> tuple[object, object]:
    """The parts whose change matters at once; status is written by the operator."""
    metadata = service["metadata"]
    return metadata.get("generation"), metadata.get("deletionTimestamp")


def _may_be_news(service: Manifest, known: Manifest) -> bool:
    """Return whether the object is not older than the known one and differs from it."""
    version = service["metadata"].get("resourceVersion", "")
    same = version and version == known["metadata"].get("resourceVersion")
    return not same and _version(service) >= _version(known)


def _version(service: Manifest) -> int:
    """Return the resourceVersion as a number; those of one kind grow.

    Where a server's are no numbers, every state counts as new.
    """
    version = service["metadata"].get("resourceVersion", "")
    return int(version) if version.isdigit() else 0
