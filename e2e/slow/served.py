"""Models in a volume claim, services of the torch image that serve them, and requests to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import torch
from safetensors.torch import save_file

from cluster import Endpoint
from cluster.images.shipped import SERVER_WITH_TORCH
from scenarios.world import Service

CLAIM = "models"
LARGEST_BATCH = 4
ANSWER_PATIENCE_S = 30.0


def volume_and_claim(namespace: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """A volume that is a folder of the node, named like the namespace, and its claim."""
    room = {"storage": "1Gi"}
    shared = {"accessModes": ["ReadOnlyMany"], "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": namespace},
        "spec": {
            **shared,
            "capacity": room,
            "hostPath": {"path": str(folder), "type": "Directory"},
            "claimRef": {"namespace": namespace, "name": CLAIM},
        },
    }
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": CLAIM, "namespace": namespace},
        "spec": {**shared, "volumeName": namespace, "resources": {"requests": room}},
    }
    return volume, claim


def write_model(
    folder: Path, weights: Mapping[str, torch.Tensor], description: str | None = None
) -> None:
    """Write weights, and model.toml where a registered architecture takes them, for any reader."""
    folder.mkdir()
    save_file(dict(weights), folder / "model.safetensors")
    if description is not None:
        (folder / "model.toml").write_text(description)
    for path in (folder, *folder.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)


def torch_service(
    name: str,
    *,
    env: Mapping[str, str] | None = None,
    pod_template: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """An InferenceService of one replica on the CPU, its model at `name` in the claim."""
    variables = {
        "HEADROOM_ENGINE": "torch",
        "HEADROOM_MAX_BATCH_SIZE": str(LARGEST_BATCH),
        **(env or {}),
    }
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name},
        "spec": {
            "runtime": {
                "image": SERVER_WITH_TORCH.image,
                "env": [{"name": key, "value": value} for key, value in variables.items()],
                "podTemplate": dict(pod_template or {}),
            },
            "model": {"uri": f"pvc://{CLAIM}/{name}"},
            "accelerator": {"count": 0},
            "slo": {"latency": {"target": "2s"}},
            "scaling": {"minReplicas": 1, "maxReplicas": 1},
        },
    }


@dataclass(frozen=True)
class ModelClient:
    """Requests to a model through its Service, as from clients in the cluster."""

    endpoint: Endpoint
    model: str

    def get(self, path: str) -> Any:
        """Read JSON."""
        answer = httpx.get(f"{self.endpoint.url}{path}", timeout=ANSWER_PATIENCE_S)
        return answer.raise_for_status().json()

    def infer(self, requests: Sequence[Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
        """Ask all at once over v2 JSON; the rows of all answers, by output."""
        answers = self._post(f"/v2/models/{self.model}/infer", [_v2(each) for each in requests])
        parts = [{each["name"]: _tensor(each) for each in one["outputs"]} for one in answers]
        return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}

    def predict(self, requests: Sequence[list[Any]]) -> list[Any]:
        """Ask all at once over typed JSON; the predictions of all answers."""
        bodies = [{"instances": each} for each in requests]
        answers = self._post(f"/v1/models/{self.model}:predict", bodies)
        return [prediction for one in answers for prediction in one["predictions"]]

    def _post(self, path: str, bodies: Sequence[Any]) -> list[Any]:
        def post(body: Any) -> Any:
            url = f"{self.endpoint.url}{path}"
            answer = httpx.post(url, json=body, timeout=ANSWER_PATIENCE_S)
            assert answer.status_code == 200, answer.text
            return answer.json()

        with ThreadPoolExecutor(len(bodies)) as clients:
            return list(clients.map(post, bodies))


@contextmanager
def model_client(service: Service) -> Iterator[ModelClient]:
    """Reach a ready service's model through its Service."""
    with service.cluster.forward(f"service/{service.name}", 80, service.namespace) as endpoint:
        yield ModelClient(endpoint, service.name)


def inside(service: Service, program: str) -> Any:
    """Run a Python program, which prints JSON, in the service's pod."""
    words = ("exec", f"deployment/{service.name}", "--namespace", service.namespace)
    return json.loads(service.cluster.kubectl(*words, "--", "python", "-c", program))


DATATYPES = {torch.float32: "FP32", torch.int64: "INT64"}


def _v2(inputs: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    return {
        "inputs": [
            {
                "name": name,
                "datatype": DATATYPES[tensor.dtype],
                "shape": list(tensor.shape),
                "data": tensor.flatten().tolist(),
            }
            for name, tensor in inputs.items()
        ]
    }


def _tensor(output: Mapping[str, Any]) -> torch.Tensor:
    return torch.tensor(output["data"]).reshape(output["shape"])
