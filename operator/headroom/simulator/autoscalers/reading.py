"""What the peers read off a view: pods by what they are to the peer, and the values of those."""

from __future__ import annotations

import math
from collections.abc import Mapping

from headroom.scaling.values import PodState
from headroom.simulator.autoscaler import View


def ready_pods(view: View) -> tuple[str, ...]:
    """Return the UIDs of the pods that take requests."""
    return tuple(pod.uid for pod in view.pods if pod.state is PodState.READY)


def existing_count(view: View) -> int:
    """Count what the workload's status calls its replicas: all pods but the terminating ones."""
    return sum(pod.state is not PodState.TERMINATING for pod in view.pods)


def unready_count(view: View) -> int:
    """Count the pods that exist and take no requests: warming, unschedulable or broken."""
    return existing_count(view) - len(ready_pods(view))


def of_ready(values: Mapping[str, float], view: View) -> dict[str, float]:
    """Return the values of ready pods; a ready pod without one is missing from the answer."""
    return {uid: values[uid] for uid in ready_pods(view) if uid in values}


def round_up(value: float) -> int:
    """Return the ceiling, forgiving the last digits of a division: 6.000000000001 is 6."""
    return math.ceil(value - 1e-9)
