"""Calls become requests of the engine: prompts are rendered, tokenized and bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.values import GenerationLimits, TokenGrammar
from headroom_server.openai_api.bodies.parameters import ChatCall, CompletionCall, ToolUse
from headroom_server.openai_api.constraints import compiled, constrained, constraint_of
from headroom_server.openai_api.errors import InvalidFieldError
from headroom_server.openai_api.prompt_bounds import check_prompt, check_reported, check_tokens

MOST_MESSAGES_AT_ONCE = 32
"""Messages of a chat that are rendered on the event loop; 470 empty ones are 16 KiB, and took 16 ms
of it."""


class EncodedCall(NamedTuple):
    """A call whose prompts are tokens."""

    prompts: tuple[tuple[int, ...], ...]
    grammars: tuple[TokenGrammar | None, ...]
    """One for each choice: prompts times n."""
    constraint: tuple[str, str] | None = None
    """Kind and text of what they were compiled from."""


class PromptText(NamedTuple):
    """A prompt as it is tokenized."""

    text: str
    special: bool
    """Whether the tokenizer adds its special tokens."""


def only_prompt(call: CompletionCall | ChatCall, text: ModelText) -> PromptText | None:
    """Render the prompt of a call; None: it has several, or they are tokens.

    Raises:
        InvalidRequestError: the messages cannot be rendered.
    """
    if isinstance(call, ChatCall):
        return PromptText(_chat_prompt(call, text), special=False)
    prompt, *others = call.prompts
    if others or not isinstance(prompt, str):
        return None
    return PromptText(prompt, call.special_tokens)


def encode_call(
    call: CompletionCall | ChatCall,
    text: ModelText,
    limits: GenerationLimits,
    only: tuple[int, ...] | None = None,
) -> EncodedCall:
    """Render and tokenize prompts and compile the constraint. Long prompts take milliseconds.

    `only`: the tokens of the only prompt, if they are known.

    Raises:
        InvalidRequestError: prompt and answer do not fit the context, or a constraint is invalid.
    """
    field = "messages" if isinstance(call, ChatCall) else "prompt"
    if only is not None:
        prompts = [only]
    elif isinstance(call, ChatCall):
        prompts = [tuple(text.tokenizer.encode(_chat_prompt(call, text), special=False))]
    else:
        prompts = [
            tuple(text.tokenizer.encode(one, special=call.special_tokens))
            if isinstance(one, str)
            else one
            for one in call.prompts
        ]
    check_tokens(call.choices, limits)
    check_reported(call.choices, len(prompts))
    for prompt in prompts:
        check_prompt(prompt, call.choices, limits, field)
    constraint = constraint_of(call)
    grammars = compiled(constraint, len(prompts) * call.choices.n, text)
    return EncodedCall(tuple(prompts), grammars, constraint and (constraint.kind, constraint.text))


def _chat_prompt(call: ChatCall, text: ModelText) -> str:
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
    return text.chat.render(
        call.messages,
        tools=described,
        add_generation_prompt=call.add_generation_prompt,
        options=call.template_options,
    )


def _described(tools: ToolUse | None) -> Sequence[Mapping[str, Any]] | None:
    if tools is None or not tools.parsed:
        return None
    return tools.tools


def takes_long(call: CompletionCall | ChatCall) -> bool:
    """Whether encoding takes longer than the event loop has for a request, however short it is.

    A chat template takes 35 us for each message, which is 30 bytes of a body where it is empty.
    """
    many = isinstance(call, ChatCall) and len(call.messages) > MOST_MESSAGES_AT_ONCE
    return many or constrained(call)
