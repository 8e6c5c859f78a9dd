"""Number of connections that clients keep: learned, pinned, and noticed again."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.scaling.demand.connections import MOST, Connections


def binding(connections: int, replicas: int, requests: float, seed: int) -> Connections:
    """Ten placements of this many equal connections, one window each."""
    random, learned = np.random.default_rng(seed), Connections()
    for window in range(10):
        bound = random.multinomial(connections, [1 / replicas] * replicas)
        learned = learned.observe(
            30.0 * window, random.poisson(requests * bound / connections).astype(float)
        )
    return learned


@pytest.mark.parametrize("connections", [16, 64])
@pytest.mark.parametrize("replicas", [4, 12])
def test_number_of_connections_is_learned_within_a_factor_of_two(
    connections: int, replicas: int
) -> None:
    found = np.median([binding(connections, replicas, 6000.0, seed).number for seed in range(15)])
    assert connections / 2 <= found <= 2.5 * connections


def test_requests_balanced_one_by_one_look_like_very_many_connections() -> None:
    random, learned = np.random.default_rng(1), Connections()
    assert learned.number == MOST
    for window in range(40):
        learned = learned.observe(30.0 * window, random.poisson([500.0] * 6).astype(float))
    assert learned.number >= 400


FEW_CONNECTIONS = np.array([400.0, 200.0])


@pytest.mark.parametrize(
    ("arrived", "pinned"),
    [
        pytest.param([600.0, 0.0], True, id="a new replica stays idle"),
        pytest.param([550.0, 50.0], True, id="it gets a sixth of an even share"),
        pytest.param([400.0, 200.0], False, id="it gets two thirds: clients connect again"),
        pytest.param([12.0, 6.0], True, id="18 requests are too few to judge"),
    ],
)
def test_connections_are_pinned_unless_new_replicas_get_requests(
    arrived: list[float], pinned: bool
) -> None:
    learned = Connections().watching(["old"])
    for window in range(20):  # uneven loads of equal replicas: few connections
        learned = learned.observe(30.0 * window, FEW_CONNECTIONS)
    assert learned.pinned
    learned = learned.watching(["old", "new"])
    shares = np.array([learned.expected["old"], learned.expected["new"]])
    assert learned.observe(600.0, np.array(arrived), shares).pinned is pinned


def test_kept_connections_are_noticed_again_at_the_next_replica() -> None:
    learned = Connections().watching(["old"]).watching(["old", "second"])
    for window in range(20):
        learned = learned.observe(30.0 * window, FEW_CONNECTIONS, np.array([1.0, 0.0]))
    assert learned.expected == {"old": 0.5, "second": 0.5}
    assert not learned.pinned
    learned = learned.watching(["old", "second", "third"])
    shares = np.array([learned.expected[uid] for uid in ("old", "second", "third")])
    learned = learned.observe(600.0, np.array([300.0, 290.0, 10.0]), shares)
    assert learned.pinned


def test_window_without_requests_teaches_nothing_about_connections() -> None:
    before = Connections()
    assert before.observe(0.0, np.zeros(4)).number == before.number
    assert before.observe(0.0, np.array([100.0])).number == before.number
