"""Options of `headroom run` for the address of its console."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from typing import Annotated

import typer

CONSOLE_ADDRESS = "127.0.0.1"
CONSOLE_PORT = 8081


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleChoice:
    """Address of the console."""

    address: str = CONSOLE_ADDRESS
    port: int = CONSOLE_PORT

    @property
    def is_loopback(self) -> bool:
        """Return whether only this machine, or this pod, can reach it."""
        return ipaddress.ip_address(self.address).is_loopback


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The console."""

    console: Annotated[
        bool,
        typer.Option("--console/--no-console", help="Serve a read-only web page of all services."),
    ] = True
    console_address: Annotated[
        str,
        typer.Option(
            help="Address of the console. Use kubectl port-forward to reach a loopback address. On "
            "any other address each request needs a bearer token, which the API server reviews."
        ),
    ] = CONSOLE_ADDRESS
    console_port: Annotated[int, typer.Option(min=1, max=65535, help="Port of the console.")] = (
        CONSOLE_PORT
    )

    def choice(self) -> ConsoleChoice | None:
        """Return where the console listens, or None; raise BadParameter for a bad address."""
        if not self.console:
            return None
        try:
            ipaddress.ip_address(self.console_address)
        except ValueError:
            rule = "the console's address must be an IP address, such as 127.0.0.1 or 0.0.0.0"
            raise typer.BadParameter(
                f"{rule}; got {self.console_address!r:.60}", param_hint="--console-address"
            ) from None
        return ConsoleChoice(address=self.console_address, port=self.console_port)
