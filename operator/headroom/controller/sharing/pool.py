"""Services that compete for the same accelerators: which yields to which, over ticks. No I/O.

The size of a pool is unknown, and nothing is withheld while no service is short. When the scheduler
has rejected a replica for lack of accelerators for the whole hold, and a service of lower priority
has some, a shortage begins: the pool's size is what its services hold. That figure may grow and
does not fall during the shortage, so the missing accelerators are taken once, however long a
removal takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.controller.sharing.pool_member import NOTHING, Member, Seen
from headroom.controller.sharing.settled_minimum import SettledMinimum
from headroom.scaling.accelerator_allocation import share
from headroom.scaling.values.observation import Allocation

GIVE_BACK_AFTER_S = 60.0
"""Time after which a yielded place comes back if it is still free: load that dips for a moment
finds its places still free."""
FORGET_AFTER_S = 600.0
"""Time without a rejected replica after which a shortage ends: nodes may have been added, so
services that yielded ask again."""
IN_VAIN_AFTER_S = 120.0
RETRIED_AFTER_S = 1800.0
"""Accelerators that were yielded and lie free for two minutes do not fit (they lie on several
nodes, say): they go back, and for half an hour this shortage takes nothing."""
PLANNED_EVERY_S = 1.0
"""However many services tick in between: a plan covers all of them."""


@dataclass(slots=True)
class _Shortage:
    """A service is short, and one of lower priority yields."""

    accelerators: int
    """Accelerators in the pool."""
    winner: Member
    """The short service with the highest priority."""
    refused_s: float
    """Time when a replica of that priority was last rejected."""


@dataclass(slots=True)
class Pool:
    """Services that compete for the same accelerators. Each is noted at every tick of its own."""

    _members: dict[str, Member] = field(default_factory=dict)
    _total: int = 0
    """Accelerators held."""
    _held: SettledMinimum = field(default_factory=SettledMinimum)
    _shortage: _Shortage | None = None
    _allocations: dict[str, Allocation] = field(default_factory=dict)
    _planned_s: float | None = None

    def __len__(self) -> int:
        """Count the services."""
        return len(self._members)

    def note(self, seen: Seen, now_s: float) -> None:
        """Process a service as it is at its tick."""
        uid = seen.demand.name
        member = self._members.get(uid)
        self._total += seen.held - (member.seen.held if member else 0)
        self._held.add(now_s, self._total)
        if member is None:
            member = self._members[uid] = Member(seen=seen, seen_s=now_s)
        member.look(seen, now_s, withheld=uid in self._allocations)
        if self._planned_s is None or not 0.0 <= now_s - self._planned_s < PLANNED_EVERY_S:
            self._planned_s = now_s
            self._plan(now_s)

    def forget(self, uid: str) -> None:
        """Remove a deleted service, or one that left the pool."""
        member = self._members.pop(uid, None)
        if member is None:
            return
        self._total -= member.seen.held
        self._allocations.pop(uid, None)
        if self._shortage is not None and self._shortage.winner is member:
            self._end()

    def allocation(self, uid: str) -> Allocation | None:
        """Return the share of a service; None if nothing is withheld from it."""
        return self._allocations.get(uid)

    def preempted_by(self, uid: str) -> str:
        """Return which services yield to a short one; empty if none does."""
        member = self._members.get(uid)
        return member.preempted if member is not None else ""

    def _plan(self, now_s: float) -> None:
        """Begin or end a shortage, and allocate again during one."""
        overdue = self._overdue(now_s)
        shortage = self._shortage = self._at_issue(overdue, now_s)
        if shortage is None:
            return
        shortage.accelerators = max(shortage.accelerators, self._held.value)
        shares = share(
            (member.demand(overdue.get(uid, 0), now_s) for uid, member in self._members.items()),
            shortage.accelerators,
        )
        self._withhold(shortage, shares, now_s)
        self._explain(overdue)
        if self._is_in_vain(shortage, overdue, now_s) or not (self._allocations or overdue):
            self._end()

    def _overdue(self, now_s: float) -> dict[str, int]:
        if self._shortage is None and not any(m.seen.refused for m in self._members.values()):
            return {}
        found = {uid: member.overdue(now_s) for uid, member in self._members.items()}
        return {uid: number for uid, number in found.items() if number}

    def _at_issue(self, overdue: Mapping[str, int], now_s: float) -> _Shortage | None:
        """Return the present shortage; None if no service is short or none has lower priority."""
        shortage = self._shortage
        lowest = min((member.priority for member in self._members.values()), default=0)
        highest = max(
            (self._members[uid] for uid in overdue), key=lambda m: m.priority, default=None
        )
        if shortage is None:
            if highest is None or highest.priority <= lowest:
                return None
            shortage = _Shortage(accelerators=0, winner=highest, refused_s=now_s)
        elif highest is not None and highest.priority > shortage.winner.priority:
            shortage.winner = highest
        above = (self._members[uid] for uid in overdue)
        if any(m.seen.refused and m.priority >= shortage.winner.priority for m in above):
            shortage.refused_s = now_s
        if now_s - shortage.refused_s >= FORGET_AFTER_S:
            self._end()
            return None
        return shortage

    def _withhold(self, shortage: _Shortage, shares: Mapping[str, int], now_s: float) -> None:
        """Grant shares to services below the winner; they get freed ones back after a delay."""
        winner = shortage.winner
        self._allocations = {}
        for uid, member in self._members.items():
            if member.priority >= winner.priority or not member.seen.writable:
                continue
            desired = member.seen.demand.desired
            if shares[uid] < desired:
                member.granted = member.granted.add(now_s, shares[uid], GIVE_BACK_AFTER_S)
            least = member.granted.since(now_s - GIVE_BACK_AFTER_S)
            if least is not None and least < desired:
                self._allocations[uid] = Allocation(replicas=least, preempted_by=winner.title)

    def _explain(self, overdue: Mapping[str, int]) -> None:
        """Record the services that yield to each short one, until it has its accelerators."""
        yielding = [
            (member.priority, f"{member.title} yields {number}")
            for uid, member in self._members.items()
            if (number := member.seen.demand.allocated - self._left(uid, member)) > 0
        ]
        for uid in overdue:
            member = self._members[uid]
            below = sorted(text for priority, text in yielding if priority < member.priority)
            member.preempted = ", ".join(below) or member.preempted

    def _left(self, uid: str, member: Member) -> int:
        demand, grant = member.seen.demand, self._allocations.get(uid)
        return demand.allocated if grant is None else max(grant.replicas, demand.floor)

    def _is_in_vain(self, shortage: _Shortage, overdue: Mapping[str, int], now_s: float) -> bool:
        """Return whether yielded accelerators stay free: the short service cannot use them."""
        in_vain = False
        for uid in overdue:
            member = self._members[uid]
            fits = shortage.accelerators - self._total >= member.seen.demand.accelerators
            if not (fits and member.seen.refused):
                member.free_since_s = None
            elif member.free_since_s is None:
                member.free_since_s = now_s
            elif now_s - member.free_since_s >= IN_VAIN_AFTER_S:
                member.free_since_s, member.preempted = None, ""
                member.barred_until_s = now_s + RETRIED_AFTER_S
                in_vain = True
        return in_vain

    def _end(self) -> None:
        self._shortage, self._allocations = None, {}
        for member in self._members.values():
            member.granted = NOTHING
