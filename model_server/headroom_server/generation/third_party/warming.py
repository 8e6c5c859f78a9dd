"""Warms a third-party engine with requests: long prompts, full seats, then the self-test."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import math
from collections.abc import Callable, Sequence

from headroom_server.generation.loop.startup import NotWarmError, StoppedError, WarmUpLimits
from headroom_server.generation.ports import WarmIteration
from headroom_server.generation.third_party.ports import ThirdPartyModel
from headroom_server.generation.values import GenerationLimits, GenerationRequest, Sampling

SELF_TESTS = 10
SELF_TEST_TOKENS = 16
DECODES = 8
"""Tokens of each answer that warms the decodes."""
RETEST_PAUSE_S = 0.5
GREEDY = Sampling(temperature=0.0)
SAMPLED = Sampling(
    top_p=0.9,
    top_k=8,
    min_p=0.01,
    presence_penalty=0.1,
    frequency_penalty=0.1,
    repetition_penalty=1.1,
    seed=1,
    logprobs=1,
)
"""Everything that a request may ask for: vLLM compiles its ranks of logprobs on first use."""


class Warming:
    """Requests of warm-up and self-test; their keys are negative."""

    def __init__(
        self,
        model: ThirdPartyModel,
        limits: GenerationLimits,
        options: WarmUpLimits,
        *,
        clock: Callable[[], float],
        stopping: Callable[[], bool],
    ) -> None:
        self._model = model
        self._limits = limits
        self._options = options
        self._clock = clock
        self._stopping = stopping
        self._over_s = clock() + options.timeout_s
        self._keys = itertools.count(-1, -1)
        longest = limits.context_tokens - DECODES
        self._shapes = (
            (1, min(limits.max_iteration_tokens, longest)),
            (limits.max_sequences, min(SELF_TEST_TOKENS, longest)),
        )
        """Sequences, and tokens of each prompt."""

    async def first_use(self) -> list[float]:
        """Execute every shape once, and return its seconds: engines compile new ones.

        Raises:
            NotWarmError: not in time.
        """
        seconds = [await self._timed(*shape, DECODES) for shape in self._shapes]
        await self._timed(1, self._shapes[-1][1], DECODES, SAMPLED)
        return seconds

    async def warm(self, first_s: Sequence[float]) -> list[WarmIteration]:
        """Execute the shapes again: a prompt of full chunks, and full seats.

        Raises:
            NotWarmError: not in time.
        """
        return [
            WarmIteration(*shape, 0, first, await self._timed(*shape, DECODES))
            for shape, first in zip(self._shapes, first_s, strict=True)
        ]

    async def self_test(self) -> float:
        """Return the 95th percentile of a short prompt's first token, once it is short enough.

        Raises:
            NotWarmError: not in time.
        """
        most_s = self._options.max_latency_s
        while (p95_s := await self._p95_s()) > most_s:
            self._checkpoint(
                f"the first token of a short prompt takes {p95_s:.3f} s at the 95th percentile, "
                f"HEADROOM_WARMUP_MAX_LATENCY_S={most_s:g}"
            )
            await asyncio.sleep(RETEST_PAUSE_S)
        return p95_s

    async def works(self, timeout_s: float) -> bool:
        """Return whether the request of the self-test is answered."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._answer(SELF_TEST_TOKENS, 1)
        except Exception:  # noqa: BLE001 - whatever an engine raises
            return False
        return True

    async def _p95_s(self) -> float:
        tokens = min(SELF_TEST_TOKENS, self._limits.context_tokens - 1)
        seconds = sorted([await self._timed(1, tokens, 1) for _ in range(SELF_TESTS)])
        return seconds[math.ceil(0.95 * SELF_TESTS) - 1]

    async def _timed(
        self, sequences: int, tokens: int, answer: int, sampling: Sampling = GREEDY
    ) -> float:
        self._checkpoint("warm-up takes too long")
        began_s = self._clock()
        async with asyncio.timeout(max(0.0, self._over_s - began_s)), asyncio.TaskGroup() as group:
            for _ in range(sequences):
                group.create_task(self._answer(tokens, answer, sampling))
        return max(self._clock() - began_s, 1e-6)

    async def _answer(self, tokens: int, answer: int, sampling: Sampling = GREEDY) -> None:
        key = next(self._keys)
        request = GenerationRequest(
            key=key,
            # different beginnings: the engine's prefix cache must not answer
            prompt=tuple((number - key) % self._limits.vocabulary for number in range(tokens)),
            max_tokens=answer,
            sampling=sampling,
        )
        count = 0
        async with contextlib.aclosing(self._model.generate(request)) as parts:
            async for produced in parts:
                count += len(produced.tokens)
        if count != answer:
            raise NotWarmError(f"the engine must generate {answer} tokens; it generated {count}")

    def _checkpoint(self, why: str) -> None:
        if self._stopping():
            raise StoppedError
        if self._clock() > self._over_s:
            raise NotWarmError(
                "the model did not become warm within "
                f"HEADROOM_WARMUP_TIMEOUT_S={self._options.timeout_s:g} s: {why}"
            )
