"""Names of what lies where in the arrays of the generating plant."""

from __future__ import annotations

from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.generation.compiled.histogram_bounds import (
    END_BOUNDS_S,
    FIRST_BOUNDS_S,
    LENGTH_BOUNDS,
    TOKEN_BOUNDS_S,
)

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

NONE = -1
IDLE, DECODES, MIXED = range(3)
"""Work of a row: none, a run of iterations that only decode, an iteration with prompts."""


class Plant(IntEnum):
    """Integers of the whole plant."""

    NEXT = 0
    """The next request to arrive."""
    READY = 1
    ROUTING = 2
    SLACK = 3
    BLOCKS = 4
    """Blocks of a replica's memory."""
    SEATS = 5
    BUDGET = 6
    """Tokens of an iteration."""
    BLOCK = 7
    """Tokens of a block."""
    UNIT = 8
    """Blocks of a unit."""
    ADMITTED = 9
    """Admissions so far: their numbers order preemption."""
    ITERATIONS = 10
    EVENTS = 11
    """Runs of decodes and iterations with prompts that were computed one by one."""
    FAILED = 12
    """Arrivals while no replica was ready."""
    TURN = 13
    MOST_IN_FLIGHT = 14
    """Per ready replica: more are rejected; 0 without a bound."""
    REJECTED = 15


class Cost(IntEnum):
    """Coefficients of an iteration's time."""

    FIXED = 0
    PROMPT = 1
    SEQUENCE = 2
    CONTEXT = 3
    PRODUCT = 4
    EXPERTS = 5
    SHARE = 6
    CV = 7


class Row(IntEnum):
    """Integers of a replica."""

    DOING = 0
    LEFT = 1
    """Iterations of the present run."""
    STEPS = 2
    """Decode steps since the row opened: a sequence's progress is a difference of them."""
    DECODING = 3
    CONTEXTS = 4
    """Tokens in the contexts of decoding sequences."""
    PARTIAL = 5
    """The request whose prompt is partly computed; NONE."""
    FILLED = 6
    """Requests whose prompts the present iteration completes."""
    HEAD = 7
    TAIL = 8
    WAITING = 9
    WAITING_TOKENS = 10
    USED = 11
    """Blocks in use."""
    CACHED = 12
    """Blocks of units that nothing uses: evicted from the oldest on."""
    OLDEST = 13
    NEWEST = 14
    OPEN = 15
    PROMPTS = 16
    """Prompt tokens of the present iteration."""
    IN_FLIGHT = 17


class Real(IntEnum):
    """Real numbers of a replica."""

    BEGAN = 0
    ENDS = 1
    FACTOR = 2
    """Noise of the present run."""
    PRODUCTS = 3
    """X of the present iteration."""


class Column(IntEnum):
    """Counters of a replica, cumulative since it opened."""

    ARRIVALS = 0
    ITERATIONS = 1
    ENGINE_S = 2
    COMPUTED = 3
    CACHED = 4
    GENERATED = 5
    SEQUENCE_STEPS = 6
    SEQUENCE_S = 7
    PREEMPTIONS = 8
    ENDED = 9
    PROMPT_SUM = 10
    OUTPUT_SUM = 11
    SUMS = 12
    """First of the 15 + 5 exact sums."""


SUMS = 20

FIRST_AT = Column.SUMS + SUMS
TOKEN_AT = FIRST_AT + len(FIRST_BOUNDS_S)
END_AT = TOKEN_AT + len(TOKEN_BOUNDS_S)
PROMPT_AT = END_AT + len(END_BOUNDS_S)
OUTPUT_AT = PROMPT_AT + len(LENGTH_BOUNDS)
WIDTH = OUTPUT_AT + len(LENGTH_BOUNDS)


class Request(IntEnum):
    """Integers of a request."""

    PROMPT = 0
    OUTPUT = 1
    GENERATED = 2
    """Tokens generated so far; of a decoding one, when it last began to decode."""
    COMPUTED = 3
    """Tokens of the prompt computed, while it is partial."""
    BASE = 4
    """Context minus the row's steps, while it decodes."""
    ENDS_STEP = 5
    """The row's step at which it ends, while it decodes."""
    SHARED = 6
    """Units that it uses."""
    ADMITTED = 7
    FOLLOWING = 8
    PREEMPTED = 9
    PLACE = 10
    """The row that it was sent to; NONE."""
    UNITS = 11
    """Index of its first unit in `unit_ids`."""
    UNITS_END = 12


class Time(IntEnum):
    """Times of a request; nan until they are known."""

    ARRIVED = 0
    FIRST = 1
    END = 2


class Unit(IntEnum):
    """Columns of a row about a unit."""

    USES = 0
    """Requests that use it; NONE: not in memory."""
    BEFORE = 1
    AFTER = 2


class Bound(IntEnum):
    """Bounds of the histograms."""

    FIRST = 0
    TOKEN = 1
    END = 2
    LENGTH = 3
