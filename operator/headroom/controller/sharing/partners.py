"""Pairs of a prefill and a decode pool, and the last report of each pool. No I/O.

A decode pool names its prefill pool (`spec.prefillRef`); the prefill pool is found from that. Both
are of one namespace and of this operator, so nothing is read for it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from headroom.api import InferenceService
from headroom.controller.ports import Manifest
from headroom.controller.services.service_cache import ServiceCache
from headroom.controller.sharing.caps import Ceiling
from headroom.controller.sharing.pair_share import PairNeeds
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.partner import Partner, PoolReport, PoolRole

STALE_TICKS = 3.0
STALE_S = 20.0
"""A report that is older than both says nothing."""
_Name = tuple[str, str]
_TOKENS = ("timeToFirstToken", "timePerOutputToken")


@dataclass(slots=True)
class Partners:
    """The pairs, as their pools ticked."""

    cache: ServiceCache
    compete: Callable[[str, str], bool]
    """Whether two services, by UID, draw from the same accelerators, as far as is known."""
    _reports: dict[str, PoolReport] = field(default_factory=dict)
    _decode_pools: dict[_Name, set[str]] = field(default_factory=dict)
    """UIDs of the services that name a prefill pool."""
    _named: dict[str, _Name] = field(default_factory=dict)
    """The prefill pool that each of them names."""

    def of(self, service: InferenceService, now_s: float, tick_s: float) -> Partner | None:
        """Return the other pool; None for a service that is no pool of a pair."""
        named = service.spec.prefill_ref
        self._follow(service.uid, None if named is None else (service.namespace, named.name))
        if named is not None:
            partner = Partner(name=named.name, role=PoolRole.PREFILL)
            uid = self.cache.named(service.namespace, named.name)
            raw = None if uid is None else self.cache.get(uid)
            if uid is None or raw is None:
                return replace(partner, absence="it does not exist", missing=True, unsuitable=True)
            if objection := self._objection(service, raw):
                return replace(partner, absence=objection, unsuitable=True)
            return self._seen(partner, service.uid, uid, now_s, tick_s)
        uid = self._first((service.namespace, service.name))
        raw = None if uid is None else self.cache.get(uid)
        if uid is None or raw is None:
            return None
        partner = Partner(name=raw["metadata"]["name"], role=PoolRole.DECODE)
        return self._seen(partner, service.uid, uid, now_s, tick_s)

    def needs(self, service: InferenceService, current: int) -> PairNeeds | None:
        """Return the last needs of both pools of a pair; None while one is not known."""
        named = service.spec.prefill_ref
        if named is not None:
            other = self.cache.named(service.namespace, named.name)
        else:
            other = self._first((service.namespace, service.name))
        ours, theirs = self._reports.get(service.uid), self._reports.get(other or "")
        if other is None or ours is None or theirs is None:
            return None
        return PairNeeds(
            partner_uid=other,
            replicas=current,
            needed=ours.needed,
            partner_replicas=theirs.replicas,
            partner_needed=theirs.needed,
        )

    def note(
        self, service: InferenceService, decision: Decision, requested: int, ceiling: Ceiling
    ) -> None:
        """Take in the report of a pool after a tick that requests this many replicas."""
        pair = decision.pair
        if pair is None:
            self._reports.pop(service.uid, None)
            return
        lacks = pair.report.lacks_accelerators
        lacks = lacks or (ceiling.accelerators and pair.report.needed > requested)
        self._reports[service.uid] = replace(
            pair.report, replicas=requested, lacks_accelerators=lacks
        )

    def forget(self, uid: str) -> None:
        """Discard the state of a deleted service."""
        self._reports.pop(uid, None)
        self._follow(uid, None)

    def restart(self) -> None:
        """Forget all reports: the clock went back."""
        self._reports.clear()

    def _seen(self, partner: Partner, uid: str, other: str, now_s: float, tick_s: float) -> Partner:
        partner = replace(partner, shares_accelerators=self.compete(uid, other))
        report = self._reports.get(other)
        if report is None:
            return replace(partner, absence="it has not been evaluated yet")
        age_s = now_s - report.time_s
        if age_s > max(STALE_S, STALE_TICKS * tick_s):
            return replace(partner, absence=f"its last decision is {age_s:.0f} s old")
        return replace(partner, report=report)

    def _objection(self, service: InferenceService, raw: Manifest) -> str:
        """Return why an object cannot be the prefill pool of a service; empty if it can."""
        spec: Any = raw.get("spec") or {}
        if spec.get("prefillRef"):
            return "it names a prefill pool itself"
        if not any((spec.get("slo") or {}).get(one) for one in _TOKENS):
            return "it promises neither slo.timeToFirstToken nor slo.timePerOutputToken"
        first = self._first((service.namespace, raw["metadata"]["name"]))
        if first not in (None, service.uid):
            other = self.cache.get(first or "") or {"metadata": {"name": ""}}
            return f"it is the prefill pool of {other['metadata']['name']} already"
        return ""

    def _first(self, name: _Name) -> str | None:
        """Return the oldest service that names this prefill pool."""
        known = [(uid, self.cache.get(uid)) for uid in self._decode_pools.get(name, ())]
        found = [
            (raw["metadata"].get("creationTimestamp", ""), uid)
            for uid, raw in known
            if raw is not None
        ]
        return min(found)[1] if found else None

    def _follow(self, uid: str, name: _Name | None) -> None:
        before = self._named.get(uid)
        if before == name:
            return
        if before is not None:
            self._decode_pools[before].discard(uid)
            if not self._decode_pools[before]:
                del self._decode_pools[before]
            del self._named[uid]
        if name is not None:
            self._named[uid] = name
            self._decode_pools.setdefault(name, set()).add(uid)
