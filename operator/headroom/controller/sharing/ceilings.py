"""The operator's caps on replicas per service and on accelerators of all services. No I/O.

A ceiling stops growth and removes nothing: replicas above a lowered ceiling stay until load lets
them go. Accelerators go to the first service that requests them; priorities act on what the
scheduler rejects. A tenant may write any number of replicas, of which its quota refuses the pods:
what this operator did not ask for, and what is refused, counts as far as there are pods.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from headroom.api import InferenceService
from headroom.api.service_status.status import Status
from headroom.controller.ports import Manifest
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.accelerator_note import AcceleratorNote
from headroom.controller.sharing.pair_share import PairNeeds, own_room
from headroom.resources.accelerators import (
    NOT_COUNTED,
    Accelerators,
    counted,
    of_stored,
    per_replica,
    template_of,
)
from headroom.scaling.values.observation import Observation, PodState
from headroom.scaling.values.policy import Policy

MOST_REPLICAS = 1000
"""The largest `maxReplicas`."""
_ASK = "the operator's administrator can raise it"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caps:
    """The settings; None means no bound."""

    replicas_per_service: int | None = None
    accelerators: int | None = None
    """Accelerators of all services that this operator keeps, whatever their resource is called."""
    not_counted: tuple[str, ...] = NOT_COUNTED
    """Patterns of extended resources that are no accelerators."""


NO_CAPS = Caps()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceiling:
    """The most replicas that one service may request now."""

    replicas: int
    why: str = ""
    """Which setting it comes from; empty where it is maxReplicas alone."""
    exceeded: bool = False
    """Whether the service has more than the settings allow."""
    accelerators: bool = False
    """Whether it is what other services leave of `--max-accelerators`."""

    def applied(self, policy: Policy) -> Policy:
        """Return the policy within the ceiling; a decision has room for one replica at least."""
        most = min(policy.max_replicas, max(1, self.replicas))
        return replace(policy, max_replicas=most, min_replicas=min(policy.min_replicas, most))


class Ceilings:
    """Who holds how many accelerators, noted at every tick of every service."""

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
        self._held: dict[str, int] = {}
        self._namespaces: dict[str, str] = {}
        """Namespaces of what holds some, by the same keys."""
        self._by_namespace: Counter[str] = Counter()
        self._unread: set[str] = set()
        self._granted: dict[str, int] = {}
        """Replicas that this operator asked for, which may have no pods yet."""
        self._surging: set[str] = set()
        """Services whose rollout may have one replica more than is requested."""
        self._total = 0

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
                allowed, others = room, self._total - self._held.get(service.uid, 0)
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
        """Whether the operator's limit has room for a replica beyond so many."""
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
        self._hold(service.uid, service.namespace, count * (replicas + leaving))

    def _grant(self, service: InferenceService, current: int, asked: int, count: int) -> int:
        """Return how many of the requested replicas this operator asked for, not others."""
        known = self._granted.get(service.uid)
        if known is None:
            known = 0 if service.spec.target_ref is not None else self._room(service.uid, count)
        granted = asked if asked > current else min(known, asked)
        self._granted[service.uid] = granted
        return granted

    def _room(self, uid: str, count: int) -> int:
        """Return how many replicas of a service fit into what other services leave."""
        if self._caps.accelerators is None or not count:
            return MOST_REPLICAS
        others = self._total - self._held.get(uid, 0)
        return max(0, self._caps.accelerators - others) // count

    def _with_pair(self, uid: str, count: int, room: int, pair: PairNeeds | None) -> int:
        """Return the room within its share of what both pools of a pair may have."""
        if pair is None or self._caps.accelerators is None:
            return room
        of_partner = self._held.get(pair.partner_uid, 0)
        both = self._caps.accelerators - self._total + self._held.get(uid, 0) + of_partner
        if not of_partner or both <= 0:
            return room
        return min(room, own_room(pair, count, of_partner, both))

    def forget(self, uid: str) -> None:
        """Remove a deleted service."""
        if uid in self._held:
            self._hold(uid, self._namespaces[uid], 0)
            del self._held[uid], self._namespaces[uid]
        self._granted.pop(uid, None)
        self._surging.discard(uid)

    def _begin(self) -> None:
        """Count, once, the pods in the status of services not evaluated yet."""
        read = self._unread - self._cache.unread
        if self._begun and not read:
            return
        if not self._begun:
            self._begun, self._note.held = True, self._by_namespace
            self._unread = set(self._cache.unread)
            for namespace in self._unread:
                self._hold(f"{namespace}/", namespace, self._note.known(namespace))
        for namespace in read:
            self.forget(f"{namespace}/")
        self._unread -= read
        for uid in self._cache.uids():
            if uid not in self._held:
                self._hold_stored(uid, self._cache.get(uid) or {})

    def _hold_stored(self, uid: str, raw: Manifest) -> None:
        count = self._count(of_stored(raw.get("spec") or {}))
        status = Status.read(raw.get("status"))
        there = status.ready_replicas + status.warming_replicas + status.broken_replicas
        there += status.unschedulable_replicas
        namespace = str((raw.get("metadata") or {}).get("namespace", ""))
        self._hold(uid, namespace, min(there, status.replicas, MOST_REPLICAS) * count)

    def _count(self, held: Accelerators) -> int:
        return counted(held, self._caps.not_counted)

    def _hold(self, uid: str, namespace: str, accelerators: int) -> None:
        more = accelerators - self._held.get(uid, 0)
        self._total += more
        self._by_namespace[namespace] += more
        self._held[uid], self._namespaces[uid] = accelerators, namespace
