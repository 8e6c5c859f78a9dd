"""Bodies of the usual form, without the validator: a tenth of its time. Pure.

Usual is a body that has only the fields of `USUAL`, with values of their plain types and within the
bounds of `schemas`. Everything else, every error included, is left to the validator; where both
accept a body, they give the same call (a test compares them).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import Any

import orjson

from headroom_server.generation.values import Sampling
from headroom_server.openai_api.bodies.parameters import ChatCall, Choices, CompletionCall
from headroom_server.openai_api.bodies.schemas import MAX_MESSAGES

USUAL = frozenset({"model", "stream", "stream_options", "max_tokens", "temperature", "top_p"})
COMPLETION = USUAL | {"prompt"}
CHAT = USUAL | {"messages", "max_completion_tokens"}
ROLES = {"system": "system", "developer": "system", "user": "user"}
MESSAGE = {"role", "content"}
LARGEST = 2**31
LONGEST_NAME = 256
SHARED_OPTIONS: Mapping[str, Any] = MappingProxyType({})


def usual_completion(body: bytes, default_tokens: int) -> CompletionCall | None:
    """Return the call of a body of the usual form, else None."""
    fields = _fields(body, COMPLETION)
    if fields is None:
        return None
    prompt, choices = (
        fields.get("prompt"),
        _choices(fields, fields.get("max_tokens", default_tokens)),
    )
    if type(prompt) is not str or choices is None or choices.max_tokens is None:
        return None
    return CompletionCall(model=fields["model"], prompts=(prompt,), choices=choices)


def usual_chat(body: bytes) -> ChatCall | None:
    """Return the call of a body of the usual form, else None."""
    fields = _fields(body, CHAT)
    if fields is None:
        return None
    if "max_completion_tokens" in fields:
        most = None if "max_tokens" in fields else fields["max_completion_tokens"]
        if most is None:
            return None
    else:
        most = fields.get("max_tokens")
    choices, given = _choices(fields, most), fields.get("messages")
    if choices is None or type(given) is not list or not 1 <= len(given) <= MAX_MESSAGES:
        return None
    messages = []
    for one in given:
        if type(one) is not dict or one.keys() != MESSAGE or type(one["content"]) is not str:
            return None
        role = one["role"]
        if role != "assistant":
            role = ROLES.get(role) if type(role) is str else None
        if role is None:
            return None
        messages.append({"role": role, "content": one["content"]})
    return ChatCall(
        model=fields["model"],
        messages=tuple(messages),
        choices=choices,
        template_options=SHARED_OPTIONS,
    )


def _fields(body: bytes, known: frozenset[str]) -> dict[str, Any] | None:
    try:
        fields = orjson.loads(body)
    except orjson.JSONDecodeError:
        return None
    if type(fields) is not dict or not fields.keys() <= known:
        return None
    model = fields.get("model")
    return fields if type(model) is str and 1 <= len(model) <= LONGEST_NAME else None


def _choices(fields: dict[str, Any], most: Any) -> Choices | None:
    stream, temperature = fields.get("stream", False), fields.get("temperature", 1.0)
    top_p, usage = fields.get("top_p", 1.0), False
    if "stream_options" in fields:
        options = fields["stream_options"]
        if stream is not True or type(options) is not dict or options.keys() != {"include_usage"}:
            return None
        usage = options["include_usage"]
    if (
        not (most is None or (type(most) is int and 1 <= most < LARGEST))
        or type(stream) is not bool
        or type(usage) is not bool
        or not (type(temperature) in _NUMBERS and 0 <= temperature <= 2)
        or not (type(top_p) in _NUMBERS and 0 < top_p <= 1)
    ):
        return None
    return _made(most, stream, usage, float(temperature), float(top_p))


_NUMBERS = (int, float)


@lru_cache(maxsize=256)
def _made(most: int | None, stream: bool, usage: bool, temperature: float, top_p: float) -> Choices:
    """Return the choices, which requests with the same parameters share: they are immutable."""
    return Choices(
        sampling=Sampling(temperature=temperature, top_p=top_p),
        max_tokens=most,
        stream=stream,
        include_usage=usage,
    )
