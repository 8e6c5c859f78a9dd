"""A torch model in a pod of the torch image returns the same numbers as torch itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from cluster import Cluster, Node
from cluster.images import shipped
from cluster.progress import OnConsole
from scenarios.world import Service, install_operator
from slow.served import inside, model_client, torch_service, volume_and_claim, write_model

READY_PATIENCE_S = 300.0
CLASS_FOLDER = "/opt/classes"
CLASS_SOURCE = Path(__file__).with_name("purchase.py")
SPLIT = [1, 2, 3, 4, 1, 4]
"""Rows of the requests that are sent at once: they share batches of four in changing company."""

pytestmark = [pytest.mark.clock, pytest.mark.timeout(600, func_only=True)]


@pytest.fixture(scope="module", autouse=True)
def world(cluster: Cluster) -> None:
    """The full image, gigabytes that no other test needs, in this node; and the operator."""
    if not isinstance(cluster, Node):
        pytest.skip("the volume is a folder of this machine: unset KUBECONFIG for a local node")
    progress = OnConsole()
    (full,) = shipped.build(cluster.cache, [shipped.SERVER_WITH_TORCH], progress)
    with progress.step(f"Importing {full.image}"):
        cluster.load(full.image)
    install_operator(cluster)


@pytest.fixture
def models(cluster: Cluster, namespace: str, tmp_path: Path) -> Iterator[Path]:
    """A folder of this machine that pods of the namespace reach through the claim."""
    tmp_path.chmod(0o755)
    cluster.apply(*volume_and_claim(namespace, tmp_path))
    yield tmp_path
    cluster.kubectl("delete", "persistentvolume", namespace, "--wait=false")


def ready(cluster: Cluster, namespace: str, manifest: dict[str, Any]) -> Service:
    service = Service.create(cluster, namespace, manifest)
    service.wait_ready(READY_PATIENCE_S)
    return service


def test_weights_from_a_claim_give_the_same_numbers_as_torch(
    cluster: Cluster, namespace: str, models: Path
) -> None:
    torch.manual_seed(20)
    network = nn.Sequential(
        *(nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.ReLU()),
        *(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10)),
    ).eval()
    description = """
        architecture = "convnet"
        [parameters]
        channels = [3, 16, 32]
        image = [32, 24]
        classes = 10
    """
    write_model(models / "convnet", network.state_dict(), description)
    images = torch.randn(sum(SPLIT), 3, 32, 24)
    with torch.inference_mode():
        expected = network(images)

    service = ready(cluster, namespace, torch_service("convnet"))
    with model_client(service) as convnet:
        health = convnet.get("/v2/health/ready")
        parts = torch.split(images, SPLIT)
        v2 = convnet.infer([{"image": part} for part in parts])["logits"]
        typed = torch.tensor(convnet.predict([part.tolist() for part in parts]))

    assert (health["engine"], health["device"], health["emulated"]) == ("torch", "cpu", False)
    torch.testing.assert_close(v2, expected, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(typed, expected, rtol=1e-5, atol=1e-6)

    confined = inside(
        service,
        "import json, os; home = os.path.expanduser('~'); print(json.dumps({"
        "'user': os.getuid(), 'group': os.getgid(), 'home is writable': os.access(home, os.W_OK), "
        "'root is read-only': bool(os.statvfs('/').f_flag & os.ST_RDONLY), "
        "'models are read-only': bool(os.statvfs('/models').f_flag & os.ST_RDONLY)}))",
    )
    assert confined == {
        "user": 65532,
        "group": 65532,
        "home is writable": True,
        "root is read-only": True,
        "models are read-only": True,
    }


def test_user_class_from_a_config_map_gives_the_same_numbers_as_torch(
    cluster: Cluster, namespace: str, models: Path
) -> None:
    torch.manual_seed(21)
    weights = {"products": torch.randn(50, 8), "wish": torch.randn(8)}
    write_model(models / "purchase", weights)
    rows = sum(SPLIT)
    seen, price = torch.randint(50, (rows, 4)), torch.rand(rows)
    expected = torch.sigmoid(weights["products"][seen].mean(1) @ weights["wish"] - price)

    source = {CLASS_SOURCE.name: CLASS_SOURCE.read_text()}
    names = {"name": "classes", "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": names, "data": source})
    manifest = torch_service(
        "purchase",
        env={"HEADROOM_MODEL_CLASS": "purchase:Purchase", "PYTHONPATH": CLASS_FOLDER},
        pod_template={
            "spec": {
                "containers": [
                    {
                        "name": "server",
                        "volumeMounts": [{"name": "classes", "mountPath": CLASS_FOLDER}],
                    }
                ],
                "volumes": [{"name": "classes", "configMap": {"name": "classes"}}],
            }
        },
    )
    with model_client(ready(cluster, namespace, manifest)) as purchase:
        parts = list(zip(torch.split(seen, SPLIT), torch.split(price, SPLIT), strict=True))
        v2 = purchase.infer([{"seen": ids, "price": prices} for ids, prices in parts])
        typed = purchase.predict(
            [
                [
                    {"seen": row.tolist(), "price": cost.item()}
                    for row, cost in zip(ids, prices, strict=True)
                ]
                for ids, prices in parts
            ]
        )

    torch.testing.assert_close(v2["odds"], expected, rtol=1e-5, atol=1e-6)
    assert v2["likely"].tolist() == (expected > 0.5).tolist()
    odds = torch.tensor([prediction["odds"] for prediction in typed])
    torch.testing.assert_close(odds, expected, rtol=1e-5, atol=1e-6)
    assert [prediction["likely"] for prediction in typed] == (expected > 0.5).tolist()
