"""Bodies of requests through a real Envoy: which are received whole, streamed, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
from aiohttp import web

from headroom.gateway import Route
from headroom.gateway.bounds import BUFFERED_BYTES
from headroom.gateway.values import TenantLimit
from reliability.attacks.grpc_payloads import END_HEADERS, END_STREAM, PREFACE, Kind, frame
from support.fakes_gateway import Gateway, Replica, dies, ok, service, until, url

pytestmark = pytest.mark.clock

STATUS = {b"200": b"\x88", b"411": b"\x48\x82\x68\x21", b"413": b"\x48\x03413"}
"""Status codes as Envoy compresses them, at the start of the headers of an answer (RFC 7541)."""
LARGE = BUFFERED_BYTES + 1
BOUND = 2


async def post(front: Gateway, one: Route, body: bytes | AsyncIterator[bytes]) -> int:
    async with front.client.post(url(one), data=body) as answered:
        await answered.read()
        return answered.status


async def unfinished(one: Route, announced: int, sent: int = 1) -> asyncio.StreamWriter:
    """Begin a request, and leave its body unfinished."""
    _, writer = await asyncio.open_connection("127.0.0.1", one.port)
    writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: %d\r\n\r\n" % announced)
    writer.write(b"x" * sent)
    await writer.drain()
    return writer


async def _seen(replica: Replica, number: int) -> None:
    async def arrived() -> bool:
        return len(replica.seen) >= number

    await until(arrived, f"the replica has {number}")


async def test_unfinished_large_uploads_take_no_place_of_small_requests(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]}, bound=BOUND)
    uploads = []
    for number in range(1, BOUND + 1):
        uploads.append(await unfinished(one, LARGE))
        await _seen(started[0], number)  # streamed: the replica has the head

    async def bounded() -> bool:
        return await post(front, one, b"x" * LARGE) == 429

    await until(bounded, "a further large one has no place")
    for _ in range(10):
        assert await post(front, one, b"x" * BUFFERED_BYTES) == 200
    for upload in uploads:
        upload.close()

    async def free() -> bool:
        return await post(front, one, b"x" * LARGE) == 200

    await until(free, "places are free again")


async def test_unfinished_small_uploads_take_no_place_at_all(
    front: Gateway, started: list[Replica]
) -> None:
    started.append(await Replica(ok).start())
    one = service()
    await front.tell(one, replicas={one.key: [started[0].endpoint]}, bound=BOUND)
    uploads = [await unfinished(one, BUFFERED_BYTES) for _ in range(20 * BOUND)]
    for size in (BUFFERED_BYTES, LARGE):
        assert await post(front, one, b"x" * size) == 200
    assert len(started[0].seen) == 2
    for upload in uploads:
        upload.close()


@pytest.mark.parametrize(
    ("most", "size", "announced", "status"),
    [
        pytest.param(1 << 20, 1 << 20, True, 200, id="as large as it may be"),
        pytest.param(1 << 20, BUFFERED_BYTES, False, 200, id="small in chunks"),
        pytest.param(1 << 20, LARGE, False, 413, id="large in chunks needs a length"),
        pytest.param(1024, 1024, True, 200, id="a lower bound"),
        pytest.param(1024, 1025, True, 413, id="above a lower bound"),
        pytest.param(1024, 1025, False, 413, id="above a lower bound in chunks"),
    ],
)
async def test_body_is_admitted_by_its_size(
    front: Gateway, started: list[Replica], most: int, size: int, announced: bool, status: int
) -> None:
    started.append(await Replica(ok).start())
    one = service(max_body_bytes=most)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})

    async def chunks() -> AsyncIterator[bytes]:
        for at in range(0, size, 700):
            yield b"x" * min(700, size - at)

    assert await post(front, one, b"x" * size if announced else chunks()) == status
    assert len(started[0].seen) == (status == 200)


async def test_body_above_the_bound_is_refused_before_it_is_sent(front: Gateway) -> None:
    one = service()
    await front.tell(one, replicas={})
    reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    writer.write(b"POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 1000000000\r\n\r\n")
    assert b"413" in await asyncio.wait_for(reader.readline(), 5.0)
    writer.close()


async def test_streamed_request_is_not_repeated_once_a_replica_has_begun_it(
    front: Gateway, started: list[Replica]
) -> None:
    started += [await Replica(dies).start(), await Replica(dies).start()]
    one = service()
    await front.tell(one, replicas={one.key: [replica.endpoint for replica in started]})
    assert await post(front, one, b"x" * LARGE) == 503
    assert sum(len(replica.seen) for replica in started) == 1
    assert await post(front, one, b"x") == 503
    assert sum(len(replica.seen) for replica in started) == 3


@pytest.mark.parametrize(
    ("method", "most", "headers", "status"),
    [
        pytest.param(b"POST", 1 << 20, [(b"content-length", b"1")], b"200", id="announced"),
        pytest.param(b"POST", 1 << 20, [(b"content-length", b"9000")], b"200", id="and large"),
        pytest.param(b"POST", 1 << 20, [(b"content-length", b"9000000")], b"413", id="too large"),
        pytest.param(b"POST", 1 << 20, [(b"content-length", b"%d" % 2**62)], b"413", id="by far"),
        pytest.param(b"POST", 1024, [(b"content-length", b"1024")], b"200", id="a lower bound"),
        pytest.param(b"POST", 1024, [(b"content-length", b"1025")], b"413", id="above it"),
        pytest.param(b"POST", 1 << 20, [], b"411", id="of unknown length"),
        pytest.param(b"GET", 1 << 20, [], b"200", id="without a body"),
    ],
)
@pytest.mark.parametrize("shares", [None, TenantLimit(header="x-tenant", in_flight_percent=100)])
async def test_request_of_http2_takes_a_place_before_its_body(
    front: Gateway,
    started: list[Replica],
    method: bytes,
    most: int,
    headers: list[tuple[bytes, bytes]],
    status: bytes,
    shares: TenantLimit | None,
) -> None:
    async def answers_the_head(_: web.Request) -> web.Response:
        return web.Response(text="ok")

    started.append(await Replica(answers_the_head).start())
    one = service(grpc_port=1, tenants=shares, max_body_bytes=most)
    await front.tell(one, replicas={one.key: [started[0].endpoint]})
    reader, writer = await asyncio.open_connection("127.0.0.1", one.port)
    pseudo = [(b":method", method), (b":path", b"/"), (b":scheme", b"http"), (b":authority", b"a")]
    literals = b"".join(
        b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value
        for name, value in [*pseudo, *headers]
    )
    flags = END_HEADERS | (END_STREAM if method == b"GET" else 0)
    writer.write(PREFACE + frame(Kind.SETTINGS, 0, 0) + frame(Kind.HEADERS, flags, 1, literals))
    answered = b""
    async with asyncio.timeout(5.0):
        while not answered:
            head = await reader.readexactly(9)
            body = await reader.readexactly(int.from_bytes(head[:3], "big"))
            if head[3] == Kind.HEADERS:
                answered = next(
                    (code for code, start in STATUS.items() if body.startswith(start)), body
                )
    writer.close()
    assert answered == status
    assert len(started[0].seen) == (status == b"200")
    assert not any("x-headroom-protocol" in map(str.lower, seen) for seen in started[0].seen)
