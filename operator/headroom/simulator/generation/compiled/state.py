"""The state of the compiled plant: arrays with named rows.

A row is a replica. All requests of the run are in memory. A *unit* is a prefix block of a trace
(512 tokens); a *block* is what the engine allocates (16 tokens).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.generation.compiled.histogram_bounds import (
    END_BOUNDS_S,
    FIRST_BOUNDS_S,
    LENGTH_BOUNDS,
    TOKEN_BOUNDS_S,
)
from headroom.simulator.generation.compiled.layout import (
    NONE,
    WIDTH,
    Floats,
    Ints,
    Plant,
    Real,
    Request,
    Row,
    Shorts,
    Time,
    Unit,
)
from headroom.simulator.generation.plant import Engine, TokenService
from headroom.simulator.generation.requests import PREFIX_TOKENS, Requests


class TokenState(NamedTuple):
    """All state, changed in place. Few arrays: each costs time to compile and to pass."""

    whole: Ints
    cost: Floats
    random: NDArray[np.uint64]
    requests: Ints
    """[requests, Request]"""
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
        """Arrival times of requests."""
        return self.times[:, Time.ARRIVED]

    @property
    def first_s(self) -> Floats:
        """Times of their first tokens."""
        return self.times[:, Time.FIRST]

    @property
    def end_s(self) -> Floats:
        """Times of their ends."""
        return self.times[:, Time.END]

    @property
    def output(self) -> Ints:
        """Lengths of the answers."""
        return self.requests[:, Request.OUTPUT]

    @property
    def preempted(self) -> Ints:
        """Numbers of their preemptions."""
        return self.requests[:, Request.PREEMPTED]

    @property
    def place(self) -> Ints:
        """Rows that they were sent to."""
        return self.requests[:, Request.PLACE]


def allocate(service: TokenService, requests: Requests, rows: int, seed: int) -> TokenState:
    """Return an empty plant for these requests."""
    engine = service.engine
    units = int(requests.block_ids.max()) + 1 if len(requests.block_ids) else 1
    times = np.full((len(requests), len(Time)), np.nan)
    times[:, Time.ARRIVED] = requests.arrival_s
    return TokenState(
        whole=_plant(service),
        cost=_cost(engine),
        random=np.array([seed], dtype=np.uint64),
        requests=_requests(requests),
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
        bounds=_histogram_bounds(),
    )


def _plant(service: TokenService) -> Ints:
    engine = service.engine
    found = np.zeros(len(Plant), dtype=np.int64)
    found[Plant.ROUTING], found[Plant.SLACK] = int(service.routing), service.affinity_slack
    found[Plant.BLOCKS] = engine.kv_tokens // engine.block_tokens
    found[Plant.SEATS], found[Plant.BUDGET] = engine.sequences, engine.iteration_tokens
    found[Plant.BLOCK] = engine.block_tokens
    found[Plant.UNIT] = PREFIX_TOKENS // engine.block_tokens
    return found


def _cost(engine: Engine) -> Floats:
    """Return the coefficients in the order of `Cost`."""
    cost = engine.cost
    coefficients = (
        *(cost.fixed_s, cost.prompt_token_s, cost.sequence_s, cost.context_token_s),
        *(cost.prompt_product_s, cost.experts_s, cost.expert_share, engine.noise_cv),
    )
    return np.array(coefficients)


def _requests(requests: Requests) -> Ints:
    found = np.zeros((len(requests), len(Request)), dtype=np.int64)
    found[:, Request.PROMPT] = requests.prompt_tokens
    found[:, Request.OUTPUT] = requests.output_tokens
    found[:, Request.FOLLOWING] = found[:, Request.PLACE] = NONE
    found[:, Request.UNITS], found[:, Request.UNITS_END] = requests.starts[:-1], requests.starts[1:]
    return found


def _histogram_bounds() -> Floats:
    """Return the bounds of each histogram in the order of `Bound`, filled up with infinity."""
    grids = (FIRST_BOUNDS_S, TOKEN_BOUNDS_S, END_BOUNDS_S, LENGTH_BOUNDS)
    found = np.full((len(grids), max(len(grid) for grid in grids)), math.inf)
    for number, grid in enumerate(grids):
        found[number, : len(grid)] = grid
    return found
