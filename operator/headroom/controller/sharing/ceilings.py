"""The operator's caps on replicas per service and on accelerators of all services. No I/O.

A ceiling stops growth and removes nothing: replicas above a lowered ceiling stay until load lets
them go. Accelerators go to the first service that requests them; priorities act on what the
scheduler rejects. A tenant may write any number of replicas, of which its quota refuses the pods:
what this operator did not ask for, and what is refused, counts as far as there are pods.
"""

from __future__ import annotations

from headroom.api import InferenceService
from headroom.api.service_status.status import Status
from headroom.controller.ports import Manifest
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.accelerator_note import AcceleratorNote
from headroom.controller.sharing.caps import Caps, Ceiling
from headroom.controller.sharing.held_accelerators import HeldAccelerators
from headroom.controller.sharing.pair_share import PairNeeds, own_room
from headroom.resources.accelerators import (
    Accelerators,
    counted,
    of_stored,
    per_replica,
    template_of,
)
from headroom.scaling.values.observation import Observation, PodState

MOST_REPLICAS = 1000
"""The largest `maxReplicas`."""
_ASK = "the operator's administrator can raise it"


class Ceilings:
    """Accelerators by holder, noted at every tick of every service."""

    def __init__(
        self, caps: Caps, cache: ServiceCache, note: AcceleratorNote | None = None
    ) -> None:
        """Take the settings, the services that count before their first tick, and the last counts.

        A namespace that cannot be read counts as an earlier leader noted it.
        """
        self._caps = caps
        self._cache = cache
        self._note = note or AcceleratorNote()
        self._begun = False
        self._held = HeldAccelerators()
        self._unread: set[str] = set()
        self._granted: dict[str, int] = {}
        """Replicas that this operator asked for, which may have no pods yet."""
        self._surging: set[str] = set()
        """Services whose rollout may have one replica more than is requested."""

    def of(
        self,
        service: InferenceService,
        workload: Manifest,
        current: int,
        *,
        pair: PairNeeds | None = None,
    ) -> Ceiling:
        """Return the ceiling of a service that has `current` replicas of a workload.

        Worked: 16 accelerators in all, other services hold 10, two per replica: 3 replicas. Where a
        partner needs more than it holds, what is left is divided (`pair_share`).
        """
        self._begin()
        allowed, per_service = service.spec.scaling.max_replicas, self._caps.replicas_per_service
        why, by_accelerators = "", False
        if per_service is not None and per_service < allowed:
            allowed = per_service
            why = f"the operator allows {per_service} replicas per service; {_ASK} "
            why += "(--max-replicas-per-service)"
        count = self._count(per_replica(service, template_of(workload)))
        if self._caps.accelerators is not None and count:
            room = self._room(service.uid, count) - (service.uid in self._surging)
            room = self._with_pair(service.uid, count, room, pair)
            if room < allowed:
                allowed, others = room, self._held.by_others(service.uid)
                by_accelerators = True
                why = f"the operator allows {self._caps.accelerators} accelerators in all, other "
                shared = " (divided with the other pool of the pair)" if pair is not None else ""
                why += f"services hold {others}{shared} and each replica {count}; {_ASK} "
                why += "(--max-accelerators)"
        exceeded = why != "" and current > allowed
        return Ceiling(
            replicas=max(allowed, current),
            why=why,
            exceeded=exceeded,
            accelerators=by_accelerators,
        )

    def fits_one_more(self, service: InferenceService, workload: Manifest, replicas: int) -> bool:
        """Return whether the operator's limit has room for a replica beyond this many."""
        self._begin()
        count = self._count(per_replica(service, template_of(workload)))
        return self._room(service.uid, count) > replicas

    def note(
        self,
        service: InferenceService,
        workload: Manifest,
        observation: Observation,
        asked: int,
        *,
        refused: bool = False,
        surges: bool = False,
    ) -> None:
        """Count a service's requested replicas, and its pods beyond them.

        `refused`: a quota or an admission policy refuses pods that are requested. `surges`: a
        rollout may start one more.
        """
        (self._surging.add if surges else self._surging.discard)(service.uid)
        leaving = observation.count(PodState.TERMINATING)
        listed = len(observation.pods) - leaving + observation.unlisted_ready
        count = self._count(per_replica(service, template_of(workload)))
        granted = self._grant(service, observation.current, asked, count)
        replicas = listed if refused else max(granted + surges, listed)
        self._held.set(service.uid, service.namespace, count * (replicas + leaving))

    def _grant(self, service: InferenceService, current: int, asked: int, count: int) -> int:
        """Return how many of the requested replicas this operator asked for, not others."""
        known = self._granted.get(service.uid)
        if known is None:
            known = 0 if service.spec.target_ref is not None else self._room(service.uid, count)
        granted = asked if asked > current else min(known, asked)
        self._granted[service.uid] = granted
        return granted

    def _room(self, uid: str, count: int) -> int:
        """Return how many replicas of a service fit into the accelerators that others leave."""
        if self._caps.accelerators is None or not count:
            return MOST_REPLICAS
        return max(0, self._caps.accelerators - self._held.by_others(uid)) // count

    def _with_pair(self, uid: str, count: int, room: int, pair: PairNeeds | None) -> int:
        """Return the room within its share of a pair's accelerators."""
        if pair is None or self._caps.accelerators is None:
            return room
        of_partner = self._held.of(pair.partner_uid)
        both = self._caps.accelerators - self._held.by_others(uid) + of_partner
        if not of_partner or both <= 0:
            return room
        return min(room, own_room(pair, count, of_partner, both))

    def forget(self, uid: str) -> None:
        """Remove a deleted service."""
        self._held.forget(uid)
        self._granted.pop(uid, None)
        self._surging.discard(uid)

    def _begin(self) -> None:
        """Count, once, the pods in the status of services not evaluated yet."""
        read = self._unread - self._cache.unread
        if self._begun and not read:
            return
        if not self._begun:
            self._begun, self._note.held = True, self._held.by_namespace
            self._unread = set(self._cache.unread)
            for namespace in self._unread:
                self._held.set(f"{namespace}/", namespace, self._note.known(namespace))
        for namespace in read:
            self.forget(f"{namespace}/")
        self._unread -= read
        for uid in self._cache.uids():
            if uid not in self._held:
                self._set_stored(uid, self._cache.get(uid) or {})

    def _set_stored(self, uid: str, raw: Manifest) -> None:
        count = self._count(of_stored(raw.get("spec") or {}))
        status = Status.read(raw.get("status"))
        there = status.ready_replicas + status.warming_replicas + status.broken_replicas
        there += status.unschedulable_replicas
        namespace = str((raw.get("metadata") or {}).get("namespace", ""))
        self._held.set(uid, namespace, min(there, status.replicas, MOST_REPLICAS) * count)

    def _count(self, held: Accelerators) -> int:
        return counted(held, self._caps.not_counted)
