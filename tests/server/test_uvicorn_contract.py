"""The private parts of uvicorn that the server extends; check these before a new version."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncIterator
from typing import Any
from unittest.mock import Mock

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

METHODS = {
    "connection_made": ["transport"],
    "connection_lost": ["exc"],
    "data_received": ["data"],
    "on_message_begin": [],
    "on_headers_complete": [],
    "on_body": ["body"],
    "on_message_complete": [],
    "on_response_complete": [],
    "shutdown": [],
    "timeout_keep_alive_handler": [],
    "_start_asgi_task": ["cycle", "app"],
}
PROTOCOL_ATTRIBUTES = {
    "app_state", "cycle", "expect_100_continue", "flow", "headers", "loop", "parser", "pipeline",
    "server_state", "timeout_keep_alive", "transport",
}  # fmt: skip
PARSER_METHODS = {
    "feed_data",
    "get_http_version",
    "get_method",
    "should_keep_alive",
    "should_upgrade",
}
CYCLE_ATTRIBUTES = {
    "body", "disconnected", "keep_alive", "message_event", "response_complete", "response_started",
    "transport",
}  # fmt: skip


async def _app(scope: Any, receive: Any, send: Any) -> None:
    """Answer nothing, ever."""
    await asyncio.Event().wait()


@pytest.fixture
async def protocol() -> AsyncIterator[HttpToolsProtocol]:
    config = uvicorn.Config(_app, lifespan="off", log_level="error")
    config.load()
    protocol = HttpToolsProtocol(config=config, server_state=ServerState(), app_state={})
    protocol.connection_made(Mock(spec=asyncio.Transport, get_extra_info=Mock(return_value=None)))
    yield protocol
    tasks = list(protocol.tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks)


@pytest.mark.parametrize("name", METHODS)
def test_uvicorn_protocol_method_has_the_expected_parameters(name: str) -> None:
    method = inspect.signature(getattr(HttpToolsProtocol, name))
    assert list(method.parameters) == ["self", *METHODS[name]]


async def test_uvicorn_protocol_has_the_attributes_in_use(protocol: Any) -> None:
    assert vars(protocol).keys() >= PROTOCOL_ATTRIBUTES
    assert all(hasattr(protocol.parser, name) for name in PARSER_METHODS)
    assert not protocol.flow.write_paused
    assert callable(protocol.flow.resume_reading)


async def test_uvicorn_cycle_after_a_head_has_the_attributes_in_use(protocol: Any) -> None:
    protocol.on_message_begin()
    protocol.on_url(b"/")
    protocol.data_received(b"POST / HTTP/1.1\r\nhost: h\r\ncontent-length: 2\r\n\r\n")
    assert isinstance(protocol.cycle, RequestResponseCycle)
    assert vars(protocol.cycle).keys() >= CYCLE_ATTRIBUTES
    assert protocol.url == b"/"
    assert protocol.cycle.scope["headers"] is protocol.headers


async def test_uvicorn_pipeline_with_a_second_request_queues_cycle_and_app(protocol: Any) -> None:
    first, second = (b"GET /%d HTTP/1.1\r\nhost: h\r\n\r\n" % number for number in (1, 2))
    protocol.data_received(first + second)
    ((cycle, app),) = protocol.pipeline
    assert cycle is protocol.cycle
    assert app is protocol.app


def test_uvicorn_server_and_config_have_the_attributes_in_use() -> None:
    config = uvicorn.Config(_app, http=HttpToolsProtocol, lifespan="off")
    config.load()
    server = uvicorn.Server(config)
    assert config.http_protocol_class is HttpToolsProtocol
    assert vars(server).keys() >= {"force_exit", "server_state", "should_exit"}
    assert vars(server.server_state).keys() >= {"connections", "total_requests"}
    assert list(inspect.signature(server.serve).parameters) == ["sockets"]
    assert inspect.isgeneratorfunction(inspect.unwrap(uvicorn.Server.capture_signals))


def test_uvicorn_status_lines_end_with_a_line_break() -> None:
    assert httptools_impl.STATUS_LINE[200] == b"HTTP/1.1 200 OK\r\n"
