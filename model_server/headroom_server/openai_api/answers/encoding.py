"""Parts of answers, and the common interface of their encodings as JSON and events. Pure."""

from __future__ import annotations

from abc import ABC, abstractmethod
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


class AnswerIdentity(NamedTuple):
    """Fields that all parts of an answer repeat."""

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
    """Sent part of one choice."""

    text: str = ""
    tokens: Sequence[SampledToken] = ()
    finish: str | None = None
    calls: tuple[tuple[int, str, Call], ...] = ()
    """Calls of tools: number, identifier, call."""


def merged(parts: Sequence[Part], before: str = "") -> Part:
    """Return several parts of a choice as one."""
    return Part(
        before + "".join([one.text for one in parts]),
        [token for one in parts for token in one.tokens],
        parts[-1].finish if parts else None,
        tuple(call for one in parts for call in one.calls),
    )


class Form(Protocol):
    """The JSON of one endpoint."""

    ending: bytes
    """End of a complete stream."""

    def opening(self, index: int) -> bytes:
        """Return the events that begin a choice's stream."""

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone, the usual one."""

    def usage_event(self, usage: Usage) -> bytes:
        """Return the event with the sums, without choices."""

    def failure(self, error: RequestError) -> bytes:
        """Return the event that ends a stream that cannot be completed."""

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body of an answer that is not streamed."""


class ServerSentEvents:
    """Base of the forms that are streamed as server-sent events."""

    def failure(self, error: RequestError) -> bytes:
        """Return the event that ends a stream which cannot be completed."""
        return b"data: %b\n\n" % fields_of(error).encoded()


class JsonForm(ServerSentEvents, ABC):
    """Base of OpenAI's two endpoints; a subclass defines the form of a choice."""

    ending = DONE
    kind: str
    """`object` of a whole answer."""
    chunk_kind: str
    """`object` of an event."""

    def __init__(self, identity: AnswerIdentity, tokenizer: Tokenizer, *, usage: bool) -> None:
        self._identity = identity
        self._tokenizer = tokenizer
        self._no_usage = {"usage": None} if usage else {}
        self._around: dict[int, tuple[bytes, bytes]] = {}

    @abstractmethod
    def choice(self, index: int, part: Part) -> dict[str, Any]:
        """Return a choice of a whole answer."""

    @abstractmethod
    def delta(self, index: int, part: Part) -> dict[str, Any]:
        """Return a choice of an event."""

    def plain(self, index: int, text: str) -> bytes:
        """Return the event of text alone: only the text is encoded."""
        around = self._around.get(index)
        if around is None:
            before, _, after = self.event(index, Part("\0")).partition(b'"\\u0000"')
            around = self._around[index] = before, after
        return b"%b%b%b" % (around[0], orjson.dumps(text), around[1])

    def event(self, index: int, part: Part, usage: Usage | None = None) -> bytes:
        """Return the event of a part."""
        return self._chunk(self.delta(index, part), usage)

    def usage_event(self, usage: Usage) -> bytes:
        """Return the event with the sums."""
        sums = {"choices": [], "usage": usage.fields()}
        return b"data: %b\n\n" % orjson.dumps(self._fields(self.chunk_kind) | sums)

    def whole(self, parts: Sequence[Part], usage: Usage) -> bytes:
        """Return the body."""
        choices = [self.choice(index, part) for index, part in enumerate(parts)]
        return orjson.dumps(self._fields(self.kind) | {"choices": choices, "usage": usage.fields()})

    def _chunk(self, choice: Mapping[str, Any], usage: Usage | None = None) -> bytes:
        fields = self._fields(self.chunk_kind) | {"choices": [choice], **self._no_usage}
        if usage is not None:
            fields["usage"] = usage.fields()
        return b"data: %b\n\n" % orjson.dumps(fields)

    def _fields(self, kind: str) -> dict[str, Any]:
        return {
            "id": self._identity.id,
            "object": kind,
            "created": self._identity.created,
            "model": self._identity.model,
        }


def finite(logprob: float | None) -> float | None:
    """Return a logarithm as JSON can have it; None stays None."""
    return None if logprob is None else max(logprob, LEAST_LOGPROB)
