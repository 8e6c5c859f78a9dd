"""Models that an init container downloads: real clients, stores in the cluster, a real node."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cluster import Cluster, Node
from cluster.images import shipped
from cluster.images.builds import BASE_IMAGE
from cluster.interface import wait_until
from cluster.progress import OnConsole
from scenarios.world import OPERATOR, SYSTEM, Service, emulated, install_operator
from slow import model_stores

READY_WITHIN_S = 120.0
PORT = 8099
SOURCE = Path(model_stores.__file__)
SECRETS = {
    "bucket": {"AWS_ACCESS_KEY_ID": model_stores.KEY, "AWS_SECRET_ACCESS_KEY": "secret"},
    "hub": {"HF_TOKEN": model_stores.TOKEN},
    "stranger": {"HF_TOKEN": "not-the-token"},
}
S3 = f"s3://{model_stores.BUCKET}/{model_stores.PREFIX}"
HF = f"hf://{model_stores.REPOSITORY}@{model_stores.COMMIT}"

pytestmark = [pytest.mark.clock, pytest.mark.timeout(400, func_only=True)]


@pytest.fixture(scope="module", autouse=True)
def world(cluster: Cluster) -> None:
    """The downloader's image in this node, and an operator whose settings name it."""
    if not isinstance(cluster, Node):
        pytest.skip("images are loaded into the local node: unset KUBECONFIG")
    (built,) = shipped.build(cluster.cache, [shipped.DOWNLOADER], OnConsole())
    cluster.load(built.image)
    install_operator(cluster)
    operator = (f"deployment/{OPERATOR}", "--namespace", SYSTEM)
    cluster.kubectl("set", "env", *operator, f"HEADROOM_DOWNLOADER_IMAGE={built.image}")
    cluster.kubectl("rollout", "status", *operator, "--timeout=60s")


@pytest.fixture
def stores(cluster: Cluster, namespace: str) -> str:
    """The stores in a namespace that enforces restricted pods, and Secrets for them; their URL."""
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    cluster.kubectl("label", "namespace", namespace, enforced)
    for name, keys in SECRETS.items():
        metadata = {"name": name, "namespace": namespace}
        secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys}
        cluster.apply(secret)
    cluster.apply(*_stores(namespace))
    cluster.kubectl(
        *("wait", "pod/stores", "--for=condition=Ready", "--timeout=60s", "--namespace", namespace)
    )
    found = cluster.get("pod", "stores", "--namespace", namespace)
    return f"http://{found['status']['podIP']}:{PORT}"


@pytest.mark.parametrize(("uri", "secret"), [(S3, "bucket"), (HF, "hub")], ids=["s3", "hf"])
def test_replica_becomes_ready_with_the_configured_model(
    cluster: Cluster, namespace: str, stores: str, uri: str, secret: str
) -> None:
    model = {"uri": uri, "secretName": secret, "digest": model_stores.digest()}
    service = Service.create(cluster, namespace, _fetching(stores, model))
    service.wait_ready(READY_WITHIN_S)
    (pod,) = service.pods()
    listing = cluster.kubectl(
        *("exec", pod["metadata"]["name"], "--container=server", "--namespace", namespace, "--"),
        *("find", "/models", "-type", "f"),
    )
    assert set(listing.split()) == {f"/models/{name}" for name in model_stores.FILES}


@pytest.mark.parametrize(
    ("secret", "digest", "says"),
    [("stranger", None, "was not fetched: hf ended with"), ("hub", f"sha256:{'0' * 64}", "digest")],
    ids=["no right", "another model"],
)
def test_failed_download_is_reported_with_its_remedy(
    cluster: Cluster, namespace: str, stores: str, secret: str, digest: str | None, says: str
) -> None:
    model = {"uri": HF, "secretName": secret} | ({"digest": digest} if digest else {})
    service = Service.create(cluster, namespace, _fetching(stores, model))

    def said() -> Any:
        ready = service.condition("Ready")
        return ready if ready.get("reason") == "ModelUnavailable" else None

    ready = wait_until(said, what="the model is said to be unavailable", timeout_s=READY_WITHIN_S)
    print(ready["message"])
    assert says in ready["message"]
    assert "fix spec.model" in ready["message"]


def _fetching(url: str, model: dict[str, Any]) -> dict[str, Any]:
    variables = {"AWS_ENDPOINT_URL": url, "AWS_REGION": "us-east-1", "HF_ENDPOINT": url}
    env = [{"name": name, "value": value} for name, value in variables.items()]
    manifest = emulated("fetched", model=model, accelerator={"count": 0})
    overlay = {"spec": {"initContainers": [{"name": "model", "env": env}]}}
    manifest["spec"]["runtime"]["podTemplate"] = overlay
    return manifest


def _stores(namespace: str) -> list[dict[str, Any]]:
    metadata = {"name": "stores", "namespace": namespace}
    container = {
        "name": "stores",
        "image": BASE_IMAGE,
        "imagePullPolicy": "IfNotPresent",
        "command": ["python3", "/code/model_stores.py", str(PORT)],
        "volumeMounts": [{"name": "code", "mountPath": "/code"}],
        "readinessProbe": {"tcpSocket": {"port": PORT}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "runAsUser": 65532,
        },
    }
    spec = {
        "containers": [container],
        "volumes": [{"name": "code", "configMap": {"name": "stores"}}],
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
    }
    code = {SOURCE.name: SOURCE.read_text()}
    return [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": code},
        {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec},
    ]
