"""Requests that offer another protocol, as Java's HTTP client does with each, keep their bodies."""

from __future__ import annotations

import asyncio

import pytest

from headroom_server.web.connections.upgrade_offers import without_offer
from support.server_process import serving

SETTINGS = b"http2-settings: AAEAAEAAAAIAAAABAAMA\r\n"
OFFER = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n" + SETTINGS
POST = b"POST /v1/models/m:predict HTTP/1.1\r\nhost: x\r\n" + OFFER
BODY = b'{"instances":[[1,2,3,4]]}'
WHOLE = POST + b"content-length: %d\r\n\r\n" % len(BODY) + BODY
CHUNKS = POST + b"transfer-encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(BODY), BODY)
CONTINUED = WHOLE.replace(b"host: x", b"host: x\r\nexpect: 100-continue")
PLAIN = WHOLE.replace(OFFER, b"")
SUM = b'{"predictions":[10.0]}'


async def answers(port: int, parts: list[bytes], wanted: int) -> list[bytes]:
    """Send parts, a read each, and return the bodies of the answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    for part in parts:
        writer.write(part)
        await writer.drain()
        await asyncio.sleep(0.02)
    found: list[bytes] = []
    while len(found) < wanted:
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        if not head.startswith(b"HTTP/1.1 100 "):
            length = int(head.partition(b"content-length: ")[2].split()[0])
            found.append(await reader.readexactly(length))
    writer.close()
    return found


@pytest.mark.clock
async def test_request_that_offers_another_protocol_is_served_with_its_body() -> None:
    async with serving() as server:
        await server.ready()
        port = int(server.url.rpartition(":")[2])
        for name, parts, wanted in (
            ("whole", [WHOLE], 1),
            ("again", [WHOLE, WHOLE, PLAIN], 3),
            ("in chunks", [CHUNKS, WHOLE], 2),
            ("after its head", [WHOLE[: -len(BODY)], BODY], 1),
            ("in pieces", [WHOLE[:70], WHOLE[70:140], WHOLE[140:-9], WHOLE[-9:]], 1),
            ("continued", [CONTINUED[: -len(BODY)], BODY], 1),
            ("last", [WHOLE.replace(b"Upgrade,", b"Upgrade, close,")], 1),
            ("pipelined", [(WHOLE + CHUNKS + PLAIN) * 3], 9),
        ):
            assert await answers(port, parts, wanted) == [SUM] * wanted, name
        websocket = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\n"
        found = await answers(port, [websocket + b"upgrade: websocket\r\n\r\n" + WHOLE], 2)
        assert found == [b'{"live":true}', SUM]


@pytest.mark.parametrize(
    ("headers", "head"),
    [
        ([(b"host", b"x"), (b"upgrade", b"h2c")], b"PUT /a HTTP/1.1\r\nhost: x\r\n\r\n"),
        ([(b"http2-settings", b"AA"), (b"upgrade", b"h2c")], b"PUT /a HTTP/1.1\r\n\r\n"),
        ([(b"connection", b"upgrade")], b""),
    ],
)
def test_head_is_the_same_without_the_offer(
    headers: list[tuple[bytes, bytes]], head: bytes
) -> None:
    assert without_offer(b"PUT", b"/a", "1.1", headers) == head
