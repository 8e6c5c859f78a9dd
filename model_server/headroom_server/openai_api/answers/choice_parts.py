"""Turns one choice's deliveries into parts of its answer, calls of tools, or an exception."""

from __future__ import annotations

import secrets
import string
from collections.abc import Sequence
from io import StringIO
from typing import NamedTuple, Protocol

from headroom_server.errors import (
    AbandonedError,
    ConstraintError,
    ExpiredError,
    FailedError,
    RequestError,
)
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.text.tool_calls import Call, ToolCalls, calls_of, parser_of
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationRequest,
    SampledToken,
)
from headroom_server.openai_api.answers.choice_answer import AnswerText
from headroom_server.openai_api.answers.encoding import Form, Part, Usage
from headroom_server.openai_api.bodies.parameters import ChatCall, CompletionCall, ToolUse

_ID_LETTERS = string.ascii_letters + string.digits
UNWRITABLE = "the answer cannot be written; see the server's log"


class StopChoice(Protocol):
    """Ends a choice in the engine."""

    def __call__(self, key: int) -> None:
        """End the choice with this key."""


class AnswerContext(NamedTuple):
    """Context that all choices of a request share."""

    call: CompletionCall | ChatCall
    text: ModelText
    form: Form
    requests: Sequence[GenerationRequest]
    echoes: Sequence[str]
    """The text before each choice: the prompt if it is echoed."""
    stop: StopChoice


def error_of(delivery: Delivery) -> RequestError:
    """Return the error of a choice that ended without an answer."""
    if delivery.finish is FinishReason.EXPIRED:
        return ExpiredError("the deadline passed before the answer was complete")
    if delivery.finish is FinishReason.SHUTDOWN:
        return AbandonedError("the server stopped before it could complete the answer")
    if delivery.finish is FinishReason.CONSTRAINT:
        return ConstraintError(
            "the constraint must allow a further token, and take less work; simplify it"
        )
    return FailedError(delivery.error or "the model failed")


class ChoiceParts:
    """Turns one choice's deliveries into parts of its answer."""

    withholds: bool
    """Whether text may wait for the end of a call."""

    def __init__(self, context: AnswerContext, index: int) -> None:
        request, call = context.requests[index], context.call
        self.key = request.key
        self.done = False
        self.cached_tokens = 0
        self._answer = AnswerText(context.text.tokenizer, call.choices, request.stop_tokens)
        self._tools = call.tools if isinstance(call, ChatCall) else None
        self._parser = self._parser_of(context.text)
        self._demanded = StringIO()
        """The text of an answer that must be a call."""
        self.withholds = self._tools is not None
        self._calls = 0
        self._stop = context.stop

    @property
    def tokens(self) -> int:
        """Tokens generated so far."""
        return self._answer.tokens

    @property
    def withheld(self) -> int:
        """Characters that wait for the end of a call."""
        return self._demanded.tell() if self._parser is None else self._parser.held

    def push(self, delivery: Delivery) -> Part | None:
        """Return the part that may be sent; None: nothing now.

        Raises:
            RequestError: the choice ended without an answer.
        """
        if self.done:
            return None
        if delivery.cached_tokens:
            self.cached_tokens = delivery.cached_tokens
        text, tokens, finish, stopped = self._answer.push(delivery)
        if stopped:
            self._stop(self.key)
        if finish is None:
            if delivery.finish is not None:
                self.done = True
                raise error_of(delivery)
            if self._tools is None:
                return Part(text, tokens) if text else None
        else:
            self.done = True
        if self._tools is None:
            return Part(text, tokens, finish)
        return self._with_tools(self._tools, text, tokens, finish)

    def _parser_of(self, text: ModelText) -> ToolCalls | None:
        tools = self._tools
        if tools is None or not tools.parsed or tools.required or tools.forced is not None:
            return None
        return parser_of(text.tool_style)

    def _with_tools(
        self, tools: ToolUse, text: str, tokens: Sequence[SampledToken], finish: str | None
    ) -> Part | None:
        calls: list[Call] = []
        if self._parser is not None:
            text, found = self._parser.push(text)
            calls += found
            if finish is not None:
                rest, found = self._parser.flush()
                text += rest
                calls += found
        elif tools.required or tools.forced is not None:
            self._demanded.write(text)
            text = ""
            if finish is not None:
                written, self._demanded = self._demanded.getvalue(), StringIO()
                text, calls = _demanded_calls(written, tools.forced)
        if tools.single:
            calls = calls[: 1 - min(1, self._calls)]
        numbered = tuple((self._calls + at, _call_id(), call) for at, call in enumerate(calls))
        self._calls += len(calls)
        if finish == "stop" and self._calls:
            finish = "tool_calls"
        part = Part(text, tokens, finish, numbered)
        return part if text or numbered or finish is not None else None


def _call_id() -> str:
    """Return nine letters and digits: templates of Mistral refuse other ids in the next turn."""
    return "".join(secrets.choice(_ID_LETTERS) for _ in range(9))


def _demanded_calls(text: str, forced: str | None) -> tuple[str, list[Call]]:
    """Return the calls of an answer that must be one, or its text if it was cut short."""
    if forced is None:
        calls = calls_of(text)
        return ("", list(calls)) if calls is not None else (text, [])
    return "", [Call(forced, text)]


def usage_of(context: AnswerContext, choices: Sequence[ChoiceParts]) -> Usage:
    """Return the sums; a prompt with several choices counts once."""
    n = context.call.choices.n
    prompts = sum(len(one.prompt) for one in context.requests[::n])
    cached = sum(one.cached_tokens for one in choices[::n])
    return Usage(prompts, sum(one.tokens for one in choices), cached)
