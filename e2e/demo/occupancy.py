"""GPU-seconds of the replay, from each pod's creation to its end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from demo.recording import Snapshot
from demo.views import PodView


@dataclass(frozen=True, slots=True, kw_only=True)
class Occupancy:
    """A pod and the time for which it held GPUs; `to_s` is the first snapshot without it."""

    pod: PodView
    from_s: float
    to_s: float


def occupancies(snapshots: Sequence[Snapshot], start_s: float, end_s: float) -> list[Occupancy]:
    """Each pod's hold within [start, end]; a pod of the last snapshot holds to the end."""
    held: dict[str, Occupancy] = {}
    for snapshot in snapshots:
        for pod in snapshot.pods:
            known = held.get(pod.uid)
            if known is None:
                known = Occupancy(pod=pod, from_s=pod.created_s, to_s=end_s)
                held[pod.uid] = known
        there = {pod.uid for pod in snapshot.pods if pod.holds_gpus}
        for uid, known in held.items():
            if uid not in there and known.to_s == end_s:
                held[uid] = Occupancy(pod=known.pod, from_s=known.from_s, to_s=snapshot.time_s)
    clipped = (
        Occupancy(pod=each.pod, from_s=max(each.from_s, start_s), to_s=min(each.to_s, end_s))
        for each in held.values()
    )
    return [each for each in clipped if each.to_s > each.from_s]


def gpu_seconds(holds: Sequence[Occupancy]) -> float:
    """GPUs times the seconds for which they were held."""
    return sum(each.pod.gpus * (each.to_s - each.from_s) for each in holds)


def cold_starts_s(snapshots: Sequence[Snapshot], since_s: float) -> list[float]:
    """Seconds from creation to ready of each pod created from then on; both are whole seconds."""
    ready: dict[str, float] = {}
    for snapshot in snapshots:
        for pod in snapshot.pods:
            if pod.created_s >= since_s and pod.ready_s is not None:
                ready.setdefault(pod.uid, pod.ready_s - pod.created_s)
    return sorted(ready.values())
