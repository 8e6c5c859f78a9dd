"""The columns of a replica's telemetry: cumulative counters, gauges, then the latency buckets."""

from __future__ import annotations

import math
from enum import IntEnum


class Column(IntEnum):
    """One row of these per replica. Counters are cumulative since the replica's start."""

    ARRIVALS = 0
    """Requests at the replica's door, refused ones included."""
    REFUSED = 1
    EXPIRED = 2
    CANCELLED = 3
    ANSWERED = 4
    EXECUTIONS = 5
    ITEMS = 6
    """Requests in the executions that have ended."""
    EXECUTION_S = 7
    """Seconds that ended executions took."""
    BUSY_S = 8
    """Seconds in which at least one slot was executing: what "GPU utilization" reports."""
    SLOTS_BUSY_S = 9
    """Integral of executing slots over time."""
    WAITING_S = 10
    """Integral of waiting requests over time."""
    IN_FLIGHT_S = 11
    """Integral of waiting + running requests over time."""
    WAITING = 12
    """Gauge."""
    RUNNING = 13
    """Gauge: requests in executions."""


COLUMNS = len(Column)

BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)
"""The model server's latency grid; a contract test holds the two together."""
