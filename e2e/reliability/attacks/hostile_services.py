"""The services whose pods are hostile, the victim, and where their pods are."""

from __future__ import annotations

import itertools
from typing import Any

from reliability.attacks.hostile_pods import VICTIM_MODEL, VICTIMS
from reliability.testbed.admin import Object
from reliability.testbed.testbed import ACCELERATOR

VICTIM_PODS = 2
ANNOTATIONS = {f"example.com/a{number}": "x" * 4000 for number in range(32)}
"""Just below the admission policy's bound on the texts of a service."""


class Addresses:
    """Gives victims and hostile pods addresses in ranges of their own."""

    def __init__(self, victims: str) -> None:
        self._victims = victims
        self._numbers = itertools.count(1)

    def assign(self, pod: Object) -> str:
        """Return the next address of the pod's range."""
        high, low = divmod(next(self._numbers), 250)
        start = VICTIMS if pod["metadata"]["namespace"] == self._victims else "127.8."
        return f"{start}{high}.{1 + low}"

    def release(self, pod: Object) -> None:
        """Addresses are not used again."""


def hostile(name: str, namespace: str, port: int, pods: int, *, warmed: bool) -> Object:
    """Describe a service whose pods are hostile; `warmed`: the operator warms them up."""
    runtime: dict[str, Any] = {
        "image": "localhost/none:1",
        "port": port,
        "podTemplate": {
            "metadata": {"annotations": ANNOTATIONS},
            "spec": {"nodeName": "a-node"},
        },
    }
    more: dict[str, Any] = {"model": {"name": "m"}}
    if warmed:
        runtime |= {"profile": "triton", "maxBatchSize": 8, "metricsPort": port}
        more["warmup"] = {"sender": "Operator", "timeout": "24h"}
    return _service(name, namespace, runtime, pods, more)


def victim(name: str, namespace: str, port: int) -> Object:
    """Describe a service that behaves."""
    runtime = {
        "image": "localhost/none:1",
        "port": port,
        "podTemplate": {"spec": {"nodeName": "a-node"}},
    }
    return _service(name, namespace, runtime, VICTIM_PODS, {"model": {"name": VICTIM_MODEL}})


def _service(name: str, namespace: str, runtime: Object, pods: int, more: Object) -> Object:
    return {
        "apiVersion": "headroom.dev/v1alpha1",
        "kind": "InferenceService",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "runtime": runtime,
            "accelerator": {"resource": ACCELERATOR, "count": 1},
            "slo": {"latency": {"target": "1.5s"}},
            "scaling": {"minReplicas": pods, "maxReplicas": pods + 1},
            **more,
        },
    }
