"""The state of the compiled plant: arrays with named rows.

A row is a replica. All requests of the run are in memory. A *unit* is a prefix block of a trace
(512 tokens); a *block* is what the engine allocates (16 tokens).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from headroom.simulator.generation.histogram_bounds import (
    END_BOUNDS_S,
    FIRST_BOUNDS_S,
    LENGTH_BOUNDS,
    TOKEN_BOUNDS_S,
)
from headroom.simulator.generation.layout import (
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
from headroom.simulator.generation.plant import TokenService
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
        return self.requests[:, Request.OUTPUT]

    @property
    def preempted(self) -> Ints:
        """How often they were preempted."""
        return self.requests[:, Request.PREEMPTED]

    @property
    def place(self) -> Ints:
        """Rows that they were sent to."""
        return self.requests[:, Request.PLACE]


def allocate(service: TokenService, requests: Requests, rows: int, seed: int) -> TokenState:
    """Return an empty plant for these requests."""
    engine, count = service.engine, len(requests)
    whole = np.zeros(len(Plant), dtype=np.int64)
    whole[Plant.ROUTING], whole[Plant.SLACK] = int(service.routing), service.affinity_slack
    whole[Plant.BLOCKS] = engine.kv_tokens // engine.block_tokens
    whole[Plant.SEATS], whole[Plant.BUDGET] = engine.sequences, engine.iteration_tokens
    whole[Plant.BLOCK], whole[Plant.UNIT] = (
        engine.block_tokens,
        PREFIX_TOKENS // engine.block_tokens,
    )
    cost = engine.cost
    units = int(requests.block_ids.max()) + 1 if len(requests.block_ids) else 1
    asks = np.zeros((count, len(Request)), dtype=np.int64)
    asks[:, Request.PROMPT], asks[:, Request.OUTPUT] = (
        requests.prompt_tokens,
        requests.output_tokens,
    )
    asks[:, Request.FOLLOWING] = asks[:, Request.PLACE] = NONE
    asks[:, Request.UNITS], asks[:, Request.UNITS_END] = requests.starts[:-1], requests.starts[1:]
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
