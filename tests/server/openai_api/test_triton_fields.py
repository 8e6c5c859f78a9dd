"""The generate extension as Triton's clients use it: over HTTP, and the same fields over gRPC."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.openai_api.triton_fields import completion_fields
from support.generation_front import front

pytestmark = pytest.mark.clock

TEXT = {"text_input": "abc"}
THREE = '{"max_tokens": "3", "temperature": "0.0", "ignore_eos": "False"}'
HOW = [
    {"parameters": {"max_tokens": 3, "temperature": 0}},
    {"max_tokens": 3, "temperature": 0},
    {"parameters": {"max_tokens": "3"}, "temperature": "0"},
    {"sampling_parameters": THREE},
    {"parameters": {"sampling_parameters": THREE, "exclude_input_in_output": True}},
    {"exclude_input_in_output": True, "max_tokens": 3},
]
"""Three tokens, as the documentation, the sample client and genai-perf ask for them."""


@pytest.mark.parametrize("how", HOW)
@pytest.mark.parametrize("at", ["/v2/models/m", "/v2/models/m/versions/1"])
async def test_request_in_the_forms_of_tritons_clients_is_answered(
    how: Mapping[str, Any], at: str
) -> None:
    async with front() as world:
        plain = await world.http.post(f"{at}/generate", json={**TEXT, **how})
        said = await world.http.post(f"{at}/generate", json={**TEXT, **how, "stream": False})
        within = {**how, "parameters": {**how.get("parameters", {}), "stream": True}}
        stream = await world.http.post(f"{at}/generate_stream", json={**TEXT, **within})
    assert plain.json()["text_output"] == said.json()["text_output"] == "hel"
    pieces = [orjson.loads(line[6:]) for line in stream.text.split("\n\n") if line]
    assert "".join(one["text_output"] for one in pieces) == "hel"


async def test_answer_begins_with_the_prompt_if_it_is_not_excluded() -> None:
    async with front() as world:
        body = {**TEXT, "exclude_input_in_output": False, "max_tokens": 3}
        answer = await world.http.post("/v2/models/m/generate", json=body)
    assert answer.json()["text_output"] == "abchel"


@pytest.mark.parametrize("path", ["", "/config", "/ready"])
async def test_model_has_one_version(path: str) -> None:
    async with front() as world:
        plain, named, other = [
            await world.http.get(f"/v2/models/m{version}{path}")
            for version in ("", "/versions/1", "/versions/2")
        ]
    assert (plain.status_code, other.status_code) == (200, 404)
    assert named.json() == plain.json()


@pytest.mark.parametrize(
    ("given", "stream", "field"),
    [
        ({"stream": True}, False, "stream"),
        ({"stream": False}, True, "stream"),
        ({"stream": "true"}, True, "stream"),
        ({"exclude_input_in_output": False}, True, "exclude_input_in_output"),
        ({"exclude_input_in_output": 1}, False, "exclude_input_in_output"),
        ({"sampling_parameters": "{"}, False, "sampling_parameters"),
        ({"sampling_parameters": "[1]"}, False, "sampling_parameters"),
        ({"sampling_parameters": {"max_tokens": 3}}, False, "sampling_parameters"),
        ({"sampling_parameters": '{"echo": true}'}, False, "parameters.echo"),
    ],
)
def test_wrong_field_is_named(given: dict[str, Any], stream: bool, field: str) -> None:
    with pytest.raises(InvalidFieldError) as raised:
        completion_fields(given, stream=stream)
    assert raised.value.field == field


def test_only_strings_that_are_numbers_in_fields_of_numbers_become_numbers() -> None:
    given = {"seed": "7", "top_p": "0.5", "stop": "7", "min_p": "x", "ignore_eos": "True"}
    fields = completion_fields(given, stream=False)
    assert fields == {**given, "seed": 7, "top_p": 0.5, "ignore_eos": True, "stream": False}
