"""How many requests came to a service's door between two ticks, where that is known. Pure.

The pods' own counters say it, each the difference of two scrapes, and what gateways turned away,
which no pod has counted, is added. It is known when every replica that stood at the door answered
at both ticks, or came up in between with its counters at zero. It is not known, which is not zero:

- while a replica is silent, and at the first tick at which it answers again,
- at the tick after which a replica has gone: what it took since its last scrape went with it,
- when a counter fell: the process began anew, and what came since the last scrape is lost,
- when a replica is first seen that was there before the watch began,
- while no replica is ready: nobody counts, whoever knocks,
- while it is not known what gateways turned away, and at the first tick at which it is again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headroom.controller.decide.gateway_slo import TURNED_AWAY
from headroom.scaling.values import Observation, PodSample, PodState


@dataclass(frozen=True, slots=True, kw_only=True)
class Door:
    """Who stood at the door at the last tick; a value, replaced at each tick."""

    since_s: float | None = None
    """When watching began; None before the first tick."""
    serving: Mapping[str, PodSample | None] = field(default_factory=dict)
    """What each ready pod, by its UID, answered at the last tick; None where it did not."""
    known: frozenset[str] = frozenset()
    """UIDs of the pods that have been ready before: their counters do not begin at zero."""
    turned_away: float | None = None
    """By gateways; None where none was read."""

    def counted(self, observation: Observation) -> tuple[int | None, Door]:
        """Return the arrivals since the last tick, None where not known, and the door as it is."""
        seen, after = self._of_replicas(observation)
        beside = next((one.arrivals for one in observation.samples if one.pod == TURNED_AWAY), None)
        after = replace(after, turned_away=beside)
        if seen is None or beside is self.turned_away is None:
            return seen, after
        if beside is None or self.turned_away is None or beside < self.turned_away:
            return None, after
        return seen + round(beside - self.turned_away), after

    def _of_replicas(self, observation: Observation) -> tuple[int | None, Door]:
        samples = {sample.pod: sample for sample in observation.samples}
        ready = [pod for pod in observation.pods if pod.state is PodState.READY]
        serving = {pod.uid: samples.get(pod.uid) for pod in ready}
        since_s = observation.now_s if self.since_s is None else self.since_s
        fresh = {pod.uid for pod in ready if pod.created_s >= since_s} - self.known
        there = {pod.uid for pod in observation.pods}
        after = Door(
            since_s=since_s,
            serving=serving,
            known=frozenset(self.known & there) | frozenset(serving),
        )
        if not self.serving or not self.serving.keys() <= serving.keys():
            return None, after
        counts = [self._of_one(uid, sample, fresh) for uid, sample in serving.items()]
        known = [count for count in counts if count is not None]
        return (round(sum(known)) if len(known) == len(counts) else None), after

    def _of_one(self, uid: str, sample: PodSample | None, fresh: set[str]) -> float | None:
        if sample is None:
            return None
        if uid not in self.serving:
            return sample.arrivals if uid in fresh else None
        before = self.serving[uid]
        if before is None or _began_anew(before, sample):
            return None
        return sample.arrivals - before.arrivals


def _began_anew(before: PodSample, now: PodSample) -> bool:
    return (
        now.arrivals < before.arrivals
        or now.missed < before.missed
        or now.batches < before.batches
        or now.latency.counts[-1:] < before.latency.counts[-1:]  # none where none is timed
    )
