"""The names of the numbers in the state of clients. Pure."""

from __future__ import annotations

from enum import IntEnum


class Phase(IntEnum):
    """Present phase of a request."""

    NOTHING = 0
    """A free row, or a user that has left."""
    THINKING = 1
    """A user before the next request."""
    UNSENT = 2
    """In the clients' queue for a connection."""
    SENT = 3
    BACKING_OFF = 4
    """Before the next try."""


class Count(IntEnum):
    """Integers of all clients."""

    FREE = 0
    """First free request; NONE when the table is full."""
    UNSENT_HEAD = 1
    UNSENT_TAIL = 2
    UNSENT = 3
    """Length of the clients' queue."""
    PATIENT_HEAD = 4
    """The list of tries by the moment at which their client gives up."""
    PATIENT_TAIL = 5
    WAKES = 6
    """Entries of the heap."""
    USED = 7
    """Connections with a request."""
    CONNECTIONS = 8
    """Maximum of USED; NONE: no limit."""
    KEPT = 9
    """1: connections are kept alive and bound to a replica."""
    IDLE = 10
    """Open connections without a request."""
    CLOSED = 11
    MOST_USES = 12
    """Requests after which a connection is closed; NONE: no limit."""
    USERS = 13
    """Users now; later rows leave when they think."""
    STEP = 14
    """Next step of the users."""
    MOST_USERS = 15
    RETRIES = 16
    MARKED = 17
    TRIES = 18
    """Tries that were sent."""
    RETRIED = 19
    """The retries among these."""
    OPEN = 20
    """Requests that a client wants and that have not ended."""
    STALLED = 21
    """1: a table is full; enlarge both and go on."""


class Amount(IntEnum):
    """Real numbers of all clients."""

    NOW_S = 0
    """Time of the last event."""
    TIMEOUT_S = 1
    """May be inf."""
    IDLE_S = 2
    """May be inf."""
    THINK_S = 3
    BACKOFF_S = 4
    WANTED_S = 5
    """Integral of OPEN over time: the L of Little's law, times the time."""
    LATENCY_S = 6
    """Sum of the times from wanted to ended: the W of Little's law, times their number."""
    TOUCHED_S = 7
    """Time until which the integral is summed."""
