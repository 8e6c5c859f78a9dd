"""Streams whose clients leave or do not read, or whose server stops: raw sockets, a process."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import orjson
import pytest
from hypothesis import strategies as st

from support.fuzzing import fuzz
from support.server_process import Server, serving

pytestmark = pytest.mark.clock

MANY = 64


@asynccontextmanager
async def generating(**settings: object) -> AsyncIterator[Server]:
    defaults: dict[str, object] = {
        "ENGINE": "generation-emulated",
        "EMULATED_FIXED_COST_S": 0.002,
        "EMULATED_PER_ITEM_COST_S": 0.00001,
        "DRAIN_DELAY_S": 0.1,
        "MAX_SEQUENCES": 128,
    }
    async with serving(**{**defaults, **settings}) as server:
        await server.ready()
        yield server


def request(version: str = "1.1", **fields: object) -> bytes:
    body = orjson.dumps({"model": "m", "prompt": "a", "stream": True, **fields})
    return b"POST /v1/completions HTTP/%b\r\nhost: x\r\ncontent-length: %d\r\n\r\n%b" % (
        version.encode(),
        len(body),
        body,
    )


async def opened(
    server: Server, receive_bytes: int = 0
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection; with `receive_bytes`, one whose kernel takes no more than these."""
    port = int(server.url.rpartition(":")[2])
    plain = socket.socket()
    if receive_bytes:
        plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
    plain.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plain, ("127.0.0.1", port))
    return await asyncio.open_connection(sock=plain, limit=4096 if receive_bytes else 1 << 20)


async def test_sigterm_under_many_streams_finishes_every_one() -> None:
    async with generating() as server:
        streams = [await opened(server) for _ in range(MANY)]
        for _, writer in streams:
            writer.write(request(max_tokens=300))
        await server.shows("requests_running", MANY)
        server.process.terminate()
        answers = await asyncio.wait_for(
            asyncio.gather(*(reader.read() for reader, _ in streams)), 60
        )
        assert await server.process.wait() == 0
        for _, writer in streams:
            writer.close()
    assert all(answer.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n") for answer in answers)
    assert all(answer.count(b'"text":"') == 300 for answer in answers)


async def test_streams_that_the_drain_cannot_finish_end_with_an_error_event() -> None:
    async with generating(DRAIN_GRACE_S=0.5, EMULATED_FIXED_COST_S=0.02) as server:
        streams = [await opened(server) for _ in range(MANY)]
        for _, writer in streams:
            writer.write(request(max_tokens=4000))
        await server.shows("requests_running", MANY)
        server.process.terminate()
        answers = await asyncio.wait_for(
            asyncio.gather(*(reader.read() for reader, _ in streams)), 60
        )
        assert await server.process.wait() == 1
        for _, writer in streams:
            writer.close()
    for answer in answers:
        assert b"[DONE]" not in answer
        *_, last, end = answer.split(b"\r\n", answer.count(b"\r\n"))[:-3]
        assert b'data: {"error":{"message":"the server stopped' in last + end
        assert answer.endswith(b"0\r\n\r\n")


async def test_streams_that_are_not_read_hold_back_no_other_and_are_ended() -> None:
    async with generating(UNREAD_TIMEOUT_S=2) as server:
        unread = [await opened(server, 4096) for _ in range(MANY)]
        for _, writer in unread:
            writer.write(request(max_tokens=4000))
        reader, writer = await opened(server)
        writer.write(request(max_tokens=100))
        whole = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 30)
        assert b"[DONE]" in whole
        await server.shows("slow_readers_total", MANY)
        await server.shows("kv_blocks", 0, state="used")
        await server.shows("requests_running", 0)
        for _, one in [*unread, (reader, writer)]:
            one.close()


async def test_slow_reader_gets_every_character_in_fewer_events() -> None:
    async with generating(EMULATED_FIXED_COST_S=0.0005) as server:
        reader, writer = await opened(server, 4096)
        writer.write(request(max_tokens=4000))
        await server.shows("requests_total", 1, outcome="ok")
        answer = b""
        while b"[DONE]" not in answer:
            answer += await asyncio.wait_for(reader.read(4096), 30)
        writer.close()
    lines = [line for line in answer.split(b"\n") if line.startswith(b"data: {")]
    text = "".join(orjson.loads(line[6:])["choices"][0]["text"] for line in lines)
    assert len(text) == 4000
    assert len(lines) < 3000


async def test_request_after_a_stream_is_answered_on_the_same_connection() -> None:
    async with generating() as server:
        reader, writer = await opened(server)
        writer.write(request(max_tokens=5) + request(max_tokens=5, stream=False))
        first = await asyncio.wait_for(reader.readuntil(b"0\r\n\r\n"), 10)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        writer.close()
    assert first.count(b"\r\n0\r\n\r\n") == 1
    assert head.startswith(b"HTTP/1.1 200")
    assert b"application/json" in head


async def test_stream_to_http_1_0_has_no_chunks_and_ends_with_the_connection() -> None:
    async with generating() as server:
        reader, writer = await opened(server)
        writer.write(request("1.0", max_tokens=3))
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert b"transfer-encoding" not in answer
    assert answer.endswith(b"data: [DONE]\n\n")


@pytest.mark.parametrize("stream", [True, False])
async def test_client_that_disconnects_is_cancelled(stream: bool) -> None:
    async with generating() as server:
        _, writer = await opened(server)
        writer.write(request(max_tokens=8000, stream=stream))
        await server.shows("requests_running", 1)
        writer.transport.abort()
        await server.shows("requests_total", 1, outcome="cancelled")
        await server.shows("kv_blocks", 0, state="used")


BODIES = st.one_of(
    st.binary(max_size=200),
    st.builds(
        lambda fields: orjson.dumps({"model": "m", "prompt": "a", "max_tokens": 2} | fields),
        st.dictionaries(
            st.sampled_from(
                ["stream", "n", "stop", "prompt", "echo", "logprobs", "seed", "tokens", "x"]
            ),
            st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=4),
            max_size=3,
        ),
    ),
    st.integers(1, 60_000).map(lambda depth: b'{"prompt":' + b"[" * depth),
)
PATHS = st.sampled_from(
    [
        b"/v1/completions",
        b"/v1/chat/completions",
        b"/v1/models/\xff%00",
        b"/tokenize",
        b"/detokenize",
    ]
)


@pytest.mark.timeout(0)
async def test_fuzzed_bodies_get_answers_and_the_server_survives() -> None:
    async with generating() as server:
        port = int(server.url.rpartition(":")[2])

        def check(given: tuple[bytes, bytes]) -> None:
            path, body = given
            with socket.create_connection(("127.0.0.1", port), timeout=10) as plain:
                plain.sendall(
                    b"POST %b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                    b"content-length: %d\r\n\r\n%b" % (path, len(body), body)
                )
                answer = b""
                while piece := plain.recv(65536):
                    answer += piece
            assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 4")), answer[:200]

        await asyncio.to_thread(fuzz, st.tuples(PATHS, BODIES), check, examples=60)
        await server.shows("requests_running", 0)
        await server.shows("kv_blocks", 0, state="used")
