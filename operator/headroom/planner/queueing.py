"""Queueing formulas: Little, slots, M/M/1, and M/M/c by Erlang's C formula.

Little 1961; M/M/1 and Erlang C as in Kleinrock, Queueing Systems I (1975), sections 3.2 and 3.5.
"""

from __future__ import annotations

import math

from headroom.planner.errors import positive, require
from headroom.scaling.latency.many_servers import erlang_c

RATE = "Give requests per second"
TIME = "Give the time of one request"
BELOW_ONE = "At 1 and above the queue grows without bound; add capacity"


def in_system(arrival_rps: float, residence_s: float) -> float:
    """Little's law: requests in the system, L = lambda W. 400/s x 50 ms = 20."""
    positive("the arrival rate", arrival_rps, RATE)
    positive("the time in the system", residence_s, TIME)
    return arrival_rps * residence_s


def mm1_utilization(waiting: float) -> float:
    """Utilization at which this many wait on average in M/M/1. 10 wait from 0.916 on."""
    require(
        0 <= waiting < math.inf, "the number waiting must be at least 0", f"{waiting:g}", "Try 10"
    )
    return (math.sqrt(waiting * waiting + 4.0 * waiting) - waiting) / 2.0


def mmc_waiting(slots: int, utilization: float) -> float:
    """Mean number waiting in M/M/c, C rho / (1 - rho). Two slots at 50 %: 1/3."""
    require(slots >= 1, "slots must be at least 1", slots, "Give the concurrent executions")
    _stable(utilization)
    return erlang_c(slots, slots * utilization) * utilization / (1.0 - utilization)


def mmc_latency_s(service_rps: float, slots: int, utilization: float) -> float:
    """Mean time in an M/M/c system whose slots together carry `service_rps`.

    One slot's time, and by Little's law the wait. Two slots of 20 ms at 50 %: 26.7 ms.
    """
    positive("the service rate", service_rps, RATE)
    if utilization == 0:
        return slots / service_rps
    return slots / service_rps + mmc_waiting(slots, utilization) / (utilization * service_rps)


def _stable(utilization: float) -> None:
    require(
        0 <= utilization < 1,
        "the utilization must be at least 0 and below 1",
        f"{utilization:g}",
        BELOW_ONE,
    )
