"""The phases of each replica's start: scheduling, pulling, downloading, warming up. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.controller.gather.pods.pods import ObservedPod
from headroom.controller.report.evaluation import Evaluation

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """The start of one replica; a phase that is unfinished or unknown is None."""

    pod: str
    state: str
    detail: str
    created_s: float
    scheduling_s: float | None
    """From its creation to node assignment."""
    pulling_s: float | None
    """From node assignment until its containers run: images, volumes, init containers; without the
    download."""
    fetching_s: float | None
    """The download of its model; None without one."""
    warming_s: float | None
    """From running to ready: loading and warm-up."""
    total_s: float | None


def starts(evaluation: Evaluation) -> list[Start]:
    """Return the starts of the present replicas, the newest first."""
    found = [_start(one) for one in evaluation.pods]
    return sorted(found, key=lambda one: -one.created_s)[:SHOWN]


def _start(one: ObservedPod) -> Start:
    pod, running_s, fetch = one.pod, one.running_s, one.fetch
    pulling_s = _between(pod.scheduled_s, running_s)
    fetching_s = None if fetch is None else _between(fetch.since_s, fetch.until_s)
    return Start(
        pod=one.name,
        state=pod.state.value,
        detail=pod.detail,
        created_s=pod.created_s,
        scheduling_s=_between(pod.created_s, pod.scheduled_s),
        pulling_s=None if pulling_s is None else max(0.0, pulling_s - (fetching_s or 0.0)),
        fetching_s=fetching_s,
        warming_s=_between(running_s, pod.ready_s),
        total_s=_between(pod.created_s, pod.ready_s),
    )


def _between(since_s: float | None, until_s: float | None) -> float | None:
    """Return the seconds between; at least 0, since clocks of nodes differ."""
    if since_s is None or until_s is None:
        return None
    return max(0.0, until_s - since_s)
