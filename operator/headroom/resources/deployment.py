"""The replicas: model-server pods that are ready only when warm and leave only when drained."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headroom.resources import names, probes
from headroom.resources.overlay import lay_over

if TYPE_CHECKING:
    from headroom.api import Duration, InferenceService

PRE_STOP_S = 3
"""Time for endpoints and proxies to learn that a replica leaves, before it is told."""
DRAIN_DELAY_S = 3
"""Time that a leaving replica still accepts after it is told, for those that learn late."""
EXIT_S = 10
"""Time from the end of the drain to the end of the process, the drain delay included."""
PULL_ALLOWANCE_S = 1800
"""Time for scheduling and for pulling an image of tens of gigabytes, before a rollout counts as
stuck."""


def build(service: InferenceService, replicas: int | None = None) -> dict[str, Any]:
    """Build the Deployment; `replicas` only to create it, afterwards they are the scaler's."""
    spec: dict[str, Any] = {} if replicas is None else {"replicas": replicas}
    warmup_s = math.ceil(service.spec.warmup.timeout.seconds)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(service),
        "spec": spec
        | {
            "selector": {"matchLabels": names.selector_labels(service.name)},
            "progressDeadlineSeconds": warmup_s + PULL_ALLOWANCE_S,
            "revisionHistoryLimit": 3,
            "strategy": {"type": "RollingUpdate", "rollingUpdate": _rolling_update(service)},
            "template": _template(service),
        },
    }


def _rolling_update(service: InferenceService) -> dict[str, Any]:
    """Replace in place where replicas hold accelerators.

    A surge pod needs a free accelerator; where there is none it stays Pending and the rollout never
    ends.
    """
    if service.spec.accelerator.count:
        return {"maxSurge": 0, "maxUnavailable": 1}
    return {"maxSurge": 1, "maxUnavailable": 0}


def _template(service: InferenceService) -> dict[str, Any]:
    generated = {
        "metadata": {"labels": names.labels(service.name)},
        "spec": {
            "serviceAccountName": service.name,
            "automountServiceAccountToken": False,
            "enableServiceLinks": False,
            "terminationGracePeriodSeconds": PRE_STOP_S
            + math.ceil(service.spec.drain.grace_period.seconds)
            + EXIT_S,
            "securityContext": {
                "runAsNonRoot": True,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "containers": [_container(service)],
            "volumes": _volumes(service),
        },
    }
    template = lay_over(generated, service.spec.runtime.pod_template.overlay())
    own_labels = {"metadata": {"labels": names.labels(service.name)}}
    merged: dict[str, Any] = lay_over(template, own_labels)
    return merged


def _container(service: InferenceService) -> dict[str, Any]:
    runtime, server = service.spec.runtime, service.spec.runtime.server
    container: dict[str, Any] = {
        "name": names.CONTAINER,
        "image": runtime.image,
        "env": [*_environment(service), *(variable.manifest() for variable in runtime.env)],
        "ports": [
            {"name": names.PORT_NAME, "containerPort": runtime.port, "protocol": "TCP"},
        ],
        "resources": _resources(service),
        "startupProbe": probes.startup(server.ready_path, service.spec.warmup.timeout),
        "readinessProbe": probes.readiness(server.ready_path),
        "livenessProbe": probes.liveness(server.live_path),
        "lifecycle": {"preStop": {"sleep": {"seconds": PRE_STOP_S}}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": _mounts(service),
    }
    if args := _arguments(service):
        container["args"] = args
    return container


def _arguments(service: InferenceService) -> list[str]:
    """Give the user's arguments, and the bound on batches unless they say it already."""
    runtime = service.spec.runtime
    named = runtime.server.batch_argument
    given = list(runtime.args)
    if not named or any(one.partition("=")[0] == named for one in given):
        return given
    return [*given, f"{named}={runtime.max_batch_size}"]


def _environment(service: InferenceService) -> list[dict[str, str]]:
    """Tell our own server what other fields say; others have their own words for it."""
    spec = service.spec
    if spec.runtime.profile != "headroom":
        return []
    values = {
        "HEADROOM_MODEL_NAME": service.model_name,
        "HEADROOM_MODEL_URI": _local_uri(spec.model.uri),
        "HEADROOM_PORT": str(spec.runtime.port),
        "HEADROOM_WARMUP_REQUESTS": str(spec.warmup.requests),
        "HEADROOM_WARMUP_MAX_LATENCY_S": _seconds(service.warmup_max_latency),
        "HEADROOM_WARMUP_TIMEOUT_S": _seconds(spec.warmup.timeout),
        "HEADROOM_DRAIN_GRACE_S": _seconds(spec.drain.grace_period),
        "HEADROOM_DRAIN_DELAY_S": str(DRAIN_DELAY_S),
    }
    return [{"name": name, "value": value} for name, value in values.items()]


def _seconds(duration: Duration) -> str:
    """Render 600 s as 600 and a microsecond as 0.000001: short, and never in exponents."""
    return f"{duration.seconds:.6f}".rstrip("0").rstrip(".")


def _resources(service: InferenceService) -> dict[str, Any]:
    resources = service.spec.runtime.resources.manifest()
    accelerator = service.spec.accelerator
    if not accelerator.count:
        return resources
    requested = {accelerator.resource: str(accelerator.count)}
    return {**resources, "limits": {**resources.get("limits", {}), **requested}}


def _claim(uri: str) -> tuple[str, str] | None:
    """Split pvc://claim/path into claim and path."""
    if not uri.startswith("pvc://"):
        return None
    claim, _, path = uri.removeprefix("pvc://").partition("/")
    return claim, path


def _local_uri(uri: str) -> str:
    """Say where the server finds the weights in its own file system."""
    claim = _claim(uri)
    return uri if claim is None else f"file://{names.MODEL_MOUNT}/{claim[1]}".rstrip("/")


def _volumes(service: InferenceService) -> list[dict[str, Any]]:
    volumes: list[dict[str, Any]] = [{"name": "tmp", "emptyDir": {}}]
    if claim := _claim(service.spec.model.uri):
        source = {"claimName": claim[0], "readOnly": True}
        volumes.append({"name": "model", "persistentVolumeClaim": source})
    return volumes


def _mounts(service: InferenceService) -> list[dict[str, Any]]:
    mounts: list[dict[str, Any]] = [{"name": "tmp", "mountPath": "/tmp"}]  # noqa: S108
    if _claim(service.spec.model.uri):
        mounts.append({"name": "model", "mountPath": names.MODEL_MOUNT, "readOnly": True})
    return mounts
