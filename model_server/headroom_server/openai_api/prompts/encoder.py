"""Encodes calls: short prompts and known constraints at once, others on a thread each."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple, TypeVar

from headroom_server.caching.feature_values import FeatureInput, FeatureKind
from headroom_server.caching.features import FeatureCache
from headroom_server.connection import Connection
from headroom_server.generation.text.constraint_owner import Owner
from headroom_server.generation.text.model_text import ModelText
from headroom_server.generation.token_grammar import TokenGrammar, TooComplexError
from headroom_server.openai_api.bodies.parameters import Call, ChatCall
from headroom_server.openai_api.prompts.bounds import check_prompts
from headroom_server.openai_api.prompts.constraints import (
    Compiled,
    compiled,
    constrained,
    known,
)
from headroom_server.openai_api.prompts.rendering import (
    Prompts,
    only_prompt,
    renders_long,
    tokens_of,
)
from headroom_server.openai_api.prompts.worker_turns import WorkerTurns
from headroom_server.runtime.generating.generator import Generator

SHORT_BODY_BYTES = 16 * 1024
"""Longer prompts are tokenized on a thread: 16 KiB take about 2 ms."""
CACHED_BODY_BYTES = 256 * 1024
"""Tokens of longer prompts are not cached: a look-up would take milliseconds of the event loop."""
SLOW_CPU_S = 0.05
"""A short prompt that takes longer is of a chat template or tokenizer that is slow for any."""

R = TypeVar("R")


class EncodedCall(NamedTuple):
    """A call whose prompts are tokens."""

    prompts: Prompts
    grammars: tuple[TokenGrammar | None, ...]
    """One for each choice: prompts times n."""
    constraint: tuple[str, str] | None = None
    """Kind and text of what they were compiled from."""


class PromptEncoder:
    """The prompts and constraints of one generating model."""

    def __init__(self, generator: Generator, text: ModelText, identity: str) -> None:
        self._generator = generator
        self._text = text
        self._identity = identity
        # apart: ordinary constraints take milliseconds, others seconds
        self._tokenizing = WorkerTurns("tokenizer", "prompts that wait to be tokenized")
        self._compiling = WorkerTurns("constraints", "constraints that wait to be compiled")
        self._compiling_long = WorkerTurns("slow constraints", "constraints that take long")
        self._slow = False
        """Whether a short prompt took long; from then on, all are encoded on the thread."""

    def takes_long(self, call: Call) -> bool:
        """Return whether encoding takes longer than the event loop has for any call."""
        return self._prompt_takes_long(call) or constrained(call)

    def _prompt_takes_long(self, call: Call) -> bool:
        return self._slow or renders_long(call)

    def encode_short(self, call: Call) -> EncodedCall:
        """Encode a call that is short and does not take long.

        Raises:
            InvalidRequestError: prompt and answer do not fit.
        """
        prompts = self.at_once(partial(self._tokenized, call))
        return EncodedCall(prompts, (None,) * (len(prompts) * call.choices.n))

    async def encode(
        self, call: Call, size: int, connection: Connection, tenant: str, *, fresh: bool
    ) -> EncodedCall:
        """Tokenize prompts and compile the constraint of a request with this many bytes.

        `fresh`: without a cache of tokens.

        Raises:
            InvalidRequestError: prompt and answer do not fit, or a constraint is invalid.
            QueueFullError: too much waits.
            DisconnectedError: the client left meanwhile.
        """
        short = size <= SHORT_BODY_BYTES
        if short and not self._prompt_takes_long(call):
            prompts = self.at_once(partial(self._tokenized, call))
        else:
            prompts = await self._long_prompts(call, size, connection, tenant, fresh=fresh)
        count = len(prompts) * call.choices.n
        if not constrained(call):
            return EncodedCall(prompts, (None,) * count)
        constraint = known(call, count, self._text) if short else None
        if constraint is None:
            constraint = await self._compiled(call, count, connection, tenant)
        return EncodedCall(prompts, *constraint)

    async def _compiled(
        self, call: Call, count: int, connection: Connection, tenant: str
    ) -> Compiled:
        """Compile a constraint, at first within the bounds of ordinary ones."""
        owner = Owner(connection.client, tenant)
        work = partial(compiled, call, count, self._text, owner)
        try:
            return await self._compiling.run(connection, tenant, partial(work, quick=True))
        except TooComplexError:
            return await self._compiling_long.run(connection, tenant, partial(work, quick=False))

    def at_once(self, work: Callable[[], R]) -> R:
        """Return the result of the work on a short prompt, and note whether it took long."""
        began_s = time.thread_time()
        try:
            return work()
        finally:
            self._slow = self._slow or time.thread_time() - began_s > SLOW_CPU_S

    async def run(self, work: Callable[[], R], connection: Connection, tenant: str) -> R:
        """Return the result of the work, which takes its turn with long prompts.

        Raises:
            QueueFullError: too much waits.
            DisconnectedError: the client left meanwhile.
        """
        return await self._tokenizing.run(connection, tenant, work)

    async def _long_prompts(
        self, call: Call, size: int, connection: Connection, tenant: str, *, fresh: bool
    ) -> Prompts:
        features = self._generator.features
        if features is not None and not fresh and size <= CACHED_BODY_BYTES:
            tokens = await self._cached_tokens(features, call, connection, tenant)
            if tokens is not None:
                check_prompts(call, (tokens,), self._generator.limits)
                return (tokens,)
        return await self._tokenizing.run(connection, tenant, partial(self._tokenized, call))

    def _tokenized(self, call: Call) -> Prompts:
        prompts = tokens_of(call, self._text)
        check_prompts(call, prompts, self._generator.limits)
        return prompts

    async def _cached_tokens(
        self, features: FeatureCache, call: Call, connection: Connection, tenant: str
    ) -> tuple[int, ...] | None:
        """Return the tokens of the only prompt; None: there are several, or they are tokens."""
        render = partial(only_prompt, call, self._text)
        # messages are rendered each time: a chat template may write the date
        chat = isinstance(call, ChatCall)
        prompt = await self.run(render, connection, tenant) if chat else render()
        if prompt is None:
            return None
        identity = f"{self._identity} {prompt.special} {prompt.rendered}"
        feature_input = FeatureInput(FeatureKind.TOKENS, identity, tenant, prompt.text)
        encode = partial(prompt.tokens, self._text)
        return tuple(
            await features.feature(feature_input, lambda: self.run(encode, connection, tenant))
        )
