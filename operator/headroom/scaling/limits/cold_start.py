"""Measures cold starts, from node assignment to ready, and counts pods that are late.

The time that a pod waited for a node says nothing about how long a model takes to load.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from headroom.scaling.frozen import cached_property
from headroom.scaling.values.checkpoint_numbers import MOST_SECONDS, Checkpoint, numbers_of
from headroom.scaling.values.decision import ReplicaCounts
from headroom.scaling.values.observation import Pod, PodSample, PodState

KEPT = 20
UNMEASURED_S = 60.0
"""Cold start that is assumed until one was measured: the least that a GPU replica takes."""
LATE_FACTOR = 1.5
LATE_SLACK_S = 5.0


@dataclass(frozen=True, kw_only=True)
class ColdStarts:
    """The latest measured starts, oldest first, and the pods already processed."""

    seconds: tuple[float, ...] = ()
    judged: frozenset[str] = frozenset()
    """UIDs of pods whose start was measured, or must not be."""
    underway_s: float = 0.0
    """Time that the longest unfinished start has taken so far; before the first measured one, also
    of pods that are gone."""
    at_most_s: float | None = None
    """The shortest time from a node to ready of the pods that were ready at the first tick; None
    without any. Their starts took no longer."""

    def observe(
        self, pods: tuple[Pod, ...], now_s: float, *, timeout_s: float, first: bool
    ) -> ColdStarts:
        """Return the record with every pod added that has become ready since the last tick.

        At the `first` tick pods may have been ready, not ready and ready again: none is measured,
        but each is a bound. Starts longer than `timeout_s` are not counted.
        """
        judged = {pod.uid for pod in pods} & self.judged
        underway_s = 0.0 if self.seconds else self.underway_s
        if len(judged) == len(pods) == len(self.judged) and underway_s == self.underway_s:
            return self
        seconds, judged = list(self.seconds), set(judged)
        at_most_s = _shortest_s(pods, timeout_s) if first else self.at_most_s
        for pod in pods:
            if pod.uid in judged:
                continue
            if pod.state is PodState.READY and pod.ready_s is not None:
                judged.add(pod.uid)
                took_s = pod.ready_s - pod.started_s
                if not first and 0.0 <= took_s <= timeout_s:
                    seconds.append(took_s)
            elif pod.state is PodState.BROKEN:
                judged.add(pod.uid)
            elif pod.state is PodState.WARMING and now_s - pod.started_s <= timeout_s:
                underway_s = max(underway_s, now_s - pod.started_s)
        return ColdStarts(
            seconds=tuple(seconds[-KEPT:]),
            judged=frozenset(judged),
            underway_s=underway_s,
            at_most_s=at_most_s,
        )

    @property
    def at_least_s(self) -> float:
        """Lower bound of a start: the measured p90, else the longest unfinished start."""
        return self.underway_s if self.p90_s is None else self.p90_s

    @property
    def assumed_s(self) -> float:
        """The measured p90; else the longest of a minute, the bound and the unfinished starts."""
        return self.p90_s or max(UNMEASURED_S, self.at_most_s or 0.0, self.at_least_s)

    @property
    def late_s(self) -> float:
        """After so long a start is late."""
        return LATE_FACTOR * self.assumed_s + LATE_SLACK_S

    @cached_property
    def p90_s(self) -> float | None:
        """The 90th percentile of the measured starts (nearest rank); None before the first."""
        if not self.seconds:
            return None
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, int(0.9 * len(ranked)))]


def _shortest_s(pods: tuple[Pod, ...], timeout_s: float) -> float | None:
    """Return the shortest time from a node to ready of those that are ready."""
    times_s = [
        pod.ready_s - pod.started_s
        for pod in pods
        if pod.state is PodState.READY and pod.ready_s is not None
    ]
    return min((one for one in times_s if 0.0 < one <= timeout_s), default=None)


def _began_s(pod: Pod, last: Mapping[str, PodSample]) -> float:
    """Return when a pod began to start: with its node, or after it was ready for the last time."""
    return max(pod.started_s, last[pod.uid].time_s) if pod.uid in last else pod.started_s


def count(
    pods: tuple[Pod, ...],
    now_s: float,
    cold_start_s: float | None,
    timeout_s: float,
    last: Mapping[str, PodSample] = MappingProxyType({}),
) -> ReplicaCounts:
    """Count pods by state; a warming pod is late after 1.5 p90 + 5 s or the warm-up timeout.

    One that was ready, as its `last` sample shows, starts again: its container ended, or its probe
    failed. It has as long as at first, because a replacement would not be ready sooner.
    """
    states = [pod.state for pod in pods]
    ready = states.count(PodState.READY)
    if ready == len(pods):
        return ReplicaCounts(ready=ready)
    limit_s = timeout_s
    if cold_start_s is not None:
        limit_s = min(timeout_s, LATE_FACTOR * cold_start_s + LATE_SLACK_S)
    late = sum(
        1 for pod in pods if pod.state is PodState.WARMING and now_s - _began_s(pod, last) > limit_s
    )
    return ReplicaCounts(
        ready=ready,
        warming=states.count(PodState.WARMING) - late,
        late=late,
        unschedulable=states.count(PodState.UNSCHEDULABLE),
        broken=states.count(PodState.BROKEN),
        terminating=states.count(PodState.TERMINATING),
    )


def of_checkpoint(checkpoint: Checkpoint) -> ColdStarts:
    """Return the cold starts in a checkpoint; raise ValueError with rule and value."""
    numbers = numbers_of(checkpoint, "coldStarts")
    if max(numbers, default=0.0) > MOST_SECONDS:
        rule = f"seconds <= {MOST_SECONDS:g}"
        raise ValueError(f"checkpoint coldStarts must hold {rule}; got {numbers}")
    return ColdStarts(seconds=tuple(numbers[-KEPT:]))
