"""Generating servers of third parties on a real node: adopted, scaled, warmed, drained."""

from __future__ import annotations

from pathlib import Path

import pytest

from cluster import Cluster
from headroom_server.repository.random_llama import LlamaSize, write_random_llama
from scenarios.world import install_operator
from slow.vllm_environment import python_with_vllm
from slow.vllm_pods import vllm_pods
from third_party.adopted import (
    Adopted,
    drained_without_a_loss,
    provide,
    scaled_under_load_with_warm_pods,
)
from third_party.peers import DYNAMO

pytestmark = [pytest.mark.clock, pytest.mark.timeout(300, func_only=True)]


def test_dynamos_mocker_is_measured_scaled_warmed_and_drained(
    cluster: Cluster, namespace: str
) -> None:
    install_operator(cluster)
    provide(cluster, DYNAMO)
    one = Adopted.adopt(cluster, namespace, DYNAMO)
    scaled_under_load_with_warm_pods(one)
    drained_without_a_loss(one)


SIZE = LlamaSize(hidden_size=256, layers=4, intermediate_size=704, context_tokens=1024)


@pytest.mark.timeout(1200)
def test_the_real_vllm_is_sized_by_its_learned_cost_scaled_warmed_and_drained(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> None:
    python_with_vllm()
    write_random_llama(tmp_path / "llama", SIZE)
    install_operator(cluster)
    peer = vllm_pods(tmp_path / "llama")
    provide(cluster, peer)
    one = Adopted.adopt(cluster, namespace, peer)
    scaled_under_load_with_warm_pods(one)
    generation = one.status()["generation"]
    assert generation["sizedBy"] == "Model", generation
    drained_without_a_loss(one)
