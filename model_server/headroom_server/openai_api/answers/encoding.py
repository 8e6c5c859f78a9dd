"""PURE. Answers as OpenAI's JSON, and as the events of a stream, built from constant parts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import orjson

from headroom_server.errors import RequestError
from headroom_server.generation.text.tokenizer import Tokenizer
from headroom_server.generation.text.tool_calls import Call
from headroom_server.generation.values import SampledToken
from headroom_server.openai_api.errors import fields_of

DONE = b"data: [DONE]\n\n"
LEAST_LOGPROB = -9999.0
"""In place of minus infinity, which JSON does not have."""


class Head(NamedTuple):
    """What all parts of an answer repeat."""

    id: str
    created: int
    model: str


class Usage(NamedTuple):
    """Tokens of a request."""

    prompt_tokens: int
    completion_tokens: int
    cached_tokens: int

    def fields(self) -> dict[str, Any]:
        """Return the object `usage`."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "completion_tokens": self.completion_tokens,
            "total_tokens": self.prompt_tokens + self.completion_tokens,
            "prompt_tokens_details": {"cached_tokens": self.cached_tokens},
        }


class Part(NamedTuple):
    """What is sent of one choice."""

    text: str = ""
    tokens: Sequence[SampledToken] = ()
    finish: str | None = None
    calls: tuple[tuple[int, str, Call], ...] = ()
    """Calls of tools: number, identifier, call."""


class Form(Protocol):
    """The JSON of one endpoint."""

    ending: bytes
    """What ends a complete stream."""

    def opening(self, index: int) -> bytes:
        """Return the events that begin a choice's stream."""

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone, the usual one."""

    def usage_event(self, usage: Usage) -> bytes:
        """Return the event with the sums, without choices."""

    def failure(self, error: RequestError) -> bytes:
        """Return what ends a stream that cannot be completed."""

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body of an answer that is not streamed."""


class ServerSentEvents:
    """What the forms that are streamed as server-sent events share."""

    def failure(self, error: RequestError) -> bytes:
        """Return the event that ends a stream which cannot be completed."""
        return b"data: %b\n\n" % fields_of(error).encoded()


class _Encoder(ServerSentEvents):
    ending = DONE

    def __init__(self, head: Head, tokenizer: Tokenizer, *, usage: bool) -> None:
        self._head = head
        self._tokenizer = tokenizer
        self._no_usage = {"usage": None} if usage else {}
        self._around: dict[int, tuple[bytes, bytes]] = {}

    def _fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._head.id,
            "object": kind,
            "created": self._head.created,
            "model": self._head.model,
        }

    def _plain(self, index: int, text: str, example: bytes) -> bytes:
        """Return the event `example`, which has the text "\\0", with another text."""
        before, _, after = example.partition(b'"\\u0000"')
        self._around[index] = before, after
        return b"%b%b%b" % (before, orjson.dumps(text), after)


class ChatForm(_Encoder):
    """Chat completions."""

    def opening(self, index: int) -> bytes:
        """Return the event with the role."""
        return self._event(index, {"role": "assistant", "content": ""}, None, None, None)

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone."""
        around = self._around.get(index)
        if around is None:
            example = self._event(index, {"content": "\0"}, None, None, None)
            return self._plain(index, text, example)
        return b"%b%b%b" % (around[0], orjson.dumps(text), around[1])

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""
        delta: dict[str, Any] = {"content": part.text} if part.text else {}
        if part.calls:
            delta["tool_calls"] = [
                {"index": at, **_call(name, one)} for at, name, one in part.calls
            ]
        return self._event(index, delta, self._logprobs(part.tokens), part.finish, usage)

    def usage_event(self, usage: Usage) -> bytes:
        """Return the event with the sums."""
        return _event(
            self._fields("chat.completion.chunk") | {"choices": [], "usage": usage.fields()}
        )

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body."""
        choices = []
        for index, part in enumerate(parts):
            message: dict[str, Any] = {"role": "assistant", "content": part.text, "refusal": None}
            if part.calls:
                message["content"] = part.text or None
                message["tool_calls"] = [_call(name, one) for _, name, one in part.calls]
            choices.append(
                {
                    "index": index,
                    "message": message,
                    "logprobs": self._logprobs(part.tokens),
                    "finish_reason": part.finish,
                }
            )
        return orjson.dumps(
            self._fields("chat.completion") | {"choices": choices, "usage": usage.fields()}
        )

    def _event(
        self,
        index: int,
        delta: Mapping[str, Any],
        logprobs: Any,
        finish: str | None,
        usage: Usage | None,
    ) -> bytes:
        choice = {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": finish}
        fields = self._fields("chat.completion.chunk") | {"choices": [choice], **self._no_usage}
        if usage is not None:
            fields["usage"] = usage.fields()
        return _event(fields)

    def _logprobs(self, tokens: Sequence[SampledToken]) -> Any:
        if not tokens:
            return None
        content = []
        for one in tokens:
            others = [self._named(other.token, other.logprob) for other in one.alternatives]
            named = self._named(one.token, one.logprob) | {"top_logprobs": others}
            # as bytes, which take a tenth of the objects' memory
            content.append(orjson.Fragment(orjson.dumps(named)))
        return {"content": content, "refusal": None}

    def _named(self, token: int, logprob: float | None) -> dict[str, Any]:
        value = self._tokenizer.token_bytes(token)
        return {
            "token": value.decode("utf-8", "replace"),
            "logprob": _finite(logprob),
            "bytes": list(value),
        }


class CompletionForm(_Encoder):
    """Completions."""

    def __init__(self, head: Head, tokenizer: Tokenizer, *, usage: bool) -> None:
        super().__init__(head, tokenizer, usage=usage)
        self._reported: dict[int, _ReportedText] = {}

    def opening(self, index: int) -> bytes:
        """Return nothing."""
        return b""

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone."""
        around = self._around.get(index)
        if around is None:
            return self._plain(index, text, self.event(index, Part("\0")))
        return b"%b%b%b" % (around[0], orjson.dumps(text), around[1])

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""
        fields = self._fields("text_completion")
        fields |= {"choices": [self._choice(index, part)], **self._no_usage}
        if usage is not None:
            fields["usage"] = usage.fields()
        return _event(fields)

    def usage_event(self, usage: Usage) -> bytes:
        """Return the event with the sums."""
        return _event(self._fields("text_completion") | {"choices": [], "usage": usage.fields()})

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body."""
        choices = [self._choice(index, part) for index, part in enumerate(parts)]
        return orjson.dumps(
            self._fields("text_completion") | {"choices": choices, "usage": usage.fields()}
        )

    def _choice(self, index: int, part: Part) -> dict[str, Any]:
        return {
            "index": index,
            "text": part.text,
            "logprobs": self._logprobs(index, part.tokens),
            "finish_reason": part.finish,
        }

    def _logprobs(self, index: int, tokens: Sequence[SampledToken]) -> Any:
        if not tokens:
            return None
        text = self._reported.get(index)
        if text is None:
            text = self._reported[index] = _ReportedText(self._tokenizer)
        offsets = [text.begin(one.token) for one in tokens]
        return {
            "tokens": [self._name(one.token) for one in tokens],
            "token_logprobs": [_finite(one.logprob) for one in tokens],
            "top_logprobs": [self._likeliest(one) for one in tokens],
            "text_offset": offsets,
        }

    def _likeliest(self, one: SampledToken) -> dict[str, float | None]:
        """Return the alternatives and the chosen token; of equal names, the most probable one."""
        named: dict[str, float | None] = {}
        for token, logprob in (*one.alternatives, (one.token, one.logprob)):
            named.setdefault(self._name(token), _finite(logprob))
        return named

    def _name(self, token: int) -> str:
        return self._tokenizer.token_bytes(token).decode("utf-8", "replace")


class _ReportedText:
    """Where the tokens of a choice begin in its text, over all events of a stream."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._detokenizer = tokenizer.detokenizer()
        self._characters = 0

    def begin(self, token: int) -> int:
        """Return where the next token begins: a character may be several tokens."""
        at = self._characters
        self._characters += len(self._detokenizer.push((token,)))
        return at


def _event(fields: Mapping[str, Any]) -> bytes:
    return b"data: %b\n\n" % orjson.dumps(fields)


def _call(identifier: str, call: Call) -> dict[str, Any]:
    return {
        "id": identifier,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _finite(logprob: float | None) -> float | None:
    return None if logprob is None else max(logprob, LEAST_LOGPROB)
