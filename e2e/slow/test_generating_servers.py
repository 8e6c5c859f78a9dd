"""Generating servers of third parties on a real node: adopted, scaled, warmed, drained."""

from __future__ import annotations

import pytest

from cluster import Cluster
from scenarios.world import install_operator
from third_party.peers import DYNAMO, LLAMACPP, Peer
from third_party.story import (
    Adopted,
    drained_without_a_loss,
    provide,
    scaled_under_load_with_warm_pods,
)

pytestmark = [pytest.mark.clock, pytest.mark.timeout(300, func_only=True)]


@pytest.mark.parametrize("peer", [LLAMACPP, DYNAMO], ids=lambda peer: peer.name)
def test_a_generating_server_is_measured_scaled_warmed_and_drained(
    cluster: Cluster, namespace: str, peer: Peer
) -> None:
    install_operator(cluster)
    provide(cluster, peer)
    one = Adopted.adopt(cluster, namespace, peer)
    scaled_under_load_with_warm_pods(one)
    drained_without_a_loss(one)
