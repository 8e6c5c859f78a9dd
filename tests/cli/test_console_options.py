"""Address of the console, and the clients that it admits there."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import aiohttp
import pytest
import typer

from headroom.cli.compose.console import serve_console
from headroom.cli.run_options.console import ConsoleChoice, ConsoleOptions
from headroom.console.read_model import ReadModel
from support.console_world import START_S, bystander

pytestmark = pytest.mark.clock


class RejectingReviews:
    async def create(self, manifest: dict[str, Any], *, field_manager: str) -> dict[str, Any]:
        return {"status": {"authenticated": False}}


@pytest.mark.parametrize(
    ("address", "loopback"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False)]
)
def test_loopback_address_is_recognized(address: str, loopback: bool) -> None:
    assert ConsoleChoice(address=address).is_loopback is loopback


def test_console_listens_on_loopback_by_default() -> None:
    assert ConsoleOptions().choice() == ConsoleChoice(address="127.0.0.1", port=8081)
    assert ConsoleOptions(console=False).choice() is None
    with pytest.raises(typer.BadParameter, match="must be an IP address, such as 127"):
        ConsoleOptions(console_address="localhost").choice()


@pytest.mark.parametrize(("address", "status"), [("127.0.0.1", 200), ("0.0.0.0", 401)])
async def test_console_on_other_address_requires_token(
    address: str, status: int, unused_tcp_port: int
) -> None:
    model = ReadModel(lambda: [bystander(0)])
    choice = ConsoleChoice(address=address, port=unused_tcp_port)
    serving = asyncio.create_task(serve_console(choice, model, RejectingReviews(), lambda: START_S))
    async with aiohttp.ClientSession() as session:
        assert await answered(session, f"http://127.0.0.1:{unused_tcp_port}/") == status
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def test_console_on_taken_port_is_served_when_free(
    caplog: pytest.LogCaptureFixture,
) -> None:
    taken = socket.create_server(("127.0.0.1", 0))
    port = taken.getsockname()[1]
    model = ReadModel(lambda: [bystander(0)])
    clock = lambda: START_S  # noqa: E731
    serving = asyncio.create_task(
        serve_console(ConsoleChoice(port=port), model, RejectingReviews(), clock, 0.02)
    )
    await asyncio.sleep(0.1)
    taken.close()
    async with aiohttp.ClientSession() as session:
        assert await answered(session, f"http://127.0.0.1:{port}/") == 200
    assert [one.levelname for one in caplog.records if "no console" in one.message] == ["WARNING"]
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def answered(session: aiohttp.ClientSession, url: str) -> int:
    """The status of the first answer, once something listens."""
    async with asyncio.timeout(20.0):
        while True:
            try:
                async with session.get(url) as answer:
                    return answer.status
            except aiohttp.ClientConnectorError:
                await asyncio.sleep(0.02)


async def test_disabled_console_only_waits() -> None:
    waiting = asyncio.create_task(
        serve_console(None, ReadModel(list), RejectingReviews(), lambda: 0.0)
    )
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    waiting.cancel()
    assert not done
