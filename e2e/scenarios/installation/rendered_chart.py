"""Helpers for scenarios of the rendered chart: values that set everything, and its kinds."""

from __future__ import annotations

from typing import Any

EVERYTHING: dict[str, Any] = {
    "replicas": 2,
    "commonLabels": {"team": "platform"},
    "image": {"repository": "registry.example/headroom", "digest": f"sha256:{'0' * 64}"},
    "imagePullSecrets": [{"name": "registry"}],
    "tick": "5s",
    "caps": {"replicasPerService": 40, "accelerators": 200, "notAccelerators": ["a.b/*"]},
    "downloader": {"image": "registry.example/fetch:2"},
    "serviceAccount": {"annotations": {"example.com/role": "scaler"}},
    "podLabels": {"cost": "shared"},
    "podAnnotations": {"example.com/scan": "yes"},
    "env": [{"name": "HTTPS_PROXY", "value": "http://proxy.example:3128"}],
    "nodeSelector": {"pool": "system"},
    "tolerations": [{"key": "system", "operator": "Exists", "effect": "NoSchedule"}],
    "affinity": {"nodeAffinity": {}},
    "priorityClass": {"create": True},
    "service": {"port": 9090, "annotations": {"example.com/a": "b"}},
    "networkPolicy": {"enabled": True, "from": [{"namespaceSelector": {}}]},
    "monitoring": {
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "prometheusRule": {"enabled": True, "runbookUrl": "https://runbooks.example/headroom.md"},
        "dashboard": {"enabled": True, "annotations": {"grafana_folder": "Inference"}},
    },
}


def of_kind(manifests: list[dict[str, Any]], kind: str) -> dict[str, Any]:
    """Return the only object of a kind."""
    (found,) = [each for each in manifests if each["kind"] == kind]
    return found
