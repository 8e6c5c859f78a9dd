"""Positions in the plant's arrays, and the codes in them."""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray


class Column(IntEnum):
    """Columns of a replica's telemetry. Counters are cumulative since the replica's start."""

    ARRIVALS = 0
    """Requests that reached the replica, refused ones included."""
    REFUSED = 1
    EXPIRED = 2
    CANCELLED = 3
    ANSWERED = 4
    EXECUTIONS = 5
    ITEMS = 6
    """Requests in finished executions."""
    EXECUTION_S = 7
    """Seconds of finished executions."""
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
    RETRIED = 14
    """Arrivals that said that they were retries."""


COLUMNS = len(Column)

BOUNDS_S = (*(float(f"{0.001 * 1.15**k:.6g}") for k in range(80)), math.inf)
"""The model server's latency grid; a contract test compares the two."""


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

NONE = -1
"""No node, no row."""
RANDOM, STICKY, ROUND_ROBIN, LEAST, TWO_CHOICES, CENTRAL = range(6)
DETERMINISTIC, LOGNORMAL, GAMMA = range(3)


class Number(IntEnum):
    """Integers of the whole plant."""

    READY = 0
    """Rows in `routable`."""
    FREE = 1
    """First free node of the pool; NONE when it is full."""
    HEAP = 2
    """Entries of the heap."""
    TURN = 3
    """Next row of round robin and of ties."""
    MAX_BATCH = 4
    SLOTS = 5
    ROUTING = 6
    SPREAD = 7
    MAX_WAITING = 8
    """Maximum queue length; NONE: no bound."""
    CAP = 9
    """Maximum in flight per replica under CENTRAL."""
    EXPIRES = 10
    """1: requests that waited too long are `expired` (server); 0: `cancelled` (client)."""
    CLIENTS = 11
    """1: requests are tries of clients (`clients/`), which are notified of each end."""
    ENDED = 12
    """First node of the list of ended tries that are unknown to their clients."""


class Quantity(IntEnum):
    """Real numbers of the whole plant."""

    FIXED_S = 0
    PER_ITEM_S = 1
    CV = 2
    COST_FACTOR = 3
    PATIENCE_S = 4
    """Waiting longer than this ends a request: the smaller of timeout and deadline; may be inf."""
    TIMEOUT_S = 5
    """An answer later than this is cancelled by the client; may be inf."""
    TARGET_S = 6
    IN_SYSTEM_S = 7
    """Integral of all requests in the system: the L of Little's law, times the time."""
    SOJOURN_S = 8
    """Sum of the times that ended requests spent in the system: the W, times their number."""


class Tally(IntEnum):
    """Ground truth about all requests, from which scores are computed."""

    REQUESTS = 0
    WITHIN = 1
    LATE = 2
    REFUSED = 3
    EXPIRED = 4
    CANCELLED = 5
    FAILED = 6


ANSWERED = -1
"""In place of a tally: a try that was answered."""


FINE_BUCKETS = 1000
FINE_START_S = 1e-4
FINE_LOG = math.log(1.02)
"""The ground truth's histogram: 1000 buckets of factor 1.02 reach from 0.1 ms to 11 hours."""
