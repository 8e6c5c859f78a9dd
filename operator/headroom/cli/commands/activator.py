"""`headroom activator`: hold requests of services that have no warm replica."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from headroom.cli.exit_codes import fail

MIB = 1 << 20


def activator(
    operator: Annotated[
        str, typer.Option(help="Where the operator is asked, such as http://operator:18001.")
    ],
    address: Annotated[
        str, typer.Option(help="Address of this process, at which gateways reach it.")
    ],
    token_file: Annotated[
        Path, typer.Option(help="The token that says to the operator who this is.")
    ] = Path("/var/run/secrets/headroom/token"),
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080,
    requests: Annotated[int, typer.Option(min=1, help="Requests held at once, at most.")] = 4096,
    requests_per_service: Annotated[
        int, typer.Option(min=1, help="The same for one service.")
    ] = 2048,
    body_mib: Annotated[int, typer.Option(min=1, help="MiB held at once, at most.")] = 256,
    longest: Annotated[
        str, typer.Option(help="Time that a request is held, at most, such as 15m.")
    ] = "15m",
    drain: Annotated[
        str, typer.Option(help="Time after SIGTERM in which a replica may still get warm.")
    ] = "30s",
) -> None:
    """Hold requests while a service has no warm replica, until SIGTERM."""
    import uvloop

    from headroom.activator.process import Settings, run
    from headroom.activator.request_buffer import Bounds
    from headroom.api.durations import Duration

    if "$(" in operator:  # as the kubelet leaves what it does not know
        fail(
            f"--operator {operator} names a variable that is not set: the Service "
            "headroom-operator-xds must be there before the pod is; the kubelet starts this "
            "container again"
        )
    try:
        longest_s, drain_s = (Duration.parse(text).seconds for text in (longest, drain))
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--longest, --drain") from None
    bounds = Bounds(
        requests=requests,
        requests_per_service=requests_per_service,
        body_bytes=body_mib * MIB,
        longest_s=longest_s,
    )
    try:
        uvloop.run(
            run(
                Settings(
                    operator=operator,
                    token_file=token_file,
                    address=address,
                    port=port,
                    bounds=bounds,
                    drain_s=drain_s,
                )
            )
        )
    except OSError as error:
        fail(str(error))
