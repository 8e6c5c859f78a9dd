"""Where the time of a replica's start went: to a node, to its containers, to ready. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.controller.gather.pods import ObservedPod
from headroom.controller.report.evaluation import Evaluation

SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """One replica; a phase that has not ended, or is not known, is None."""

    pod: str
    state: str
    detail: str
    created_s: float
    scheduling_s: float | None
    """From its creation to its node."""
    pulling_s: float | None
    """From its node until its containers ran: images, volumes, init containers; less what
    follows."""
    fetching_s: float | None
    """The download of its model; None where it has none."""
    warming_s: float | None
    """From there to ready: loading and warming."""
    total_s: float | None


def starts(evaluation: Evaluation) -> list[Start]:
    """Give the replicas that stand, the newest first."""
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
    """Give the seconds between; clocks of nodes differ, and no start takes less than none."""
    if since_s is None or until_s is None:
        return None
    return max(0.0, until_s - since_s)
