"""Period of evaluations: longer the more services there are. Pure.

    services        up to 133     200     500    1000    5000
    period, 2 s     2 s           3 s     7.5 s  15 s    75 s

So the work stays within the capacity of one process, whatever the number of services.
"""

from __future__ import annotations

import math
import zlib

TICKS_PER_S = 1000 / 15.0
"""Ticks of all services together."""
STEP_S = 0.5
"""Periods change in steps, so that one more service does not change the period of all."""
SHORTEST_CHILDREN_S, CHILDREN_LOOKS_PER_S = 30.0, 10.0 / 3.0
SHARED_FROM, SHARED_PART = 20, 0.25
"""Number of services from which ticks share LISTs, and the part of a period that they read
ahead."""


def period_s(tick_s: float, services: int) -> float:
    """Return the time between two evaluations of one of this many services, at least `tick_s`."""
    return max(tick_s, math.ceil(services / TICKS_PER_S / STEP_S) * STEP_S)


def read_ahead_s(services: int, period_s: float) -> float:
    """Return how soon a service has to be due to be read along with another; 0: none is.

    Worked: 0.5 s where the period is 2 s, 3.75 s where it is 15 s.
    """
    return SHARED_PART * period_s if services >= SHARED_FROM else 0.0


def children_every_s(services: int) -> float:
    """Return the time between two checks of a service's children other than its Deployment.

    Worked: 30 s up to 100 services, 300 s at 1000; three reads each are then 10 a second.
    """
    return max(SHORTEST_CHILDREN_S, services / CHILDREN_LOOKS_PER_S)


def startup_delay_s(uid: str, services: int) -> float:
    """Return how long a new process may wait before it checks a service's children.

    None up to 100 services. At a thousand the checks, a dozen requests each, are spread over 270 s,
    so that the first decisions of all need not wait for them.
    """
    return jitter_phase(uid) * (children_every_s(services) - SHORTEST_CHILDREN_S)


def jitter_phase(uid: str) -> float:
    """Return a service's constant position in any period, 0 to 1."""
    return zlib.crc32(uid.encode()) / 2**32


def next_slot_s(due_s: float, period_s: float, phase: float) -> float:
    """Return when a service is due after it was due at `due_s`.

    Its slots lie a period apart, at its phase (0 to 1) of each: services that were due at the same
    time once, as all are at a start, are spread over the period from then on, and stay so. The gap
    is the period from slot to slot; from elsewhere it is half to one and a half of it.
    """
    earliest_s = due_s + period_s / 2.0
    offset_s = phase * period_s
    return math.ceil((earliest_s - offset_s) / period_s) * period_s + offset_s
