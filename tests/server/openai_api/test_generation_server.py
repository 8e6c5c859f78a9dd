"""A generating server in this process: answers, streams, accounts, models."""

from __future__ import annotations

import asyncio
import gc

import orjson
import pytest
from prometheus_client.parser import text_string_to_metric_families

from headroom_server.generation.text.chat import PlainChat
from headroom_server.generation.text.chat_template import ChatTemplate
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tokenizer import ByteTokenizer
from headroom_server.generation.text.tool_calls import ToolStyle
from headroom_server.generation.values import Alternative, GenerationRequest, SampledToken
from headroom_server.openai_api.answers.collecting import CollectedAnswer
from headroom_server.openai_api.answers.completion_form import CompletionForm
from headroom_server.openai_api.answers.encoding import AnswerIdentity, Part, Usage
from headroom_server.openai_api.answers.streaming import StreamedAnswer
from headroom_server.protocols.request_options import SloClass
from headroom_server.runtime.generating.generation_requests import GeneratorOptions
from headroom_server.runtime.generating.generation_run import GenerationRun
from support.generation_front import LIMITS, ScriptedExecutor, answers, content, events, front
from support.server_world import until

pytestmark = pytest.mark.clock
FILL = {"fill": SloClass(batch=True), "chat": SloClass()}


async def test_completion_is_the_models_text_with_usage() -> None:
    async with front() as world:
        answer = (await world.complete("abc")).json()
    assert answer["choices"] == [
        {"index": 0, "text": "hello", "logprobs": None, "finish_reason": "stop"}
    ]
    assert answer["usage"] == {
        "prompt_tokens": 4,
        "completion_tokens": 6,
        "total_tokens": 10,
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    assert world.outcomes() == {"ok": 1}


async def test_chat_stream_is_the_same_text_in_pieces() -> None:
    async with front(ScriptedExecutor(answers("grüße €".encode()))) as world:
        answer = await world.chat(stream=True, stream_options={"include_usage": True})
    chunks = events(answer)
    assert content(chunks) == "grüße €"
    assert [one["choices"][0]["finish_reason"] for one in chunks[:-1]].count("stop") == 1
    assert chunks[-1]["choices"] == []
    assert chunks[-1]["usage"]["completion_tokens"] == 12
    assert all(one["usage"] is None for one in chunks[:-1])


@pytest.mark.parametrize("stream", [False, True])
async def test_request_that_ended_leaves_no_cycle(stream: bool) -> None:
    # what lives for seconds is old when it ends, and the collector looks at old objects rarely
    async with front() as world:
        await world.complete(stream=stream)
        gc.collect()
        gc.disable()
        try:
            await world.complete(stream=stream)
            await asyncio.sleep(0)
            kinds = (StreamedAnswer, CollectedAnswer, GenerationRun)
            left = [type(one) for one in gc.get_objects() if type(one) in kinds]
        finally:
            gc.enable()
    assert left == []


async def test_several_prompts_and_choices_are_in_order() -> None:
    async with front(ScriptedExecutor(lambda request: bytes(request.prompt[1:2] * 2))) as world:
        answer = (await world.complete(["x", "y"], n=2)).json()
    assert [one["text"] for one in answer["choices"]] == ["xx", "xx", "yy", "yy"]
    assert answer["usage"]["prompt_tokens"] == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_stop_string_ends_the_answer_before_it(stream: bool) -> None:
    async with front(ScriptedExecutor(answers(b"one two three"))) as world:
        answer = await world.complete(stop=[" th", "zzz"], stream=stream)
        await until(lambda: world.generator.engine.statistics().used_blocks == 0)
    parts = events(answer) if stream else [answer.json()]
    assert "".join(one["choices"][0]["text"] for one in parts) == "one two"
    assert parts[-1]["choices"][0]["finish_reason"] == "stop"
    assert world.outcomes() == {"ok": 1}


@pytest.mark.parametrize(
    ("body", "text", "reason"),
    [
        ({"max_tokens": 3}, "hel", "length"),
        ({"stop_token_ids": [ord("l")]}, "he", "stop"),
        ({"stop": "l", "include_stop_str_in_output": True}, "hel", "stop"),
        ({"ignore_eos": True, "max_tokens": 7}, "hello", "length"),
        ({"echo": True}, "abchello", "stop"),
        ({"prompt": [104, 105], "echo": True}, "hihello", "stop"),
    ],
)
async def test_answer_ends_as_requested(body: dict[str, object], text: str, reason: str) -> None:
    async with front() as world:
        answer = (await world.complete(**{"prompt": "abc", **body})).json()
    assert answer["choices"][0]["text"] == text
    assert answer["choices"][0]["finish_reason"] == reason


async def test_probabilities_have_openais_forms() -> None:
    async with front(ScriptedExecutor(answers(b"hi"))) as world:
        whole = (await world.complete(logprobs=2)).json()["choices"][0]["logprobs"]
        chunks = events(await world.chat(logprobs=True, top_logprobs=1, stream=True))
    assert whole["tokens"] == ["h", "i"]
    assert whole["text_offset"] == [0, 1]
    assert whole["top_logprobs"][0] == {"h": -0.5, "\0": -9999.0}
    tokens = [
        token
        for one in chunks
        if one["choices"][0]["logprobs"]
        for token in one["choices"][0]["logprobs"]["content"]
    ]
    assert [one["token"] for one in tokens] == ["h", "i"]
    assert tokens[0]["bytes"] == [104]
    assert len(tokens[0]["top_logprobs"]) == 1


@pytest.mark.parametrize(
    ("chosen", "alternatives", "expected"),
    [
        pytest.param((97, -0.5), [], {"a": -0.5}, id="the chosen one alone"),
        pytest.param((97, -3.0), [(98, -0.5)], {"b": -0.5, "a": -3.0}, id="an unlikely one, too"),
        pytest.param(
            (0x9E, -1.0), [(0x9E, -1.0), (0xFF, -2.0)], {"\ufffd": -1.0}, id="names that are equal"
        ),
    ],
)
def test_likeliest_tokens_of_a_completion_have_the_chosen_one(
    chosen: tuple[int, float], alternatives: list[tuple[int, float]], expected: dict[str, float]
) -> None:
    token = SampledToken(*chosen, tuple(Alternative(*one) for one in alternatives))
    form = CompletionForm(AnswerIdentity("id", 0, "m"), ByteTokenizer(), usage=False)
    body = orjson.loads(form.whole([Part("x", (token,))], Usage(1, 1, 0)))
    assert body["choices"][0]["logprobs"]["top_logprobs"] == [expected]


@pytest.mark.parametrize("stream", [False, True])
async def test_offsets_of_tokens_are_where_they_begin_in_the_whole_text(stream: bool) -> None:
    async with front(ScriptedExecutor(answers("aé€b".encode()))) as world:
        answer = await world.complete(logprobs=0, n=2, stream=stream)
    offsets: list[list[int]] = [[], []]
    for chunk in events(answer) if stream else [answer.json()]:
        for one in chunk["choices"]:
            offsets[one["index"]] += (one["logprobs"] or {"text_offset": []})["text_offset"]
    assert offsets == [[0, 1, 1, 2, 2, 2, 3]] * 2


TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}]


class ToolChat(PlainChat):
    takes_tools = True


def tool_text(style: ToolStyle) -> ModelText:
    return ModelText(tokenizer=ByteTokenizer(), chat=ToolChat(), tool_style=style)


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("style", "said"),
    [
        (ToolStyle.TAGGED, b'Yes.<tool_call>{"name":"f","arguments":{"a":1}}</tool_call>'),
        (ToolStyle.JSON, b'{"name":"f","parameters":{"a":1}}'),
    ],
)
async def test_tool_call_is_parsed(style: ToolStyle, said: bytes, stream: bool) -> None:
    async with front(ScriptedExecutor(answers(said)), text=tool_text(style)) as world:
        answer = await world.chat(tools=TOOLS, stream=stream)
    if stream:
        chunks = events(answer)
        choice = chunks[-1]["choices"][0]
        calls = [c for one in chunks for c in one["choices"][0]["delta"].get("tool_calls", ())]
    else:
        choice = answer.json()["choices"][0]
        calls = choice["message"]["tool_calls"]
    assert choice["finish_reason"] == "tool_calls"
    assert [one["function"] for one in calls] == [{"name": "f", "arguments": '{"a":1}'}]


NINE_LETTERS = (
    "{% for one in messages %}{% for call in one.tool_calls or [] %}"
    "{% if call.id|length != 9 %}{{ raise_exception('ids must have length 9') }}{% endif %}"
    "{% endfor %}{{ one.content }}{% endfor %}{# tools #}"
)
"""The rule of Mistral's own templates."""


async def test_call_goes_back_into_a_template_that_wants_ids_of_nine_letters() -> None:
    said = b'{"name":"f","arguments":{"a":1}}'
    chat = ChatTemplate(NINE_LETTERS, {})
    text = ModelText(tokenizer=ByteTokenizer(), chat=chat, tool_style=ToolStyle.JSON)
    async with front(ScriptedExecutor(answers(said)), text=text) as world:
        asked = {"role": "user", "content": "a"}
        first = await world.post("/v1/chat/completions", messages=[asked], tools=TOOLS)
        called = first.json()["choices"][0]["message"]
        (call,) = called["tool_calls"]
        result = {"role": "tool", "content": "2", "tool_call_id": call["id"]}
        second = await world.post(
            "/v1/chat/completions", messages=[asked, called, result], tools=TOOLS
        )
    assert call["id"].isalnum()
    assert second.status_code == 200, second.text


@pytest.mark.parametrize(
    ("path", "body", "status", "code", "param"),
    [
        ("/v1/completions", {"model": "x", "prompt": "a"}, 404, "model_not_found", "model"),
        ("/v1/completions", {"prompt": "a" * 250}, 400, "context_length_exceeded", "prompt"),
        ("/v1/completions", {"prompt": [300]}, 400, "invalid_value", "prompt"),
        ("/v1/completions", {"prompt": "a", "stop_token_ids": [300]}, 400, "invalid_value",
         "stop_token_ids"),
        ("/v1/completions", {"prompt": "a", "guided_regex": "a"}, 400, "invalid_value",
         "guided_regex"),
        ("/v1/completions", {"prompt": "a", "shout": 1}, 400, "unknown_parameter", "shout"),
        ("/v1/chat/completions", {}, 400, "missing_required_parameter", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * 300}]}, 400,
         "context_length_exceeded", "messages"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "tools": TOOLS},
         400, "invalid_value", "tools"),
    ],
)  # fmt: skip
async def test_invalid_request_gets_openais_error(
    path: str, body: dict[str, object], status: int, code: str, param: str
) -> None:
    async with front() as world:
        answer = await world.post(path, **body)
    assert answer.status_code == status
    error = answer.json()["error"]
    assert error["type"] == "invalid_request_error"
    assert (error["code"], error["param"]) == (code, param)
    assert world.generator.ledger.received == 0
    assert sum(world.generator.ledger.invalid.values()) == 1


async def test_every_ended_request_is_forgotten_once() -> None:
    async with front() as world:
        await asyncio.gather(*(world.complete(n=2) for _ in range(5)))
        await until(lambda: len(world.executor.forgotten) >= 10)
    assert sorted(world.executor.forgotten) == list(range(1, 11))


async def test_metrics_add_up_and_parse() -> None:
    async with front() as world:
        await asyncio.gather(*(world.complete(n=2) for _ in range(3)))
        page = (await world.http.get("/metrics")).text
    samples = {
        (sample.name, *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(page)
        for sample in family.samples
    }
    model = ("model", "m")
    assert samples["headroom_requests_received_total", model] == 3
    assert samples["headroom_requests_total", model, ("outcome", "ok")] == 3
    assert samples["headroom_tokens_total", ("kind", "generated"), model] == 36
    assert samples["headroom_time_to_first_token_seconds_count", model] == 6
    assert samples["headroom_inter_token_latency_seconds_count", model] == 30
    assert samples["headroom_answer_tokens_sum", model] == 36
    blocks = {
        state: samples["headroom_kv_blocks", model, ("state", state)]
        for state in ("used", "cached", "free")
    }
    assert blocks["used"] == 0
    assert sum(blocks.values()) == LIMITS.blocks
    iterations = samples["headroom_iteration_cost_xx_total", ("column", "1"), model, ("row", "1")]
    assert iterations >= samples["headroom_iterations_total", model]


@pytest.mark.parametrize(
    ("headers", "fields", "classes"),
    [
        pytest.param({"x-slo-class": "fill"}, {}, FILL, id="a class of best effort"),
        pytest.param({}, {"service_tier": "flex"}, FILL, id="OpenAI's own word for it"),
        pytest.param({"x-slo-class": "chat"}, {"service_tier": "flex"}, FILL, id="both"),
    ],
)
async def test_request_of_best_effort_waits_for_later_ones(
    headers: dict[str, str], fields: dict[str, str], classes: dict[str, SloClass]
) -> None:
    served: list[int] = []

    def script(request: GenerationRequest) -> bytes:
        served.append(len(request.prompt))
        return b"x"

    executor = ScriptedExecutor(script, limits=LIMITS._replace(max_sequences=1))
    options = GeneratorOptions(classes=classes)
    async with front(executor, options=options) as world:
        served.clear()
        executor.hold()
        asked = []
        nothing: dict[str, str] = {}
        first, last = ("a", nothing, nothing), ("ccc", nothing, nothing)
        for prompt, named, more in (first, ("bb", headers, fields), last):
            body = {"model": "m", "prompt": prompt, **more}
            post = world.http.post("/v1/completions", json=body, headers=named)
            asked.append(asyncio.create_task(post))
            await asyncio.sleep(0.05)
        executor.free.set()
        assert [one.status_code for one in await asyncio.gather(*asked)] == [200] * 3
    assert list(dict.fromkeys(served)) == [2, 4, 3], "a prompt has a token before its text"


async def test_metrics_of_classes_sum_to_those_of_all_requests() -> None:
    classes = {"interactive": SloClass(), "batch": SloClass(batch=True)}
    async with front(options=GeneratorOptions(classes=classes)) as world:
        for named in ({}, {"x-slo-class": "interactive"}, {"x-slo-class": "interactive"}):
            await world.http.post("/v1/completions", json=ASKED, headers=named)
        await world.complete(service_tier="flex")
        page = (await world.http.get("/metrics")).text
    families = {one.name: one.samples for one in text_string_to_metric_families(page)}

    def counted(family: str, suffix: str, **labels: str) -> dict[str, float]:
        found = [one for one in families[family] if one.name == family + suffix]
        return {
            one.labels.get("class", ""): one.value
            for one in found
            if labels.items() <= one.labels.items()
        }

    each = {"": 1, "interactive": 2, "batch": 1}
    assert counted("headroom_requests_received", "_total") == each
    assert counted("headroom_requests", "_total", outcome="ok") == each
    for name in ("request_duration", "time_to_first_token", "time_per_output_token"):
        assert counted(f"headroom_{name}_seconds", "_count") == each
        assert counted(f"headroom_{name}_seconds", "_bucket", le="+Inf") == each
    assert counted("headroom_answer_tokens", "_sum") == {"": 6, "interactive": 12, "batch": 6}


ASKED = {"model": "m", "prompt": "abc"}


async def test_models_are_listed_as_openai_lists_them() -> None:
    async with front() as world:
        listed = (await world.http.get("/v1/models")).json()
        one = (await world.http.get("/v1/models/m")).json()
        missing = await world.http.get("/v1/models/x")
    assert [model["id"] for model in listed["data"]] == ["m"]
    assert one["max_model_len"] == LIMITS.context_tokens
    assert missing.status_code == 404
    assert missing.json()["error"]["code"] == "model_not_found"


async def test_generate_extension_answers_and_streams() -> None:
    async with front() as world:
        path = "/v2/models/m/generate"
        body = {"text_input": "abc", "parameters": {"max_tokens": 3, "temperature": 0}}
        whole = await world.http.post(path, json=body)
        stream = await world.http.post(f"{path}_stream", json=body)
        wrong = await world.http.post(path, json={"text_input": "a", "parameters": {"n": 2}})
        missing = await world.http.post("/v2/models/x/generate", json=body)
    assert whole.json()["text_output"] == "hel"
    assert whole.json()["details"]["generated_tokens"] == 3
    pieces = [line[6:] for line in stream.text.split("\n\n") if line]
    assert "".join(orjson.loads(one)["text_output"] for one in pieces) == "hel"
    assert orjson.loads(pieces[-1])["finish_reason"] == "length"
    assert (wrong.status_code, wrong.json()) == (400, {"error": "unknown parameter: n"})
    assert missing.status_code == 404
    assert "got 'x'" in missing.json()["error"]


@pytest.mark.parametrize("path", ["/v2/models/x", "/v2/models/m/shape", "/v2/models/x/config"])
async def test_errors_of_the_open_inference_protocol_are_text(path: str) -> None:
    async with front() as world:
        found = await world.http.get(path)
    assert found.status_code == 404
    assert isinstance(found.json()["error"], str)


async def test_metadata_name_what_the_server_can_do() -> None:
    async with front() as world:
        server = (await world.http.get("/v2")).json()
        model = (await world.http.get("/v2/models/m")).json()
        config = (await world.http.get("/v2/models/m/config")).json()
    assert server["extensions"] == ["generate", "model_configuration"]
    assert model["inputs"][0]["name"] == "text_input"
    assert [one["name"] for one in model["outputs"]] == ["text_output"]
    assert config["input"][0] == {"name": "text_input", "data_type": "TYPE_STRING", "dims": [1]}
    assert [one.get("optional", False) for one in config["input"]] == [False, True, True, True]
    assert config["output"] == [{"name": "text_output", "data_type": "TYPE_STRING", "dims": [1]}]
    assert config["model_transaction_policy"] == {"decoupled": True}


async def test_replaced_field_names_its_successor() -> None:
    asked = {"model": "m", "messages": [{"role": "user", "content": "a"}], "functions": []}
    async with front() as world:
        refused = await world.http.post("/v1/chat/completions", json=asked)
    assert refused.json()["error"]["message"] == "unknown parameter: functions; use tools"


async def test_unknown_path_names_the_page_that_lists_all() -> None:
    async with front() as world:
        missing = await world.http.get("/v1/completion")
        wrong = await world.http.get("/v1/completions")
        listed = await world.http.get("/docs")
    assert (missing.status_code, wrong.status_code) == (404, 405)
    assert missing.json()["error"]["message"] == (
        "no such path: /v1/completion; GET /docs lists all paths"
    )
    assert wrong.json()["error"]["message"].startswith(
        "the method must be POST for /v1/completions"
    )
    assert "POST /v1/completions" in listed.text
    assert "<script" not in listed.text
