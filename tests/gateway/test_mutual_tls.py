"""Gateways get their configuration over mutual TLS: refused peers, renewal without a break."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import AsyncIterator
from pathlib import Path

import grpc
import grpc.aio
import pytest

from free_ports import free_port
from headroom.adapters.certificates.certificate_issuer import new_leaf
from headroom.adapters.certificates.certificate_reader import KeyPair
from headroom.adapters.certificates.server_tls import Identity, ServerTls
from headroom.adapters.gateways.xds_server import XdsServer
from headroom.adapters.gateways.xds_server.messages import METHOD
from headroom.adapters.gateways.xds_server.server import MAX_CONNECTIONS
from headroom.certificates.values import DAY_S, Role
from headroom.gateway import snapshot
from support.fakes_certificates import SYSTEM, identity, new_authority, put, served
from support.fakes_gateway import (
    TOKEN,
    Replica,
    authenticate,
    gateway,
    ok,
    service,
    until,
    url,
)

OPERATOR = Role.OPERATOR.dns_name(SYSTEM)


@pytest.fixture
async def operator() -> AsyncIterator[tuple[int, KeyPair, ServerTls]]:
    """A server for gateways over mutual TLS, with something to tell, and its CA."""
    ca, port = new_authority(), free_port()
    tls = served(ca)
    xds = XdsServer(authenticate, tls, Role.GATEWAY.dns_name(SYSTEM))
    xds.publish(snapshot([service()], {}, {}))
    serving = asyncio.create_task(xds.serve(port, "127.0.0.1"))
    yield port, ca, tls
    serving.cancel()
    await asyncio.gather(serving, return_exceptions=True)


async def first_answer(port: int, one: Identity | None, trusted: KeyPair, token: str) -> bytes:
    """Ask for the clusters and return the first answer. Raises RefusedError."""
    pair = (one.key, one.certificate) if one else (None, None)
    credentials = grpc.ssl_channel_credentials(trusted.certificate, *pair)
    options = [("grpc.ssl_target_name_override", OPERATOR)]
    asked = b"\x12\x33type.googleapis.com/envoy.config.cluster.v3.Cluster"
    asked = asked[:1] + bytes([len(asked) - 2]) + asked[2:]
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        stream = channel.stream_stream(METHOD)(
            timeout=10, metadata=(("authorization", f"Bearer {token}"),)
        )
        # A server that refuses may end the call before anything is written.
        with contextlib.suppress(grpc.aio.AioRpcError):
            await stream.write(asked)
            answer = await stream.read()
            if isinstance(answer, bytes):
                return answer
        raise RefusedError(f"{(await stream.code()).name} {await stream.details()}")


class RefusedError(Exception):
    """The server ended the call; the text has its status."""


async def refusal(port: int, one: Identity | None, trusted: KeyPair, token: str = TOKEN) -> str:
    with pytest.raises(RefusedError) as raised:
        await first_answer(port, one, trusted, token)
    return str(raised.value)


async def test_client_with_certificate_and_token_is_answered(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    assert b"vision/resnet50" in await first_answer(port, identity(ca, Role.GATEWAY), ca, TOKEN)


async def test_client_with_stolen_token_and_no_certificate_of_its_own_gets_nothing(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    """Network reach and the gateway's token: not one byte of configuration."""
    port, ca, _ = operator
    stranger = new_authority()
    expired = identity(ca, Role.GATEWAY, time.time() - 2 * DAY_S)
    for one in (None, identity(stranger, Role.GATEWAY), expired):
        assert (await refusal(port, one, ca)).startswith("UNAVAILABLE")  # no handshake
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        plain = channel.stream_stream(METHOD)(
            timeout=10, metadata=(("authorization", f"Bearer {TOKEN}"),)
        )
        with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
            await plain.read()


@pytest.mark.parametrize("role", [Role.ACTIVATOR, Role.OPERATOR])
async def test_client_with_another_holders_certificate_is_refused(
    operator: tuple[int, KeyPair, ServerTls], role: Role
) -> None:
    port, ca, _ = operator
    said = await refusal(port, identity(ca, role), ca)
    assert said == (
        "UNAUTHENTICATED a valid certificate with the DNS name "
        "headroom-gateway.headroom-system.svc is required"
    )


async def test_client_with_certificate_of_another_namespace_is_refused(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    pair = new_leaf(ca, Role.GATEWAY.dns_name("elsewhere"), time.time())
    said = await refusal(port, Identity(*pair, ca.certificate), ca)
    assert said.startswith("UNAUTHENTICATED")


async def test_client_with_certificate_and_without_token_is_refused(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    said = await refusal(port, identity(ca, Role.GATEWAY), ca, token="made up")
    assert said == "UNAUTHENTICATED the gateway's ServiceAccount token is required"


async def test_server_after_renewal_refuses_what_the_removed_ca_signed(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, old, tls = operator
    new = new_authority()
    tls.install(identity(new, Role.OPERATOR))
    assert await first_answer(port, identity(new, Role.GATEWAY), new, TOKEN)
    assert (await refusal(port, identity(old, Role.GATEWAY), new)).startswith("UNAVAILABLE")


async def test_stream_ends_with_the_certificate_that_it_began_with(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    ending = identity(ca, Role.GATEWAY, time.time() - DAY_S + 3.0)
    pair = (ending.key, ending.certificate)
    credentials = grpc.ssl_channel_credentials(ca.certificate, *pair)
    options = [("grpc.ssl_target_name_override", OPERATOR)]
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        stream = channel.stream_stream(METHOD)(
            timeout=30, metadata=(("authorization", f"Bearer {TOKEN}"),)
        )
        assert await stream.read() is grpc.aio.EOF
        assert await stream.code() is grpc.StatusCode.OK


async def silent(port: int, address: str) -> socket.socket:
    """Connect from an address, and send nothing."""
    one = socket.socket()
    one.setblocking(False)
    one.bind((address, 0))
    await asyncio.get_running_loop().sock_connect(one, ("127.0.0.1", port))
    return one


async def settled(idle: list[socket.socket], most: int) -> bool:
    """Return whether all but this many are closed."""
    return sum(not is_closed(one) for one in idle) <= most


def is_closed(one: socket.socket) -> bool:
    try:
        return one.recv(1) == b""
    except BlockingIOError:
        return False
    except ConnectionResetError:
        return True


async def test_unfinished_handshakes_of_one_address_leave_room_for_a_gateway(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    idle = [await silent(port, "127.0.0.2") for _ in range(MAX_CONNECTIONS + 36)]
    await until(lambda: settled(idle, MAX_CONNECTIONS // 2), "its share is taken", 5.0)
    assert not await settled(idle, MAX_CONNECTIONS // 2 - 1)
    assert await first_answer(port, identity(ca, Role.GATEWAY), ca, TOKEN)
    for one in idle:
        one.close()


async def test_unfinished_handshakes_are_bounded_and_end_soon(
    operator: tuple[int, KeyPair, ServerTls],
) -> None:
    port, ca, _ = operator
    idle = [await silent(port, f"127.0.0.{2 + number % 3}") for number in range(200)]
    await until(lambda: settled(idle, MAX_CONNECTIONS), "others are refused", 5.0)

    async def answered() -> bool:
        try:
            return bool(await first_answer(port, identity(ca, Role.GATEWAY), ca, TOKEN))
        except RefusedError:
            return False

    await until(answered, "a gateway is answered once handshakes are given up", 20.0)
    for one in idle:
        one.close()


async def test_gateway_over_mutual_tls_routes_and_follows_a_renewal_without_a_restart(
    tmp_path: Path, started: list[Replica]
) -> None:
    old, new = new_authority(), new_authority()
    tls = served(old)
    put(tmp_path, identity(old, Role.GATEWAY))
    replica = await Replica(ok).start()
    started.append(replica)
    async with gateway(tmp_path, tls=tls) as front:
        first, second = service(), service(name="bert")
        await front.tell(first, replicas={first.key: [replica.endpoint]})
        refused: list[int] = []

        async def traffic() -> None:
            while True:
                async with front.client.get(url(first)) as answer:
                    if answer.status != 200:
                        refused.append(answer.status)
                await asyncio.sleep(0.01)

        requests = asyncio.create_task(traffic())
        # Trust is distributed first; then the new CA signs, and the old one goes.
        both = (old, new)
        tls.install(identity(old, Role.OPERATOR, None, *both))
        put(tmp_path, identity(old, Role.GATEWAY, None, *both))
        await asyncio.sleep(0.5)
        tls.install(identity(new, Role.OPERATOR, None, *both))
        put(tmp_path, identity(new, Role.GATEWAY, None, *both))
        # The stream lives on: what is published arrives.
        replicas = {one.key: [replica.endpoint] for one in (first, second)}
        await front.tell(first, second, replicas=replicas)
        await asyncio.sleep(0.5)
        tls.install(identity(new, Role.OPERATOR))
        put(tmp_path, identity(new, Role.GATEWAY))
        await asyncio.sleep(0.5)
        # An operator that starts now knows the new CA only.
        front.xds_task.cancel()
        await asyncio.gather(front.xds_task, return_exceptions=True)
        following = XdsServer(authenticate, tls, Role.GATEWAY.dns_name(SYSTEM))
        third = service(name="t5")
        front.xds = following
        front.xds_task = asyncio.create_task(following.serve(front.xds_port, "127.0.0.1"))
        replicas = {one.key: [replica.endpoint] for one in (first, second, third)}
        await front.tell(first, second, third, replicas=replicas)
        requests.cancel()
        await asyncio.gather(requests, return_exceptions=True)
        assert refused == []


async def test_gateway_refuses_an_operator_whose_certificate_is_not_the_operators(
    tmp_path: Path,
) -> None:
    """An address that is taken over, with the certificate of an activator."""
    ca = new_authority()
    tls = served(ca)
    tls.install(identity(ca, Role.ACTIVATOR))
    put(tmp_path, identity(ca, Role.GATEWAY))
    async with gateway(tmp_path, tls=tls) as front:
        one = service()
        front.xds.publish(snapshot([one], {}, {}))

        async def tried() -> bool:
            page = f"http://127.0.0.1:{front.admin_port}/stats?filter=headroom-operator.ssl"
            async with front.client.get(page) as answer:
                return "fail_verify_san: 0" not in await answer.text()

        await until(tried, "the gateway tried to connect")
        assert one.key not in await front.hosts()
