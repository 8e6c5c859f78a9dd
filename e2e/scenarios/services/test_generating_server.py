"""llama.cpp's server on a real node: it counts no requests, so its queue alone adds replicas."""

from __future__ import annotations

import pytest

from cluster import Cluster
from scenarios.world import install_operator
from third_party.adopted import (
    Adopted,
    drained_without_a_loss,
    provide,
    scaled_under_load_with_warm_pods,
)
from third_party.peers import LLAMACPP

pytestmark = [pytest.mark.clock, pytest.mark.timeout(300, func_only=True)]


def test_llama_server_is_adopted_measured_scaled_warmed_and_drained(
    cluster: Cluster, namespace: str
) -> None:
    install_operator(cluster)
    provide(cluster, LLAMACPP)
    one = Adopted.adopt(cluster, namespace, LLAMACPP)
    scaled_under_load_with_warm_pods(one)
    drained_without_a_loss(one)
