"""gRPC calls behind a real Envoy to a service without a replica: held or refused with a delay."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import grpc.aio
import pytest

from free_ports import free_port
from headroom.activator.grpc_proxy import GrpcProxy
from headroom.gateway import Endpoint, Route
from support.fakes_activator import KEY, Stage, served, stage
from support.fakes_gateway import Gateway, route, until

pytestmark = pytest.mark.clock

Call = Callable[[AsyncIterator[bytes], Any], Any]


@dataclass
class Refusing:
    """The replica's first answers, before it echoes."""

    codes: list[grpc.StatusCode] = field(default_factory=list)
    heard: list[list[bytes]] = field(default_factory=list)
    """The messages of each refused call."""


@pytest.fixture
def refusing() -> Refusing:
    return Refusing()


@pytest.fixture
async def replica(refusing: Refusing) -> AsyncIterator[Endpoint]:
    """A gRPC server that echoes message by message."""

    async def echo(said: AsyncIterator[bytes], context: Any) -> None:
        metadata = dict(context.invocation_metadata())
        if refusing.codes:
            refusing.heard.append([message async for message in said])
            await context.abort(refusing.codes.pop(0), "too much is waiting")
        if metadata.get("refuse"):
            await context.abort(grpc.StatusCode.FAILED_PRECONDITION, "not like this")
        await context.send_initial_metadata((("first", "word"),))
        async for message in said:
            await context.write(message + b"!")
        context.set_trailing_metadata((("last", "word"), ("tenant", metadata["x-tenant"])))

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(echo)
    generic = grpc.method_handlers_generic_handler("test.Echo", {"Say": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    yield Endpoint("127.0.0.1", port)
    await server.stop(grace=None)


async def led(front: Gateway, held: Stage, grpc_port: int, **changes: Any) -> Route:
    """A service routed to the activator."""
    await held.opened(**changes)
    one = route(port=free_port(), grpc_port=grpc_port)
    # The activator listens at the service's own port, where the gateway is on another machine.
    activator = Endpoint("127.0.0.1", held.port)
    await front.tell(one, replicas={one.key: [activator]})
    return one


def say(one: Route, channel: grpc.aio.Channel, *stream: bytes, **metadata: str) -> Any:
    async def said() -> AsyncIterator[bytes]:
        for word in stream:
            yield word

    named = tuple((name.replace("_", "-"), value) for name, value in metadata.items())
    return channel.stream_stream("/test.Echo/Say")(
        said(), metadata=(("x-tenant", "a"), *named), timeout=10.0
    )


async def test_grpc_call_is_held_and_answered_completely(
    front: Gateway, held: Stage, replica: Endpoint
) -> None:
    one = await led(front, held, held.port, cold_start_s=4.0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
        call = say(one, channel, b"hello", b"world")
        refused = say(one, channel, b"hello", refuse="yes")
        alone = channel.unary_unary("/test.Echo/Say")(
            b"x" * 100_000, metadata=(("x-tenant", "b"),), timeout=10.0
        )
        calls = [asyncio.create_task(_all(each)) for each in (call, refused)]
        calls.append(asyncio.create_task(_only(alone)))
        await held.held(3)
        assert held.woken[:1] == [KEY]
        held.tell(Endpoint("127.0.0.1", 1), grpc_port=replica.port, cold_start_s=4.0)
        outcomes: list[Any] = await asyncio.gather(*calls, return_exceptions=True)
        said, error, one_answer = outcomes
        assert said == [b"hello!", b"world!"]
        assert ("first", "word") in tuple(await call.initial_metadata())
        trailing = dict(await call.trailing_metadata())
        assert (trailing["last"], trailing["tenant"]) == ("word", "a")
        assert isinstance(error, grpc.aio.AioRpcError)
        assert error.code() is grpc.StatusCode.FAILED_PRECONDITION
        assert error.details() == "not like this"
        assert one_answer == b"x" * 100_000 + b"!"
        assert held.api.arrived(KEY) == 3


async def test_grpc_call_that_cannot_be_held_gets_a_pushback(front: Gateway, held: Stage) -> None:
    one = await led(front, held, held.port, cold_start_s=60.0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await _all(say(one, channel, b"hello"))
    assert caught.value.code() is grpc.StatusCode.UNAVAILABLE
    assert "no replica can be warm before the deadline" in str(caught.value.details())
    metadata = dict(caught.value.trailing_metadata() or ()) | dict(
        caught.value.initial_metadata() or ()
    )
    assert 55_000 <= int(metadata["grpc-retry-pushback-ms"]) <= 60_000
    assert metadata["retry-after"] == "60"

    async def woken() -> bool:
        return held.woken == [KEY]

    await until(woken, "the service is woken")
    page = held.activator.metrics.page(0, 0).decode()
    assert f'requests_total{{outcome="TooLate",service="{KEY}"}} 1.0' in page  # no second try


async def test_channels_of_replicas_that_are_gone_are_closed() -> None:
    unused: Any = None
    proxy = GrpcProxy(unused, unused, unused, unused, set())
    one = served(20_000, Endpoint("127.0.0.1", 8000), grpc_port=9000)
    await proxy.serve({one.key: one})
    for number in range(1, 200):
        proxy.channels.to(Endpoint(f"127.0.0.{number}", 9000))
    kept = proxy.channels.to(Endpoint("127.0.0.1", 9000))
    assert len(proxy.channels) == 199
    await proxy.serve({one.key: one})
    assert len(proxy.channels) == 1
    assert proxy.channels.to(Endpoint("127.0.0.1", 9000)) is kept
    await proxy.serve({})
    assert len(proxy.channels) == 0
    await proxy.abort()


async def test_service_at_the_former_port_of_another_has_its_own_server() -> None:
    unused: Any = None
    proxy = GrpcProxy(unused, unused, unused, unused, set())
    moved, new = served(20_002), served(20_001, key="vision/new")
    await proxy.serve({moved.key: served(20_001)})
    first = await proxy.servers.path_for(served(20_001))
    await proxy.serve({moved.key: moved, new.key: new})
    assert await proxy.servers.path_for(new) != first
    assert await proxy.servers.path_for(moved) == first
    await proxy.abort()


BUSY, AWAY = grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.UNAVAILABLE
WRONG = grpc.StatusCode.INVALID_ARGUMENT
# What a replica says to a call of two messages, one try after the other, whether the call may be
# computed twice, and what becomes of it.
REFUSED = {
    "busy, and busy again": ([BUSY, BUSY, BUSY], "true", None),
    "busy, and it may not be repeated": ([BUSY, BUSY], "false", None),
    "away once: it may have begun": ([AWAY], "true", None),
    "away twice": ([AWAY, AWAY], "true", AWAY),
    "away, and it may not be repeated": ([AWAY], "false", AWAY),
    "what is the call's own fault": ([WRONG], "true", WRONG),
}


@pytest.mark.parametrize(("codes", "may_repeat", "ends"), REFUSED.values(), ids=REFUSED.keys())
async def test_grpc_call_refused_by_a_replica_is_requeued(
    held: Stage,
    replica: Endpoint,
    refusing: Refusing,
    codes: list[grpc.StatusCode],
    may_repeat: str,
    ends: grpc.StatusCode | None,
) -> None:
    refusing.codes = list(codes)
    await held.opened()
    nobody = Endpoint("127.0.0.1", free_port())
    one = route(port=held.port)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{held.port}") as channel:
        call = say(one, channel, b"hello", b"world", x_headroom_idempotent=may_repeat)
        waiting = asyncio.create_task(_all(call))
        await held.held(1)
        held.tell(nobody)  # ready, and not there any more
        await asyncio.sleep(0.3)
        held.tell(replica)
        (outcome,) = await asyncio.gather(waiting, return_exceptions=True)
    assert refusing.heard == [[b"hello", b"world"]] * len(codes)
    if ends is None:
        assert outcome == [b"hello!", b"world!"]
    else:
        assert isinstance(outcome, grpc.aio.AioRpcError)
        assert (outcome.code(), outcome.details()) == (ends, "too much is waiting")


async def test_held_grpc_calls_do_not_wait_for_each_others_answers(held: Stage) -> None:
    """The replica reads calls whole; memory for messages is for two calls at a time."""
    together = asyncio.Barrier(5)

    async def answer(said: AsyncIterator[bytes], context: Any) -> None:
        words = [message async for message in said]
        await together.wait()
        await context.write(b"".join(words))

    server = grpc.aio.server()
    handler = grpc.stream_stream_rpc_method_handler(answer)
    generic = grpc.method_handlers_generic_handler("test.Echo", {"Say": handler})
    server.add_generic_rpc_handlers((generic,))
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    changes = {"max_body_bytes": 1 << 24, "grpc_port": port}
    await held.opened(**changes)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{held.port}") as channel:
        one = route(port=held.port)
        calls = [asyncio.create_task(_all(say(one, channel, b"hello"))) for _ in range(5)]
        await held.held(5)
        held.tell(Endpoint("127.0.0.1", 1), **changes)
        assert await asyncio.gather(*calls) == [[b"hello"]] * 5
    await server.stop(grace=None)


async def test_cancelled_grpc_call_is_released(front: Gateway, held: Stage) -> None:
    one = await led(front, held, held.port, cold_start_s=4.0)
    async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
        call = say(one, channel, b"hello")
        waiting = asyncio.create_task(_all(call))
        await held.held(1)
        call.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        async def left() -> bool:  # by the activator itself: an arrival counts as held for seconds
            return b'outcome="Left"' in held.activator.metrics.page(0, 0)

        await until(left, "the call has left")


async def test_shutdown_refuses_grpc_calls_with_a_pushback(front: Gateway, tmp_path: Path) -> None:
    (folder := tmp_path / "activator").mkdir()  # tmp_path has the gateway's token
    async with stage(folder, drain_s=0.5) as held:
        one = await led(front, held, held.port, cold_start_s=4.0)
        async with grpc.aio.insecure_channel(f"127.0.0.1:{one.port}") as channel:
            waiting = asyncio.create_task(_all(say(one, channel, b"hello")))
            await held.held(1)
            held.ended.set()
            error = (await asyncio.gather(waiting, return_exceptions=True))[0]
    assert isinstance(error, grpc.aio.AioRpcError)
    assert error.code() is grpc.StatusCode.UNAVAILABLE
    assert "this activator is shutting down" in str(error.details())


async def _all(call: Any) -> list[bytes]:
    return [message async for message in call]


async def _only(call: Any) -> Any:
    return await call
