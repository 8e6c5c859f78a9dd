"""`headroom run`: the operator."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated

import typer

from headroom.cli.exit_codes import fail
from headroom.cli.run_choices import (
    ACTIVATOR_PORT,
    CONSOLE_ADDRESS,
    CONSOLE_PORT,
    LEASE_NAME,
    PORTS_PER_NAMESPACE,
    XDS_PORT,
    CertificateIssuer,
    GatewayChoice,
    LogLevel,
    console_choice,
    lease_choice,
    prometheus_sources,
)
from headroom.cli.run_options import (
    ActivatorPort,
    Certificates,
    ConsoleAddress,
    ConsolePort,
    DownloaderImage,
    GatewayNamespace,
    LeaseName,
    LeaseNamespace,
    LogLevelOption,
    MarkPods,
    MaxAccelerators,
    MaxReplicas,
    NotAccelerators,
    PortsPerNamespace,
    PrometheusUrls,
    ReplicaLabels,
    TokenReviews,
    WithConsole,
    WithLease,
    XdsPort,
)

RECORD_MIB = 48
"""Fits the 64 MiB of the shipped manifest's /tmp: eleven days of one service at a tick of 2 s."""

Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", help="Only this namespace; repeat it for several."),
]


def run(
    namespace: Namespaces = None,
    tick: Annotated[
        str, typer.Option(help="Time between two evaluations of a service, such as 2s.")
    ] = "2s",
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080,
    log_level: LogLevelOption = LogLevel.INFO,
    console: WithConsole = True,
    console_address: ConsoleAddress = CONSOLE_ADDRESS,
    console_port: ConsolePort = CONSOLE_PORT,
    lease: WithLease = True,
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = LEASE_NAME,
    max_replicas_per_service: MaxReplicas = None,
    max_accelerators: MaxAccelerators = None,
    not_accelerator: NotAccelerators = None,
    prometheus: PrometheusUrls = None,
    prometheus_replica_label: ReplicaLabels = None,
    gateway_namespace: GatewayNamespace = None,
    xds_port: XdsPort = XDS_PORT,
    activator_port: ActivatorPort = ACTIVATOR_PORT,
    gateway_ports_per_namespace: PortsPerNamespace = PORTS_PER_NAMESPACE,
    gateway_certificates: Certificates = CertificateIssuer.OPERATOR,
    review_gateway_tokens: TokenReviews = True,
    mark_pods: MarkPods = False,
    downloader_image: DownloaderImage = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Record each tick's observations in this file. `headroom simulate` replays it: a "
            'scenario names it with arrivals = { recording = "FILE" }.',
        ),
    ] = None,
    record_mib: Annotated[
        int, typer.Option(min=1, help="Maximum size of the recording, in MiB.")
    ] = RECORD_MIB,
) -> None:
    """Run the operator, in a cluster or with KUBECONFIG, until SIGTERM."""
    import uvloop

    from headroom.cli.compose.operator_process import RunOptions, operate
    from headroom.cli.compose.process_setup import configure_logging, raise_open_files
    from headroom.controller.sharing.ceilings import Caps
    from headroom.errors import ClusterError
    from headroom.resources.accelerators import NOT_COUNTED
    from headroom.resources.settings import DOWNLOADER_IMAGE, Settings

    tick_s = _tick_s(tick)
    try:
        urls = prometheus_sources(prometheus or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--prometheus") from None
    try:
        shown = console_choice(console, console_address, console_port)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--console-address") from None
    gateway = None
    if gateway_namespace:
        gateway = GatewayChoice(
            gateway_namespace,
            xds_port,
            activator_port,
            gateway_ports_per_namespace,
            gateway_certificates,
            review_gateway_tokens,
        )
    instance = os.environ.get("HOSTNAME") or socket.gethostname()
    configure_logging(log_level.number)
    raise_open_files()
    options = RunOptions(
        namespaces=tuple(namespace or ()),
        tick_s=tick_s,
        port=port,
        instance=instance,
        lease=lease_choice(lease_namespace, lease_name, instance) if lease else None,
        prometheus=urls,
        replica_labels=prometheus_replica_label or (),
        caps=Caps(
            replicas_per_service=max_replicas_per_service,
            accelerators=max_accelerators,
            not_counted=tuple(not_accelerator or NOT_COUNTED),
        ),
        console=shown,
        gateway=gateway,
        record=record,
        record_mib=record_mib,
        settings=Settings(
            downloader_image=downloader_image or DOWNLOADER_IMAGE, marks_pods=mark_pods
        ),
    )
    try:
        uvloop.run(operate(options))
    except (ClusterError, OSError) as error:
        fail(str(error))


def _tick_s(text: str) -> float:
    from headroom.api.durations import Duration

    try:
        seconds = Duration.parse(text).seconds
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tick") from None
    if not 0.2 <= seconds <= 60.0:
        rule = f"must be between 200ms and 1m; got {text}"
        raise typer.BadParameter(rule, param_hint="--tick")
    return seconds
