"""Scenarios that need a real API server: pods that a quota rejects, and annotations on pods."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from cluster import Cluster, ControlPlane
from headroom.adapters.api_server.kubernetes_api import KubernetesApi
from headroom.adapters.api_server.kubernetes_connection import KubernetesConnection
from headroom.errors import ClusterError, Conflict, Forbidden, NotFound, Unavailable
from headroom.ops.operator_metrics import OperatorMetrics
from headroom.resources.names import DELETION_COST, REMOVED_FIRST, VICTIM_FIELD_MANAGER
from reliability.testbed.testbed import SharedCluster, shared_cluster
from reliability.testbed.world import world

MARK_PODS = Path(__file__).parents[3] / "deploy/components/mark-pods/rbac.yaml"

pytestmark = pytest.mark.clock


@pytest.fixture(scope="module")
def cluster(control_plane: ControlPlane) -> Cluster:
    return control_plane


def counted_api(on: SharedCluster) -> KubernetesApi:
    connection = KubernetesConnection(OperatorMetrics().called, kubeconfig=str(on.credentials))
    return KubernetesApi(connection)


async def test_quota_rejection_is_reported_and_creates_no_more_pods(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    async with shared_cluster(control_plane, tmp_path) as on, world(on, "quota") as one:
        hard = {"metadata": {"name": "few"}, "spec": {"hard": {"count/pods": "2"}}}
        await on.admin.create(f"/api/v1/namespaces/{one.namespace}/resourcequotas", hard)
        await one.apply(scaling={"minReplicas": 4})
        await one.operator.start()

        async def refused() -> bool:
            return await one.condition("CapacityAvailable") == ("False", "PodCreationForbidden")

        await one.wait("the quota is reported", refused, 60.0)
        message = next(
            str(found["message"])
            for found in (await one.service())["status"]["conditions"]
            if found["type"] == "CapacityAvailable"
        )
        assert "exceeded quota: few" in message
        assert "raise the quota" in message
        assert one.replicas_seen == [4], "what is refused does not grow"


async def test_operator_annotates_and_clears_its_own_pods_only(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    container = {"name": "server", "image": "localhost/none:1"}
    theirs = {"annotations": {"team": "vision"}}
    body = {"metadata": {"name": "busy", **theirs}, "spec": {"containers": [container]}}
    async with shared_cluster(control_plane, tmp_path) as on:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        uid = (await on.admin.create(pods, body))["metadata"]["uid"]
        mark = {DELETION_COST: "-1000", REMOVED_FIRST: "least loaded"}

        async def annotations() -> dict[str, str]:
            return dict((await on.admin.get(f"{pods}/busy"))["metadata"]["annotations"])

        async with KubernetesApi(
            KubernetesConnection(OperatorMetrics().called, kubeconfig=str(on.credentials))
        ) as api:

            async def apply(**metadata: object) -> None:
                named = {"name": "busy", "namespace": namespace, "uid": uid, **metadata}
                manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": named}
                await api.apply(manifest, field_manager=VICTIM_FIELD_MANAGER)

            with pytest.raises(Forbidden):
                await apply(annotations=mark)
            control_plane.apply(*yaml.safe_load_all(MARK_PODS.read_text()))
            await apply(annotations=mark)
            assert await annotations() == theirs["annotations"] | mark
            await apply()
            assert await annotations() == theirs["annotations"]
            with pytest.raises(ClusterError):
                await apply(uid="00000000-0000-0000-0000-000000000000", annotations=mark)
            with pytest.raises(ClusterError):
                await apply(name="gone", annotations=mark)
            assert await annotations() == theirs["annotations"]
    control_plane.kubectl("delete", "--filename", str(MARK_PODS))


async def test_eviction_respects_the_disruption_budget_and_the_uid(
    control_plane: ControlPlane, namespace: str, tmp_path: Path
) -> None:
    container = {"name": "server", "image": "localhost/none:1"}
    named = {"name": "slow", "labels": {"app": "slow"}}
    budget = {
        "metadata": {"name": "all"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": named["labels"]}},
    }
    serves = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    async with shared_cluster(control_plane, tmp_path) as on:
        pods = f"/api/v1/namespaces/{namespace}/pods"
        budgets = f"/apis/policy/v1/namespaces/{namespace}/poddisruptionbudgets"
        created = await on.admin.create(
            pods, {"metadata": named, "spec": {"containers": [container]}}
        )
        uid = created["metadata"]["uid"]
        await on.admin.patch(f"{pods}/slow/status", {"status": serves})
        await on.admin.create(budgets, budget)
        async with KubernetesApi(
            KubernetesConnection(OperatorMetrics().called, kubeconfig=str(on.credentials))
        ) as api:
            with pytest.raises(Unavailable, match="disruption budget"):
                await api.evict(namespace, "slow", uid)
            await on.admin.delete(f"{budgets}/all")
            with pytest.raises(Conflict):
                await api.evict(namespace, "slow", "another")
            assert "deletionTimestamp" not in (await on.admin.get(f"{pods}/slow"))["metadata"]
            await api.evict(namespace, "slow", uid)
            left = await on.admin.find(f"{pods}/slow")
            assert left is None or "deletionTimestamp" in left["metadata"]
            with pytest.raises(NotFound):
                await api.evict(namespace, "none", uid)
