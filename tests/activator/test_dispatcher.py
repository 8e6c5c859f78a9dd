"""Futures of held requests: each resolves, whatever happened before it was waited for."""

from __future__ import annotations

import asyncio

from headroom.activator.dispatcher import Dispatcher
from headroom.activator.held_request import Bounds, HeldRequest, Refusal, RefusalReason
from headroom.activator.request_buffer import RequestBuffer
from headroom.gateway import Endpoint
from support.fakes_activator import KEY, served
from support.virtual_time import VirtualTimeLoop

REPLICA = Endpoint("10.0.0.1", 8000)


def admitted(buffer: RequestBuffer, timeout_s: float) -> HeldRequest:
    request = buffer.admit(KEY, asyncio.get_running_loop().time(), timeout_s)
    assert isinstance(request, HeldRequest)
    return request


def test_refusal_during_an_upload_is_the_outcome_of_the_later_wait() -> None:
    async def outcome() -> object:
        buffer = RequestBuffer(Bounds())
        buffer.serve([served(20001)])
        dispatcher = Dispatcher(buffer)
        uploading, other = admitted(buffer, 1.0), admitted(buffer, 60.0)
        buffer.complete(other)
        dispatcher.wait(other)
        running = asyncio.create_task(dispatcher.run())
        await asyncio.sleep(2.0)
        buffer.complete(uploading)
        async with asyncio.timeout(5.0):
            found = await dispatcher.wait(uploading)
        running.cancel()
        dispatcher.end(uploading)
        assert buffer.requests == 1, "the other one"
        return found

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        found = runner.run(outcome())
    assert isinstance(found, Refusal)
    assert found.why is RefusalReason.EXPIRED


def test_request_goes_on_at_once_if_a_replica_is_free_and_when_another_ends_if_not() -> None:
    async def outcome() -> list[object]:
        buffer = RequestBuffer(Bounds())
        buffer.serve([served(20001, REPLICA, in_flight=1)])
        dispatcher = Dispatcher(buffer)  # nothing looks periodically
        first, second = admitted(buffer, 60.0), admitted(buffer, 60.0)
        turns = []
        for held in (first, second):
            buffer.complete(held)
            turns.append(dispatcher.wait(held))
        assert [turn.done() for turn in turns] == [True, False]
        dispatcher.end(first)
        return [turn.result() for turn in turns]

    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        assert runner.run(outcome()) == [REPLICA, REPLICA]
