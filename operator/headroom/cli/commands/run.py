"""`headroom run`: the operator."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

import os
import socket

from headroom.cli.exit_codes import fail
from headroom.cli.run_options.console import ConsoleOptions
from headroom.cli.run_options.gateway import GatewayOptions
from headroom.cli.run_options.lease import LeaseOptions
from headroom.cli.run_options.limits import LimitOptions
from headroom.cli.run_options.pods import PodOptions
from headroom.cli.run_options.process import ProcessOptions
from headroom.cli.run_options.prometheus import PrometheusOptions
from headroom.cli.run_options.recording import RecordingOptions


def run(
    process: ProcessOptions,
    console: ConsoleOptions,
    lease: LeaseOptions,
    limits: LimitOptions,
    prometheus: PrometheusOptions,
    gateway: GatewayOptions,
    pods: PodOptions,
    recording: RecordingOptions,
) -> None:
    """Run the operator, in a cluster or with KUBECONFIG, until SIGTERM."""
    import uvloop

    from headroom.cli.compose.operator_process import operate
    from headroom.cli.compose.process_setup import configure_logging, raise_open_files
    from headroom.cli.compose.run_request import RunRequest
    from headroom.errors import ClusterError

    instance = os.environ.get("HOSTNAME") or socket.gethostname()
    request = RunRequest(
        namespaces=tuple(process.namespace or ()),
        tick_s=process.tick_s(),
        port=process.port,
        instance=instance,
        prometheus=prometheus.urls(),
        replica_labels=prometheus.prometheus_replica_label or (),
        console=console.choice(),
        lease=lease.choice(instance),
        caps=limits.caps(),
        gateway=gateway.choice(),
        settings=pods.settings(has_gateways=gateway.choice() is not None),
        record=recording.record,
        record_mib=recording.record_mib,
    )
    configure_logging(process.log_level.number)
    raise_open_files()
    try:
        uvloop.run(operate(request))
    except (ClusterError, OSError) as error:
        fail(str(error))
