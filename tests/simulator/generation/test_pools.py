"""A prefill and a decode pool in series, each under the production decision."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.pool_pair import (
    PairOutcome,
    PoolPair,
    decode_engine,
    pool_targets,
)
from headroom.simulator.generation.pools import simulate_pair
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.workloads import lognormal_lengths, poisson

PROMISES = targets(2.0, 0.05)
ENGINE = ENGINES["qwen3-32b-tp2-h100"]


def _pair(*, coupled: bool, initial: tuple[int, int] = (2, 2), **more: Any) -> PoolPair:
    prefill, decode = pool_targets(PROMISES)
    return PoolPair(
        prefill=TokenService(engine=ENGINE, targets=prefill, initial_replicas=initial[0]),
        decode=TokenService(
            engine=decode_engine(ENGINE), targets=decode, initial_replicas=initial[1]
        ),
        coupled=coupled,
        **more,
    )


def _load(*steps: tuple[float, int]) -> Requests:
    rates = np.concatenate([np.full(seconds // 10, rate) for rate, seconds in steps])
    arrival_s, random = poisson(rates, 10.0, 1), np.random.default_rng(8)
    return Requests(
        arrival_s=arrival_s,
        prompt_tokens=lognormal_lengths(np.full(len(arrival_s), 4000.0), 0.5, random),
        output_tokens=lognormal_lengths(np.full(len(arrival_s), 200.0), 0.8, random),
    )


@cache
def _step(*, coupled: bool) -> PairOutcome:
    return simulate_pair(_pair(coupled=coupled), _load((4.0, 300), (16.0, 300)), 1)


def test_decode_pool_grows_in_the_same_cold_start_as_its_prefill_pool() -> None:
    """The step is at 300 s; replicas that the prefill pool requests then are ready at 400 s."""
    alone, both = _step(coupled=False), _step(coupled=True)
    assert alone.replicas[310, 3] < both.replicas[310, 3]  # none is removed while it is short
    assert alone.replicas[400, 3] < both.replicas[400, 3]


def test_queue_that_is_passed_on_is_not_followed_as_a_rise() -> None:
    alone, both = _step(coupled=False), _step(coupled=True)
    assert both.replicas[:, 3].max() < alone.replicas[:, 3].max()
    assert sum(both.gpu_hours) < sum(alone.gpu_hours)
    kept, before = both.kept(2.0, 0.05), alone.kept(2.0, 0.05)
    assert kept[0] >= before[0]
    assert kept[1] >= before[1]


def test_decode_pool_keeps_its_replicas_while_the_prefill_pool_is_not_seen() -> None:
    pair = _pair(coupled=True, initial=(5, 4), blind_from_s=60.0, blind_until_s=500.0)
    outcome = simulate_pair(pair, _load((4.0, 600)), 1)
    removed = [at_s for at_s, name, before, after, _ in outcome.reasons if after < before]
    assert removed
    assert min(removed) >= 500.0


def test_both_pools_serve_every_request_once() -> None:
    requests = _load((4.0, 120))
    outcome = simulate_pair(_pair(coupled=True, bypass_tokens=2000), requests, 1)
    assert np.isfinite(outcome.output_token_s).all()
    assert np.isfinite(outcome.first_token_s).all()
    direct = requests.prompt_tokens <= 2000
    assert (outcome.first_token_s[direct] == 0.0).all()
    assert (outcome.first_token_s[~direct] > 0.0).all()
