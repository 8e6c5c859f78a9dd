"""Activators and the operator over mutual TLS: refused peers, and renewal without a break."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from aiohttp import ClientConnectionError, ClientSession

from free_ports import free_port
from headroom.activator.client_tls import ClientTls
from headroom.activator.metrics import Metrics
from headroom.activator.operator_client import OperatorClient
from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.adapters.certificates.server_tls import ServerTls
from headroom.adapters.gateways.activator_api import MAX_CONNECTIONS, ActivatorApi
from headroom.bounded_listener import HANDSHAKE_S
from headroom.certificates.values import DAY_S, Role
from headroom.gateway.activator_messages import Report, Served, report_body
from support.fakes_certificates import SYSTEM, identity, new_authority, put, served
from support.fakes_gateway import TOKEN, authenticate, is_open, until

OPERATOR = Role.OPERATOR.dns_name(SYSTEM)
REPORT = Report(address="127.0.0.1")


@dataclass
class Desk:
    api: ActivatorApi
    port: int
    tls: ServerTls
    ca: KeyPair

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"


@pytest.fixture
async def desk() -> AsyncIterator[Desk]:
    """The operator's server for activators."""
    ca, port = new_authority(), free_port()
    tls = served(ca)
    api = ActivatorApi(authenticate, hold_s=0.1, tls=tls, peer=Role.ACTIVATOR.dns_name(SYSTEM))
    api.publish([])
    serving = asyncio.create_task(api.serve(port, "127.0.0.1"))
    await until(lambda: is_open(port), "the port is open")
    yield Desk(api, port, tls, ca)
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def status(
    url: str,
    context: ssl.SSLContext | bool,
    token: str = TOKEN,
    session: ClientSession | None = None,
) -> int:
    """Report held requests, and return the status."""
    headers = {"Authorization": f"Bearer {token}"}

    async def post(client: ClientSession) -> int:
        async with client.post(
            f"{url}/v1/held",
            data=report_body(REPORT),
            headers=headers,
            ssl=context,
            server_hostname=OPERATOR if url.startswith("https") else None,
        ) as answered:
            return answered.status

    if session is not None:
        return await post(session)
    async with ClientSession() as client:
        return await post(client)


def context_of(folder: Path) -> ssl.SSLContext:
    return ClientTls(folder, OPERATOR).context()


async def test_activator_with_certificate_and_token_is_served(desk: Desk, tmp_path: Path) -> None:
    put(tmp_path, identity(desk.ca, Role.ACTIVATOR))
    assert await status(desk.url, context_of(tmp_path)) == 204
    assert await status(desk.url, context_of(tmp_path), token="made up") == 401


async def test_stolen_token_without_a_certificate_gets_nothing(desk: Desk, tmp_path: Path) -> None:
    anonymous = ssl.create_default_context(cadata=desk.ca.certificate.decode())
    stranger, expired = tmp_path / "stranger", tmp_path / "expired"
    put(stranger, identity(new_authority(), Role.ACTIVATOR, None, desk.ca))
    put(expired, identity(desk.ca, Role.ACTIVATOR, time.time() - 2 * DAY_S))
    for context in (anonymous, context_of(stranger), context_of(expired)):
        with pytest.raises(ClientConnectionError):
            await status(desk.url, context)
    with pytest.raises(ClientConnectionError):
        await status(desk.url.replace("https", "http"), context=True)


@pytest.mark.parametrize("role", [Role.GATEWAY, Role.OPERATOR])
async def test_another_holders_certificate_is_refused(
    desk: Desk, tmp_path: Path, role: Role
) -> None:
    put(tmp_path, identity(desk.ca, role))
    assert await status(desk.url, context_of(tmp_path)) == 401


async def test_connection_that_outlives_its_certificate_is_refused(
    desk: Desk, tmp_path: Path
) -> None:
    put(tmp_path, identity(desk.ca, Role.ACTIVATOR, time.time() - DAY_S + 2.0))
    context = context_of(tmp_path)
    async with ClientSession() as session:
        assert await status(desk.url, context, session=session) == 204
        await asyncio.sleep(2.1)
        assert await status(desk.url, context, session=session) == 401


async def test_activator_refuses_an_operator_with_another_holders_certificate(
    desk: Desk, tmp_path: Path
) -> None:
    desk.tls.install(identity(desk.ca, Role.GATEWAY))
    put(tmp_path, identity(desk.ca, Role.ACTIVATOR))
    with pytest.raises(ClientConnectionError):
        await status(desk.url, context_of(tmp_path))


async def test_activator_follows_renewed_certificates_of_both_ends(
    desk: Desk, tmp_path: Path
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    put(tmp_path, identity(desk.ca, Role.ACTIVATOR))
    seen: list[int] = []

    async def note(services: tuple[Served, ...]) -> None:
        seen.append(len(services))

    async with ClientSession() as session:
        tls = ClientTls(tmp_path, OPERATOR)
        client = OperatorClient(
            session, desk.url, tmp_path / "token", lambda: REPORT, Metrics(), tls
        )
        following = asyncio.create_task(client.follow(note))

        async def notified() -> bool:
            return len(seen) > before

        before = 0
        await until(notified, "the services are known")
        new = new_authority()
        desk.tls.install(identity(new, Role.OPERATOR))
        put(tmp_path, identity(new, Role.ACTIVATOR))
        before = len(seen)
        await until(notified, "and are notified over the new certificates")
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def test_unfinished_handshakes_are_bounded_and_leave_room_for_activators(
    desk: Desk, tmp_path: Path
) -> None:
    """One address takes half of the connections; another one still gets in, and each ends soon."""
    put(tmp_path, identity(desk.ca, Role.ACTIVATOR))
    idle = []
    for _ in range(3 * MAX_CONNECTIONS):
        one = socket.socket()
        one.bind(("127.0.0.2", 0))
        one.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            one.connect(("127.0.0.1", desk.port))
        idle.append(one)

    async def taken() -> bool:
        return desk.api.listener.held == MAX_CONNECTIONS // 2

    await until(taken, "half of the bound is taken")
    assert await status(desk.url, context_of(tmp_path)) == 204
    assert desk.api.listener.held <= MAX_CONNECTIONS // 2 + 1

    async def ended() -> bool:
        return desk.api.listener.held <= 1

    await until(ended, "handshakes are given up", HANDSHAKE_S + 5.0)
    for one in idle:
        one.close()
