"""`headroom activator`: holds requests of services without a warm replica."""

# ruff: noqa: PLC0415  (each command imports what it needs)

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headroom.cli.exit_codes import fail
from headroom.cli.log_level import LogLevel, LogLevelOption

if TYPE_CHECKING:
    from headroom.activator.held_request import Bounds

MIB = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionOptions:
    """The operator, the gateways, and the credentials of this process."""

    operator: Annotated[
        str, typer.Option(help="URL of the operator, such as https://10.96.0.7:18001.")
    ]
    address: Annotated[str, typer.Option(help="Address on which gateways reach this process.")]
    operator_name: Annotated[
        str,
        typer.Option(
            help="DNS name in the operator's certificate, such as "
            "headroom-operator.headroom-system.svc."
        ),
    ]
    certificate_folder: Annotated[
        Path,
        typer.Option(
            help="Folder with this process's certificate, tls.crt and tls.key, and the CAs of the "
            "operator's, ca.crt. Renewed files are read again."
        ),
    ] = Path("/var/run/secrets/headroom")
    token_file: Annotated[
        Path,
        typer.Option(help="File with the token that authenticates this process to the operator."),
    ] = Path("/var/run/secrets/headroom/token")
    port: Annotated[
        int, typer.Option(min=1, max=65535, help="Port of /livez, /readyz and /metrics.")
    ] = 8080

    def check(self) -> None:
        """Exit for a URL without a host; raise BadParameter for one without TLS."""
        if "$(" in self.operator:  # the kubelet leaves unknown variables as they are
            fail(
                f"--operator {self.operator} names a variable that is not set: the Service "
                "headroom-operator-xds must exist before the pod starts; the kubelet restarts this "
                "container"
            )
        if not self.operator.startswith("https://"):
            rule = f"must begin with https://, or the token would be readable; got {self.operator}"
            raise typer.BadParameter(rule, param_hint="--operator")


@dataclass(frozen=True, slots=True, kw_only=True)
class HoldingOptions:
    """Bounds on held requests: their number and their time."""

    requests: Annotated[int, typer.Option(min=1, help="Maximum number of held requests.")] = 4096
    requests_per_service: Annotated[
        int, typer.Option(min=1, help="Maximum number of requests held per service.")
    ] = 2048
    body_mib: Annotated[
        int, typer.Option(min=1, help="Maximum size of all held requests, in MiB.")
    ] = 128
    max_hold: Annotated[str, typer.Option(help="Maximum time to hold a request.")] = "15m"
    drain: Annotated[
        str, typer.Option(help="Time after SIGTERM to wait for a replica to become warm.")
    ] = "30s"

    def bounds_and_drain_s(self) -> tuple[Bounds, float]:
        """Return the bounds and the seconds of the drain; raise BadParameter for no duration."""
        from headroom.activator.held_request import Bounds
        from headroom.api.durations import Duration

        try:
            longest_s, drain_s = (
                Duration.parse(one).seconds for one in (self.max_hold, self.drain)
            )
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--max-hold, --drain") from None
        bounds = Bounds(
            requests=self.requests,
            requests_per_service=self.requests_per_service,
            body_bytes=self.body_mib * MIB,
            longest_s=longest_s,
        )
        return bounds, drain_s


def activator(
    connection: ConnectionOptions,
    holding: HoldingOptions,
    log_level: LogLevelOption = LogLevel.INFO,
) -> None:
    """Hold requests while a service has no warm replica, until SIGTERM."""
    import uvloop

    from headroom.activator.client_tls import ClientTls
    from headroom.activator.process import Settings, run
    from headroom.cli.compose.process_setup import configure_logging, raise_open_files

    connection.check()
    bounds, drain_s = holding.bounds_and_drain_s()
    settings = Settings(
        operator=connection.operator,
        token_file=connection.token_file,
        address=connection.address,
        port=connection.port,
        bounds=bounds,
        tls=ClientTls(connection.certificate_folder, connection.operator_name),
        drain_s=drain_s,
    )
    configure_logging(log_level.number)
    raise_open_files()
    try:
        uvloop.run(run(settings))
    except OSError as error:
        fail(str(error))
