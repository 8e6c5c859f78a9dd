"""Any bytes on a connection get a safe answer, and those of the document match it."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import time
from collections.abc import Sequence
from functools import partial

import httpx
import orjson
import pytest
import schemathesis
from hypothesis import strategies as st
from schemathesis import Case
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    positive_data_acceptance,
    response_schema_conformance,
    status_code_conformance,
)

from headroom_server.protocols.open_inference import HEAD_LENGTH
from support.bent_values import mangled
from support.fuzzing import fuzz
from support.server_process import Server, serving

pytestmark = pytest.mark.clock


PREDICT = b'{"instances":[[1,2,3,4]]}'


INFER = orjson.dumps(
    {"inputs": [{"name": "x", "shape": [1, 4], "datatype": "FP64", "data": [1, 2, 3, 4]}]}
)


PAUSE_S = 0.003


LAST = b"GET /v2/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"


def request_of(path: bytes, body: bytes, *headers: bytes) -> bytes:
    lines = [b"POST %s HTTP/1.1" % path, b"host: x", b"content-length: %d" % len(body), *headers]
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


REQUESTS = [
    request_of(b"/v1/models/m:predict", PREDICT),
    request_of(b"/v2/models/m/versions/1/infer", INFER, b"x-request-timeout: 5"),
    request_of(
        b"/v2/models/m/infer", INFER, HEAD_LENGTH.encode() + b": %d" % len(INFER), b"x-tenant: a"
    ),
    request_of(b"/v2/models/m/infer", b"5\r\nabcde\r\n0\r\n\r\n", b"transfer-encoding: chunked"),
    b"GET /v2/models/m/config HTTP/1.1\r\nhost: x\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nhost: x\r\n\r\n",
]


def talk(port: int, pieces: Sequence[bytes], pause_s: float) -> bytes:
    """Everything the server sends until it closes; each piece after a pause is a separate read."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        said = b""
        try:
            for piece in pieces:
                connection.sendall(piece)
                time.sleep(pause_s)
            while received := connection.recv(65536):
                said += received
        except ConnectionError:  # closed before all was sent: what it said is what counts
            pass
        return said


def is_safe(said: bytes) -> None:
    assert {*re.findall(rb"HTTP/1\.1 (\d)", said)} <= {b"1", b"2", b"4"}, said
    assert not re.search(rb"Traceback|\.py\b|/home|/root|/work|site-packages", said), said


async def quiet(server: Server) -> None:
    """It lives, every request is in one place, none failed, and the log has no traceback."""
    async with httpx.AsyncClient(base_url=server.url) as http:
        assert (await http.get("/v2/health/live")).status_code == 200
        text = (await http.get("/metrics")).text
    ended = {
        outcome: float(count)
        for outcome, count in re.findall(r'requests_total{.*outcome="(\w+)"} (\S+)', text)
    }
    received = re.search(r"received_total{.*} (\S+)", text)
    assert received is not None
    assert float(received[1]) == sum(ended.values())
    assert ended.get("failed", 0) == 0
    server.process.send_signal(signal.SIGTERM)
    _, log = await asyncio.wait_for(server.process.communicate(), 20)
    assert b"Traceback" not in log, log.decode()


async def test_fuzzed_http_bytes_are_handled() -> None:
    async with serving(RECEIVE_TIMEOUT_S=0.4, DRAIN_DELAY_S=0) as server:
        await server.ready()
        port = int(server.url.rpartition(":")[2])
        pieces = st.sampled_from(REQUESTS).flatmap(mangled) | st.sampled_from(REQUESTS)
        several = st.lists(pieces, min_size=1, max_size=3).map(lambda some: [*some, LAST])
        at_once = several.map(lambda some: (b"".join(some),))
        await asyncio.to_thread(
            fuzz, at_once | several, lambda sent: is_safe(talk(port, sent, PAUSE_S)), examples=40
        )
        await quiet(server)


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


# Requests that the document allows are accepted, and no others. For v2 it does not describe
# everything: the number of elements that a shape requires.
EXPLORED = {
    "/v1/models/m:predict": [*CHECKS, negative_data_rejection, positive_data_acceptance],
    "/v2/models/m/infer": [*CHECKS, negative_data_rejection],
    "/v2/models/m/versions/1/infer": CHECKS,
}


async def test_responses_match_the_openapi_document() -> None:
    async with serving(EMULATED_FIXED_COST_S=0.0005, DRAIN_DELAY_S=0) as server:
        await server.ready()
        await asyncio.to_thread(explore, server.url)
        await quiet(server)


def explore(url: str) -> None:
    # 413, for more items than fit a batch, is not among its rejections
    refusals = {"checks": {"negative_data_rejection": {"expected-statuses": ["4xx"]}}}
    config = SchemathesisConfig.from_dict(refusals)
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    modes = (schemathesis.GenerationMode.POSITIVE, schemathesis.GenerationMode.NEGATIVE)
    for path, checks in EXPLORED.items():
        for mode in modes:
            cases = schema[path]["POST"].as_strategy(generation_mode=mode)
            fuzz(
                cases,
                partial(Case.call_and_validate, checks=checks),
                examples=12,
                share=1 / (len(EXPLORED) * len(modes)),
            )
