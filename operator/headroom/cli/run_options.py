"""The options of `headroom run`, by topic."""

from __future__ import annotations

from typing import Annotated

import typer

from headroom.cli.run_choices import LEASE_NAMESPACE, PORTS, CertificateIssuer, LogLevel

# The log

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

# Leadership

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
