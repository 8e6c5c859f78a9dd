"""The doctor on a real node: twelve planted mistakes, each found with its remedy."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from typer.testing import CliRunner

from cluster import Cluster
from cluster.images.builds import BASE_IMAGE
from cluster.interface import wait_until
from headroom.cli.app import app
from scenarios.world import LOCAL_OVERLAY, Service, emulated, install_operator

pytestmark = pytest.mark.clock

SEEN_WITHIN_S = 40.0
PORT = 8000
SKEWED = "planted-node"
_SERVER = """
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
class Server(BaseHTTPRequestHandler):
    def do_GET(self):
        page = sys.argv[1].encode()
        self.send_response(200 if page else 404)
        self.end_headers()
        self.wfile.write(page)
    def log_message(self, *_): pass
HTTPServer(("", 8000), Server).serve_forever()
"""
VLLM = {"profile": "vllm", "maxBatchSize": 8, "port": PORT}
FOUND = {
    ("PermissionMissing", "operator"): "apply the shipped roles",
    ("CRDOutdated", "inferenceservices.headroom.dev"): "headroom crd | kubectl apply",
    ("ClockSkew", SKEWED): "synchronize its clock",
    ("WrongPort", "wrong-port"): "set spec.runtime.port",
    ("WrongProfile", "wrong-profile"): "set spec.runtime.profile to vllm",
    ("MetricsMissing", "no-metrics"): "enable the server's metrics",
    ("AutoscalerConflict", "no-metrics"): "kubectl delete hpa/cpu",
    ("MetricsMissing", "prometheus"): "add the source to the chart's prometheus.sources",
    ("WorkloadPaused", "prometheus"): "kubectl rollout resume deployment/prometheus",
    ("TargetNotFound", "target"): "create it; spec.targetRef cannot be changed",
    ("NoAccelerators", "no-gpu"): "device plugin",
    ("SLOInfeasible", "tight"): "raise spec.slo.latency.target",
}
"""The finding and its subject, and what the remedy says."""


@pytest.fixture
def planted(cluster: Cluster, namespace: str) -> Iterator[Cluster]:
    """An operator as it ships, and everything wrong that can be."""
    install_operator(cluster)
    pages = {"wrong-port": _PAGE, "wrong-profile": _PAGE, "no-metrics": "", "prometheus": _PAGE}
    cluster.apply(*(_server(namespace, name, page) for name, page in pages.items()))
    services = {
        "wrong-port": _targeting("wrong-port", VLLM | {"port": 9999}),
        "wrong-profile": _targeting("wrong-profile", VLLM | {"profile": "sglang"}),
        "no-metrics": _targeting("no-metrics", VLLM),
        "prometheus": _targeting("prometheus", VLLM, telemetry={"source": "Prometheus"}),
        "target": _targeting("nowhere", VLLM),
        "no-gpu": emulated("no-gpu", accelerator={"resource": "amd.com/gpu", "count": 1}),
        "tight": emulated(
            "tight",
            slo={"latency": {"target": "20ms"}},
            warmup={"requests": 1, "maxLatency": "5s"},
            accelerator={"count": 0},
        ),
    }
    for name, manifest in services.items():
        Service.create(cluster, namespace, manifest | {"metadata": {"name": name}})
    within = ("--namespace", namespace)
    cluster.kubectl("autoscale", "deployment/no-metrics", "--name=cpu", "--max=3", *within)
    cluster.kubectl("rollout", "pause", "deployment/prometheus", *within)
    cluster.apply(_lease(datetime.now(UTC) + timedelta(hours=1)))
    _wait_until_bad(Service(cluster, namespace, "tight"), "SLOFeasible")
    _wait_until_bad(Service(cluster, namespace, "prometheus"), "MetricsAvailable")
    for name in ("wrong-port", "wrong-profile", "no-metrics"):
        cluster.kubectl("rollout", "status", f"deployment/{name}", "--timeout=40s", *within)
    try:
        _spoil(cluster)
        yield cluster
    finally:
        cluster.kubectl("delete", "lease", SKEWED, "--namespace", "kube-node-lease")
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "-k", str(LOCAL_OVERLAY))


def test_each_of_twelve_mistakes_is_found_with_its_remedy(planted: Cluster, namespace: str) -> None:
    command = ["doctor", "--namespace", namespace, "--kubeconfig", str(planted.kubeconfig)]
    done = CliRunner().invoke(app, [*command, "--output", "json"])
    assert done.exit_code == 1, done.output
    findings = json.loads(done.stdout)["findings"]
    remedies = {(one["finding"], _short(one["subject"])): one["remedy"] for one in findings}
    print(done.stdout)
    for key, words in FOUND.items():
        assert words in remedies.get(key, "not found"), key


def _wait_until_bad(service: Service, kind: str) -> None:
    wait_until(
        lambda: service.condition(kind).get("status") == "False",
        what=f"{kind} of {service.name} is False",
        timeout_s=SEEN_WITHIN_S,
    )


def _short(subject: str) -> str:
    if "serviceaccount" in subject:
        return "operator"
    return subject.rpartition("/")[2]


_PAGE = 'vllm:num_requests_waiting{model_name="m"} 0\nvllm:num_requests_running{model_name="m"} 0\n'


def _server(namespace: str, name: str, page: str) -> dict[str, Any]:
    container = {
        "name": "server",
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "-c", _SERVER, page],
        "ports": [{"containerPort": PORT}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
    }
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def _targeting(target: str, runtime: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target},
            "runtime": runtime,
            "slo": {"latency": {"target": "5s"}},
            **spec,
        },
    }


def _lease(renewed: datetime) -> dict[str, Any]:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": SKEWED, "namespace": "kube-node-lease"},
        "spec": {"holderIdentity": SKEWED, "renewTime": f"{renewed:%Y-%m-%dT%H:%M:%S.%fZ}"},
    }


def _spoil(cluster: Cluster) -> None:
    """Take a right from the operator, and a field from the CRD."""
    role = cluster.get("clusterrole", "headroom-operator")
    rules = [rule for rule in role["rules"] if "deployments/scale" not in rule["resources"]]
    removed = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/drain"
    patches = {
        "crd/inferenceservices.headroom.dev": [{"op": "remove", "path": removed}],
        "clusterrole/headroom-operator": [{"op": "replace", "path": "/rules", "value": rules}],
    }
    for subject, operations in patches.items():
        cluster.kubectl("patch", subject, "--type=json", "--patch", json.dumps(operations))
    cluster.get("hisvc", "--all-namespaces")  # refused (429) until the new definition is served
