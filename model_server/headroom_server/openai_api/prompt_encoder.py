"""Tokenizes the prompts of calls: short ones at once, long ones on a thread or from a cache."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from headroom_server.caching.feature_values import FeatureInput, FeatureKind
from headroom_server.caching.features import FeatureCache
from headroom_server.connection import Connection
from headroom_server.generation.text.model_text import ModelText
from headroom_server.openai_api.bodies.parameters import ChatCall
from headroom_server.openai_api.constraints import constrained
from headroom_server.openai_api.encoding_turns import EncodingTurns
from headroom_server.openai_api.endpoints import Call
from headroom_server.openai_api.prompts import EncodedCall, encode_call, only_prompt, takes_long
from headroom_server.runtime.generator import Generator

SHORT_BODY_BYTES = 16 * 1024
"""Longer prompts are tokenized on a thread: 16 KiB take about 2 ms."""
CACHED_BODY_BYTES = 256 * 1024
"""Tokens of longer prompts are not cached: a look-up would take milliseconds of the event loop."""

R = TypeVar("R")


class PromptEncoder:
    """The prompts of one generating model."""

    def __init__(self, generator: Generator, text: ModelText, identity: str) -> None:
        self._generator = generator
        self._text = text
        self._identity = identity
        self._turns = EncodingTurns()

    async def encode(
        self, call: Call, size: int, connection: Connection, tenant: str, *, fresh: bool
    ) -> EncodedCall:
        """Tokenize the prompts of a request with so many bytes; `fresh`: without a cache.

        Raises:
            InvalidRequestError: prompt and answer do not fit, or a constraint is invalid.
            DisconnectedError: the client left meanwhile.
        """
        limits, features = self._generator.limits, self._generator.features
        if constrained(call):
            fresh = True  # compiling its form takes milliseconds
        elif size <= SHORT_BODY_BYTES and not takes_long(call):
            return encode_call(call, self._text, limits)
        if features is not None and not fresh and size <= CACHED_BODY_BYTES:
            tokens = await self._tokens(features, call, connection, tenant)
            if tokens is not None:
                return encode_call(call, self._text, limits, tokens)
        encode = partial(encode_call, call, self._text, limits)
        return await self._turns.run(connection, tenant, encode)

    async def run(self, work: Callable[[], R], connection: Connection, tenant: str) -> R:
        """Return what the work returns, which takes its turn with long prompts.

        Raises:
            QueueFullError: too much waits.
            DisconnectedError: the client left meanwhile.
        """
        return await self._turns.run(connection, tenant, work)

    async def _tokens(
        self, features: FeatureCache, call: Call, connection: Connection, tenant: str
    ) -> tuple[int, ...] | None:
        """Return the tokens of the only prompt; None: there are several, or they are tokens."""
        render = partial(only_prompt, call, self._text)
        # messages are rendered each time: a chat template may write the date
        chat = isinstance(call, ChatCall)
        prompt = await self._turns.run(connection, tenant, render) if chat else render()
        if prompt is None:
            return None
        identity = f"{self._identity} {prompt.special}"
        asked = FeatureInput(FeatureKind.TOKENS, identity, tenant, prompt.text)
        encode = partial(self._text.tokenizer.encode, prompt.text, special=prompt.special)
        return tuple(
            await features.feature(asked, lambda: self._turns.run(connection, tenant, encode))
        )
