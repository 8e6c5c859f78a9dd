"""Fields of Triton's back end for vLLM, as the fields of completions. Pure.

Its clients give numbers as strings, in a JSON text `sampling_parameters`, and say with
`exclude_input_in_output` whether the answer begins with the prompt; without it, it does not here.
Source: https://github.com/triton-inference-server/vllm_backend (README, samples/client.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

import orjson

from headroom_server.openai_api.bodies.completion_schemas import CompletionFields
from headroom_server.openai_api.errors import InvalidFieldError

SAMPLING, STREAM, EXCLUDE = "sampling_parameters", "stream", "exclude_input_in_output"
OWN = frozenset({"model", "prompt", "stream_options", "n", "echo", "logprobs"})
"""Fields of completions that have no place in this form."""
NUMBERS = frozenset(
    name
    for name, field in CompletionFields.model_fields.items()
    if not {int, float, bool}.isdisjoint(get_args(field.annotation))
)
_STREAM_RULE = {
    True: "stream must be true with generate_stream; use generate for whole answers",
    False: "stream must be false with generate; use generate_stream for streams",
}


def completion_fields(given: Mapping[str, Any], *, stream: bool) -> dict[str, Any]:
    """Return the fields of completions that these are, without prompt and model.

    Raises:
        InvalidFieldError: with the field, the rule and what was found.
    """
    fields = {**given, **_sampling(given.get(SAMPLING))}
    fields.pop(SAMPLING, None)
    for name in OWN.intersection(fields):
        raise InvalidFieldError(
            f"parameters.{name}", f"unknown parameter: {name}", "unknown_parameter"
        )
    if _flag(fields, STREAM, default=stream) != stream:
        raise InvalidFieldError(STREAM, _STREAM_RULE[stream])
    if not _flag(fields, EXCLUDE, default=True):
        if stream:
            raise InvalidFieldError(EXCLUDE, f"{EXCLUDE} must be true with stream; got false")
        fields["echo"] = True
    fields = {name: _number(one) if name in NUMBERS else one for name, one in fields.items()}
    return {**fields, STREAM: stream}


def _sampling(value: object) -> dict[str, Any]:
    if not value:
        return {}
    fields: object = None
    if isinstance(value, str | bytes):
        try:
            fields = orjson.loads(value)
        except orjson.JSONDecodeError:
            fields = None
    if not isinstance(fields, dict):
        raise InvalidFieldError(SAMPLING, f"{SAMPLING} must be a string with a JSON object")
    return fields


def _flag(fields: dict[str, Any], name: str, *, default: bool) -> bool:
    value = fields.pop(name, None)
    if value is None:
        return default
    if type(value) is not bool:
        raise InvalidFieldError(name, f"{name} must be true or false; got {value!r:.40}")
    return value


def _number(value: Any) -> Any:
    if type(value) is not str:
        return value
    try:
        found = orjson.loads(value.lower())
    except orjson.JSONDecodeError:
        return value
    return found if type(found) in (int, float, bool) else value
