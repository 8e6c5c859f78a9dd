"""Requests and answers of OpenAI clients that the API's description alone does not define."""

from __future__ import annotations

import asyncio

import orjson
import pytest

from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.text.tool_calls import ToolStyle
from headroom_server.openai_api.bodies.parsing import parse_chat
from headroom_server.openai_api.errors import refusal
from headroom_server.openai_api.prompts.constraints import constraint_of
from support.generation_front import ScriptedExecutor, answers, events, front
from support.server_process import serving

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]
CALL = b'<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'
SINGLE = pytest.mark.parametrize(("parallel", "single"), [(None, 0), (True, 0), (False, 1)])


class ToolChat(PlainChat):
    takes_tools = True


@pytest.mark.clock
@pytest.mark.parametrize("stream", [False, True])
@SINGLE
async def test_answer_has_one_call_unless_calls_may_be_parallel(
    parallel: bool | None, single: int, stream: bool
) -> None:
    text = ModelText(tokenizer=ByteTokenizer(), chat=ToolChat(), tool_style=ToolStyle.TAGGED)
    async with front(ScriptedExecutor(answers(CALL * 3)), text=text) as world:
        answer = await world.chat(tools=TOOLS, stream=stream, parallel_tool_calls=parallel)
    found = events(answer) if stream else [answer.json()]
    parts = [one["choices"][0]["delta" if stream else "message"] for one in found]
    calls = [call for one in parts for call in one.get("tool_calls", ())]
    assert [one["function"]["arguments"] for one in calls] == ['{"a":1}'] * (single or 3)
    assert found[-1]["choices"][0]["finish_reason"] == "tool_calls"


@SINGLE
def test_demanded_calls_are_one_unless_they_may_be_parallel(
    parallel: bool | None, single: int
) -> None:
    asked: dict[str, object] = {
        "model": "m",
        "messages": [{"role": "user", "content": "a"}],
        "tools": TOOLS,
    }
    asked |= {"tool_choice": "required", "parallel_tool_calls": parallel}
    constraint = constraint_of(parse_chat(orjson.dumps(asked)))
    assert orjson.loads(constraint.text).get("maxItems", 0) == single


@pytest.mark.parametrize(
    ("status", "kind", "code"),
    [
        (400, "invalid_request_error", "invalid_input"),
        (408, "invalid_request_error", "too_slow"),
        (429, "rate_limit_error", "rate_limit_exceeded"),
        (431, "invalid_request_error", "invalid_input"),
        (503, "server_error", "service_unavailable"),
    ],
)
def test_refusal_of_a_connection_has_the_form_of_errors(status: int, kind: str, code: str) -> None:
    fields = {"message": "no", "type": kind, "param": None, "code": code}
    assert orjson.loads(refusal(status, "no")) == {"error": fields}


@pytest.mark.clock
async def test_bytes_that_are_no_request_are_refused_in_the_form_of_errors() -> None:
    async with serving(ENGINE="generation-emulated") as server:
        await server.ready()
        port = int(server.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(b"\x16\x03\x01\r\n\r\n")
        answer = await asyncio.wait_for(reader.read(), 10)
        writer.close()
    assert answer.startswith(b"HTTP/1.1 400 ")
    error = orjson.loads(answer.partition(b"\r\n\r\n")[2])["error"]
    assert error["message"].startswith("the request must be valid")


@pytest.mark.clock
async def test_body_that_no_context_holds_is_refused_in_the_words_that_clients_know() -> None:
    async with front() as world:
        answer = await world.complete(prompt="a" * 1_000_000)
    assert answer.status_code == 413
    assert "This model's maximum context length is 256 tokens" in answer.json()["error"]["message"]


@pytest.mark.clock
async def test_prompt_that_is_too_long_is_refused_in_the_words_that_clients_know() -> None:
    async with front() as world:
        answer = await world.complete(prompt="a" * 300, max_tokens=4)
    assert answer.json()["error"]["message"].startswith(
        "This model's maximum context length is 256 tokens; "
        "got 301 in the prompt, 4 in the completion."
    )
