"""Fields that the bodies of requests to OpenAI's API share, validated within physical bounds. Pure.

Fields, names and ranges: https://platform.openai.com/docs/api-reference, and for the sampling that
OpenAI does not have, vLLM's names (https://docs.vllm.ai/en/latest/serving/openai_compatible_server).
A field that neither knows is refused, as OpenAI does. Fields that only describe the client, or ask
for what this server does anyway, are accepted and not used.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

MAX_CHOICES = 128
"""Most choices of one request: prompts times n."""
MAX_LOGPROBS = 20
MAX_PROBABILITIES = 1 << 17
"""Most probabilities of one answer that is not streamed, with alternatives: 4096 tokens with 20
have 86 016. They wait for the last token in memory, with 128 bytes each."""
MAX_STOPS = 16
MAX_MESSAGES = 8192
MAX_TOOLS = 128
MAX_SCHEMA_CHARACTERS = 256 * 1024
Schema = dict[str, JsonValue] | Annotated[str, Field(max_length=MAX_SCHEMA_CHARACTERS)]
"""A JSON schema, which vLLM takes as text too."""

T = TypeVar("T")
Items = Annotated[list[T], Field(fail_fast=True)]
"""A list whose first wrong item ends its validation: an error takes a kilobyte and 5 us each, and
a body has 100 000 items."""
Token = Annotated[int, Field(ge=0, lt=2**31)]
StopString = Annotated[str, Field(min_length=1, max_length=256)]
Stops = StopString | Annotated[Items[StopString], Field(max_length=MAX_STOPS)]
Name = Annotated[str, Field(min_length=1, max_length=256)]


Unused = JsonValue
"""Accepted and not used."""


class Fields(BaseModel):
    """Base of all objects of a request; unknown fields are errors, null is the default."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())


class MessageFields(Fields):
    """Base of messages and their parts, whose unknown fields are not read.

    Clients give back the messages of earlier answers with what their libraries added to them, as
    the `parsed` of OpenAI's own.
    """

    model_config = ConfigDict(extra="ignore")


class StreamOptions(Fields):
    """Reports of a stream."""

    include_usage: bool = False
    continuous_usage_stats: bool = False
    include_obfuscation: bool | None = None
    """Not used: chunks are not padded."""


class JsonSchema(Fields):
    """A schema that the answer follows."""

    name: str | None = Field(None, max_length=256)
    description: str | None = None
    schema_: dict[str, JsonValue] = Field(alias="schema")
    strict: bool | None = None
    """Not used: the answer always follows the schema."""


class ResponseFormat(Fields):
    """The form of the answer."""

    type: Literal["text", "json_object", "json_schema"]
    json_schema: JsonSchema | None = None

    @model_validator(mode="after")
    def _has_schema(self) -> Self:
        if (self.type == "json_schema") != (self.json_schema is not None):
            raise ValueError("json_schema is required with type json_schema, and only then")
        return self


class StructuredOutputs(Fields):
    """vLLM's constraints of the answer; one of them."""

    json_: Schema | None = Field(None, alias="json")
    regex: str | None = Field(None, max_length=MAX_SCHEMA_CHARACTERS)
    choice: Items[Name] | None = Field(None, min_length=1, max_length=1024)
    grammar: str | None = Field(None, max_length=MAX_SCHEMA_CHARACTERS)
    json_object: bool | None = None

    @model_validator(mode="after")
    def _one(self) -> Self:
        given = (self.json_, self.regex, self.choice, self.grammar, self.json_object)
        if sum(one not in (None, False) for one in given) != 1:
            raise ValueError("must have exactly one of json, regex, choice, grammar, json_object")
        return self


class SamplingFields(Fields):
    """Fields that both endpoints share."""

    model: Name
    n: int | None = Field(None, ge=1, le=MAX_CHOICES)
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    max_tokens: int | None = Field(None, ge=1, lt=2**31)
    temperature: float | None = Field(None, ge=0, le=2, allow_inf_nan=False)
    top_p: float | None = Field(None, gt=0, le=1)
    top_k: int | None = Field(None, ge=-1, lt=2**31)
    min_p: float | None = Field(None, ge=0, le=1)
    presence_penalty: float | None = Field(None, ge=-2, le=2)
    frequency_penalty: float | None = Field(None, ge=-2, le=2)
    repetition_penalty: float | None = Field(None, gt=0, le=100, allow_inf_nan=False)
    seed: int | None = Field(None, ge=-(2**63), lt=2**63)
    stop: Stops | None = None
    stop_token_ids: Items[Token] | None = Field(None, max_length=256)
    ignore_eos: bool | None = None
    min_tokens: int | None = Field(None, ge=0, lt=2**31)
    logit_bias: dict[str, JsonValue] | None = Field(
        None, max_length=1024, json_schema_extra={"additionalProperties": {"type": "number"}}
    )
    """Lists of numbers, which are checked once there are few enough."""
    include_stop_str_in_output: bool | None = None
    response_format: ResponseFormat | None = None
    structured_outputs: StructuredOutputs | None = None
    guided_json: Schema | None = None
    guided_regex: str | None = Field(None, max_length=MAX_SCHEMA_CHARACTERS)
    guided_choice: Items[Name] | None = Field(None, min_length=1, max_length=1024)
    guided_grammar: str | None = Field(None, max_length=MAX_SCHEMA_CHARACTERS)
    skip_special_tokens: Literal[True] | None = None
    user: str | None = Field(None, max_length=4096)
    """Not the tenant: a client could name any. The tenant is the header x-tenant."""
    metadata: Unused = None
    service_tier: Literal["auto", "default", "flex", "scale", "priority"] | None = None
    """flex: only what other requests leave; the others are served alike."""

    @model_validator(mode="after")
    def _stream_options_with_stream(self) -> Self:
        if self.stream_options is not None and not self.stream:
            raise ValueError("stream_options must be omitted unless stream is true")
        return self
