"""The generate extension of the Open Inference Protocol: text in, text out.

    POST /v2/models/{model}/generate           one answer
    POST /v2/models/{model}/generate_stream    server-sent events; without [DONE], as Triton has it

Source: https://github.com/kserve/open-inference-protocol/blob/main/specification/protocol/
generate_rest.yaml and Triton's extension_generate.md. `parameters` has the fields of completions
and those of Triton's back end for vLLM; both may also be fields of the body.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import orjson
from pydantic import ConfigDict, Field, JsonValue

from headroom_server.errors import RequestError
from headroom_server.openai_api.answers.encoding import (
    AnswerIdentity,
    Part,
    ServerSentEvents,
    Usage,
)
from headroom_server.openai_api.bodies.field_errors import validated
from headroom_server.openai_api.bodies.json_text import json_text
from headroom_server.openai_api.bodies.parameters import CompletionCall
from headroom_server.openai_api.bodies.parsing import parse_completion
from headroom_server.openai_api.bodies.schemas import Fields
from headroom_server.openai_api.errors import fields_of
from headroom_server.openai_api.triton_fields import completion_fields


class GenerateFields(Fields):
    """The body; further fields are parameters, too."""

    model_config = ConfigDict(extra="allow")

    id: str | None = Field(None, max_length=256)
    text_input: str
    parameters: dict[str, JsonValue] | None = None


def parse_generate(model: str, body: bytes, *, stream: bool) -> CompletionCall:
    """Parse a body as a completion.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    fields = validated(GenerateFields, body)
    parameters = {**(fields.parameters or {}), **(fields.model_extra or {})}
    return completion_of(model, fields.text_input, parameters, stream=stream)


def completion_of(
    model: str, text: str, parameters: Mapping[str, Any], *, stream: bool, usage: bool = False
) -> CompletionCall:
    """Return a text and its parameters as a completion; with `usage`, its stream ends with sums.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    fields = completion_fields(parameters, stream=stream)
    completion = {**fields, "model": model, "prompt": text}
    if usage:
        completion["stream_options"] = {"include_usage": True}
    return parse_completion(json_text(completion))


class GenerateForm(ServerSentEvents):
    """The JSON of the extension."""

    ending = b""

    def __init__(self, identity: AnswerIdentity) -> None:
        self._identity = identity

    def failure(self, error: RequestError) -> bytes:
        """Return the event that ends a stream which cannot be completed."""
        return b"data: %b\n\n" % fields_of(error).open_inference()

    def opening(self, index: int) -> bytes:
        """Return nothing."""
        return b""

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone."""
        return self.event(index, Part(text))

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""
        return b"data: %b\n\n" % orjson.dumps(self._fields(part))

    def usage_event(self, usage: Usage) -> bytes:
        """Return nothing: the form has no sums."""
        return b""

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body."""
        details = {
            "details": {
                "finish_reason": parts[0].finish,
                "prompt_tokens": usage.prompt_tokens,
                "generated_tokens": usage.completion_tokens,
            }
        }
        return orjson.dumps(self._fields(parts[0]) | details)

    def _fields(self, part: Part) -> dict[str, Any]:
        fields = {
            "model_name": self._identity.model,
            "model_version": "1",
            "text_output": part.text,
        }
        return fields if part.finish is None else fields | {"finish_reason": part.finish}
