"""The state of the compiled plant: arrays with named rows.

A row is a replica. All requests of the run are in memory. A *unit* is a prefix block of a trace
(512 tokens); a *block* is what the engine allocates (16 tokens).
"""

from __future__ import annotations

import math
from enum import IntEnum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import PREFIX_TOKENS, Requests

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Shorts = NDArray[np.int32]

NONE = -1
IDLE, DECODES, MIXED = range(3)
"""What a row does: nothing, a run of iterations that only decode, an iteration with prompts."""


class Whole(IntEnum):
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
FIRST_BOUNDS_S = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `time_to_first_token_seconds` (v1/metrics/loggers.py)."""
TOKEN_BOUNDS_S = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `request_time_per_output_token_seconds`."""
END_BOUNDS_S = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0,
    240.0, 480.0, 960.0, 1920.0, 7680.0, math.inf,
)  # fmt: skip
"""vLLM 0.33 `e2e_request_latency_seconds`."""
LENGTH_BOUNDS = (*(float(m * 10**e) for e in range(6) for m in (1, 2, 5)), math.inf)
"""vLLM 0.33 `request_prompt_tokens`, `request_generation_tokens`: 1, 2, 5 times powers of ten."""

FIRST_AT = Column.SUMS + SUMS
TOKEN_AT = FIRST_AT + len(FIRST_BOUNDS_S)
END_AT = TOKEN_AT + len(TOKEN_BOUNDS_S)
PROMPT_AT = END_AT + len(END_BOUNDS_S)
OUTPUT_AT = PROMPT_AT + len(LENGTH_BOUNDS)
WIDTH = OUTPUT_AT + len(LENGTH_BOUNDS)


class Ask(IntEnum):
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
    """Where its units begin in `unit_ids`."""
    UNITS_END = 12


class Time(IntEnum):
    """Times of a request; nan until they are known."""

    ARRIVED = 0
    FIRST = 1
    END = 2


class Unit(IntEnum):
    """What a row knows about a unit."""

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


class TokenState(NamedTuple):
    """All state, changed in place. Few arrays: each costs time to compile and to pass."""

    whole: Ints
    cost: Floats
    random: NDArray[np.uint64]
    requests: Ints
    """[requests, Ask]"""
    times: Floats
    """[requests, Time]"""
    unit_ids: Ints
    """The units of all prompts."""
    rows: Ints
    """[rows, Row]"""
    reals: Floats
    """[rows, Real]"""
    counters: Floats
    """[rows, WIDTH]"""
    residues: Ints
    """[rows, tokens of a block] Decoding sequences by base modulo the block."""
    heap: Ints
    """[rows, seats] Decoding requests, the first to end first."""
    fills: Ints
    """[rows, seats] Requests whose prompts the present iteration completes."""
    routable: Ints
    units: Shorts
    """[rows, units, Unit]"""
    bounds: Floats
    """[Bound, buckets]"""

    @property
    def arrival_s(self) -> Floats:
        """When requests arrived."""
        return self.times[:, Time.ARRIVED]

    @property
    def first_s(self) -> Floats:
        """When their first tokens were there."""
        return self.times[:, Time.FIRST]

    @property
    def end_s(self) -> Floats:
        """When they ended."""
        return self.times[:, Time.END]

    @property
    def output(self) -> Ints:
        """Lengths of the answers."""
        return self.requests[:, Ask.OUTPUT]

    @property
    def preempted(self) -> Ints:
        """How often they were preempted."""
        return self.requests[:, Ask.PREEMPTED]

    @property
    def place(self) -> Ints:
        """Rows that they were sent to."""
        return self.requests[:, Ask.PLACE]


def allocate(service: TokenService, requests: Requests, rows: int, seed: int) -> TokenState:
    """Return an empty plant for these requests."""
    engine, count = service.engine, len(requests)
    whole = np.zeros(len(Whole), dtype=np.int64)
    whole[Whole.ROUTING], whole[Whole.SLACK] = int(service.routing), service.affinity_slack
    whole[Whole.BLOCKS] = engine.kv_tokens // engine.block_tokens
    whole[Whole.SEATS], whole[Whole.BUDGET] = engine.sequences, engine.iteration_tokens
    whole[Whole.BLOCK], whole[Whole.UNIT] = (
        engine.block_tokens,
        PREFIX_TOKENS // engine.block_tokens,
    )
    cost = engine.cost
    units = int(requests.block_ids.max()) + 1 if len(requests.block_ids) else 1
    asks = np.zeros((count, len(Ask)), dtype=np.int64)
    asks[:, Ask.PROMPT], asks[:, Ask.OUTPUT] = requests.prompt_tokens, requests.output_tokens
    asks[:, Ask.FOLLOWING] = asks[:, Ask.PLACE] = NONE
    asks[:, Ask.UNITS], asks[:, Ask.UNITS_END] = requests.starts[:-1], requests.starts[1:]
    times = np.full((count, len(Time)), np.nan)
    times[:, Time.ARRIVED] = requests.arrival_s
    grids = (FIRST_BOUNDS_S, TOKEN_BOUNDS_S, END_BOUNDS_S, LENGTH_BOUNDS)
    bounds = np.full((len(grids), max(len(grid) for grid in grids)), math.inf)
    for number, grid in enumerate(grids):
        bounds[number, : len(grid)] = grid
    return TokenState(
        whole=whole,
        cost=np.array(
            [
                cost.fixed_s,
                cost.prompt_token_s,
                cost.sequence_s,
                cost.context_token_s,
                cost.prompt_product_s,
                cost.experts_s,
                cost.expert_share,
                engine.noise_cv,
            ]
        ),
        random=np.array([seed], dtype=np.uint64),
        requests=asks,
        times=times,
        unit_ids=requests.block_ids.astype(np.int64),
        rows=np.zeros((rows, len(Row)), dtype=np.int64),
        reals=np.zeros((rows, len(Real))),
        counters=np.zeros((rows, WIDTH)),
        residues=np.zeros((rows, engine.block_tokens), dtype=np.int64),
        heap=np.zeros((rows, engine.sequences + 1), dtype=np.int64),
        fills=np.zeros((rows, engine.sequences + 1), dtype=np.int64),
        routable=np.zeros(rows, dtype=np.int64),
        units=np.full((rows, units, len(Unit)), NONE, dtype=np.int32),
        bounds=bounds,
    )
