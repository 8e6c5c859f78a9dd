"""Prompts are rendered by the chat template, and tokenized. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.special_names import pieces
from headroom_server.openai_api.bodies.parameters import Call, ChatCall, ToolUse
from headroom_server.openai_api.errors import InvalidFieldError

MOST_MESSAGES_AT_ONCE = 32
"""Messages of a chat that are rendered on the event loop; 470 empty ones are 16 KiB, and took 16 ms
of it."""


Prompts = tuple[tuple[int, ...], ...]
"""The tokens of each prompt of a call."""


class PromptText(NamedTuple):
    """A prompt as it is tokenized."""

    text: str
    special: bool
    """Whether the tokenizer adds its special tokens."""
    rendered: bool = False
    """Whether it is of messages, in which names of special tokens are cut."""

    def tokens(self, text: ModelText) -> Sequence[int]:
        """Tokenize it."""
        encode = text.tokenizer.encode
        first, *others = pieces(self.text) if self.rendered else (self.text,)
        tokens = encode(first, special=self.special)
        if not others:
            return tokens
        return [*tokens, *(token for one in others for token in encode(one, special=False))]


def only_prompt(call: Call, text: ModelText) -> PromptText | None:
    """Render the prompt of a call; None: it has several, or they are tokens.

    Raises:
        InvalidRequestError: the messages cannot be rendered.
    """
    if isinstance(call, ChatCall):
        return _chat_prompt(call, text)
    prompt, *others = call.prompts
    if others or not isinstance(prompt, str):
        return None
    return PromptText(prompt, call.special_tokens)


def tokens_of(call: Call, text: ModelText) -> Prompts:
    """Render and tokenize the prompts of a call. Long ones take milliseconds.

    Raises:
        InvalidRequestError: the messages cannot be rendered.
    """
    if isinstance(call, ChatCall):
        return (tuple(_chat_prompt(call, text).tokens(text)),)
    return tuple(
        tuple(text.tokenizer.encode(one, special=call.special_tokens))
        if isinstance(one, str)
        else one
        for one in call.prompts
    )


def _chat_prompt(call: ChatCall, text: ModelText) -> PromptText:
    if text.chat is None:
        raise InvalidFieldError(
            "messages",
            "messages require a chat template, which this model does not have; use /v1/completions",
        )
    described = _described(call.tools)
    if described and not text.chat.takes_tools:
        raise InvalidFieldError(
            "tools", "tools must be omitted: this model's chat template does not describe tools"
        )
    as_text = text.tokenizer.special_names.as_text
    rendered = text.chat.render(
        as_text(call.messages),
        tools=as_text(described),
        add_generation_prompt=call.add_generation_prompt,
        options=as_text(call.template_options),
    )
    return PromptText(rendered, special=False, rendered=True)


def _described(tools: ToolUse | None) -> Sequence[Mapping[str, Any]] | None:
    if tools is None or not tools.parsed:
        return None
    return tools.tools


def renders_long(call: Call) -> bool:
    """Return whether rendering takes longer than the event loop has for any request.

    A chat template takes 35 us for each message, which is 30 bytes of a body where it is empty.
    """
    return isinstance(call, ChatCall) and len(call.messages) > MOST_MESSAGES_AT_ONCE
