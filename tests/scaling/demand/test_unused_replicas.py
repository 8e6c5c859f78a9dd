"""Ready replicas that routing does not use."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.scaling.demand.unused_replicas import unused


@pytest.mark.parametrize(
    ("taken", "idle"),
    [
        ((), 0),
        ((0.0,) * 4, 0),
        ((20.0, 20.0, 0.0), 0),
        ((60.0, 50.0, 0.0), 1),
        ((30.0, 25.0, 22.0, 30.0, 22.0, 15.0, 0.0, 0.0), 2),
        ((12.0,) * 10 + (0.0, 0.0), 2),
        ((3.0,) * 20 + (0.0,), 0),
        ((100.0, 90.0, 110.0, 95.0), 0),
    ],
)
def test_replicas_are_unused_where_chance_does_not_explain_it(
    taken: tuple[float, ...], idle: int
) -> None:
    assert unused(np.array(taken), np.array(taken)) == idle


@given(seed=st.integers(0, 10_000), count=st.integers(2, 40), mean=st.floats(0.5, 200.0))
def test_replicas_that_share_arrivals_by_chance_are_used(
    seed: int, count: int, mean: float
) -> None:
    taken = np.random.default_rng(seed).poisson(mean, count).astype(float)
    assert unused(taken, taken) == 0


def test_replica_that_worked_off_a_queue_was_used() -> None:
    """The first of two replicas had 200 waiting and got none of 240 requests meanwhile."""
    taken, busy = np.array([8.0, 248.0]), np.array([200.0, 248.0])
    assert unused(taken, taken) == 1
    assert unused(taken, busy) == 0
