"""Read the workload that a service scales: its own Deployment, or the target of targetRef."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headroom.api import InferenceService
from headroom.api.reasons import StatusReason
from headroom.api.service_spec.target_ref import TargetRef
from headroom.controller.gather.workloads.pruned import pruned
from headroom.controller.ports import Cluster, Manifest
from headroom.errors import Conflict, Forbidden, NotFound, Rejected, UnknownKind
from headroom.resources import names

_SELECTED_BY_SPEC = frozenset({("apps/v1", "Deployment"), ("apps/v1", "StatefulSet")})
"""Kinds that say replicas and selector themselves; of others their /scale does."""


class TargetUnusable(Exception):  # noqa: N818  (named by what the caller does next: say so, and hold)
    """The target cannot be scaled as it is; the message names the remedy."""

    def __init__(self, reason: StatusReason, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """The workload as read. Its resourceVersion guards the write of the decision."""

    manifest: Manifest
    replicas: int
    """The requested number."""
    selector: str
    """Label selector of its pods, which may also select others."""

    @property
    def uid(self) -> str:
        """Its UID: a name may come back, a UID does not."""
        return str(self.manifest["metadata"]["uid"])


async def read_workload(cluster: Cluster, service: InferenceService) -> Workload | None:
    """Read the workload of a service; None where its own Deployment does not exist yet.

    Raises TargetUnusable, or ClusterError where the API does not let it.
    """
    target = service.spec.target_ref
    if target is not None:
        return await _target(cluster, service.namespace, target)
    try:
        own = pruned(await cluster.get("apps/v1", "Deployment", service.namespace, service.name))
    except NotFound:
        return None
    return workload_of(own, service.name)


def workload_of(deployment: Manifest, name: str) -> Workload:
    """Return the Deployment that a service of that name has made."""
    return Workload(
        manifest=deployment,
        replicas=int(deployment["spec"]["replicas"]),
        selector=names.selector_text(name),
    )


def is_rolling(manifest: Mapping[str, Any]) -> bool:
    """Return whether pods of an older template are there, or a new spec has not been observed yet.

    A field that another API group's kind does not have is ignored.
    """
    status, generation = manifest.get("status") or {}, manifest["metadata"].get("generation", 0)
    ours_to_know = manifest.get("apiVersion") == "apps/v1"
    observed = status.get("observedGeneration", 0 if ours_to_know else generation)
    if isinstance(observed, int) and observed < generation:
        return True
    if "updateRevision" in status:
        rolls = _replaces_all_pods(manifest["spec"])
        return rolls and status["updateRevision"] != status.get("currentRevision")
    replicas = status.get("replicas", 0)
    updated = status.get("updatedReplicas", 0 if ours_to_know else replicas)
    return bool(replicas > updated)


def is_paused(manifest: Mapping[str, Any]) -> bool:
    """Return whether changes of the template are held back."""
    return (manifest.get("spec") or {}).get("paused") is True


def selector_text(selector: Mapping[str, Any]) -> str:
    """Render a LabelSelector as a query takes it."""
    parts = [f"{key}={value}" for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        values = ",".join(one.get("values") or ())
        match one["operator"]:
            case "In":
                parts.append(f"{one['key']} in ({values})")
            case "NotIn":
                parts.append(f"{one['key']} notin ({values})")
            case "Exists":
                parts.append(one["key"])
            case _:
                parts.append(f"!{one['key']}")
    return ",".join(parts)


async def _target(cluster: Cluster, namespace: str, target: TargetRef) -> Workload:
    """Read the target before its scale: a change in between makes the write a conflict."""
    named = f"{target.kind} {namespace}/{target.name}"
    try:
        manifest = pruned(
            await cluster.get(target.api_version, target.kind, namespace, target.name)
        )
        if (target.api_version, target.kind) in _SELECTED_BY_SPEC:
            return _of_apps(manifest)
        scale = await cluster.get_scale(target.api_version, target.kind, namespace, target.name)
    except UnknownKind as error:
        said = f"{named}: {error}; correct spec.targetRef.kind or its apiVersion: it cannot be "
        said += "changed, so delete the InferenceService, which removes no workload, and apply it "
        said += "again; or install the CustomResourceDefinition of that kind"
        raise TargetUnusable(StatusReason.TARGET_NOT_FOUND, said) from error
    except NotFound as error:
        said = f"{named} ({target.api_version}) cannot be found: {error}; create it, or delete the "
        said += f"InferenceService and create one with another targetRef{_usual_version(target)}"
        raise TargetUnusable(StatusReason.TARGET_NOT_FOUND, said) from error
    except Forbidden as error:
        said = f"{error}; grant the operator get on the kind, and get and update on its /scale"
        raise TargetUnusable(StatusReason.TARGET_FORBIDDEN, said) from error
    except Rejected as error:
        raise TargetUnusable(StatusReason.TARGET_NOT_SCALABLE, f"{named}: {error}") from error
    if scale["metadata"].get("uid") != manifest["metadata"]["uid"]:
        raise Conflict(f"{named} was recreated between two reads")
    selector = (scale.get("status") or {}).get("selector", "")
    if not selector:
        said = f"the scale of {named} has no status.selector, so its pods cannot be found: name "
        said += "the workload that runs them in targetRef, or set labelSelectorPath in the scale "
        said += "subresource of the CustomResourceDefinition"
        raise TargetUnusable(StatusReason.TARGET_NOT_SCALABLE, said)
    return Workload(
        manifest=manifest,
        replicas=int((scale.get("spec") or {}).get("replicas", 0)),
        selector=selector,
    )


def _usual_version(target: TargetRef) -> str:
    """Return the apiVersion of Kubernetes' own kind of that name; empty if the target has it."""
    usual = next((version for version, kind in _SELECTED_BY_SPEC if kind == target.kind), "")
    if usual in ("", target.api_version):
        return ""
    return f" (Kubernetes' own {target.kind} has apiVersion {usual})"


def _of_apps(manifest: Manifest) -> Workload:
    spec = manifest["spec"]
    return Workload(
        manifest=manifest,
        replicas=int(spec.get("replicas", 1)),
        selector=selector_text(spec["selector"]),
    )


def _replaces_all_pods(spec: Mapping[str, Any]) -> bool:
    """Return whether its controller replaces all pods: no OnDelete, no partition."""
    strategy = spec.get("updateStrategy") or {}
    partition = (strategy.get("rollingUpdate") or {}).get("partition", 0)
    return strategy.get("type", "RollingUpdate") == "RollingUpdate" and not partition
