"""The facts that the doctor examines: everything that was read from the cluster, as values.

What could not be read is listed in `unread`: an empty list means that there is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import Any

from headroom.api.kind import GROUP, PLURAL
from headroom.api.service_status.status import Status
from headroom.controller.permissions import Permission

Manifest = Mapping[str, Any]

_BLOCKS = ("runtime", "targetRef", "prefillRef", "slo", "scaling", "routing", "telemetry")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A pod's answer to a request for its metrics."""

    class How(StrEnum):
        """The kind of answer."""

        PAGE = "page"
        REFUSED = "refused"
        """Nothing listens on the port."""
        CLOSED = "closed"
        """The connection was closed without an answer, as by a port that expects TLS."""
        SILENT = "silent"
        """No answer in time."""
        NOT_THERE = "not there"
        """The server has no such path."""
        OTHER = "other"

    how: How
    pod: str
    port: int
    path: str
    container: str = ""
    """The container that declares the port; empty if none does."""
    ready: bool = True
    """Whether the pod is ready; none of the service is, if it is not."""
    detail: str = ""
    names: frozenset[str] = frozenset()
    """Names of the metrics on the page."""
    declared: tuple[int, ...] = ()
    """Ports that the pod's containers declare."""
    own_port: bool = False
    """Whether metrics are read at another port than requests are sent to."""
    elsewhere: int | None = None
    """A declared port that has a page of metrics, where this one refuses connections."""
    elsewhere_names: frozenset[str] = frozenset()
    """Names of the metrics on that page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """A kind that could not be read, and why."""

    what: str
    why: str
    denied: bool = False
    """Whether the user lacks the permission; else the read failed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The cluster as read."""

    version: tuple[int, int] | None = None
    """Version of Kubernetes, major and minor."""
    now_s: float | None = None
    """Time by the API server's clock, seconds since the epoch."""
    crd: Manifest | None = None
    """None if it is not installed, or in `unread`."""
    operators: tuple[Manifest, ...] = ()
    """Deployments of the operator."""
    denied: tuple[tuple[str, Permission], ...] = ()
    """(user, permission) for each one that the operator lacks."""
    services: tuple[Manifest, ...] = ()
    malformed: tuple[Manifest, ...] = ()
    """Services without the blocks that checks read, which an older schema admitted."""
    targets: Mapping[str, Manifest | None] = field(default_factory=dict)
    """Workload that a service scales, or None, by the service's UID."""
    autoscalers: tuple[Manifest, ...] = ()
    policies: tuple[Manifest, ...] = ()
    """NetworkPolicies."""
    budgets: tuple[Manifest, ...] = ()
    """PodDisruptionBudgets."""
    nodes: tuple[Manifest, ...] = ()
    pods: Mapping[str, tuple[Manifest, ...]] = field(default_factory=dict)
    """Pods of a service, by the service's UID."""
    answers: Mapping[str, Answered] = field(default_factory=dict)
    """Answer of one of a service's running pods, by the service's UID."""
    leases: tuple[Manifest, ...] = ()
    """Leases of the nodes and of the operator."""
    certificates: Mapping[str, float | None] = field(default_factory=dict)
    """Expiry of the certificate in a Secret that gateways need, by the Secret's `namespace/name`,
    in seconds since the epoch; None without a certificate."""
    unread: tuple[Unread, ...] = ()

    def was_read(self, what: str) -> bool:
        """Return whether this kind could be read."""
        return all(one.what != what for one in self.unread)


def is_formed(service: Manifest) -> bool:
    """Return whether a service has a name and a spec, and its blocks that checks read are maps."""
    spec, metadata = service.get("spec"), service.get("metadata")
    named = isinstance(metadata, Mapping) and {"name", "namespace"} <= metadata.keys()
    return (
        named
        and isinstance(spec, Mapping)
        and all(isinstance(spec.get(name) or {}, Mapping) for name in _BLOCKS)
    )


def service_status(one: Manifest) -> Status:
    """Return the status of a service."""
    return Status.read(one.get("status"))


def subject(one: Manifest) -> str:
    """Return how a finding names an object; `-` where it has no name."""
    metadata = one.get("metadata")
    if not isinstance(metadata, Mapping):
        metadata = {}
    return f"{metadata.get('namespace', '-')}/{metadata.get('name', '-')}"


def resource(one: Manifest) -> str:
    """Return how kubectl names a service, also where KServe has a kind of the same name."""
    return f"{PLURAL}.{GROUP}/{subject(one).partition('/')[2]}"


def uid(one: Manifest) -> str:
    """Return the UID; empty without one."""
    return str(one["metadata"].get("uid", ""))


def option(operator: Manifest, name: str) -> list[str]:
    """Return the values of an option of an operator, written with = or as the next argument."""
    template = operator["spec"].get("template", {})
    words = [
        word
        for one in template.get("spec", {}).get("containers") or ()
        for argument in one.get("args") or ()
        for word in str(argument).split("=", 1)
    ]
    return [value for word, value in pairwise([*words, ""]) if word == name]
