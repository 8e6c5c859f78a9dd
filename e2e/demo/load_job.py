"""A load as a Job, and the trace that it replays as a ConfigMap."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

from cluster import Cluster
from load.arrivals import Replay

TRACE_KEY = "trace.csv.gz"
TRACE_FOLDER = "/trace"
UNPRIVILEGED = 65532
ENDS_WITHIN_S = 120.0
"""After the last instant: thirty seconds of patience per request, and room."""


def config_map(name: str, trace: bytes) -> dict[str, Any]:
    """Return the trace file."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name},
        "binaryData": {TRACE_KEY: base64.b64encode(trace).decode()},
    }


def put(target: Cluster, namespace: str, manifest: Mapping[str, Any]) -> None:
    """Apply one of the manifests in the namespace."""
    target.apply({**manifest, "metadata": {**manifest["metadata"], "namespace": namespace}})


def replaying(
    name: str, *, image: str, url: str, model: str, target_s: float, replay: Replay
) -> dict[str, Any]:
    """Return the Job that replays the trace of the ConfigMap of the same name."""
    arguments = {
        "url": url,
        "model": model,
        "target": target_s,
        "trace": f"{TRACE_FOLDER}/{TRACE_KEY}",
        "start": replay.start_s,
        "duration": replay.duration_s,
        "scale": replay.scale,
        "seed": replay.seed,
        "max-requests": replay.max_requests,
    }
    made = job(name, image=image, arguments=arguments, seconds=replay.duration_s)
    pod = made["spec"]["template"]["spec"]
    pod["volumes"] = [{"name": "trace", "configMap": {"name": name}}]
    mount = {"name": "trace", "mountPath": TRACE_FOLDER, "readOnly": True}
    pod["containers"][0]["volumeMounts"] = [mount]
    return made


def job(
    name: str,
    *,
    image: str,
    arguments: Mapping[str, object],
    seconds: float,
    command: Sequence[str] = (),
) -> dict[str, Any]:
    """Return the Job: one try, bounded in time, without permissions.

    `command` replaces the image's own.
    """
    container: dict[str, Any] = {
        "name": "load",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(command)} if command else {}),
        "args": [f"--{key}={value}" for key, value in arguments.items()],
        "resources": {
            "requests": {"cpu": "200m", "memory": "64Mi"},
            "limits": {"memory": "256Mi"},
        },
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
    }
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {
            "backoffLimit": 0,
            "activeDeadlineSeconds": int(seconds + ENDS_WITHIN_S),
            "template": {"spec": _pod(container)},
        },
    }


def _pod(container: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": 5,
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": UNPRIVILEGED,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "containers": [container],
    }
