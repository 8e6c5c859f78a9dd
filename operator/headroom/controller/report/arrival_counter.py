"""Count the requests that arrived between two ticks, where that is known. Pure.

The count is the difference of the pods' own counters plus what gateways rejected, which no pod has
counted. It is known if every ready replica answered at both ticks, or was created in between with
its counters at zero. It is not known, which is not zero:

- while a replica is silent or unlisted, and at the first tick at which it answers again,
- at the tick after a replica has gone: what it took since its last scrape went with it,
- when a counter fell: the process restarted, and what came since the last scrape is lost,
- when a replica is first seen that existed before the recording began,
- while no replica is ready, so that nothing counts,
- while the gateways' rejections are not known, and at the first tick at which they are again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headroom.scaling.values.observation import Observation, PodSample


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrivalCounter:
    """The counters as of the last tick; a value, replaced at each tick."""

    since_s: float | None = None
    """Time when counting began; None before the first tick."""
    serving: Mapping[str, PodSample | None] = field(default_factory=dict)
    """The last sample of each ready pod, by its UID; None if it did not answer."""
    known: frozenset[str] = frozenset()
    """UIDs of the pods that have been ready before: their counters do not begin at zero."""
    unlisted: bool = False
    """Whether ready replicas were missing from the list of pods."""
    rejected: float | None = None
    """Requests that gateways rejected; None where none was read."""

    def counted(self, observation: Observation) -> tuple[int | None, ArrivalCounter]:
        """Return the arrivals since the last tick, None if not known, and the counter after it."""
        seen, after = self._of_replicas(observation)
        rejections = observation.rejected_at_gateway
        rejected = None if rejections is None else rejections.requests
        after = replace(after, rejected=rejected)
        if seen is None or rejected is self.rejected is None:
            return seen, after
        if rejected is None or self.rejected is None or rejected < self.rejected:
            return None, after
        return seen + round(rejected - self.rejected), after

    def _of_replicas(self, observation: Observation) -> tuple[int | None, ArrivalCounter]:
        samples = {sample.pod: sample for sample in observation.samples}
        ready = observation.ready
        serving = {pod.uid: samples.get(pod.uid) for pod in ready}
        since_s = observation.now_s if self.since_s is None else self.since_s
        fresh = {pod.uid for pod in ready if pod.created_s >= since_s} - self.known
        there = {pod.uid for pod in observation.pods}
        after = ArrivalCounter(
            since_s=since_s,
            serving=serving,
            known=frozenset(self.known & there) | frozenset(serving),
            unlisted=observation.unlisted_ready > 0,
        )
        gone = not self.serving.keys() <= serving.keys()
        if not self.serving or gone or self.unlisted or after.unlisted:
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
        if before is None or _has_restarted(before, sample):
            return None
        return sample.arrivals - before.arrivals


def _has_restarted(before: PodSample, now: PodSample) -> bool:
    return (
        now.arrivals < before.arrivals
        or now.missed < before.missed
        or now.batches < before.batches
        or now.latency.counts[-1:] < before.latency.counts[-1:]  # none where none is timed
    )
