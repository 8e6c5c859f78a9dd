"""The body of POST /v1/chat/completions: messages and tools. Pure."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from headroom_server.openai_api.bodies.schemas import (
    MAX_LOGPROBS,
    MAX_MESSAGES,
    MAX_TOOLS,
    Fields,
    Items,
    MessageFields,
    Name,
    SamplingFields,
    Unused,
)


class TextPart(MessageFields):
    """A part of a message."""

    type: Literal["text"]
    text: str


class FunctionCall(MessageFields):
    """A function that the model called."""

    name: Name
    arguments: str


class ToolCall(MessageFields):
    """A call of a tool in an earlier message."""

    id: str = Field(max_length=256)
    type: Literal["function"] = "function"
    function: FunctionCall


class Message(MessageFields):
    """One message of a conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | Items[TextPart] | None = None
    name: str | None = Field(None, max_length=256)
    tool_calls: Items[ToolCall] | None = Field(None, max_length=MAX_TOOLS)
    tool_call_id: str | None = Field(None, max_length=256)
    reasoning_content: str | None = None
    refusal: str | None = None
    audio: None = None
    function_call: None = None

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if self.content is None and not (self.role == "assistant" and self.tool_calls):
            if self.role == "assistant" and self.refusal is not None:
                return self
            raise ValueError("content is required")
        return self


class FunctionDescription(Fields):
    """A function that the model may call."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_.-]{1,64}$")
    description: str | None = None
    parameters: dict[str, JsonValue] | None = None
    strict: bool | None = None


class Tool(Fields):
    """A tool that the model may call."""

    type: Literal["function"]
    function: FunctionDescription


class NamedFunction(Fields):
    """The name of a tool."""

    name: Name


class ToolChoice(Fields):
    """The tool that the model must call."""

    type: Literal["function"]
    function: NamedFunction


class ChatFields(SamplingFields):
    """The body of POST /v1/chat/completions."""

    messages: Items[Message] = Field(min_length=1, max_length=MAX_MESSAGES)
    max_completion_tokens: int | None = Field(None, ge=1, lt=2**31)
    logprobs: bool | None = None
    top_logprobs: int | None = Field(None, ge=0, le=MAX_LOGPROBS)
    tools: Items[Tool] | None = Field(None, max_length=MAX_TOOLS)
    tool_choice: Literal["none", "auto", "required"] | ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    add_generation_prompt: bool | None = None
    chat_template_kwargs: dict[str, JsonValue] | None = Field(None, max_length=64)
    modalities: Items[Literal["text"]] | None = None
    store: Unused = None
    safety_identifier: Unused = None
    prompt_cache_key: Unused = None
    prompt_cache_retention: Unused = None
    prediction: Unused = None
    reasoning_effort: str | None = Field(None, max_length=32)
    verbosity: Unused = None

    @model_validator(mode="after")
    def _top_logprobs_with_logprobs(self) -> Self:
        if self.top_logprobs and not self.logprobs:
            raise ValueError("top_logprobs must be omitted unless logprobs is true")
        return self
