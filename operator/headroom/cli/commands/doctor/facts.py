"""What the doctor looks at: everything that was read of the cluster, as values.

What could not be read is in `unread`, never an empty list: nothing found and nothing seen differ.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from headroom.controller.permissions import Permission

Manifest = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """How a pod answered when it was asked for its metrics."""

    class How(StrEnum):
        """What came back."""

        PAGE = "page"
        REFUSED = "refused"
        """Nothing listens on the port."""
        SILENT = "silent"
        """No answer in time."""
        NOT_THERE = "not there"
        """The server has no such path."""
        OTHER = "other"

    how: How
    pod: str
    port: int
    path: str
    detail: str = ""
    names: frozenset[str] = frozenset()
    """Of the metrics on the page."""
    declared: tuple[int, ...] = ()
    """Ports that the pod's containers declare."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Something that could not be read, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """The cluster as it was read."""

    version: tuple[int, int] | None = None
    """Of Kubernetes, major and minor."""
    now_s: float | None = None
    """By the API server's clock, seconds since the epoch."""
    crd: Manifest | None = None
    """None where it is not there; see `unread`."""
    operators: tuple[Manifest, ...] = ()
    """Deployments that run the operator."""
    denied: tuple[tuple[str, Permission], ...] = ()
    """(user, permission) for each that the operator lacks."""
    services: tuple[Manifest, ...] = ()
    targets: Mapping[str, Manifest | None] = field(default_factory=dict)
    """By the service's UID: the workload that it scales; None where there is none."""
    autoscalers: tuple[Manifest, ...] = ()
    nodes: tuple[Manifest, ...] = ()
    answers: Mapping[str, Answered] = field(default_factory=dict)
    """By the service's UID: how one of its pods answered; absent where none runs."""
    leases: tuple[Manifest, ...] = ()
    """Of the nodes, and of the operator."""
    unread: tuple[Unread, ...] = ()

    def was_read(self, what: str) -> bool:
        """Whether this could be read at all."""
        return all(one.what != what for one in self.unread)
