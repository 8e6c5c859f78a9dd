"""Collects evidence against single replicas until it is beyond chance and lasting."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.replacement import rounds
from headroom.scaling.replacement.rounds import (
    HEALTHY,
    ROUND_S,
    SLOW_FROM,
    BadRound,
    RoundStart,
    Verdict,
)
from headroom.scaling.values.observation import CostModel, Pod
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.replica_defect import Defect
from headroom.scaling.windows.sliding_windows import Windows

FEWEST_ROUNDS = 3
"""Bad rounds in a row before a replacement, so that what passes within a minute causes none."""
DEVIATIONS, LEAST_FACTOR = 5.0, 1.6
"""Deviations of the logarithm of a mean; its lower bound must exceed what mixed hardware explains
(1.5)."""
SETTLED_S = 30.0
"""A replica that has just become ready fills its caches."""
LIKELY_DEVIATIONS, LIKELY_FACTOR = 3.0, 1.3
"""The same for a suspicion on which the rules act at once, without a deletion."""
FORGOTTEN_S = 300.0
"""Without a further bad round for this long a suspicion ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """Evidence against one replica, in consecutive bad rounds."""

    since_s: float
    last_s: float
    rounds: int = 0
    failing: int = 0
    """The rounds in which it answered nothing."""
    batches: float = 0.0
    took_s: float = 0.0
    usual_s: float = 0.0
    others: float = 0.0
    ended: float = 0.0
    late: float = 0.0

    @property
    def factor(self) -> float | None:
        """Time of an execution over that of the other replicas; None without an execution."""
        return self.took_s / self.usual_s if self.usual_s > 0 else None

    def and_round(self, bad: BadRound, now_s: float) -> Suspicion:
        """Return the suspicion with one more bad round.

        The first round contains time before the replica became slow, so its sums are not kept.
        """
        kept = 1.0 if self.rounds > 1 else 0.0
        return replace(
            self,
            last_s=now_s,
            rounds=self.rounds + 1,
            failing=self.failing + (bad.defect is Defect.FAILING),
            batches=kept * self.batches + bad.batches,
            took_s=kept * self.took_s + bad.took_s,
            usual_s=kept * self.usual_s + bad.usual_s,
            others=kept * self.others + bad.others,
            ended=kept * self.ended + bad.ended,
            late=kept * self.late + bad.late,
        )

    def proven(self, policy: Policy, cv: float | None) -> Defect | None:
        """Return the defect that is beyond chance; None while it is not known.

        A slow replica must also do harm: more of its requests are late than the percentile allows.
        """
        if self.rounds < FEWEST_ROUNDS:
            return None
        if self.failing * ROUND_S >= max(FEWEST_ROUNDS * ROUND_S, 2.0 * policy.latency_target_s):
            return Defect.FAILING
        if cv is None or self.at_least(cv, DEVIATIONS) < LEAST_FACTOR:
            return None
        harmful = self.late > (1.0 - policy.latency_percentile) * self.ended
        return Defect.SLOW if harmful else None

    def likely(self, cv: float | None) -> bool:
        """Return whether chance is an improbable explanation already."""
        if not self.rounds or self.failing:
            return True
        return cv is not None and self.at_least(cv, LIKELY_DEVIATIONS) >= LIKELY_FACTOR

    def at_least(self, cv: float, deviations: float) -> float:
        """Return the lower bound of the factor; 0 without an execution.

        The mean of n executions of variation cv has a logarithm with a variance of about
        log(1 + cv^2 / n). Worked: ten times as long, cv 1, 20 executions: a deviation of 0.22, so
        at least 10 x exp(-1.1) = 3.3 times. Three times as long needs 64 executions.
        """
        if self.factor is None or not self.others:
            return 0.0
        variance = math.log1p(cv * cv * (1.0 / self.batches + 1.0 / self.others))
        return self.factor * math.exp(-deviations * math.sqrt(variance))


@dataclass(frozen=True, slots=True, kw_only=True)
class Speeds:
    """Speeds that the learner knows."""

    cost: CostModel | None
    cv: float | None
    """Variation of an execution; None while unknown."""
    factors: Mapping[str, float]
    """Time of each replica over the usual replica's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The round in progress, and the suspicions so far."""

    start: RoundStart | None = None
    suspicions: Mapping[str, Suspicion] = field(default_factory=dict)
    acquitted: frozenset[str] = frozenset()
    """Replicas that worked as the others in the last round, whatever their learned speed is."""
    likely: frozenset[str] = frozenset()
    """The suspected replicas where chance is an improbable explanation."""

    def interrupted(self) -> Evidence:
        """Return the evidence after a tick that cannot be judged: the round starts again."""
        return self if self.start is None else replace(self, start=None)

    def observe(
        self,
        policy: Policy,
        windows: Windows,
        ready: Iterable[Pod],
        speeds: Speeds,
        now_s: float,
    ) -> Evidence:
        """Return the evidence after a tick.

        A replica whose learned speed is far from the usual one is suspected before its first round
        ends, so that no capacity is bought for it meanwhile.
        """
        slow = {uid for uid, times in speeds.factors.items() if times >= SLOW_FROM}
        start, acquitted = self.start, self.acquitted & slow
        within = start is not None and now_s - start.time_s < ROUND_S
        if within and not (slow or self.suspicions or self.acquitted):
            return self
        present = {pod.uid: pod for pod in ready}
        found = {uid: one for uid, one in self.suspicions.items() if uid in present}
        if start is None:
            start = RoundStart.of(windows.series, now_s)
        elif now_s - start.time_s >= ROUND_S:
            judged = _settled(present.values(), start.time_s, policy)
            series, bounds_s = windows.series, windows.bounds_s
            target_s = policy.latency_target_s
            verdicts = rounds.judge(start, series, bounds_s, judged, speeds.cost, target_s)
            found = _after(found, verdicts, start.time_s, now_s)
            acquitted = frozenset(
                uid for uid in slow - found.keys() if verdicts.get(uid) is HEALTHY
            )
            start = RoundStart.of(series, now_s)
        for uid in slow & present.keys() - found.keys() - acquitted:
            found[uid] = Suspicion(since_s=now_s, last_s=now_s)
        lasting = {
            uid: one
            for uid, one in found.items()
            if (one.rounds and now_s - one.last_s < FORGOTTEN_S) or uid in slow
        }
        likely = frozenset(uid for uid, one in lasting.items() if one.likely(speeds.cv))
        return Evidence(start=start, suspicions=lasting, acquitted=acquitted, likely=likely)


def _settled(ready: Iterable[Pod], since_s: float, policy: Policy) -> list[str]:
    """Return the replicas that had been ready for a while when the round began."""
    settled_s = max(SETTLED_S, policy.latency_target_s)
    return [
        pod.uid
        for pod in ready
        if since_s - (pod.created_s if pod.ready_s is None else pod.ready_s) >= settled_s
    ]


def _after(
    found: Mapping[str, Suspicion], verdicts: Mapping[str, Verdict], start_s: float, now_s: float
) -> dict[str, Suspicion]:
    """Return the suspicions after a round; a replica that works as the others is acquitted.

    Not of what was found during the round, which contains time before it.
    """
    kept = dict(found)
    for uid, verdict in verdicts.items():
        if isinstance(verdict, BadRound):
            before = kept.get(uid) or Suspicion(since_s=start_s, last_s=now_s)
            kept[uid] = before.and_round(verdict, now_s)
        elif uid in kept and kept[uid].since_s <= start_s:
            del kept[uid]
    return kept
