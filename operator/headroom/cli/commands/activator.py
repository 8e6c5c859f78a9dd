"""`headroom activator`: holds requests of services without a warm replica."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroom.cli.exit_codes import fail
from headroom.cli.log_level import LogLevel, LogLevelOption

MIB = 1 << 20


def activator(
    operator: Annotated[
        str, typer.Option(help="URL of the operator, such as https://10.96.0.7:18001.")
    ],
    address: Annotated[str, typer.Option(help="Address on which gateways reach this process.")],
    operator_name: Annotated[
        str,
        typer.Option(
            help="DNS name in the operator's certificate, such as "
            "headroom-operator.headroom-system.svc."
        ),
    ],
    certificate_folder: Annotated[
        Path,
        typer.Option(
            help="Folder with this process's certificate, tls.crt and tls.key, and the CAs of the "
            "operator's, ca.crt. Renewed files are read again."
        ),
    ] = Path("/var/run/secrets/headroom"),
    token_file: Annotated[
        Path,
        typer.Option(help="File with the token that authenticates this process to the operator."),
    ] = Path("/var/run/secrets/headroom/token"),
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080,
    requests: Annotated[int, typer.Option(min=1, help="Maximum number of held requests.")] = 4096,
    requests_per_service: Annotated[
        int, typer.Option(min=1, help="Maximum number of requests held per service.")
    ] = 2048,
    body_mib: Annotated[
        int, typer.Option(min=1, help="Maximum size of all held requests, in MiB.")
    ] = 128,
    max_hold: Annotated[str, typer.Option(help="Maximum time to hold a request.")] = "15m",
    drain: Annotated[
        str, typer.Option(help="Time after SIGTERM to wait for a replica to become warm.")
    ] = "30s",
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Hold requests while a service has no warm replica, until SIGTERM."""
    import uvloop

    from headroom.activator.client_tls import ClientTls
    from headroom.activator.held_request import Bounds
    from headroom.activator.process import Settings, run
    from headroom.api.durations import Duration
    from headroom.cli.compose.process_setup import configure_logging, raise_open_files

    if "$(" in operator:  # the kubelet leaves unknown variables as they are
        fail(
            f"--operator {operator} names a variable that is not set: the Service "
            "headroom-operator-xds must exist before the pod starts; the kubelet restarts this "
            "container"
        )
    if not operator.startswith("https://"):
        rule = f"must begin with https://, or the token would be readable; got {operator}"
        raise typer.BadParameter(rule, param_hint="--operator")
    try:
        max_hold_s, drain_s = (Duration.parse(text).seconds for text in (max_hold, drain))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--max-hold, --drain") from None
    bounds = Bounds(
        requests=requests,
        requests_per_service=requests_per_service,
        body_bytes=body_mib * MIB,
        longest_s=max_hold_s,
    )
    configure_logging(log_level.number)
    raise_open_files()
    try:
        uvloop.run(
            run(
                Settings(
                    operator=operator,
                    token_file=token_file,
                    address=address,
                    port=port,
                    bounds=bounds,
                    tls=ClientTls(certificate_folder, operator_name),
                    drain_s=drain_s,
                )
            )
        )
    except OSError as error:
        fail(str(error))
