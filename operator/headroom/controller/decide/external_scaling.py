"""`scaling.mode: External`: spec.replicas is followed within the guard rails. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence

from headroom.api import InferenceService
from headroom.scaling.values import RateLimit


def next_replicas(
    service: InferenceService, current: int, changes: Sequence[tuple[float, int]], now_s: float
) -> int:
    """Return the replicas to ask for now, on the way from `current` to spec.replicas.

    `changes` are (time, replicas asked for), oldest first. An object stored before its bounds were
    tightened may wish for what they forbid.
    """
    scaling = service.spec.scaling
    wish = current if service.spec.replicas is None else service.spec.replicas
    wish = min(max(wish, scaling.min_replicas), scaling.max_replicas)
    rate = (scaling.scale_up if wish > current else scaling.scale_down).rate
    if rate is None:
        return wish
    step = _left(rate.to_limit(), current, changes, now_s, up=wish > current)
    return min(wish, current + step) if wish > current else max(wish, current - step)


def _left(
    limit: RateLimit,
    current: int,
    changes: Sequence[tuple[float, int]],
    now_s: float,
    *,
    up: bool,
) -> int:
    """Return how many replicas the period still allows; a change the other way gives none back."""
    start = changes[0][1] if changes else current
    for time_s, replicas in changes:
        if time_s <= now_s - limit.period_s:
            start = replicas
    most = max(limit.replicas, math.ceil(start * limit.percent / 100))
    gone = current - start if up else start - current
    return max(most - max(gone, 0), 0)
