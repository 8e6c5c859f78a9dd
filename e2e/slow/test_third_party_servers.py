"""Third-party servers with large packages: adopted, scaled, warmed."""

from __future__ import annotations

import pytest

from cluster import Cluster
from scenarios.world import install_operator
from third_party.adopted import Adopted, provide, scaled_under_load_with_warm_pods
from third_party.peers import MLSERVER, TRITON, Peer

pytestmark = [pytest.mark.clock, pytest.mark.timeout(300, func_only=True)]


@pytest.mark.parametrize("peer", [MLSERVER, TRITON], ids=lambda peer: peer.name)
def test_a_server_is_adopted_measured_scaled_and_warm_before_it_takes_requests(
    cluster: Cluster, namespace: str, peer: Peer
) -> None:
    install_operator(cluster)
    provide(cluster, peer)
    scaled_under_load_with_warm_pods(Adopted.adopt(cluster, namespace, peer))
