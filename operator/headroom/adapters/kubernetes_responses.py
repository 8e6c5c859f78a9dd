"""Translates responses of the API server into objects or errors. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from headroom.adapters.redaction import redacted
from headroom.errors import (
    ClusterError,
    Conflict,
    Forbidden,
    NamespaceTerminating,
    NotFound,
    Rejected,
    Unavailable,
)

Manifest = dict[str, Any]

_RETRY_AFTER_S = 1.0
_MAX_RETRY_AFTER_S = 60.0
_SHOWN = 1024
"""Kept length of the API server's messages, which end up in logs, events and status."""

_ERRORS: dict[int, type[ClusterError]] = {
    400: Rejected,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    405: Rejected,
    409: Conflict,
    413: Rejected,
    415: Rejected,
    422: Rejected,
}
_LONG_TEXT = 256
"""Longest text of an annotation; those that are read, costs and marks, have some 100."""
_MOST_ENTRIES = 32
"""Most annotations and labels besides those that are read, and most entries of a list."""
READ_OF_PODS = frozenset(
    {
        "controller.kubernetes.io/pod-deletion-cost",
        "headroom.dev/removed-first",
        "headroom.dev/inference-service",
        "pod-template-hash",
    }
)
_UNREAD_OF_SPEC = (
    "volumes", "affinity", "tolerations", "topologySpreadConstraints", "hostAliases", "dnsConfig",
    "securityContext", "imagePullSecrets", "ephemeralContainers",
)  # fmt: skip
_UNREAD_OF_CONTAINER = (
    "env", "envFrom", "args", "command", "volumeMounts", "volumeDevices", "lifecycle",
    "livenessProbe", "readinessProbe", "startupProbe", "securityContext",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A raw response of any status."""

    status: int
    body: bytes
    date: str
    """The Date header; empty if missing."""
    retry_after: str


def leave_out_managed_fields(one: object) -> None:
    """Remove managedFields, which are half of an object and not used."""
    metadata = one.get("metadata") if isinstance(one, dict) else None
    if isinstance(metadata, dict):
        metadata.pop("managedFields", None)


def leave_out_long_texts(pod: object) -> None:
    """Remove what a tenant can make large in a pod and nothing here reads.

    300 pods with 248 kB of annotations each took 210 MiB; so do 248 annotations of 1 kB.
    """
    leave_out_managed_fields(pod)
    if not isinstance(pod, dict):
        return
    metadata, spec = pod.get("metadata"), pod.get("spec")
    if isinstance(metadata, dict):
        for name in ("annotations", "labels"):
            _leave_out_entries(metadata.get(name))
        _shorten(metadata, "finalizers", "ownerReferences")
    if not isinstance(spec, dict):
        return
    for field in _UNREAD_OF_SPEC:
        spec.pop(field, None)
    kinds = ("initContainers", "containers")
    _shorten(spec, "readinessGates", "schedulingGates", "resourceClaims", *kinds)
    for kind in kinds:
        containers = spec.get(kind)
        for container in containers if isinstance(containers, list) else ():
            if isinstance(container, dict):
                for field in _UNREAD_OF_CONTAINER:
                    container.pop(field, None)
                _shorten(container, "ports", "resizePolicy")


def _leave_out_entries(texts: object) -> None:
    """Keep the entries that are read and a few others, none of them long."""
    if not isinstance(texts, dict):
        return
    for number, name in enumerate(list(texts)):
        if len(str(texts[name])) > _LONG_TEXT or (
            number >= _MOST_ENTRIES and name not in READ_OF_PODS
        ):
            del texts[name]


def _shorten(parent: Manifest, *names: str) -> None:
    """Cut lists; readers look for few entries, which the API server keeps in order."""
    for name in names:
        listed = parent.get(name)
        if isinstance(listed, list):
            del listed[_MOST_ENTRIES:]


def items_of(answer: Manifest, path: str) -> list[Manifest]:
    """Return the objects of a list; raise Unavailable if it is not a list."""
    items = answer.get("items", ())
    if items is not None and not isinstance(items, list):
        raise Unavailable(f"GET {path}: the response is not a list of objects")
    return items or []


def object_of(found: Fetched, asked: str) -> Manifest:
    """Return the object of a response; raise the error of its status."""
    if found.status >= 300:
        raise error_of(found.status, found.body, found.retry_after, asked)
    try:
        answer = _decoded(found.body)
    except (ValueError, RecursionError) as error:
        raise Unavailable(f"{asked}: the response is not JSON: {error}") from error
    if not isinstance(answer, dict):
        raise Unavailable(f"{asked}: the response is not an object")
    return answer


def _decoded(body: bytes) -> Any:
    """Decode JSON, also below the depth at which orjson ends (1024).

    The API server stores 10 000 levels where a schema preserves unknown fields, as in a
    `podTemplate`; one such object must not make the list of all unreadable.
    """
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError:
        return json.loads(body)


def error_of(
    status: int, payload: bytes, retry_after: str, asked: str, known: Sequence[str] = ()
) -> ClusterError:
    """Translate an error response, with the API server's message if it has one.

    `known` are secrets that the message may repeat.
    """
    try:
        message = redacted(str(orjson.loads(payload)["message"]), known)[:_SHOWN]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        message = redacted(payload[:4096].decode("utf-8", "replace"), known)[:200].strip()
    words = f"{message} ({status})" if message else f"{asked} returned status {status}"
    if status == 403 and b'"NamespaceTerminating"' in payload:
        return NamespaceTerminating(words)
    kind = _ERRORS.get(status)
    if kind is not None:
        return kind(words)
    asked_s = float(retry_after) if retry_after.isdecimal() else _RETRY_AFTER_S
    return Unavailable(words, retry_after_s=min(asked_s, _MAX_RETRY_AFTER_S))
