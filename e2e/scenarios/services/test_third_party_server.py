"""A third-party model server on a real node: warm by its readiness gate, also after faults."""

from __future__ import annotations

import pytest

from cluster import Cluster
from scenarios.world import install_operator
from third_party.adopted import GATE, Adopted, condition, provide, scaled_under_load_with_warm_pods
from third_party.peers import MOSEC

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module", autouse=True)
def operator(cluster: Cluster) -> None:
    """The operator as it ships, and the server's image."""
    install_operator(cluster)
    provide(cluster, MOSEC)


def test_mosec_is_adopted_measured_scaled_and_warm_before_it_takes_requests(
    cluster: Cluster, namespace: str
) -> None:
    one = Adopted.adopt(cluster, namespace, MOSEC)
    scaled_under_load_with_warm_pods(one)

    scope = ("--namespace", namespace)
    pod = one.warm()[0]["metadata"]["name"]
    cluster.kubectl("exec", pod, *scope, "--", "sh", "-c", "kill 1")

    def gate() -> tuple[str, str]:
        found = next(each for each in one.pods() if each["metadata"]["name"] == pod)
        said = condition(found, GATE)
        return said["status"], said["reason"]

    one.wait("its gate is closed", lambda: gate()[0] == "False", 20)
    one.wait("it is warm again", lambda: gate() == ("True", "Warm"), 40)

    standing = one.replicas()
    cluster.kubectl("set", "env", f"deployment/{one.name}", "REVISION=2", *scope)
    cluster.kubectl("rollout", "status", f"deployment/{one.name}", *scope, "--timeout=90s")
    assert len(one.warm()) >= standing
