"""An executor that sleeps instead of computing, and whose tokens are a hash.

    t = a + b P + d D + c KV + e X        P: tokens of prompts, and drafts, computed
                                          D: sequences decoded
                                          KV: tokens in the contexts of those
                                          X: sum of n (before + n / 2) over chunks of n tokens

A token depends on the prompt, its position and (for sampling) the seed, not on how iterations were
cut or what else they computed, so that tests can tell a mixed-up answer from the right one.
"""

from __future__ import annotations

import math
import time
import zlib
from array import array
from collections.abc import Callable, Sequence
from typing import NamedTuple

from headroom_server.engine import DeviceLostError
from headroom_server.generation.values import (
    Alternative,
    Chunk,
    GenerationLimits,
    GenerationRequest,
    Iteration,
    IterationResult,
    SampledToken,
    SequenceView,
)

OVERSLEPT_CAP_S = 0.001
"""Cap on the compensation for one late wake-up, which must not make later iterations free."""


class EmulatedCosts(NamedTuple):
    """The time of an iteration by its terms; about a 1B model on a small GPU by default."""

    fixed_s: float = 0.005
    prompt_token_s: float = 0.00005
    decode_s: float = 0.0001
    context_token_s: float = 0.0
    attention_pair_s: float = 0.0

    def seconds(self, iteration: Iteration) -> float:
        """Return the time that an iteration takes."""
        total_s = self.fixed_s
        for chunk in iteration.chunks:
            prompt = len(chunk.tokens)
            if is_decode(chunk):
                prompt = chunk.drafts
                total_s += self.decode_s + self.context_token_s * (chunk.start + 1)
            pairs = prompt * (chunk.start + prompt / 2)
            total_s += self.prompt_token_s * prompt + self.attention_pair_s * pairs
        return total_s


def is_decode(chunk: Chunk) -> bool:
    """Return whether a chunk computes the last token of a sequence (and drafts), not a prompt."""
    return chunk.samples and chunk.start > 0 and len(chunk.tokens) == chunk.drafts + 1


def emulated_token(request: GenerationRequest, position: int, tokens: range, period: int) -> int:
    """Return the token at a position of the sequence, counted from the prompt's first token."""
    prompt = zlib.crc32(array("q", request.prompt))
    return _token(request, prompt, position, tokens, period)


def _token(
    request: GenerationRequest, prompt: int, position: int, tokens: range, period: int
) -> int:
    seed = 0 if request.sampling.greedy else request.sampling.seed or 0
    step = position % period if period else position
    mixed = (prompt ^ (step + 1) * 0x9E3779B1 ^ seed * 0x85EBCA6B) & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 15) * 0x2C1B3C6D & 0xFFFFFFFF
    mixed = (mixed ^ mixed >> 12) * 0x297A2D39 & 0xFFFFFFFF
    first = (mixed ^ mixed >> 15) % len(tokens)
    mask = None if request.grammar is None else request.grammar.allowed()
    for number in range(len(tokens)):
        token = tokens[(first + number) % len(tokens)]
        allowed = mask is None or mask.cast("B")[token >> 3] >> (token & 7) & 1
        # a grammar that is complete allows only the end
        if allowed and (mask is not None or token not in request.stop_tokens):
            return token
    return tokens[first]


class EmulatedExecutor:
    """Sleeps as long as the emulated device would compute."""

    device = "emulated"

    def __init__(
        self,
        limits: GenerationLimits,
        costs: EmulatedCosts = EmulatedCosts(),  # noqa: B008 - immutable
        *,
        tokens: range | None = None,
        period_tokens: int = 0,
        load_s: float = 0.0,
        lost_after_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Generate from `tokens` (default: the vocabulary), avoiding the request's stop tokens.

        With `period_tokens` an answer repeats itself, so that drafts by prompt lookup are accepted.
        From `lost_after_s` after loading, the device is lost.
        """
        self._limits = limits
        self._costs = costs
        self._tokens = tokens or range(limits.vocabulary)
        self._period = period_tokens
        self._load_s = load_s
        self._lost_after_s = lost_after_s
        self._clock = clock
        self._sleep = sleep
        self._loaded_s = clock()
        self._overslept_s = 0.0
        self._prompts: dict[int, int] = {}
        """Checksum of the prompt by key."""

    def load(self) -> GenerationLimits:
        """Sleep for the configured time."""
        self._sleep(self._load_s)
        self._loaded_s = self._clock()
        return self._limits

    def execute(self, iteration: Iteration) -> IterationResult:
        """Sleep for the iteration's time and return its tokens.

        Raises:
            DeviceLostError: the configured time has come.
        """
        began_s = self._clock()
        if began_s - self._loaded_s >= self._lost_after_s:
            raise DeviceLostError("the emulated device is lost as configured")
        sampled = [self._sample(chunk) if chunk.samples else () for chunk in iteration.chunks]
        due_s = self._costs.seconds(iteration) - self._overslept_s
        left_s = due_s - (self._clock() - began_s)
        if left_s > 0.0:
            self._sleep(left_s)
        late_s = self._clock() - began_s - due_s
        self._overslept_s = min(max(late_s, 0.0), OVERSLEPT_CAP_S)
        return IterationResult(sampled)

    def _sample(self, chunk: Chunk) -> Sequence[SampledToken]:
        request = chunk.sequence.request
        first = chunk.start + len(chunk.tokens) - chunk.drafts
        sampled: list[SampledToken] = []
        drafts = (*chunk.tokens[len(chunk.tokens) - chunk.drafts :], -1)
        for number, draft in enumerate(drafts):
            token = self._token(request, first + number)
            sampled.append(self._reported(request, token))
            # a grammar advances only after the iteration: it knows one token ahead
            if token != draft or request.grammar is not None:
                break
        return sampled

    def _token(self, request: GenerationRequest, position: int) -> int:
        prompt = self._prompts.get(request.key)
        if prompt is None:
            prompt = self._prompts[request.key] = zlib.crc32(array("q", request.prompt))
        return _token(request, prompt, position, self._tokens, self._period)

    def _reported(self, request: GenerationRequest, token: int) -> SampledToken:
        wanted = request.sampling.logprobs
        if wanted is None:
            return SampledToken(token)
        others = [one for one in self._tokens[: wanted + 1] if one != token]
        alternatives = [Alternative(token, -0.1), *(Alternative(one, -5.0) for one in others)]
        return SampledToken(token, -0.1, tuple(alternatives[:wanted]))

    def draft(self, sequences: Sequence[SequenceView], count: int) -> Sequence[Sequence[int]]:
        """Propose nothing: there is no draft model."""
        return [() for _ in sequences]

    def forget(self, key: int) -> None:
        """Drop the checksum of the request's prompt."""
        self._prompts.pop(key, None)

    def unload(self) -> None:
        """Drop everything."""
        self._prompts.clear()
