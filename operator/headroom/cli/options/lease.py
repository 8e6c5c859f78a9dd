"""Which Lease the operator stands for, from options, the pod's own namespace, or the default."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

DEFAULT_NAMESPACE = "headroom-system"
DEFAULT_NAME = "headroom-operator"
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        envvar="HEADROOM_LEASE_NAMESPACE",
        help="Namespace of the Lease that makes one of several operators the writer. "
        f"[default: the pod's own, else {DEFAULT_NAMESPACE}]",
        show_default=False,
    ),
]
LeaseName = Annotated[str, typer.Option(envvar="HEADROOM_LEASE_NAME", help="Name of that Lease.")]
WithLease = Annotated[
    bool,
    typer.Option(
        "--lease/--no-lease",
        help="Decide only while holding the Lease. Without it no other operator may be running.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChoice:
    """A Lease, and who stands for it."""

    namespace: str
    name: str
    identity: str


def chosen(
    namespace: str | None, name: str, instance: str, own_namespace: Path = _OWN_NAMESPACE
) -> LeaseChoice:
    """Fill in what was not said.

    A restarted container has the name of the one before, so the identity has a part of its own.
    """
    return LeaseChoice(
        namespace=namespace or _read(own_namespace) or DEFAULT_NAMESPACE,
        name=name,
        identity=f"{instance}_{uuid.uuid4()}",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""
