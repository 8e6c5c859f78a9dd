"""The tail-latency model without batching or with large batches, against queueing theory."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from headroom.scaling.latency.many_servers import erlang_c
from latency_tables import batch_chain, varied_chain


@pytest.mark.parametrize(
    ("servers", "offered", "waiting"),
    [(1, 0.8, 0.8), (2, 1.0, 1 / 3), (5, 4.0, 0.5541), (3, 3.0, 1.0)],
    ids=["one server: utilization", "two at one", "five at four", "overload"],
)
def test_wait_probability_is_erlang_c(servers: int, offered: float, waiting: float) -> None:
    assert erlang_c(servers, offered) == pytest.approx(waiting, rel=2e-3)


@pytest.mark.parametrize("utilization", [0.3, 0.5, 0.8, 0.9])
def test_chain_without_batching_has_the_mean_of_m_d_1(utilization: float) -> None:
    # Pollaczek and Khinchine: 1 + rho / (2 (1 - rho)); 3.0 at 0.8
    expected = 1 + utilization / (2 * (1 - utilization))
    assert batch_chain.mean(1.0, 1, utilization) == pytest.approx(expected, rel=5e-3)


def test_chain_without_batching_has_the_tail_of_m_d_1() -> None:
    # Erlang 1909: P(wait <= t) = (1 - rho) sum_j (-rho (t - j))^j / j! e^{rho (t - j)}, j <= t
    rho, wait = 0.5, batch_chain.percentiles(1.0, 1, 0.5, [0.95])[0] - 1
    below = (1 - rho) * sum(
        (-rho * (wait - j)) ** j / math.factorial(j) * math.exp(rho * (wait - j))
        for j in range(int(wait) + 1)
    )
    assert below == pytest.approx(0.95, abs=0.005)


@pytest.mark.parametrize(
    ("share", "batch", "utilization"),
    [*itertools.product([0.2, 0.6, 0.9], [16, 64], [0.1, 0.5, 0.8])],
)
def test_chain_with_a_large_batch_is_bounded_by_inoue(
    share: float, batch: int, utilization: float
) -> None:
    # rates at which batches without a cap would hardly ever exceed the cap
    rate = min(utilization * batch, 0.3 * batch)
    fixed, item = share, (1 - share) / batch
    busy, load = rate * item, rate * fixed
    first = (item + fixed) / (2 * (1 - busy)) * (1 + 2 * load + (1 - load) / (1 + busy))
    second = 1.5 * fixed / (1 - busy) + item / 2 * (busy + 2) / (1 - busy**2)
    mean = batch_chain.mean(share, batch, rate / batch)
    assert mean <= min(first, second) * 1.005
    assert mean >= 0.85 * min(first, second)


@pytest.mark.parametrize(("cv", "utilization"), [(0.3, 0.3), (0.5, 0.88), (1.0, 0.5), (1.0, 0.8)])
def test_varied_chain_without_batching_has_the_mean_of_m_g_1(cv: float, utilization: float) -> None:
    # Pollaczek and Khinchine: 1 + rho (1 + cv^2) / (2 (1 - rho)); 5.0 at cv 1 and 0.8
    drawn = varied_chain.latencies(1.0, 1, cv, utilization, draws=100_000, seed=1)
    expected = 1 + utilization * (1 + cv * cv) / (2 * (1 - utilization))
    assert drawn.mean() == pytest.approx(expected, rel=0.015)


@pytest.mark.parametrize(
    ("share", "batch", "utilization"), [(0.3, 8, 0.6), (0.5, 4, 0.85), (0.1, 32, 0.3)]
)
def test_varied_chain_without_variation_equals_the_exact_one(
    share: float, batch: int, utilization: float
) -> None:
    drawn = varied_chain.latencies(share, batch, 0.0, utilization, draws=100_000, seed=1)
    exact = batch_chain.percentiles(share, batch, utilization, [0.9, 0.95, 0.99])
    assert np.quantile(drawn, [0.9, 0.95, 0.99]) == pytest.approx(exact, rel=0.015)
