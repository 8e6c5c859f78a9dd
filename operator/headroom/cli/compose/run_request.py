"""Checked options of `headroom run`, and the permissions that they require."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from headroom.cli.run_options.console import ConsoleChoice
from headroom.cli.run_options.gateway import CertificateIssuer, GatewayChoice
from headroom.cli.run_options.lease import LeaseChoice
from headroom.controller import permissions
from headroom.controller.permissions import Permission
from headroom.controller.sharing.caps import Caps
from headroom.resources.settings import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The options of `headroom run`, checked."""

    namespaces: Sequence[str] = ()
    """Empty: all namespaces."""
    tick_s: float
    port: int
    instance: str
    lease: LeaseChoice | None = None
    """None: decide always, without an election."""
    console: ConsoleChoice | None = None
    gateway: GatewayChoice | None = None
    record: Path | None = None
    record_mib: int = 0
    prometheus: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """URLs by name."""
    replica_labels: Sequence[str] = ()
    settings: Settings
    caps: Caps

    def permissions(self) -> list[Permission]:
        """Return the permissions that the operator's ServiceAccount needs."""
        namespaces, lease, gateway = self.namespaces, self.lease, self.gateway
        needed = list(permissions.on_services(namespaces))
        if self.settings.marks_pods:
            needed += permissions.on_marks(namespaces)
        if gateway is not None:
            needed += permissions.on_gateways(
                namespaces, gateway.namespace, reviews_tokens=gateway.reviews_tokens
            )
            issues = gateway.certificates is CertificateIssuer.OPERATOR
            needed += permissions.on_certificates(gateway.namespace, issues=issues)
        if lease is not None:
            needed += permissions.on_lease(lease.namespace, lease.name)
        return needed
