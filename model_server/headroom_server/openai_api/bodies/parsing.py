"""Bodies of requests to OpenAI's API become values; errors name the field and the rule. Pure."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

from headroom_server.openai_api.bodies.body_parts import check_arguments
from headroom_server.openai_api.bodies.chat_schemas import ChatFields
from headroom_server.openai_api.bodies.choices import choices_of
from headroom_server.openai_api.bodies.completion_schemas import CompletionFields
from headroom_server.openai_api.bodies.field_errors import validated
from headroom_server.openai_api.bodies.messages import template_message, tools_of
from headroom_server.openai_api.bodies.parameters import ChatCall, CompletionCall, PromptInput
from headroom_server.openai_api.bodies.schemas import MAX_CHOICES
from headroom_server.openai_api.bodies.usual_bodies import usual_chat, usual_completion
from headroom_server.openai_api.errors import InvalidFieldError

COMPLETION_TOKENS = 16
"""OpenAI's default of max_tokens for completions."""


def parse_completion(body: bytes) -> CompletionCall:
    """Parse the body of POST /v1/completions.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    usual = usual_completion(body, COMPLETION_TOKENS)
    return validated_completion(body) if usual is None else usual


def validated_completion(body: bytes) -> CompletionCall:
    """Parse any body; see `parse_completion`."""
    fields = validated(CompletionFields, body)
    prompts = _prompts(fields.prompt)
    if fields.best_of not in (None, fields.n or 1):
        raise InvalidFieldError("best_of", f"best_of must equal n; got {fields.best_of}")
    if fields.echo and fields.logprobs is not None:
        raise InvalidFieldError(
            "echo", "echo must be false with logprobs: prompts have no probabilities here"
        )
    default = COMPLETION_TOKENS if fields.max_tokens is None else fields.max_tokens
    choices = choices_of(fields, max_tokens=default, logprobs=fields.logprobs)
    if len(prompts) * choices.n > MAX_CHOICES:
        raise InvalidFieldError(
            "n",
            f"n times the number of prompts must be at most {MAX_CHOICES}; "
            f"got {len(prompts) * choices.n}",
        )
    return CompletionCall(
        model=fields.model,
        prompts=prompts,
        choices=choices,
        echo=bool(fields.echo),
        special_tokens=fields.add_special_tokens is not False,
    )


def parse_chat(body: bytes) -> ChatCall:
    """Parse the body of POST /v1/chat/completions.

    Raises:
        InvalidRequestError: with the field, the rule and what was found.
    """
    usual = usual_chat(body)
    return validated_chat(body) if usual is None else usual


def validated_chat(body: bytes) -> ChatCall:
    """Parse any body; see `parse_chat`."""
    return chat_of(validated(ChatFields, body))


def chat_of(fields: ChatFields) -> ChatCall:
    """Return the chat call of the fields.

    Raises:
        InvalidRequestError: fields contradict each other, or arguments have too many values.
    """
    older, max_tokens = fields.max_tokens, fields.max_completion_tokens or fields.max_tokens
    if older not in (None, max_tokens):  # clients for several servers send both names
        raise InvalidFieldError(
            "max_tokens", f"max_tokens must equal max_completion_tokens, {max_tokens}; got {older}"
        )
    logprobs = (fields.top_logprobs or 0) if fields.logprobs else None
    tools = tools_of(fields)
    choices = choices_of(fields, max_tokens=max_tokens, logprobs=logprobs)
    if tools is not None and (tools.forced or tools.required) and choices.constraint is not None:
        raise InvalidFieldError(
            choices.constraint.field,
            f"{choices.constraint.field} must be omitted if tool_choice demands a call",
        )
    options = dict(fields.chat_template_kwargs or {})
    if fields.reasoning_effort is not None:
        options.setdefault("reasoning_effort", fields.reasoning_effort)
    reserved = {"messages", "tools", "documents", "add_generation_prompt"}.intersection(options)
    if reserved:
        raise InvalidFieldError(
            "chat_template_kwargs", f"chat_template_kwargs must not set {min(reserved)}"
        )
    check_arguments(fields.messages)
    return ChatCall(
        model=fields.model,
        messages=tuple(template_message(one) for one in fields.messages),
        choices=choices,
        tools=tools,
        add_generation_prompt=fields.add_generation_prompt is not False,
        template_options=MappingProxyType(options),
    )


def _prompts(prompt: Any) -> tuple[PromptInput, ...]:
    if isinstance(prompt, str):
        return (prompt,)
    if isinstance(prompt[0], int):
        return (tuple(prompt),)
    return tuple(one if isinstance(one, str) else tuple(one) for one in prompt)
