"""`scaling.mode: External`: spec.replicas is followed within bounds and rates. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.api import InferenceService
from headroom.scaling.values.policy import RateLimit


def next_replicas(
    service: InferenceService,
    current: int,
    changes: Sequence[tuple[float, int]],
    now_s: float,
    *,
    min_replicas: int,
) -> int:
    """Return the replicas to request now, on the way from `current` to spec.replicas.

    `changes` are (time, requested replicas), oldest first; `min_replicas` is what minReplicas and
    the schedules require now. An object stored before its bounds were tightened may contain a
    number that they forbid.
    """
    scaling = service.spec.scaling
    target = current if service.spec.replicas is None else service.spec.replicas
    target = min(max(target, min_replicas), scaling.max_replicas)
    rate = (scaling.scale_up if target > current else scaling.scale_down).rate
    if rate is None:
        return target
    step = _left(rate.to_limit(), current, changes, now_s, up=target > current)
    return min(target, current + step) if target > current else max(target, current - step)


def _left(
    limit: RateLimit,
    current: int,
    changes: Sequence[tuple[float, int]],
    now_s: float,
    *,
    up: bool,
) -> int:
    """Return how many replicas the period still allows; a change the other way gives none back.

    A percentage is one of at least one replica, or a service would never leave zero.
    """
    start = changes[0][1] if changes else current
    for time_s, replicas in changes:
        if time_s <= now_s - limit.period_s:
            start = replicas
    most = max(limit.replicas, math.ceil(max(start, 1) * limit.percent / 100))
    gone = current - start if up else start - current
    return max(most - max(gone, 0), 0)
