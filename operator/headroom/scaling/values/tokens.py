"""The values of token generation: cost of an iteration, shape of requests, report of a pod.

Names carry their unit (`_s` seconds, `_tokens`, `_rps` requests per second). An *iteration* is one
forward pass of the engine over a batch of decoding sequences and chunks of prompts. A *sequence*
is an answer that is being generated; its *context* is the prompt and what was generated so far.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headroom.scaling.values.latency_counts import LatencyCounts


@dataclass(frozen=True, slots=True, kw_only=True)
class IterationCost:
    """Time of an iteration: t = a + b P + d D + c KV + e X, plus the expert term of a MoE.

    P: prompt tokens computed; D: sequences decoded; KV: tokens in their contexts; X: the sum of
    n (before + n/2) over chunks of n prompt tokens after `before` others.
    Source: shared measurements of H100, H200, A100 and L40S; mean error 4 to 6 %.
    """

    fixed_s: float
    """a: an iteration without any work."""
    prompt_token_s: float
    """b: one more prompt token."""
    sequence_s: float
    """d: one more decoding sequence."""
    context_token_s: float = 0.0
    """c: one more token in the context of a decoding sequence."""
    prompt_product_s: float = 0.0
    """e: one more unit of X: attention within prompts."""
    experts_s: float = 0.0
    """f: reading all experts of a mixture of experts; 0 for a dense model."""
    expert_share: float = 0.0
    """k/E: the share of experts that one token uses. T tokens touch 1 - (1 - k/E)^T of them."""

    def iteration_s(
        self, prompt_tokens: float, sequences: float, context_tokens: float, products: float = 0.0
    ) -> float:
        """Return the seconds of an iteration with this work."""
        seconds = (
            self.fixed_s
            + self.prompt_token_s * prompt_tokens
            + self.sequence_s * sequences
            + self.context_token_s * context_tokens
            + self.prompt_product_s * products
        )
        if self.experts_s > 0.0:
            untouched = (1.0 - self.expert_share) ** (prompt_tokens + sequences)
            seconds += self.experts_s * (1.0 - untouched)
        return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestShape:
    """The lengths of the requests of a service, as moments."""

    prompt_tokens: float
    """E[I]: mean length of a prompt."""
    computed_tokens: float
    """Mean tokens of a prompt that are not found in the prefix cache."""
    output_tokens: float
    """E[O]: mean length of an answer."""
    prompt_tokens_squared: float
    """E[I^2]."""
    output_tokens_squared: float
    """E[O^2]."""
    prompt_output_product: float
    """E[I O]; E[I] E[O] if pairs are not known."""
    accepted_per_step: float = 1.0
    """Tokens that a sequence gains per iteration: above 1 with speculation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """The bounds of one replica's engine; None where a bound is not known."""

    kv_tokens: float | None = None
    """Tokens whose keys and values fit into memory."""
    sequences: int | None = None
    """Sequences that may run at once (vLLM: --max-num-seqs)."""
    iteration_tokens: int | None = None
    """Tokens that an iteration may compute (vLLM: --max-num-batched-tokens)."""


class Binding(StrEnum):
    """Bound on the rate that a generating replica carries. Users rely on these values."""

    TIME_PER_OUTPUT_TOKEN = "TimePerOutputToken"  # noqa: S105
    TIME_TO_FIRST_TOKEN = "TimeToFirstToken"  # noqa: S105
    LATENCY = "Latency"
    MEMORY = "Memory"
    SEATS = "Seats"
    UTILIZATION = "Utilization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """One promise: this percentile of the requests takes at most so long."""

    percentile: float
    """0..1, such as 0.95."""
    seconds: float


ANSWER_TOKENS, LONGEST_ANSWER_S = 1000, 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenTargets:
    """The promises of a generating service; None where there is none."""

    first_token: Target | None = None
    output_token: Target | None = None
    latency: Target | None = None

    @property
    def whole_answer_s(self) -> float:
        """Time within which an answer is of use: the promise on whole answers, where there is one.

        Without one: an answer of 1000 tokens within both promises on tokens, at most ten minutes.
        """
        if self.latency is not None:
            return self.latency.seconds
        if self.output_token is None:
            return LONGEST_ANSWER_S
        first_s = self.first_token.seconds if self.first_token is not None else 0.0
        return min(first_s + ANSWER_TOKENS * self.output_token.seconds, LONGEST_ANSWER_S)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCounts:
    """A cumulative histogram over tokens: counts[i] observations were at most bounds[i]."""

    bounds: tuple[float, ...]
    """The last is +Inf."""
    counts: tuple[float, ...]
    total: float
    """Sum of all observations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CostSums:
    """Sums over iterations since the process began, which identify their cost exactly."""

    xx: tuple[float, ...]
    """Upper triangle of X'X, by rows: 15 values in the order 1, P, D, KV, X."""
    xy: tuple[float, ...]
    """X'y: 5 values, y in seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationSample:
    """Report of a generating pod on one page, in addition to its `PodSample`.

    Counters are cumulative since the start of the pod's process. None: the server does not
    report it; nothing is guessed in its place.
    """

    iterations: float | None = None
    engine_seconds: float | None = None
    """Seconds in which iterations were executed."""
    computed_prompt_tokens: float | None = None
    """Prompt tokens computed, without those found in a cache."""
    cached_prompt_tokens: float | None = None
    generated_tokens: float | None = None
    sequence_steps: float | None = None
    """Sum of decoding sequences over iterations: generated tokens over accepted ones per step."""
    sequence_seconds: float | None = None
    """Sum over sequences of the time between tokens: the integral of decoding sequences."""
    prompt_seconds: float | None = None
    """Sum over prompts of the time from the first iteration with one to its first token."""
    timed_prompts: float | None = None
    """Prompts that `prompt_seconds` is summed over."""
    preemptions: float | None = None
    given_up: float = 0.0
    """Answers among the pod's `missed` that clients gave up after the first token."""
    drafts: float | None = None
    """Speculative steps: each drafts some tokens for one sequence."""
    accepted_tokens: float | None = None
    """Drafted tokens that were accepted."""
    cost_sums: CostSums | None = None
    waiting_tokens: float | None = None
    """Gauge: prompt tokens that wait to be computed."""
    context_tokens: float | None = None
    """Gauge: tokens in the contexts of running sequences."""
    kv_used_share: float | None = None
    """Gauge, 0..1: share of the KV memory that running sequences use."""
    limits: EngineLimits = EngineLimits()
    prompt_lengths: TokenCounts | None = None
    """Lengths of the prompts of ended requests."""
    output_lengths: TokenCounts | None = None
    """Lengths of the answers of ended requests."""
    first_token: LatencyCounts | None = None
    """Time to first token."""
    output_token: LatencyCounts | None = None
    """Time per output token after the first, one value per request."""

    @property
    def times_iterations(self) -> bool:
        """Whether the time of an iteration follows from the server's counters.

        From exact sums, or two of: iterations, seconds of the engine, times between tokens.
        """
        counted = (self.iterations, self.engine_seconds, self.sequence_seconds)
        return self.cost_sums is not None or counted.count(None) <= 1
