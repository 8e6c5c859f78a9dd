"""What clients of OpenAI's API send and read that its description alone does not tell."""

from __future__ import annotations

import orjson
import pytest

from generation_front import ScriptedExecutor, answers, events, front
from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.text.tool_calls import ToolStyle
from headroom_server.openai_api.bodies.parsing import parse_chat
from headroom_server.openai_api.constraints import constraint_of

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
    assert constraint is not None
    assert orjson.loads(constraint.text).get("maxItems", 0) == single


@pytest.mark.clock
async def test_prompt_that_is_too_long_is_refused_in_the_words_that_clients_know() -> None:
    async with front() as world:
        answer = await world.complete(prompt="a" * 300, max_tokens=4)
    assert answer.json()["error"]["message"].startswith(
        "This model's maximum context length is 256 tokens; "
        "got 301 in the prompt, 4 in the completion."
    )
