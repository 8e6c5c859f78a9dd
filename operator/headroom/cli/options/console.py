"""Whether and where the operator serves its console, and to whom."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from headroom.console.access import Guard, Reviewer
    from headroom.console.read_model import ReadModel
    from headroom.controller.services.service_cache import ServiceCache

DEFAULT_ADDRESS = "127.0.0.1"
DEFAULT_PORT = 8081
AGAIN_AFTER_S = 30.0

_log = logging.getLogger(__name__)

WithConsole = Annotated[
    bool, typer.Option("--console/--no-console", help="Serve a read-only page about all services.")
]
ConsolePort = Annotated[int, typer.Option(min=1, max=65535, help="Port of the console.")]
ConsoleAddress = Annotated[
    str,
    typer.Option(
        help="Address of the console. A loopback address is reached by kubectl port-forward; on "
        "any other every request needs a bearer token, which the API server reviews."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleChoice:
    """Where the console listens."""

    address: str = DEFAULT_ADDRESS
    port: int = DEFAULT_PORT

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine, or this pod, can reach it."""
        return ipaddress.ip_address(self.address).is_loopback


def chosen(wanted: bool, address: str, port: int) -> ConsoleChoice | None:
    """Give where it listens, or None; raise ValueError where the address is none."""
    if not wanted:
        return None
    try:
        ipaddress.ip_address(address)
    except ValueError:
        rule = "an IP address, such as 127.0.0.1 or 0.0.0.0"
        raise ValueError(f"the console listens on {rule}, received {address!r:.60}") from None
    return ConsoleChoice(address=address, port=port)


async def show(
    choice: ConsoleChoice | None,
    model: ReadModel,
    reviewer: Reviewer,
    now_s: Callable[[], float],
    again_after_s: float = AGAIN_AFTER_S,
) -> None:
    """Serve the console until cancelled; where none is wanted, only wait.

    Where the port is taken, it is said once and tried again: services are kept without a console.
    """
    if choice is None:
        await asyncio.Event().wait()
        return
    from headroom.console.server import serve  # noqa: PLC0415  (options are shown without aiohttp)
    from headroom.console.web import console  # noqa: PLC0415

    said = ""
    while True:
        try:
            app = console(model, _guard(choice, reviewer, now_s), now_s)
            await serve(app, choice.port, choice.address)
        except OSError as error:
            if str(error) != said:
                said = str(error)
                _log.warning("no console, tried again every %g s: %s", again_after_s, said)
        await asyncio.sleep(again_after_s)


def _guard(choice: ConsoleChoice, reviewer: Reviewer, now_s: Callable[[], float]) -> Guard:
    from headroom.console.access import LoopbackOnly, TokenReviewed  # noqa: PLC0415

    return LoopbackOnly() if choice.is_loopback else TokenReviewed(reviewer, now_s)


def services(cache: ServiceCache) -> Iterator[dict[str, Any]]:
    """Give the objects as last seen."""
    for uid in cache.uids():
        if (one := cache.get(uid)) is not None:
            yield one
