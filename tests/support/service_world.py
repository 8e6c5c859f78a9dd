"""InferenceServices as the API server gives them, with the fields that a test sets."""

from __future__ import annotations

import copy
from typing import Any

from headroom.api import InferenceService

MINIMAL: dict[str, Any] = {
    "apiVersion": "headroom.dev/v1alpha1",
    "kind": "InferenceService",
    "metadata": {
        "name": "resnet50",
        "namespace": "vision",
        "uid": "5f0c1c1e-1111-4222-8333-444455556666",
        "generation": 3,
        "resourceVersion": "41",
    },
    "spec": {
        "runtime": {"image": "registry.example/headroom-model-server:0.1.0"},
        "slo": {"latency": {"target": "250ms"}},
    },
}


def body(**changes: Any) -> dict[str, Any]:
    """Give a body with values put at paths: `spec__scaling__minReplicas=2`."""
    made = copy.deepcopy(MINIMAL)
    for path, value in changes.items():
        *parents, last = path.split("__")
        inner = made
        for key in parents:
            inner = inner.setdefault(key, {})
        inner[last] = value
    return made


def service(**changes: Any) -> InferenceService:
    """Give the parsed service of such a body."""
    return InferenceService.parse(body(**changes))
