"""Holds out ready replicas whose samples the other replicas contradict, beyond chance. Pure.

    leap     more than any other replica did, and more than it can (`leaps.py`). The sample is held
             out: the replica is silent for the decision
    idle     far fewer requests than even routing can give it (`uneven_shares.py`)

Such replicas teach nothing about costs, and no replica is removed while there is one. They are
named if nothing but a wrong page explains them: few connections explain an idle one, too.
Every finding fades: after `REBASED_S` a held-out series starts again from what the page says then,
and after `FORGOTTEN_S` no window contains what the replica reported.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel, Observation, PodSample
from headroom.scaling.values.policy import Policy, Routing
from headroom.scaling.values.replica_defect import LeftOut
from headroom.scaling.windows.plausibility.leaps import fallen, leaps, may_leap
from headroom.scaling.windows.plausibility.uneven_shares import Shares, read_shares, with_share
from headroom.scaling.windows.sliding_windows import Windows

REBASED_S, FORGOTTEN_S = 30.0, 90.0
REAL_S = 600.0
"""Connections may move; a share that stays low for so long is real."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Contradictions of one replica."""

    since_s: float
    last_s: float
    why: str
    leap: bool = False
    proven: bool = True
    """Whether only a wrong page explains it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradictions:
    """The replicas that contradict the others now, or did within `FORGOTTEN_S`."""

    found: Mapping[str, Found] = field(default_factory=dict)
    fell: Mapping[str, float] = field(default_factory=dict)
    """Time when the counters of a replica, ready since then, last fell, within `FORGOTTEN_S`."""
    even: frozenset[str] = frozenset()
    """Replicas that have had an even share of the requests, where connections stay with them."""
    understated: float = 1.0
    """Most requests that may have arrived over those counted, if one replica hides some."""

    def absorb(
        self,
        policy: Policy,
        observation: Observation,
        windows: Windows,
        cost: CostModel | None,
        connections: int | None,
        proven: int,
    ) -> tuple[Contradictions, Windows]:
        """Return them after this tick, and the windows with the samples that may be used.

        `connections` as in `read_shares`, of which at least `proven` exist.
        """
        ready = observation.ready
        after = windows.absorb(observation, policy.stable_window_s)
        if len(ready) < 2 or cost is None:
            return self._faded(observation.now_s), after
        leaping: dict[str, str] = {}
        fell = _without_restarted(self.fell, observation)
        if self.found or may_leap(windows, after, cost):
            proven_uids = {uid for uid, one in self.found.items() if one.proven}
            suspected = self.found.keys() - proven_uids
            leaping = leaps(observation.samples, windows, cost, fell, proven_uids, suspected)
            fell |= dict.fromkeys(fallen(observation.samples, windows), observation.now_s)
        if leaping:
            after = self._without(policy, observation, windows, leaping)
        shares = read_shares(policy, after, ready, connections, proven, observation.now_s)
        return self._with(policy, observation, shares, after, leaping, fell), after

    def _faded(self, now_s: float) -> Contradictions:
        if not (self.found or self.fell) and self.understated == 1.0:
            return self
        found = {uid: one for uid, one in self.found.items() if now_s - one.last_s < FORGOTTEN_S}
        return Contradictions(found=found, even=self.even)

    def _without(
        self,
        policy: Policy,
        observation: Observation,
        windows: Windows,
        leaping: Mapping[str, str],
    ) -> Windows:
        """Take in the samples of the others; start replicas again that were held out for long."""
        again = [
            one
            for one in observation.samples
            if one.pod in leaping and self._is_old(one.pod, windows, observation.now_s)
        ]
        samples = tuple(one for one in observation.samples if one.pod not in leaping)
        heard = replace(observation, samples=samples)
        return windows.rebased(again).absorb(heard, policy.stable_window_s)

    def _is_old(self, uid: str, windows: Windows, now_s: float) -> bool:
        """Return whether every sample has been held out for so long.

        Where two processes answer in turn, the samples of one are taken in between: to start again
        from the other would count the difference of both as requests.
        """
        before, last = self.found.get(uid), windows.last.get(uid)
        if before is None or last is None or not before.leap:
            return False
        return now_s - last.time_s >= REBASED_S

    def _with(
        self,
        policy: Policy,
        observation: Observation,
        shares: Shares,
        after: Windows,
        leaping: Mapping[str, str],
        fell: Mapping[str, float],
    ) -> Contradictions:
        now_s = observation.now_s
        idle, even, understated = shares.idle, self.even, shares.understated
        if policy.routing is Routing.STICKY:
            if idle or not even:
                even = (even & after.last.keys()) | with_share(after, policy.stable_window_s)
            idle = {uid: text for uid, text in idle.items() if self._may_be_idle(uid, even, now_s)}
        why = {**idle, **leaping}
        if not why and not self.found:
            same = fell == self.fell and even == self.even and understated == self.understated
            return self if same else Contradictions(fell=fell, even=even, understated=understated)
        found = {uid: one for uid, one in self.found.items() if now_s - one.last_s < FORGOTTEN_S}
        for uid, text in why.items():
            before, leap = found.get(uid), uid in leaping
            since_s = now_s if before is None or before.leap != leap else before.since_s
            proven = leap or uid in shares.proven
            found[uid] = Found(since_s=since_s, last_s=now_s, why=text, leap=leap, proven=proven)
        return Contradictions(found=found, fell=fell, even=even, understated=understated)

    def _may_be_idle(self, uid: str, even: AbstractSet[str], now_s: float) -> bool:
        """Return whether a replica that keeps its connections had more, and not too long ago."""
        before = self.found.get(uid)
        return uid in even and (before is None or now_s - before.since_s < REAL_S)

    def at(self, now_s: float) -> tuple[str, ...]:
        """Return the replicas that contradict at this tick, surely or not."""
        return tuple(uid for uid, one in self.found.items() if one.last_s == now_s)

    def left_out(self, now_s: float) -> tuple[LeftOut, ...]:
        """Return the replicas that surely contradict the others at this tick."""
        now = ((uid, self.found[uid]) for uid in self.at(now_s))
        return tuple(LeftOut(pod=uid, why=one.why) for uid, one in now if one.proven)

    def used(self, samples: Sequence[PodSample]) -> Sequence[PodSample]:
        """Return the samples without those that are held out, or were shortly before."""
        if not self.found:
            return samples
        leaping = {uid for uid, one in self.found.items() if one.leap}
        return [sample for sample in samples if sample.pod not in leaping]

    def has_no_known_share(self, uid: str) -> bool:
        """Return whether a replica's share is held out or contradicts even connections."""
        return uid in self.found and (self.found[uid].leap or uid in self.even)


def _without_restarted(fell: Mapping[str, float], observation: Observation) -> dict[str, float]:
    """Return when counters last fell, without replicas that have become ready since.

    A container that crashes again and again is unready in between: each time its counters fall, its
    server has restarted.
    """
    if not fell:
        return {}
    ready_s = {pod.uid: pod.ready_s or 0.0 for pod in observation.ready}
    return {
        uid: at_s
        for uid, at_s in fell.items()
        if observation.now_s - at_s < FORGOTTEN_S and ready_s.get(uid, 0.0) <= at_s
    }
