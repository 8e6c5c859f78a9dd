"""Replaces one replica at a time: chosen by evidence, within a budget, in steps.

    surge     one more replica is started, if the others would not carry the load without this one
    delete    the shell deletes the pod; its workload creates another
    start     until as many are ready as before

A replica that is suspected is left out of the model at once: capacity that is bought for it would
arrive later than its successor. If it may not be replaced, the model buys that capacity.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.replacement.budget import Budget
from headroom.scaling.replacement.evidence import Evidence, Suspicion
from headroom.scaling.replacement.situation import Situation, UnderWay
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.replica_defect import Defect, Replacement, ReplacementStep

PATIENCE_S = 180.0
"""Time for which a replica is left out of the model before the evidence suffices."""
DELETED_WITHIN_S = 60.0
"""A pod that is still ready after this could not be deleted; it is kept for `REFUSED_S`."""
REFUSED_S = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacer:
    """Everything that replacing remembers about one service."""

    evidence: Evidence = field(default_factory=Evidence)
    under_way: UnderWay | None = None
    budget: Budget = field(default_factory=Budget)
    refused: Mapping[str, float] = field(default_factory=dict)
    """Time until which a pod is kept that could not be deleted, by UID."""
    disturbed_until_s: float = float("-inf")
    """Time until which measured latency contains requests of a replica that was left out."""

    def left_out(
        self, policy: Policy, ready: Collection[str], current: int, now_s: float
    ) -> frozenset[str]:
        """Return the replicas that the model must not count, because they are replaced soon."""
        if self.under_way is None and not self.evidence.likely:
            return frozenset()
        out = set()
        if self.under_way is not None and self.under_way.pod in ready:
            out.add(self.under_way.pod)
        if not policy.replacement_objection and self._one_of_few(ready):
            room = self.budget.left(now_s, current) - len(out)
            soon = [
                uid
                for uid, one in self._ranked(ready)
                if uid not in out
                and uid in self.evidence.likely
                and self.refused.get(uid, 0.0) <= now_s
                and now_s - one.since_s <= PATIENCE_S
            ]
            out.update(soon[: max(0, room)])
        return frozenset(out)

    @property
    def doubted(self) -> frozenset[str]:
        """The replicas whose executions must not enter the learned cost."""
        one = self.under_way
        return self.evidence.likely if one is None else self.evidence.likely | {one.pod}

    def step(self, policy: Policy, now: Situation) -> Replacer:
        """Return the replacer after this tick: a new replacement, or the next step of one."""
        refused = {uid: until for uid, until in self.refused.items() if until > now.now_s}
        known = replace(self, refused=refused) if refused != dict(self.refused) else self
        if known.under_way is None:
            return known._begin(policy, now)
        if policy.replacement_objection and known.under_way.step is not ReplacementStep.START:
            return replace(known, under_way=None)
        return known._advance(known.under_way, now)

    def surges(self, ready: Collection[str]) -> bool:
        """Return whether one more replica is wanted until this one is deleted."""
        one = self.under_way
        return one is not None and one.step is ReplacementStep.SURGE and one.pod in ready

    def shown(self, policy: Policy, now: Situation) -> Replacement | None:
        """Return the replacement in progress, else the worst replica with the reason to keep it."""
        one = self.under_way
        if one is not None:
            return _shown(one.pod, one.defect, one.step, one.suspicion, _ACTIONS[one.step])
        for uid, suspicion in self._ranked(now.ready):
            defect = suspicion.proven(policy, now.cv)
            if defect is not None:
                why = self._why_kept(policy, now, uid)
                return _shown(uid, defect, ReplacementStep.KEPT, suspicion, f"kept: {why}")
        return None

    def _begin(self, policy: Policy, now: Situation) -> Replacer:
        for uid, suspicion in self._ranked(now.ready):
            defect = suspicion.proven(policy, now.cv)
            if defect is None or self._why_kept(policy, now, uid):
                continue
            healthy = len(now.ready) - 1
            begun = UnderWay(
                pod=uid,
                defect=defect,
                step=ReplacementStep.SURGE,
                suspicion=suspicion,
                since_s=now.now_s,
                until_ready=healthy + 1,
            )
            if not now.may_surge or now.others_carry(begun.factor):
                return self._delete(begun, now)
            return replace(self, under_way=begun)
        return self

    def _advance(self, one: UnderWay, now: Situation) -> Replacer:
        others = sum(uid != one.pod for uid in now.ready)
        waited_s = now.now_s - one.since_s
        gone = one.pod not in now.ready
        if one.step is ReplacementStep.START:
            arrived = others >= min(one.until_ready, now.current) or waited_s >= now.longest_s
            return replace(self, under_way=None) if arrived else self
        if gone:
            started = replace(one, step=ReplacementStep.START, since_s=now.now_s)
            return replace(self, under_way=started)
        if one.step is ReplacementStep.DELETE:
            if waited_s < DELETED_WITHIN_S:
                return self
            refused = {**self.refused, one.pod: now.now_s + REFUSED_S}
            return replace(self, under_way=None, refused=refused)
        if now.usable and one.pod not in self.evidence.suspicions:
            return replace(self, under_way=None)  # it works as the others again
        arrived = others >= one.until_ready or waited_s >= now.longest_s
        if arrived or not now.may_surge or now.others_carry(one.factor):
            return self._delete(one, now)
        return self

    def _delete(self, one: UnderWay, now: Situation) -> Replacer:
        if not now.usable or len(now.ready) < 2:
            return replace(self, under_way=None)
        deleted = replace(one, step=ReplacementStep.DELETE, since_s=now.now_s)
        return replace(self, under_way=deleted, budget=self.budget.spend(now.now_s))

    def _why_kept(self, policy: Policy, now: Situation, uid: str) -> str:
        if policy.replacement_objection:
            return policy.replacement_objection
        if not now.usable:
            return "metrics are not fresh, or a rollout replaces pods"
        if len(now.ready) < 2:
            return "it is the only ready replica"
        if not self._one_of_few(now.ready):
            return "most replicas are slow or fail"
        if self.refused.get(uid, 0.0) > now.now_s:
            return "its pod could not be deleted"
        if self.budget.left(now.now_s, now.current) < 1:
            return f"{len(self.budget.spent_s)} were replaced within the last hour"
        return ""

    def _one_of_few(self, ready: Collection[str]) -> bool:
        """Return whether at most half of the replicas are suspected: else the fault is shared."""
        suspected = sum(uid in self.evidence.likely for uid in ready)
        return len(ready) >= 2 and 2 * suspected <= len(ready)

    def _ranked(self, ready: Collection[str]) -> list[tuple[str, Suspicion]]:
        """Return the suspected replicas, the worst first."""
        found = self.evidence.suspicions
        among = [(uid, found[uid]) for uid in ready if uid in found] if found else []
        return sorted(among, key=lambda one: (-one[1].rounds, -(one[1].factor or 0.0), one[0]))


_ACTIONS = {
    ReplacementStep.SURGE: "one more replica is started, then its pod is deleted",
    ReplacementStep.DELETE: "its pod is deleted, and the workload creates another",
    ReplacementStep.START: "its pod was deleted, and another one is starting",
}


def _shown(
    uid: str, defect: Defect, step: ReplacementStep, suspicion: Suspicion, action: str
) -> Replacement:
    factor = suspicion.factor
    detail = "takes requests and answers none of them, while the others answer theirs"
    if defect is Defect.SLOW and factor is not None:
        detail = f"takes {factor:.3g}x as long as the others"
    return Replacement(
        pod=uid,
        defect=defect,
        step=step,
        factor=factor,
        since_s=suspicion.since_s,
        detail=detail,
        action=action,
    )
