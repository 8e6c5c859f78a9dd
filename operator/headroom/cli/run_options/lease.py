"""The Lease with which `headroom run` elects a leader."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

LEASE_NAMESPACE = "headroom-system"
LEASE_NAME = "headroom-operator"
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChoice:
    """A Lease, and the identity of this candidate."""

    namespace: str
    name: str
    identity: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseOptions:
    """Leadership."""

    lease: Annotated[
        bool,
        typer.Option(
            "--lease/--no-lease",
            help="Decide only while holding the Lease. Without a Lease no other operator may run.",
        ),
    ] = True
    lease_namespace: Annotated[
        str | None,
        typer.Option(
            envvar="HEADROOM_LEASE_NAMESPACE",
            help="Namespace of the Lease that elects one of several operators as leader. "
            f"[default: the pod's own, else {LEASE_NAMESPACE}]",
            show_default=False,
        ),
    ] = None
    lease_name: Annotated[
        str, typer.Option(envvar="HEADROOM_LEASE_NAME", help="Name of that Lease.")
    ] = LEASE_NAME

    def choice(self, instance: str, own_namespace: Path = _OWN_NAMESPACE) -> LeaseChoice | None:
        """Return the Lease, or None to decide without one.

        Without a namespace it is in the pod's own or the default. A restarted container keeps its
        name, so the identity has a random part.
        """
        if not self.lease:
            return None
        return LeaseChoice(
            namespace=self.lease_namespace or _read(own_namespace) or LEASE_NAMESPACE,
            name=self.lease_name,
            identity=f"{instance}_{uuid.uuid4()}",
        )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
