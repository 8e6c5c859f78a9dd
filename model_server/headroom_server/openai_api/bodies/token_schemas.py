"""The bodies of POST /tokenize and POST /detokenize, with vLLM's names. Pure.

Source: https://docs.vllm.ai/en/latest/serving/openai_compatible_server (Tokenizer API).
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, JsonValue, model_validator

from headroom_server.openai_api.bodies.chat_schemas import Message, Tool
from headroom_server.openai_api.bodies.schemas import (
    MAX_MESSAGES,
    MAX_TOOLS,
    Fields,
    Items,
    Name,
    Token,
)

OF_CHATS = ("tools", "add_generation_prompt", "chat_template_kwargs", "continue_final_message")


class TokenizeFields(Fields):
    """A text, or a conversation."""

    model: Name | None = None
    prompt: str | None = None
    messages: Items[Message] | None = Field(None, min_length=1, max_length=MAX_MESSAGES)
    tools: Items[Tool] | None = Field(None, max_length=MAX_TOOLS)
    add_generation_prompt: bool | None = None
    chat_template_kwargs: dict[str, JsonValue] | None = Field(None, max_length=64)
    continue_final_message: Literal[False] | None = None
    add_special_tokens: bool | None = None
    """Whether special tokens are added; by default to a text only, as a chat template writes its
    own."""
    return_token_strs: bool | None = None

    @model_validator(mode="after")
    def _text_or_conversation(self) -> Self:
        if (self.prompt is None) == (self.messages is None):
            raise ValueError("prompt or messages is required, and not both")
        for name in OF_CHATS:
            if self.prompt is not None and getattr(self, name) is not None:
                raise ValueError(f"{name} must be omitted with prompt")
        return self


class DetokenizeFields(Fields):
    """Tokens."""

    model: Name | None = None
    tokens: Items[Token]
