"""A step of load on an existing Deployment whose clients keep their connections."""

from __future__ import annotations

import pytest

from cluster import Cluster, Node
from scenarios.world import install_operator
from third_party import clients, scalers, step

pytestmark = pytest.mark.clock

NEEDED = 4
"""Of 80 requests/s each, for 240/s: with three of them the queue never ends."""
ASKED_WITHIN_S = 20.0
SHORT = clients.Step(before_s=25, high_s=22, after_s=1)


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    """The operator as it ships."""
    install_operator(cluster)


def test_needed_replicas_are_requested_within_twenty_seconds_though_clients_wait(
    cluster: Cluster, namespace: str
) -> None:
    """64 connections hide the demand: a client sends no more than it gets back."""
    if not isinstance(cluster, Node):
        pytest.skip("the load runs inside the network of a local node")
    measured = step.run(cluster, namespace, scalers.Headroom(), clients.Clients(), SHORT)
    asked_s = measured.requested_s.get(NEEDED)
    assert asked_s is not None, measured
    assert asked_s <= ASKED_WITHIN_S, measured
    assert measured.lost == measured.refused == 0, measured
