"""The values of generation: requests, sampling, iterations, deliveries. Pure.

Times are seconds of one monotonic clock; positions and lengths count tokens.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple, Protocol

from headroom_server.generation.token_grammar import TokenGrammar


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Choice of the next token. Names and ranges are those of OpenAI's API and vLLM."""

    temperature: float = 1.0
    """0 is greedy: the most probable token, the first of equals."""
    top_p: float = 1.0
    top_k: int = 0
    """0: all tokens."""
    min_p: float = 0.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    repetition_penalty: float = 1.0
    seed: int | None = None
    logprobs: int | None = None
    """Number of alternatives reported per token, 0 for the chosen one only; None: none."""
    logit_bias: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def greedy(self) -> bool:
        """Whether the result does not depend on chance."""
        return self.temperature == 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One choice to be generated. A client's request with n choices is n of these."""

    key: int
    """Unique in this process, growing with arrival."""
    prompt: tuple[int, ...]
    max_tokens: int
    """At most this many tokens are generated; prompt and answer fit the context."""
    sampling: Sampling = Sampling()
    stop_tokens: frozenset[int] = frozenset()
    """Generation ends with one of these (the end of sequence unless it is ignored)."""
    grammar: TokenGrammar | None = None
    constraint: tuple[str, str] | None = None
    """Kind and text of what `grammar` was compiled from, for engines that compile it themselves."""
    min_tokens: int = 0
    """Stop tokens are forbidden before this many; `grammar` includes it."""
    priority: int = 5
    """0 (most urgent) to 9."""
    tenant: str = ""
    batch_class: bool = False
    """Takes only what interactive requests leave."""
    arrived_s: float = 0.0
    first_token_deadline_s: float | None = None
    """Point in time by which the first token is due; None: none."""
    deadline_s: float | None = None
    """Point in time by which the whole answer is due; None: none."""


class FinishReason(StrEnum):
    """Reason for the end of a choice. The first two are OpenAI's."""

    STOP = "stop"
    LENGTH = "length"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    """A deadline passed; what was delivered before is all there is."""
    FAILED = "failed"
    CONSTRAINT = "constraint"
    """The client's constraint allows no further token, or takes too much work."""
    SHUTDOWN = "shutdown"
    """The server stopped before the answer was complete."""


class Alternative(NamedTuple):
    """A token and the natural logarithm of its probability."""

    token: int
    logprob: float


class SampledToken(NamedTuple):
    """One generated token."""

    token: int
    logprob: float | None = None
    alternatives: tuple[Alternative, ...] = ()


class Delivery(NamedTuple):
    """Tokens that one iteration produced for one request."""

    key: int
    tokens: tuple[SampledToken, ...] = ()
    finish: FinishReason | None = None
    cached_tokens: int = 0
    """Tokens of the prompt that the prefix cache supplied; given with the first token."""
    error: str = ""
    """Message for the client if the reason is FAILED."""
    started_s: float | None = None
    """Time when the request left the queue; given with the first token."""


class SequenceView(Protocol):
    """Fields of a running sequence that an executor may read."""

    @property
    def request(self) -> GenerationRequest:
        """The request."""

    @property
    def tokens(self) -> Sequence[int]:
        """Prompt and generated tokens so far."""


class Chunk(NamedTuple):
    """The part of one sequence that an iteration computes.

    A decode computes the last token of the sequence (and drafts to verify); a prefill computes
    `len(tokens)` tokens of the prompt from position `start`.
    """

    sequence: SequenceView
    start: int
    """Position of the first token computed; keys and values before it are in `blocks`."""
    tokens: tuple[int, ...]
    """Tokens computed, at positions start, start + 1, ...; drafts are the last `drafts` of them."""
    blocks: Sequence[int]
    """The block table: position p is in block blocks[p // block_tokens]."""
    samples: bool
    """Whether the last token's logits are sampled (False: the prompt continues later)."""
    drafts: int = 0


class Iteration(NamedTuple):
    """Work that an engine computes at once: decodes first, then chunks of prompts."""

    chunks: tuple[Chunk, ...]


class IterationResult(NamedTuple):
    """Result of an executor.

    `sampled[i]` belongs to chunk i: empty if it does not sample, else the accepted drafts followed
    by one token of the model's own (1 to drafts + 1 tokens).
    """

    sampled: Sequence[Sequence[SampledToken]]


class GenerationLimits(NamedTuple):
    """Limits of a loaded model and its memory."""

    context_tokens: int
    """Prompt and answer together."""
    vocabulary: int
    blocks: int
    """Number of blocks of keys and values."""
    block_tokens: int
    max_sequences: int
    """Most sequences of an iteration."""
    max_iteration_tokens: int
    """Most tokens computed in an iteration (the budget of chunked prefill)."""

    @property
    def decode_sizes(self) -> tuple[int, ...]:
        """Numbers of sequences whose decodes warm-up executes: 1, 2, 4, ... and the most."""
        most = min(self.max_sequences, self.blocks, self.max_iteration_tokens)
        return tuple(doubling(1, most))


def doubling(first: int, last: int) -> Iterator[int]:
    """Yield first, 2 first, 4 first, ... and `last`; nothing if `last` is below 1."""
    size = first
    while size < last:
        yield size
        size *= 2
    if last >= 1:
        yield last
