"""Text over gRPC: streams of parts and whole answers, with the bounds that HTTP has."""

from __future__ import annotations

import asyncio
from typing import Any, TypeAlias

import grpc
import pytest
from grpc import aio
from hypothesis import strategies as st

from headroom_server.errors import InvalidRequestError
from headroom_server.generation.scheduling.options import SchedulingOptions
from headroom_server.generation.values import GenerationLimits
from headroom_server.open_inference_grpc import messages_pb2 as pb
from headroom_server.open_inference_grpc.text_requests import parse_text_request
from support.fuzzing import fuzz
from support.generation_front import FrontWorld, ScriptedExecutor, answers
from support.grpc_streams import PATH, StreamClient, prompt, text_of, text_streams
from support.inside import tells_nothing
from support.server_world import until

pytestmark = pytest.mark.clock

Code: TypeAlias = grpc.StatusCode


async def infer(client: StreamClient, request: Any, **options: Any) -> pb.ModelInferResponse:
    call = client.channel.unary_unary(
        PATH.replace("Stream", ""),
        request_serializer=pb.ModelInferRequest.SerializeToString,
        response_deserializer=pb.ModelInferResponse.FromString,
    )
    answer: pb.ModelInferResponse = await call(request, **{"timeout": 20} | options)
    return answer


def finals(found: list[pb.ModelStreamInferResponse]) -> list[bool]:
    return [one.infer_response.parameters["triton_final_response"].bool_param for one in found]


async def until_its_end(stream: Any) -> tuple[list[pb.ModelStreamInferResponse], Code]:
    """Return the rest of a stream, and its code."""
    found = []
    try:
        while (one := await stream.read()) is not aio.EOF:
            found.append(one)
    except aio.AioRpcError as error:
        return found, error.code()
    return found, Code.OK


async def test_stream_has_a_response_per_part_and_the_sums_in_the_last() -> None:
    async with text_streams() as (world, client):
        found = await client.exchange(prompt(id="a", max_tokens=9))
        assert text_of(found, "a") == "hello"
        assert len(found) == 6
        last = found[-1].infer_response.parameters
        assert finals(found) == [False] * 5 + [True]
        assert last["finish_reason"].string_param == "stop"
        assert (last["prompt_tokens"].int64_param, last["generated_tokens"].int64_param) == (4, 6)
        assert world.outcomes() == {"ok": 1}


async def test_requests_of_one_stream_are_generated_together() -> None:
    async with text_streams(ScriptedExecutor(answers(b"x" * 20), pace_s=0.005)) as (world, client):
        found = await client.exchange(
            *(prompt(id=str(number), max_tokens=20) for number in range(8))
        )
        assert [text_of(found, str(number)) for number in range(8)] == ["x" * 20] * 8
        assert max(world.executor.executed) > 4


async def test_empty_final_response_is_sent_if_it_is_asked_for() -> None:
    async with text_streams() as (_, client):
        found = await client.exchange(prompt(max_tokens=2, triton_enable_empty_final_response=True))
    assert finals(found) == [False] * (len(found) - 1) + [True]
    assert not found[-1].infer_response.outputs
    assert found[-2].infer_response.parameters["finish_reason"].string_param == "length"


async def test_answer_that_is_not_streamed_is_one_message() -> None:
    whole = prompt(id="w", max_tokens=9)
    whole.inputs.add(name="stream", datatype="BOOL", shape=(1,)).contents.bool_contents.append(
        False
    )
    async with text_streams() as (_, client):
        answer = await infer(client, prompt(max_tokens=9))
        (streamed,) = await client.exchange(whole)
    assert answer.outputs[0].contents.bytes_contents[0] == b"hello"
    assert answer.parameters["generated_tokens"].int64_param == 6
    assert text_of([streamed], "w") == "hello"


async def test_raw_contents_are_answered_raw() -> None:
    request = pb.ModelInferRequest(model_name="m")
    for name, data in (("text_input", b"abc"), ("sampling_parameters", b'{"max_tokens":3}')):
        request.inputs.add(name=name, datatype="BYTES", shape=(1, 1))
        request.raw_input_contents.append(len(data).to_bytes(4, "little") + data)
    async with text_streams() as (_, client):
        found = await client.exchange(request)
    assert [one.infer_response.raw_output_contents[0][4:] for one in found] == [b"h", b"e", b"l"]


async def test_prompt_is_excluded_or_not_as_tritons_clients_say() -> None:
    asked = []
    for excluded in (False, True):
        asked.append(prompt(id=str(excluded), sampling_parameters='{"max_tokens":"3"}'))
        for name, value in (("stream", False), ("exclude_input_in_output", excluded)):
            flag = asked[-1].inputs.add(name=name, datatype="BOOL", shape=(1,))
            flag.contents.bool_contents.append(value)
    async with text_streams() as (_, client):
        found = await client.exchange(*asked)
    assert [text_of(found, one.id) for one in asked] == ["abchel", "hel"]


BAD = {
    "no text": (pb.ModelInferRequest(model_name="m"), "inputs must have text_input"),
    "other model": (prompt(model="x"), "the model must be 'm'"),
    "broken text": (prompt(b"\xff"), "must be UTF-8"),
    "unknown field": (prompt(shout=True), "shout"),
    "too long": (prompt("a" * 300), "maximum context length is 256 tokens"),
    "sequence": (prompt(sequence_id=3), "sequence_id"),
    "echo": (prompt(echo=True), "echo"),
    "negative": (prompt(max_tokens=-1), "max_tokens"),
    "timeout": (prompt(timeout=-1), "timeout"),
}


@pytest.mark.parametrize("case", BAD)
async def test_bad_request_gets_its_error_and_the_stream_goes_on(case: str) -> None:
    request, words = BAD[case]
    request.id = "bad"
    async with text_streams() as (world, client):
        found = await client.exchange(request, prompt(id="good", max_tokens=9))
        errors = [one for one in found if one.error_message]
        assert words in errors[0].error_message
        tells_nothing(errors[0].error_message)
        assert errors[0].infer_response.id == "bad"
        assert len(errors) == 1
        assert text_of(found, "good") == "hello"
        assert sum(world.generator.ledger.invalid.values()) == 1
        with pytest.raises(aio.AioRpcError) as caught:
            await infer(client, request)
    assert caught.value.code() in (Code.INVALID_ARGUMENT, Code.NOT_FOUND)


async def test_message_that_is_none_ends_the_stream() -> None:
    async with text_streams() as (_, client):
        with pytest.raises(aio.AioRpcError) as caught:
            await client.exchange(b"\xff\xff")
    assert caught.value.code() is Code.INVALID_ARGUMENT


async def test_refused_request_says_when_to_come_back() -> None:
    options = SchedulingOptions(max_waiting_requests=1)
    executor = ScriptedExecutor()
    async with text_streams(executor, scheduling=options) as (world, client):
        executor.hold()
        found = client.open()
        for number in range(12):
            await found.write(prompt(id=str(number), max_tokens=9))
        await found.done_writing()
        first = await found.read()
        assert "status" in first.infer_response.parameters
        assert first.infer_response.parameters["status"].string_param == "RESOURCE_EXHAUSTED"
        assert first.infer_response.parameters["retry_after_s"].int64_param >= 1
        executor.free.set()
        assert (await until_its_end(found))[1] is Code.OK
        outcomes = world.outcomes()
        assert outcomes["ok"] + outcomes["refused"] == 12


async def test_client_that_leaves_ends_all_of_its_requests() -> None:
    async with text_streams(ScriptedExecutor(answers(b"x" * 250), pace_s=0.01)) as (world, client):
        stream = client.open()
        for number in range(4):
            await stream.write(prompt(id=str(number), max_tokens=200))
        await stream.read()
        stream.cancel()
        await until(lambda: world.outcomes() == {"cancelled": 4})
        await until(lambda: world.generator.engine.statistics().used_blocks == 0)
        assert world.app.service.unread.held == 0


async def test_deadline_of_the_call_expires_its_requests() -> None:
    async with text_streams(ScriptedExecutor(answers(b"x" * 250), pace_s=0.02)) as (world, client):
        with pytest.raises(aio.AioRpcError) as caught:
            await client.exchange(prompt(max_tokens=200), timeout=0.3)
        assert caught.value.code() is Code.DEADLINE_EXCEEDED
        await until(lambda: sum(world.outcomes().values()) == 1)
        assert world.outcomes() == {"expired": 1}


async def test_deadline_of_one_request_is_its_own() -> None:
    async with text_streams(ScriptedExecutor(answers(b"x" * 250), pace_s=0.02)) as (_, client):
        found = await client.exchange(
            prompt(id="late", max_tokens=200, timeout=200_000), prompt(id="good", max_tokens=9)
        )
    (late,) = [one for one in found if one.error_message]
    assert late.infer_response.parameters["status"].string_param == "DEADLINE_EXCEEDED"
    assert text_of(found, "good") == "x" * 9


async def test_metadata_are_the_options_of_all_requests() -> None:
    async with text_streams() as (world, client):
        seen = []

        def script(request: Any) -> bytes:
            seen.append((request.tenant, request.priority))
            return b"k"

        world.executor.script = script
        metadata = (("x-tenant", "blue"), ("x-request-priority", "2"))
        await client.exchange(prompt(max_tokens=1), metadata=metadata)
        with pytest.raises(aio.AioRpcError) as caught:
            await infer(client, prompt(), metadata=(("x-request-priority", "11"),))
    assert set(seen) == {("blue", 2)}
    assert caught.value.code() is Code.INVALID_ARGUMENT


async def test_client_that_does_not_read_is_ended_and_harms_no_other() -> None:
    """HTTP/2 lets a client take 64 KiB that it does not read; then the answer waits as text."""
    executor = ScriptedExecutor(answers(b"x" * 4000))
    limits = executor.limits._replace(context_tokens=4096, blocks=600)
    executor.limits = limits
    async with text_streams(executor, max_unread_bytes=4096) as (world, client):
        stream = client.open()
        executor.hold()
        for number in range(8):
            await stream.write(prompt(id=str(number), max_tokens=3000))
        await until(lambda: world.generator.in_flight == 8)
        executor.free.set()
        await until(lambda: world.generator.generation.slow_readers > 0)
        assert (await until_its_end(stream))[1] is Code.RESOURCE_EXHAUSTED
        await until(lambda: not world.generator.in_flight)
        assert world.app.service.unread.held == 0
        assert text_of(await client.exchange(prompt(max_tokens=5))) == "xxxxx"


async def test_server_that_stops_ends_idle_streams_and_finishes_the_others() -> None:
    async with text_streams(ScriptedExecutor(answers(b"x" * 60), pace_s=0.01)) as (_, client):
        idle, busy = client.open(), client.open()
        await idle.write(prompt(max_tokens=1))
        await idle.read()
        await busy.write(prompt(max_tokens=50))
        await busy.read()
        client.server.leave(10.0)
        assert await until_its_end(idle) == ([], Code.UNAVAILABLE)
        found, code = await until_its_end(busy)
        assert code is Code.UNAVAILABLE
        assert found[-1].infer_response.parameters["finish_reason"].string_param == "length"


async def test_idle_streams_make_room_for_others() -> None:
    """Each stream that waits may be sent the largest message: two of a client in each line."""
    async with text_streams(max_message_bytes=8 << 20) as (_, client):
        streams = []
        for _ in range(5):
            streams.append(client.open(timeout=60))
            await streams[-1].write(prompt(max_tokens=1))
            assert (await streams[-1].read()).infer_response.outputs
        ends = [asyncio.create_task(until_its_end(stream)) for stream in streams]
        ended, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
        assert [task.result() for task in ended] == [([], Code.UNAVAILABLE)]
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def test_streams_that_are_busy_delay_no_other() -> None:
    executor = ScriptedExecutor()
    async with text_streams(executor, max_message_bytes=8 << 20) as (world, client):
        executor.hold()
        busy = [client.open(timeout=60) for _ in range(6)]
        for stream in busy:
            await stream.write(prompt(max_tokens=5))
        await until(lambda: world.generator.in_flight == 6)
        executor.free.set()
        for stream in busy:
            assert (await stream.read()).infer_response.outputs
            stream.cancel()


async def test_open_streams_are_bounded_in_sum() -> None:
    """One client has half of 8; the next one is refused, and harms none of them."""
    async with text_streams(max_connections=8) as (_, client):
        streams = [client.open(timeout=60) for _ in range(4)]
        for stream in streams:
            await stream.write(prompt(max_tokens=1))
            assert (await stream.read()).infer_response.outputs
        more = client.open(timeout=60)
        assert await until_its_end(more) == ([], Code.RESOURCE_EXHAUSTED)
        for stream in streams:
            await stream.write(prompt(max_tokens=1))
            assert (await stream.read()).infer_response.outputs
            stream.cancel()


async def describe(world: FrontWorld, client: StreamClient, method: str, **fields: Any) -> Any:
    takes, gives = getattr(pb, f"{method}Request"), getattr(pb, f"{method}Response")
    call = client.channel.unary_unary(
        PATH.replace("ModelStreamInfer", method),
        request_serializer=takes.SerializeToString,
        response_deserializer=gives.FromString,
    )
    return await call(takes(**fields), timeout=5)


async def test_server_and_model_describe_themselves() -> None:
    async with text_streams() as (world, client):
        assert (await describe(world, client, "ServerLive")).live
        assert (await describe(world, client, "ServerReady")).ready
        assert (await describe(world, client, "ModelReady", name="m")).ready
        metadata = await describe(world, client, "ModelMetadata", name="m")
        config = (await describe(world, client, "ModelConfig", name="m")).config
        with pytest.raises(aio.AioRpcError) as caught:
            await describe(world, client, "ModelReady", name="x")
    assert [one.name for one in metadata.inputs] == [
        *("text_input", "sampling_parameters", "stream", "exclude_input_in_output")
    ]
    assert [one.optional for one in config.input] == [False, True, True, True]
    assert [one.name for one in metadata.outputs] == ["text_output"]
    assert config.model_transaction_policy.decoupled
    assert caught.value.code() is Code.NOT_FOUND


class Loading(ScriptedExecutor):
    """Loads until the test lets it."""

    def load(self) -> GenerationLimits:
        self.free.wait(timeout=20)
        return self.limits


async def test_model_that_is_not_warm_refuses_each_request() -> None:
    executor = Loading()
    executor.hold()
    async with text_streams(executor, wait=False) as (_, client):
        (found,) = await client.exchange(prompt())
    assert found.infer_response.parameters["status"].string_param == "UNAVAILABLE"


def test_fuzzed_messages_are_parsed_or_refused() -> None:
    values = st.sampled_from([b"", b"a", b"\xff", b"\1", b"\0", b"{}", b"[]", b'{"n":2}', b"1"])
    tensors = st.builds(
        pb.ModelInferRequest.InferInputTensor,
        name=st.sampled_from(["text_input", "stream", "sampling_parameters", "x"]),
        datatype=st.sampled_from(["BYTES", "BOOL", "FP32"]),
        shape=st.lists(st.integers(-1, 2), max_size=3),
        contents=st.builds(
            pb.InferTensorContents,
            bytes_contents=st.lists(values, max_size=2),
            bool_contents=st.lists(st.booleans(), max_size=2),
        ),
    )
    parameters = st.dictionaries(
        st.sampled_from(["max_tokens", "timeout", "n", "stop", "x", "triton_final_response"]),
        st.one_of(
            st.builds(pb.InferParameter, int64_param=st.integers(-2, 10**6)),
            st.builds(pb.InferParameter, string_param=st.text(max_size=3)),
            st.builds(pb.InferParameter, double_param=st.floats()),
            st.just(pb.InferParameter()),
        ),
        max_size=3,
    )
    requests = st.builds(
        pb.ModelInferRequest,
        model_name=st.just("m"),
        inputs=st.lists(tensors, max_size=4),
        parameters=parameters,
        raw_input_contents=st.lists(
            st.one_of(values, values.map(lambda one: len(one).to_bytes(4, "little") + one)),
            max_size=3,
        ),
    )

    def check(request: pb.ModelInferRequest) -> None:
        try:
            parse_text_request(request, streams=True)
        except InvalidRequestError as error:
            tells_nothing(error.message)

    fuzz(requests, check, examples=60)
