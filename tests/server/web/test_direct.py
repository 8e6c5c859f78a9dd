"""The fast path: the same responses and accounts as over ASGI."""

from __future__ import annotations

import asyncio
import re

import pytest

from support.server_process import Server, serving

pytestmark = pytest.mark.clock

TYPED = "/v1/models/m:predict"
TENSORS = "/v2/models/m/infer"
GOOD = b'{"instances":[[1,2,3,4]]}'
TENSOR = b'{"inputs":[{"name":"x","shape":[1,4],"datatype":"FP64","data":[1,2,3,4]}]}'


def request(path: str, body: bytes, *headers: str, chunked: bool) -> bytes:
    """The same request, whole (fast path) or in one chunk (ASGI)."""
    how = "transfer-encoding: chunked" if chunked else f"content-length: {len(body)}"
    head = "\r\n".join((f"POST {path} HTTP/1.1", "host: x", how, *headers))
    chunk = b"%x\r\n%s\r\n" % (len(body), body) if body else b""
    return head.encode() + b"\r\n\r\n" + (chunk + b"0\r\n\r\n" if chunked else body)


class Wire:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def to(cls, server: Server) -> Wire:
        return cls(*await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2])))

    async def ask(self, data: bytes) -> tuple[bytes, set[bytes], bytes]:
        """Status line, headers and body of the response."""
        self.writer.write(data)
        head = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), 10)
        status, *headers = head[:-4].split(b"\r\n")
        length = next(int(one[16:]) for one in headers if one.startswith(b"content-length: "))
        return status, set(headers), await self.reader.readexactly(length)


CASES = [
    (TYPED, GOOD, (), b"200"),
    (TENSORS, TENSOR, (), b"200"),
    ("/v2/models/m/versions/1/infer", TENSOR, (), b"200"),
    (TENSORS + "?a=b", TENSOR, (), b"200"),
    ("/v2/models/%6d/infer", TENSOR, (), b"200"),
    (TYPED, b"", (), b"400"),
    (TYPED, b"{", (), b"400"),
    (TYPED, b'{"instances":[["a"]]}', (), b"400"),
    (TENSORS, b'{"inputs":[]}', (), b"400"),
    (TENSORS, TENSOR, ("inference-header-content-length: 9",), b"400"),
    (TYPED, GOOD, ("x-request-priority: 11",), b"400"),
    (TYPED, GOOD, ("x-request-timeout: 0.000001",), b"400"),
    ("/v1/models/q:predict", GOOD, (), b"404"),
    ("/v2/models/m/versions/7/infer", TENSOR, (), b"404"),
    (TYPED, GOOD, ("content-encoding: gzip",), b"200"),
    (TYPED, b"\x1f\x8b", ("content-encoding: gzip",), b"415"),
    (TYPED, b'{"instances":[' + b",".join([b"[1,2,3,4]"] * 9) + b"]}", (), b"413"),
    (TYPED, b" " * 70_000 + GOOD, (), b"413"),
]


async def test_fast_path_and_asgi_give_the_same_responses_and_counts() -> None:
    async with serving(MAX_BODY_BYTES=66_000) as server:
        await server.ready()
        counts = []
        for chunked in (False, True):
            before = await counters(server)
            wire = await Wire.to(server)
            answers = [
                await wire.ask(request(path, body, *headers, chunked=chunked))
                for path, body, headers, _ in CASES
            ]
            wire.writer.close()
            if not chunked:
                direct = answers
            after = await counters(server)
            counts.append({name: after[name] - before.get(name, 0) for name in after})
        for case, first, second in zip(CASES, direct, answers, strict=True):
            assert first[0].split()[1] == second[0].split()[1] == case[-1], case
            if len(case[1]) > 66_000:  # how large it is, is not known of chunks
                continue
            (text, shortest_s), (later_text, later_s) = _shortest(first[2]), _shortest(second[2])
            assert (text, later_s <= shortest_s) == (later_text, True), case
            if case[-1] != b"429":  # whose retry-after has jitter
                assert first[1] == second[1], case
        assert counts[0] == counts[1]
        assert counts[0]['headroom_requests_total{model="m",outcome="ok"}'] == 6


async def test_scrapes_are_counted() -> None:
    async with serving() as server:
        await server.ready()
        wire = await Wire.to(server)
        for number in (1, 2, 3):
            _, _, page = await wire.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
            assert f'headroom_scrapes_total{{model="m"}} {number}\n' in page.decode()
        wire.writer.close()


def _shortest(body: bytes) -> tuple[bytes, float]:
    """Return an answer without the shortest time so far, which only falls, and that time."""
    found = re.search(rb"at least ([0-9.e-]+) s, the shortest time", body)
    if found is None:
        return body, 0.0
    return body.replace(found[1], b"T", 1), float(found[1])


async def counters(server: Server) -> dict[str, float]:
    """The counters of requests."""
    wire = await Wire.to(server)
    _, _, text = await wire.ask(b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n")
    wire.writer.close()
    lines = text.decode().splitlines()
    counted = ("headroom_requests_received", "headroom_requests_total", "headroom_requests_invalid")
    return {
        name: float(value)
        for name, _, value in (line.rpartition(" ") for line in lines)
        if name.startswith(counted)
    }


@pytest.mark.parametrize("cut", [1, 60, 100])
async def test_request_in_pieces_is_one_request(cut: int) -> None:
    async with serving() as server:
        await server.ready()
        wire = await Wire.to(server)
        whole = request(TYPED, GOOD, chunked=False)
        for _ in range(2):
            wire.writer.write(whole[:cut])
            await wire.writer.drain()
            await asyncio.sleep(0.05)
            assert (await wire.ask(whole[cut:]))[2] == b'{"predictions":[10.0]}'
        wire.writer.close()


async def test_invalid_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as server:
        await server.ready()
        wire = await Wire.to(server)
        bad = request(TYPED, b"{", chunked=False)
        good = request(TYPED, GOOD, chunked=False)
        answers = [await wire.ask(bad + good + bad + good)] + [await wire.ask(b"") for _ in "123"]
        assert [status.split()[1] for status, _, _ in answers] == [b"400", b"200", b"400", b"200"]
        wire.writer.close()


async def test_repeated_head_gives_the_same_result() -> None:
    async with serving() as server:
        await server.ready()
        wire = await Wire.to(server)
        good, bad = request(TYPED, GOOD, chunked=False), request(TYPED, b"{" * 25, chunked=False)
        assert len(good) == len(bad)
        asked = [good, bad, good, good[:-1], b"}", bad, good + good, b""]
        pieces = {3: False}  # a request of which the last byte comes later
        answers = []
        for number, data in enumerate(asked):
            if pieces.get(number, True):
                answers.append((await wire.ask(data))[0].split()[1])
            else:
                wire.writer.write(data)
                await asyncio.sleep(0.05)
        wire.writer.close()
        assert answers == [b"200", b"400", b"200", b"200", b"400", b"200", b"200"]
        assert (await counters(server))['headroom_requests_received_total{model="m"}'] == 5
