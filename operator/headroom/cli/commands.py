"""The commands.

Each command imports what it needs: `headroom crd` should not wait for an HTTP stack.
"""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from typing import Annotated

import typer

from headroom.cli.activator import activator
from headroom.cli.cluster_commands import app as cluster_app
from headroom.cli.ending import fail
from headroom.cli.options.cap import MaxAccelerators, MaxReplicas
from headroom.cli.options.console import (
    DEFAULT_ADDRESS,
    DEFAULT_PORT,
    ConsoleAddress,
    ConsolePort,
    WithConsole,
)
from headroom.cli.options.console import chosen as console_chosen
from headroom.cli.options.downloader import DownloaderImage
from headroom.cli.options.gateway import (
    ACTIVATOR_PORT,
    XDS_PORT,
    ActivatorPort,
    GatewayChoice,
    GatewayNamespace,
    XdsPort,
)
from headroom.cli.options.lease import (
    DEFAULT_NAME,
    LeaseName,
    LeaseNamespace,
    WithLease,
    chosen,
)
from headroom.cli.options.prometheus import PrometheusUrls, ReplicaLabels, sources
from headroom.cli.plan.command import app as plan_app
from headroom.cli.simulate.command import app as simulate_app

app = typer.Typer(
    name="headroom",
    help="Keep a latency promise for GPU inference with the fewest GPUs.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

app.add_typer(cluster_app)
app.add_typer(plan_app)
app.add_typer(simulate_app)

RECORD_MIB = 48
"""Fits the 64 MiB of the shipped manifest's /tmp: eleven days of one service at a tick of 2 s."""

Namespaces = Annotated[
    list[str] | None,
    typer.Option("--namespace", "-n", help="Only this namespace; repeat for several."),
]


@app.command()
def run(
    namespace: Namespaces = None,
    tick: Annotated[
        str, typer.Option(help="Time between two evaluations of a service, such as 2s.")
    ] = "2s",
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080,
    console: WithConsole = True,
    console_address: ConsoleAddress = DEFAULT_ADDRESS,
    console_port: ConsolePort = DEFAULT_PORT,
    lease: WithLease = True,
    lease_namespace: LeaseNamespace = None,
    lease_name: LeaseName = DEFAULT_NAME,
    max_replicas_per_service: MaxReplicas = None,
    max_accelerators: MaxAccelerators = None,
    prometheus: PrometheusUrls = None,
    prometheus_replica_label: ReplicaLabels = None,
    gateway_namespace: GatewayNamespace = None,
    xds_port: XdsPort = XDS_PORT,
    activator_port: ActivatorPort = ACTIVATOR_PORT,
    downloader_image: DownloaderImage = None,
    record: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Append what is seen at each tick, for `headroom simulate` to replay: a scenario "
            'names it with arrivals = { recording = "FILE" }.',
        ),
    ] = None,
    record_mib: Annotated[
        int, typer.Option(min=1, help="Size at which the recording ends, in MiB.")
    ] = RECORD_MIB,
) -> None:
    """Run the operator, in a cluster or with KUBECONFIG, until SIGTERM."""
    import uvloop

    from headroom.api.durations import Duration
    from headroom.cli.run import operate
    from headroom.controller.sharing.ceilings import Caps
    from headroom.errors import ClusterError
    from headroom.resources.settings import DOWNLOADER_IMAGE, Settings

    try:
        tick_s = Duration.parse(tick).seconds
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--tick") from None
    if not 0.2 <= tick_s <= 60.0:
        rule = f"an evaluation every 200ms to 1m is possible, received {tick}"
        raise typer.BadParameter(rule, param_hint="--tick")
    try:
        urls = sources(prometheus or ())
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--prometheus") from None
    try:
        shown = console_chosen(console, console_address, console_port)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--console-address") from None
    instance = os.environ.get("HOSTNAME") or socket.gethostname()
    try:
        uvloop.run(
            operate(
                tuple(namespace or ()),
                tick_s=tick_s,
                port=port,
                instance=instance,
                lease=chosen(lease_namespace, lease_name, instance) if lease else None,
                prometheus=urls,
                replica_labels=prometheus_replica_label or (),
                caps=Caps(
                    replicas_per_service=max_replicas_per_service, accelerators=max_accelerators
                ),
                console=shown,
                gateway=(
                    GatewayChoice(gateway_namespace, xds_port, activator_port)
                    if gateway_namespace
                    else None
                ),
                record=record,
                record_mib=record_mib,
                settings=Settings(downloader_image=downloader_image or DOWNLOADER_IMAGE),
            )
        )
    except (ClusterError, OSError) as error:
        fail(str(error))


app.command()(activator)


@app.command()
def render(
    file: Annotated[Path, typer.Argument(help="YAML; - reads standard input.")],
) -> None:
    """Print the objects that an InferenceService gets, as YAML; nothing is sent anywhere."""
    from headroom.api import InvalidSpec
    from headroom.cli.render import rendered

    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text(encoding="utf-8")
        typer.echo(rendered(text), nl=False)
    except UnicodeDecodeError:
        fail(f"{file}: not a text file; give YAML with an InferenceService")
    except OSError as error:
        fail(f"{file}: {error.strerror}; give a YAML file, or - for standard input")
    except (InvalidSpec, ValueError) as error:
        fail(f"{file}: {error}")


@app.command()
def crd() -> None:
    """Print the CustomResourceDefinition as YAML."""
    from headroom.api.crd import render_yaml

    typer.echo(render_yaml(), nl=False)


@app.command()
def reference() -> None:
    """Print every field, condition, reason, metric and command as Markdown."""
    from headroom.cli.reference import page
    from headroom.console.instruments import Instruments

    commands = typer.main.get_group(app)
    typer.echo(page(commands, Instruments().page().decode()), nl=False)
