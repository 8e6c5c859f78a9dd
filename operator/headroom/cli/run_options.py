"""The options of `headroom run`, by topic, and the values that they give."""

from __future__ import annotations

import ipaddress
import logging
import re
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import typer

from headroom.adapters.redaction import redacted

# The log


class LogLevel(StrEnum):
    """The least severe messages that are logged."""

    DEBUG = "debug"
    INFO = "info"
    WARNING = "warning"
    ERROR = "error"

    @property
    def number(self) -> int:
        """Return the level as the logging module counts it."""
        return logging.getLevelNamesMapping()[self.name]


LogLevelOption = Annotated[
    LogLevel,
    typer.Option(envvar="HEADROOM_LOG_LEVEL", help="The least severe messages to log."),
]

# Limits over all services

MaxReplicas = Annotated[
    int | None,
    typer.Option(
        "--max-replicas-per-service",
        min=1,
        envvar="HEADROOM_MAX_REPLICAS_PER_SERVICE",
        help="Maximum replicas of any service, whatever its maxReplicas. Replicas that already "
        "run are not removed. [default: no limit]",
        show_default=False,
    ),
]
MaxAccelerators = Annotated[
    int | None,
    typer.Option(
        "--max-accelerators",
        min=1,
        envvar="HEADROOM_MAX_ACCELERATORS",
        help="Maximum accelerators of all services together. Replicas that already run are not "
        "removed. [default: no limit]",
        show_default=False,
    ),
]

NotAccelerators = Annotated[
    list[str] | None,
    typer.Option(
        "--not-accelerator",
        metavar="PATTERN",
        envvar="HEADROOM_NOT_ACCELERATORS",
        help="Extended resource of pods that --max-accelerators does not count, such as rdma/*; "
        "repeatable. Every other one counts. [default: rdma/*, vpc.amazonaws.com/*, "
        "networking.gke.io.networks/*, devices.kubevirt.io/*]",
        show_default=False,
    ),
]

# The console

CONSOLE_ADDRESS = "127.0.0.1"
CONSOLE_PORT = 8081

WithConsole = Annotated[
    bool, typer.Option("--console/--no-console", help="Serve a read-only web page of all services.")
]
ConsolePort = Annotated[int, typer.Option(min=1, max=65535, help="Port of the console.")]
ConsoleAddress = Annotated[
    str,
    typer.Option(
        help="Address of the console. Use kubectl port-forward to reach a loopback address. On any "
        "other address each request needs a bearer token, which the API server reviews."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleChoice:
    """Where the console listens."""

    address: str = CONSOLE_ADDRESS
    port: int = CONSOLE_PORT

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine, or this pod, can reach it."""
        return ipaddress.ip_address(self.address).is_loopback


def console_choice(enabled: bool, address: str, port: int) -> ConsoleChoice | None:
    """Return where the console listens, or None; raise ValueError for an invalid address."""
    if not enabled:
        return None
    try:
        ipaddress.ip_address(address)
    except ValueError:
        rule = "must be an IP address, such as 127.0.0.1 or 0.0.0.0"
        raise ValueError(f"the console's address {rule}; got {address!r:.60}") from None
    return ConsoleChoice(address=address, port=port)


# Model downloads

DownloaderImage = Annotated[
    str | None,
    typer.Option(
        envvar="HEADROOM_DOWNLOADER_IMAGE",
        help="Image that downloads hf:// and s3:// models before their servers start. "
        "[default: headroom-downloader of this version]",
        show_default=False,
    ),
]

# Gateways and activators

XDS_PORT = 18000
PORTS, PORTS_PER_NAMESPACE = 10_000, 1_000
ACTIVATOR_PORT = 18001

GatewayNamespace = Annotated[
    str | None,
    typer.Option(
        metavar="NAMESPACE",
        help="Route services in Gateway mode through the gateways of this namespace. Without it "
        "they are routed as in Service mode.",
    ),
]
XdsPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Port on which gateways get their configuration.")
]
ActivatorPort = Annotated[
    int, typer.Option(min=1, max=65535, help="Port on which activators get their configuration.")
]
PortsPerNamespace = Annotated[
    int,
    typer.Option(
        "--gateway-ports-per-namespace",
        min=1,
        max=PORTS,
        help=f"Maximum gateway ports per namespace, of {PORTS} in total.",
    ),
]


class CertificateIssuer(StrEnum):
    """Who issues the certificates of operator, gateways and activators."""

    OPERATOR = "operator"
    SECRET = "secret"  # noqa: S105  (the operator only reads the Secret)


Certificates = Annotated[
    CertificateIssuer,
    typer.Option(
        "--gateway-certificates",
        help="Who issues the certificates of operator, gateways and activators: the operator, into "
        "Secrets of their namespace, or another issuer, such as cert-manager, into the same ones.",
    ),
]


TokenReviews = Annotated[
    bool,
    typer.Option(
        "--review-gateway-tokens/--no-review-gateway-tokens",
        help="Have the API server review the tokens of gateways and activators, in addition to "
        "their certificates. To review is a right of the whole cluster.",
    ),
]
MarkPods = Annotated[
    bool,
    typer.Option(
        "--mark-pods/--no-mark-pods",
        envvar="HEADROOM_MARK_PODS",
        help="Mark the pods with the fewest requests in flight, so that a scale-down removes them "
        "first. Takes the permission to patch pods, and with it their images.",
    ),
]


@dataclass(frozen=True, slots=True)
class GatewayChoice:
    """Where the gateways are, and the ports that gateways and activators connect to."""

    namespace: str
    port: int = XDS_PORT
    activator_port: int = ACTIVATOR_PORT
    ports_per_namespace: int = PORTS_PER_NAMESPACE
    certificates: CertificateIssuer = CertificateIssuer.OPERATOR
    reviews_tokens: bool = True


# Leadership

LEASE_NAMESPACE = "headroom-system"
LEASE_NAME = "headroom-operator"
_OWN_NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

LeaseNamespace = Annotated[
    str | None,
    typer.Option(
        envvar="HEADROOM_LEASE_NAMESPACE",
        help="Namespace of the Lease that elects one of several operators as leader. "
        f"[default: the pod's own, else {LEASE_NAMESPACE}]",
        show_default=False,
    ),
]
LeaseName = Annotated[str, typer.Option(envvar="HEADROOM_LEASE_NAME", help="Name of that Lease.")]
WithLease = Annotated[
    bool,
    typer.Option(
        "--lease/--no-lease",
        help="Decide only while holding the Lease. Without a Lease no other operator may run.",
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseChoice:
    """A Lease, and the identity of this candidate."""

    namespace: str
    name: str
    identity: str


def lease_choice(
    namespace: str | None, name: str, instance: str, own_namespace: Path = _OWN_NAMESPACE
) -> LeaseChoice:
    """Return the Lease; without a namespace, the pod's own or the default.

    A restarted container keeps its name, so the identity has a random part.
    """
    return LeaseChoice(
        namespace=namespace or _read(own_namespace) or LEASE_NAMESPACE,
        name=name,
        identity=f"{instance}_{uuid.uuid4()}",
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


# Prometheus

PrometheusUrls = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus",
        metavar="NAME=URL",
        envvar="HEADROOM_PROMETHEUS",
        help="A Prometheus that services may name in spec.telemetry. Repeat it for several, with "
        "the same name for replicas that scrape the same pods. Services that name none use "
        "`default`.",
    ),
]
ReplicaLabels = Annotated[
    list[str] | None,
    typer.Option(
        "--prometheus-replica-label",
        metavar="LABEL",
        envvar="HEADROOM_PROMETHEUS_REPLICA_LABEL",
        help="External label that distinguishes the replicas of a Prometheus where one URL answers "
        "for several, in addition to prometheus_replica. Repeat it for several.",
    ),
]


def prometheus_sources(given: Iterable[str]) -> Mapping[str, tuple[str, ...]]:
    """Return the URLs of NAME=URL pairs by name; raise ValueError with the rule and the value."""
    from headroom.api.telemetry_source import SOURCE_NAME  # noqa: PLC0415  (help needs no schema)

    urls: dict[str, tuple[str, ...]] = {}
    for one in given:
        name, separator, url = one.partition("=")
        if not separator or re.fullmatch(SOURCE_NAME, name) is None:
            rule = "must be NAME=URL, with a name of lower-case letters, digits and -"
            raise ValueError(f"a Prometheus {rule}; got {redacted(one)!r}")
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(
                "the URL of a Prometheus must begin with http:// or https://; "
                f"got {redacted(url)!r}"
            )
        if parts.query or parts.fragment or parts.username is not None:
            rule = "must have only scheme, host, port and path: no credentials, query or fragment"
            raise ValueError(f"the URL of a Prometheus {rule}; got one of them for {name!r}")
        urls[name] = (*urls.get(name, ()), url)
    return urls
