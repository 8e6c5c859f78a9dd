"""Sources of model weights: in the image, mounted, or downloaded before the server starts.

file:///path                nothing: the weights are in the image
pvc://claim/path            the claim, read-only
oci://image                 an image volume; the kubelet pulls it and checks its digest
hf://name, s3://bucket      an emptyDir, filled by an init container
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headroom.resources import names

if TYPE_CHECKING:
    from headroom.api import InferenceService
    from headroom.resources.settings import Settings


def local_uri(uri: str) -> str:
    """Return the weights' URI in the server's file system."""
    scheme, _, rest = uri.partition("://")
    if scheme in ("", "file"):
        return uri
    path = rest.partition("/")[2] if scheme == "pvc" else ""
    return f"file://{names.MODEL_MOUNT}/{path}".rstrip("/")


def volumes(service: InferenceService) -> list[dict[str, Any]]:
    """Return the volume of the weights, if any."""
    model = service.spec.model
    place = model.uri.partition("://")[2]
    source: dict[str, Any]
    if model.scheme == "pvc":
        claim = place.partition("/")[0]
        source = {"persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
    elif model.scheme == "oci":
        source = {"image": {"reference": place}}
    elif model.is_fetched:
        source = {"emptyDir": {"sizeLimit": str(model.size_limit)}}
    else:
        return []
    return [{"name": names.MODEL_VOLUME, **source}]


def mounts(service: InferenceService) -> list[dict[str, Any]]:
    """Return the mount of that volume in the server's container."""
    return [_mount(one["name"]) | {"readOnly": True} for one in volumes(service)]


def init_containers(service: InferenceService, settings: Settings) -> list[dict[str, Any]]:
    """Return the downloading init container; only the pod reads its credentials."""
    model = service.spec.model
    if not model.is_fetched:
        return []
    checked = ["--digest", model.digest] if model.digest else []
    container: dict[str, Any] = {
        "name": names.DOWNLOADER,
        "image": settings.downloader_image,
        "args": [model.uri, names.MODEL_MOUNT, *checked],
        # A quota may require requests and limits here too; a pod counts the larger of its init
        # containers and its containers, so this costs nothing.
        "resources": service.spec.runtime.resources.manifest(),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [{"name": "tmp", "mountPath": "/tmp"}, _mount(names.MODEL_VOLUME)],  # noqa: S108
    }
    if model.secret_name:
        container["envFrom"] = [{"secretRef": {"name": model.secret_name}}]
    return [container]


def _mount(volume: str) -> dict[str, Any]:
    return {"name": volume, "mountPath": names.MODEL_MOUNT}
