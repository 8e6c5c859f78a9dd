"""Decides which requests may be answered from the cache, and replays cached answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence

from headroom_server.caching.generated import (
    CachedAnswer,
    CachedChoice,
    key_of,
    repeatable,
    scope_of,
)
from headroom_server.caching.generation_cache import GeneratedSource, Hit, Question
from headroom_server.connection import Headers
from headroom_server.generation.values import (
    Delivery,
    FinishReason,
    GenerationRequest,
    SampledToken,
)
from headroom_server.openai_api.bodies.parameters import Call, CompletionCall

Receive = Callable[[int, Delivery], None]
FRESH = (b"no-store", b"no-cache")


def forbids_caching(headers: Iterable[tuple[bytes, bytes]]) -> bool:
    """Return whether the client marked its request: its data are personal, or must be fresh."""
    return any(
        name == b"cache-control" and any(word in value.lower() for word in FRESH)
        for name, value in headers
    )


def question_of(
    identity: str, call: Call, requests: Sequence[GenerationRequest]
) -> Question | None:
    """Return the cache's question of a call; None: its answer depends on chance."""
    if not repeatable(requests):
        return None
    stops = call.choices.stops
    key, tenant = key_of(identity, requests, stops, prompts=True), requests[0].tenant
    text = _last_text(call)
    if text is None:
        return Question(key, tenant=tenant)
    common = key_of(identity, requests, stops, prompts=False)
    return Question(key, scope_of(common, _context(call), text), text, tenant)


def _last_text(call: Call) -> str | None:
    """Return the text that a similar one may replace; None if there is none."""
    if isinstance(call, CompletionCall):
        (prompt, *others) = call.prompts
        return prompt if isinstance(prompt, str) and not others else None
    if call.tools is not None or not call.messages:
        return None
    last = call.messages[-1]
    content = last.get("content")
    return content if last.get("role") == "user" and isinstance(content, str) else None


def _context(call: Call) -> bytes:
    """Return everything else that the answer depends on."""
    choices = call.choices
    asked: list[object] = [choices.max_tokens, choices.n, choices.include_stop]
    if isinstance(call, CompletionCall):
        asked += [call.echo, call.special_tokens]
    else:
        asked += [call.messages[:-1], call.add_generation_prompt, dict(call.template_options)]
    return json.dumps([type(call).__name__, *asked], default=str).encode()


def headers_of(hit: Hit) -> Headers:
    """Return the headers that show a client that its answer was not generated for it."""
    headers = [(b"x-headroom-cache", hit.source.encode())]
    if hit.source is GeneratedSource.SEMANTIC:
        headers.append((b"x-headroom-similarity", b"%.4f" % hit.similarity))
    return headers


class Recording:
    """Passes deliveries on and keeps their tokens."""

    def __init__(self, receive: Receive, choices: int) -> None:
        self._receive = receive
        self._tokens: list[list[SampledToken]] = [[] for _ in range(choices)]
        self._finish: list[FinishReason | None] = [None] * choices

    def receive(self, index: int, delivery: Delivery) -> None:
        """Take a delivery of a choice."""
        self._tokens[index] += delivery.tokens
        self._finish[index] = delivery.finish
        self._receive(index, delivery)

    @property
    def answer(self) -> CachedAnswer:
        """Return the received choices as an answer for the cache."""
        return tuple(
            CachedChoice(tuple(tokens), finish)
            for tokens, finish in zip(self._tokens, self._finish, strict=True)
        )


def replay(hit: Hit, requests: Sequence[GenerationRequest], receive: Receive) -> None:
    """Deliver a cached answer at once."""
    for index, (request, choice) in enumerate(zip(requests, hit.answer, strict=True)):
        receive(index, Delivery(request.key, choice.tokens, choice.finish))
