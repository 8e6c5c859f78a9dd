"""Bodies of OpenAI's API: what is accepted, and the errors' fields."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import strategies as st
from pydantic import ValidationError

from headroom_server.errors import InvalidRequestError, NotJsonError, TooLargeError
from headroom_server.openai_api.bodies.body_parts import check_parts
from headroom_server.openai_api.bodies.completion_schemas import CompletionFields
from headroom_server.openai_api.bodies.parameters import Constraint, ConstraintKind
from headroom_server.openai_api.bodies.parsing import (
    parse_chat,
    parse_completion,
    validated_chat,
    validated_completion,
)
from headroom_server.openai_api.bodies.usual_bodies import usual_chat, usual_completion
from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.openai_api.generate_extension import parse_generate
from headroom_server.openai_api.prompts.constraints import constraint_of
from support.fuzzing import fuzz

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hi"}]}
COMPLETION = {"model": "m", "prompt": "abc"}


def completion(**fields: object) -> Any:
    return parse_completion(orjson.dumps(COMPLETION | fields))


def chat(**fields: object) -> Any:
    return parse_chat(orjson.dumps(CHAT | fields))


NAMED = {"name": "x", "schema": {}}
TOOL = {"type": "function", "function": {"name": "f"}}


def chosen(tool: str) -> dict[str, object]:
    return {"type": "function", "function": {"name": tool}}


@pytest.mark.parametrize(
    ("prompt", "prompts"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([1, 2], ((1, 2),)),
        ([7], ((7,),)),
        ([[1], [2, 3]], ((1,), (2, 3))),
    ],
)
def test_prompt_has_four_forms(prompt: object, prompts: object) -> None:
    assert completion(prompt=prompt).prompts == prompts


def test_null_is_the_default() -> None:
    names = ("n", "stop", "temperature", "seed", "logit_bias", "stream", "response_format", "user")
    assert completion(**dict.fromkeys(names)) == completion()


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"temperature": 2.1}, "temperature"),
        ({"temperature": "1"}, "temperature"),
        ({"temperature": True}, "temperature"),
        ({"top_p": 0}, "top_p"),
        ({"n": 0}, "n"),
        ({"n": 129}, "n"),
        ({"n": 100, "prompt": ["a", "b"]}, "n"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"max_tokens": 1.5}, "max_tokens"),
        ({"stop": ["a"] * 17}, "stop"),
        ({"stop": ""}, "stop"),
        ({"logprobs": 21}, "logprobs"),
        ({"logit_bias": {"a": 1}}, "logit_bias"),
        ({"logit_bias": {"1": 101}}, "logit_bias"),
        ({"best_of": 2}, "best_of"),
        ({"suffix": "x"}, "suffix"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"min_tokens": 17}, "min_tokens"),
        ({"stream_options": {}}, "stream_options"),
        ({"stream": True, "stream_options": {"x": 1}}, "stream_options.x"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [-1]}, "prompt.0"),
        ({"prompt": {"a": 1}}, "prompt"),
        ({"unheard": 1}, "unheard"),
        ({"model": ""}, "model"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
        ({"guided_regex": "a", "guided_choice": ["b"]}, "guided_choice"),
        ({"seed": 2**63}, "seed"),
        ({"logit_bias": {"1": "x"}}, "logit_bias"),
        ({"logit_bias": {"1": True}}, "logit_bias"),
    ],
)
def test_wrong_field_of_completion_is_named(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        completion(**fields)
    assert raised.value.field == field
    assert field.partition(".")[0] in raised.value.message


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user"}]}, "messages.0"),
        ({"messages": [{"role": "user", "refusal": "no"}]}, "messages.0"),
        ({"messages": [{"role": "root", "content": ""}]}, "messages.0.role"),
        ({"messages": [{"role": ["user"], "content": ""}]}, "messages.0.role"),
        ({"messages": [{"role": "user", "content": 1}]}, "messages.0.content"),
        ({"response_format": {"type": "json_schema"}}, "response_format"),
        ({"response_format": {"type": "text", "json_schema": NAMED}}, "response_format"),
        ({"structured_outputs": {"regex": "a", "choice": ["b"]}}, "structured_outputs"),
        ({"structured_outputs": {"json_object": False}}, "structured_outputs"),
        (
            {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}]},
            "messages.0.content.0.type",
        ),
        ({"max_tokens": 1, "max_completion_tokens": 2}, "max_tokens"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"tool_choice": "required"}, "tool_choice"),
        ({"tools": [TOOL], "tool_choice": chosen("other")}, "tool_choice"),
        ({"tools": [{"type": "function", "function": {"name": "a b"}}]}, "tools.0.function.name"),
        ({"chat_template_kwargs": {"messages": []}}, "chat_template_kwargs"),
        ({"modalities": ["audio"]}, "modalities.0"),
        ({"functions": []}, "functions"),
    ],
)
def test_wrong_field_of_chat_is_named(fields: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        chat(**fields)
    assert raised.value.field == field


@pytest.mark.parametrize(
    ("stop", "rule"),
    [
        (["a"] * 17, "at most 16 items"),
        (["a", ""], "at least 1 character"),
        ([1], "a valid string"),
        (1, "a valid string"),
        ("", "at least 1 character"),
        ({"a": 1}, "got an object"),
        (["a"] * 17, "got 17 items"),
    ],
)
def test_rule_is_that_of_the_form_that_was_given(stop: object, rule: str) -> None:
    with pytest.raises(InvalidRequestError, match=rule):
        parse_completion(orjson.dumps({"model": "m", "prompt": "a", "stop": stop}))


@pytest.mark.parametrize(
    "body", [b"", b"{", b"\xff", b'{"model":"m","prompt":"\xff"}', b"[" * 9999]
)
def test_body_that_is_no_json_is_refused(body: bytes) -> None:
    with pytest.raises(NotJsonError, match="the body must be JSON"):
        parse_completion(body)


@pytest.mark.parametrize(
    ("fields", "constraint"),
    [
        ({"response_format": {"type": "text"}}, None),
        (
            {"response_format": {"type": "json_object"}},
            Constraint(ConstraintKind.JSON_OBJECT, "", "response_format"),
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"a": 1}}}},
            Constraint(ConstraintKind.JSON_SCHEMA, '{"a":1}', "response_format"),
        ),
        (
            {"structured_outputs": {"regex": "a+"}},
            Constraint(ConstraintKind.REGEX, "a+", "structured_outputs"),
        ),
        (
            {"structured_outputs": {"json": '{"a":1}'}},
            Constraint(ConstraintKind.JSON_SCHEMA, '{"a":1}', "structured_outputs"),
        ),
        (
            {"guided_json": '{"a":1}'},
            Constraint(ConstraintKind.JSON_SCHEMA, '{"a":1}', "guided_json"),
        ),
        (
            {"guided_choice": ["a", "b"]},
            Constraint(ConstraintKind.CHOICE, '["a","b"]', "guided_choice"),
        ),
    ],
)
def test_constraint_has_the_forms_of_openai_and_vllm(
    fields: dict[str, object], constraint: Constraint | None
) -> None:
    assert chat(**fields).choices.constraint == constraint


HUGE = 10**30
"""Beyond the 64 bits that orjson writes; JSON has no bound."""


@pytest.mark.parametrize(
    "where",
    [
        pytest.param('"guided_json": {"maximum": %d}', id="guided"),
        pytest.param(
            '"response_format": {"type": "json_schema", "json_schema": {"name": "x", '
            '"schema": {"maximum": %d}}}',
            id="response format",
        ),
        pytest.param(
            '"tool_choice": "required", "tools": [{"type": "function", "function": {"name": "f", '
            '"parameters": {"maximum": %d}}}]',
            id="tool",
        ),
    ],
)
def test_schema_may_have_integers_of_any_size(where: str) -> None:
    body = orjson.dumps(CHAT)[:-1] + f", {where % HUGE}}}".encode()
    assert f'"maximum":{HUGE}' in constraint_of(parse_chat(body)).text


def test_parameter_of_any_size_is_refused_by_its_rule() -> None:
    body = b'{"text_input": "a", "parameters": {"max_tokens": %d}}' % HUGE
    with pytest.raises(InvalidFieldError, match="max_tokens must be less than"):
        parse_generate("m", body, stream=False)


def test_messages_become_what_templates_expect() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}
    parsed = chat(
        messages=[
            {"role": "developer", "content": "x"},
            {"role": "user", "content": [{"type": "text", "text": one} for one in "ab"]},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "content": "2", "tool_call_id": "1"},
        ]
    )  # fmt: skip
    assert parsed.messages[:2] == (
        {"role": "system", "content": "x"},
        {"role": "user", "content": "a\nb"},
    )
    assert parsed.messages[2]["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert parsed.messages[3] == {"role": "tool", "content": "2", "tool_call_id": "1"}


def test_refusal_of_an_earlier_answer_is_its_text() -> None:
    refused = {"role": "assistant", "content": None, "refusal": "no"}
    assert chat(messages=[refused]).messages == ({"role": "assistant", "content": "no"},)


def test_named_tool_is_the_one_that_must_be_called() -> None:
    assert chat(tools=[TOOL]).tools.forced is None
    assert chat(tools=[TOOL], tool_choice=chosen("f")).tools.forced == "f"


def test_choices_of_all_prompts_are_bounded_together() -> None:
    assert completion(n=64, prompt=["a", "b"]).choices.n == 64


def test_chat_has_as_many_alternatives_as_are_asked_for() -> None:
    assert chat(logprobs=True, top_logprobs=3).choices.sampling.logprobs == 3
    assert chat(logprobs=True).choices.sampling.logprobs == 0
    assert chat().choices.sampling.logprobs is None


def test_fields_that_libraries_add_to_messages_are_not_read() -> None:
    function = {"name": "f", "arguments": "{}", "parsed_arguments": {"a": 1}}
    answered = {
        "role": "assistant",
        "content": [{"type": "text", "text": "x", "cache_control": {}}],
    }
    added: dict[str, object] = {"parsed": {"a": 1}, "annotations": [], "reasoning": None}
    call = {"id": "1", "type": "function", "function": function, "index": 0}
    parsed = chat(messages=[{**answered, "tool_calls": [call], **added}])
    assert parsed.messages[0].keys() == {"role", "content", "tool_calls"}
    assert parsed.messages[0]["tool_calls"][0].keys() == {"id", "type", "function"}


def test_alternatives_may_be_none_without_probabilities() -> None:
    assert chat(logprobs=False, top_logprobs=0) == chat()


def test_length_may_have_both_names() -> None:
    assert chat(max_tokens=7, max_completion_tokens=7).choices.max_tokens == 7


def test_body_of_many_small_values_is_refused_before_it_is_parsed() -> None:
    with pytest.raises(TooLargeError, match="values"):
        check_parts(b"[" + b"[]," * 100_000 + b"[]]", 256)
    check_parts(orjson.dumps({"prompt": "[" * 200_000}), 256)


def called(*arguments: str) -> bytes:
    """A conversation in which the model called a function with these arguments."""
    calls = [{"id": "1", "function": {"name": "f", "arguments": one}} for one in arguments]
    return orjson.dumps(CHAT | {"messages": [{"role": "assistant", "tool_calls": calls}]})


@pytest.mark.parametrize("count", [1, 64])
def test_arguments_of_many_small_values_are_refused_before_they_are_parsed(count: int) -> None:
    body = called(*["[" + "[]," * (100_000 // count) + "[]]"] * count)
    check_parts(body, 1 << 17)  # in a body they are strings
    with pytest.raises(TooLargeError, match="arguments of tool calls must have at most 65536"):
        parse_chat(body)


def test_arguments_may_be_a_long_text_with_many_marks() -> None:
    text = "a[0], b: {c}" * 30_000
    (message,) = parse_chat(called(orjson.dumps({"text": text}).decode())).messages
    assert message["tool_calls"][0]["function"]["arguments"] == {"text": text}


@pytest.mark.parametrize(
    "prompt",
    [
        [1.5] * 50_000,
        [-1] * 50_000,
        [1, "a", *[None] * 50_000],
        [[None] * 50_000],
        ["a", *[1] * 50_000],
    ],
    ids=["floats", "negative", "mixed", "nested", "texts"],
)
def test_prompt_of_many_wrong_items_costs_one_error(prompt: object) -> None:
    with pytest.raises(ValidationError) as raised:
        CompletionFields.model_validate_json(orjson.dumps(COMPLETION | {"prompt": prompt}))
    assert raised.value.error_count() == 1


@pytest.mark.parametrize(
    "fields",
    [
        {"stop": [1] * 50_000},
        {"stop_token_ids": [-1] * 50_000},
        {"guided_choice": [1] * 50_000},
        {"logit_bias": {str(one): "x" for one in range(50_000)}},
    ],
    ids=lambda fields: next(iter(fields)),
)
def test_field_of_many_wrong_items_costs_few_errors(fields: dict[str, object]) -> None:
    with pytest.raises(ValidationError) as raised:
        CompletionFields.model_validate_json(orjson.dumps(COMPLETION | fields))
    assert raised.value.error_count() <= 2


def test_unknown_fields_are_bounded_before_they_are_parsed() -> None:
    names = {f"k{number}": 1 for number in range(70_000)}
    with pytest.raises(TooLargeError, match="at most"):
        check_parts(orjson.dumps(COMPLETION | names), 1 << 20)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)
    ),
    max_leaves=12,
)  # fmt: skip
FIELDS = st.sampled_from(
    ["prompt", "messages", "stop", "n", "logit_bias", "tools", "tool_choice", "response_format",
     "stream_options", "temperature", "max_tokens", "structured_outputs", "model"]
)  # fmt: skip


@pytest.mark.timeout(0)
def test_fuzzed_fields_are_parsed_or_refused_with_a_message() -> None:
    def check(given: tuple[bool, dict[str, object]]) -> None:
        is_chat, fields = given
        body = orjson.dumps((CHAT if is_chat else COMPLETION) | fields)
        try:
            (parse_chat if is_chat else parse_completion)(body)
        except InvalidRequestError as error:
            refused.append(error.message)

    refused: list[str] = []
    values = st.tuples(st.booleans(), st.dictionaries(FIELDS, JSON, max_size=3))
    fuzz(values.filter(lambda one: _serializes(one[1])), check, examples=200)
    assert refused
    assert all(0 < len(message) < 500 for message in refused)


def _serializes(value: object) -> bool:
    try:
        orjson.dumps(value)
    except TypeError:
        return False
    return True


VALUES = st.none() | st.booleans() | st.integers(-2, 3) | st.floats(-1, 3) | st.sampled_from(
    ["a", "", "user", [], {}, 2**31, 2**31 - 1, {"include_usage": True}, {"include_usage": 1}]
)  # fmt: skip
NAMES = ("model", "stream", "stream_options", "max_tokens", "temperature", "top_p", "n")
PARAMETERS = dict.fromkeys(NAMES, VALUES)
MESSAGES = st.lists(
    st.dictionaries(
        st.sampled_from(["role", "content", "name"]),
        st.sampled_from(["user", "system", "developer", "assistant", "tool", "b", 1, None]),
    )
)


def test_a_usual_body_is_what_the_validator_makes_of_it() -> None:
    def check_completion(fields: dict[str, object]) -> None:
        body = orjson.dumps(COMPLETION | fields)
        call = usual_completion(body, 16)
        assert call is None or call == validated_completion(body)

    def check_chat(fields: dict[str, object]) -> None:
        body = orjson.dumps(CHAT | fields)
        call = usual_chat(body)
        assert call is None or call == validated_chat(body)

    prompts = PARAMETERS | {"prompt": VALUES}
    messages = PARAMETERS | {"messages": MESSAGES, "max_completion_tokens": VALUES}
    fuzz(st.fixed_dictionaries({}, optional=prompts), check_completion, examples=300, share=0.2)
    fuzz(st.fixed_dictionaries({}, optional=messages), check_chat, examples=300, share=0.2)


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b'{"model":"m","prompt":"a","x":1}', b"\xff"])
def test_what_is_not_usual_is_left_to_the_validator(body: bytes) -> None:
    assert usual_completion(body, 16) is None
    assert usual_chat(body) is None


def test_usual_requests_share_their_parameters() -> None:
    usual = orjson.dumps(COMPLETION | {"max_tokens": 5, "stream": True, "temperature": 0})
    first, second = (usual_completion(usual, 16) for _ in range(2))
    assert first is not None
    assert second is not None
    assert first.choices is second.choices
    assert usual_chat(orjson.dumps(CHAT | {"max_completion_tokens": 7})) is not None
