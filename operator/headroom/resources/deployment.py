"""The Deployment: model-server pods that become ready when warm and terminate when drained."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from headroom.resources import accelerators, model_source, names, probes, slo_classes
from headroom.resources.overlay import lay_over
from headroom.resources.settings import DEFAULTS, Settings

if TYPE_CHECKING:
    from headroom.api import Duration, InferenceService

PRE_STOP_S = 3
"""preStop delay, so that endpoints and proxies see the termination before the server does."""
DRAIN_DELAY_S = 3
"""Time that a terminating server still accepts requests, for proxies that see it late."""
GRPC_PORT = "HEADROOM_GRPC_PORT"
EXIT_S = 10
"""Time from the end of the drain to the end of the process, the drain delay included."""
PULL_ALLOWANCE_S = 1800
"""Time for scheduling and for pulling an image of tens of gigabytes before a rollout counts as
stuck."""
DOWNLOAD_ALLOWANCE_S = 7200
"""Additional time for downloading a model of hundreds of gigabytes."""


def build(service: InferenceService, settings: Settings = DEFAULTS) -> dict[str, Any]:
    """Build the Deployment without replicas, which the scaler sets."""
    warmup = service.spec.warmup
    warmup_s = math.ceil(warmup.timeout.seconds)
    allowed_s = (
        2 * warmup_s if warmup.by_operator else warmup_s
    )  # it starts after the probes succeed
    template = _template(service, settings)
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": names.metadata(service),
        "spec": {
            "selector": {"matchLabels": names.selector_labels(service.name)},
            "progressDeadlineSeconds": allowed_s + _allowance_s(service),
            "revisionHistoryLimit": 3,
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": _rolling_update(service, template),
            },
            "template": template,
        },
    }


def with_replicas(manifest: dict[str, Any], replicas: int) -> dict[str, Any]:
    """Return the Deployment for its creation, with replicas."""
    return manifest | {"spec": {"replicas": replicas, **manifest["spec"]}}


def _allowance_s(service: InferenceService) -> int:
    return PULL_ALLOWANCE_S + (DOWNLOAD_ALLOWANCE_S if service.spec.model.is_fetched else 0)


def _rolling_update(service: InferenceService, template: dict[str, Any]) -> dict[str, Any]:
    """Return the spec's strategy, or the default, to which the operator may change in place."""
    holds = bool(accelerators.of_template(template))
    surge, unavailable = service.spec.rollout.bounds(in_place=holds)
    return {"maxSurge": surge, "maxUnavailable": unavailable}


def _template(service: InferenceService, settings: Settings) -> dict[str, Any]:
    fetching = model_source.init_containers(service, settings)
    generated = {
        "metadata": names.common_metadata(service),
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
            **({"initContainers": fetching} if fetching else {}),
            "containers": [_container(service)],
            "volumes": _volumes(service),
        },
    }
    template = lay_over(generated, service.spec.runtime.pod_template.overlay())
    own_labels = {"metadata": {"labels": names.labels(service.name)}}
    merged: dict[str, Any] = lay_over(template, own_labels)
    return _gated(merged, service) if service.spec.warmup.by_operator else merged


def _gated(template: dict[str, Any], service: InferenceService) -> dict[str, Any]:
    """Add the readiness gate that the operator opens after the warm-up."""
    gate = {"conditionType": names.WARM_GATE}
    gates = template["spec"].get("readinessGates") or []
    label = {"metadata": {"labels": {names.WARMED_LABEL: service.name}}}
    gated = {"spec": {"readinessGates": [*(one for one in gates if one != gate), gate]}}
    merged: dict[str, Any] = lay_over(lay_over(template, label), gated)
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
    """Return the user's arguments, plus the maximum batch size unless they contain it."""
    runtime = service.spec.runtime
    named = runtime.server.batch_argument
    given = list(runtime.args)
    if not named or any(one.partition("=")[0] == named for one in given):
        return given
    return [*given, f"{named}={runtime.max_batch_size}"]


def _environment(service: InferenceService) -> list[dict[str, str]]:
    """Return the settings of Headroom's model server that follow from other fields."""
    spec = service.spec
    if spec.runtime.profile != "headroom":
        return []
    values = {
        "HEADROOM_MODEL_NAME": service.model_name,
        "HEADROOM_MODEL_URI": model_source.local_uri(spec.model.uri),
        "HEADROOM_PORT": str(spec.runtime.port),
        "HEADROOM_WARMUP_REQUESTS": str(spec.warmup.requests),
        "HEADROOM_WARMUP_MAX_LATENCY_S": _seconds(service.warmup_max_latency),
        "HEADROOM_WARMUP_TIMEOUT_S": _seconds(spec.warmup.timeout),
        "HEADROOM_DRAIN_GRACE_S": _seconds(spec.drain.grace_period),
        "HEADROOM_DRAIN_DELAY_S": str(DRAIN_DELAY_S),
    }
    given = {one.name for one in spec.runtime.env}
    chosen = slo_classes.settings(service)
    if spec.routing.grpc_port:
        chosen[GRPC_PORT] = str(spec.routing.grpc_port)
    values |= {name: value for name, value in chosen.items() if name not in given}
    return [{"name": name, "value": value} for name, value in values.items()]


def _seconds(duration: Duration) -> str:
    """Format 600 s as 600 and a microsecond as 0.000001: short, without exponents."""
    return f"{duration.seconds:.6f}".rstrip("0").rstrip(".")


def _resources(service: InferenceService) -> dict[str, Any]:
    resources = service.spec.runtime.resources.manifest()
    accelerator = service.spec.accelerator
    if not accelerator.count:
        return resources
    requested = {accelerator.resource: str(accelerator.count)}
    return {**resources, "limits": {**resources.get("limits", {}), **requested}}


def _volumes(service: InferenceService) -> list[dict[str, Any]]:
    return [{"name": "tmp", "emptyDir": {}}, *model_source.volumes(service)]


def _mounts(service: InferenceService) -> list[dict[str, Any]]:
    return [{"name": "tmp", "mountPath": "/tmp"}, *model_source.mounts(service)]  # noqa: S108
