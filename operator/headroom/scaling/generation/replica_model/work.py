"""Work of one request at a replica: engine seconds, iterations, and tokens in memory.

A sequence that decodes for O steps after a prompt of I tokens is seen with a context of

    ctx = E[I O] / E[O] + E[O^2] / (2 E[O])

tokens: the mean over its life, weighted by length, because long answers are seen more often. (The
usual I + O / 2 is too low: with exponential answers by half their mean.) With A accepted tokens per
step, a request takes O / A steps of d + c ctx seconds each, and its prompt b I + e X.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from headroom.scaling.values.tokens import IterationCost, RequestShape


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Work:
    """The work of the mean request at one replica; compared as an object, a key of caches."""

    fixed_s: float
    """a: an iteration without any work; of a mixture of experts without them."""
    experts_s: float
    expert_share: float
    slope_s: float
    """d + c ctx: what one decoding sequence adds to an iteration."""
    context_slope_s: float
    """c ctx, of that."""
    steps: float
    """O / A: iterations that a sequence takes part in."""
    prompt_tokens: float
    """Prompt tokens that are computed."""
    prompt_cv: float
    """Coefficient of variation of their number."""
    prompt_s: float
    """b I + e X: engine seconds of the prompt."""
    prompt_linear_s: float
    """b I, of that."""
    prompt_s_cv: float
    """Coefficient of variation of the engine seconds of a prompt."""
    context_tokens: float
    """ctx."""
    memory_tokens: float
    """Part of it that no other running sequence holds as well."""
    context_variance: float
    """Variance of the contexts of sequences seen at one moment, in tokens squared."""
    prompt_context_tokens: float
    """E[I^2] / E[I]: the length of a prompt that is seen while it is computed."""
    accepted: float
    """A."""

    @property
    def context_variation(self) -> float:
        """Square of the coefficient of variation of the contexts seen at one moment."""
        return self.context_variance / (self.context_tokens * self.context_tokens)

    @property
    def output_tokens(self) -> float:
        """O: tokens of an answer."""
        return self.steps * self.accepted

    @property
    def request_s(self) -> float:
        """w: engine seconds of one request, without its share of the fixed time."""
        return self.prompt_s + self.steps * self.slope_s

    def iteration_fixed_s(self, sequences: float, prompts: float = 0.0) -> float:
        """Return the fixed time of an iteration: a, and the experts read.

        n sequences touch 1 - (1 - k/E)^n of the experts, a prompt all; this many prompts are
        computed per iteration. Worked: 8 of 128, 20 sequences: 72 %; with a prompt in every tenth:
        75 %.
        """
        if self.experts_s <= 0.0:
            return self.fixed_s
        untouched = math.pow(1.0 - self.expert_share, sequences) * math.exp(-prompts)
        return self.fixed_s + self.experts_s * (1.0 - untouched)

    @property
    def chunks(self) -> float:
        """Iterations that compute a part of one prompt."""
        return max(1.0, self.prompt_tokens / DEFAULT_ITERATION_TOKENS)


DEFAULT_ITERATION_TOKENS = 8192
"""vLLM's --max-num-batched-tokens on large accelerators; where a server reports none."""


def work_of(cost: IterationCost, shape: RequestShape, shared: float = 0.0) -> Work:
    """Return the work of requests of this shape at an engine of this cost.

    `shared` of the tokens found in caches are in memory for other running sequences already.
    """
    accepted = max(1.0, shape.accepted_per_step)
    output = max(1.0, shape.output_tokens)
    prompt = max(1.0, shape.prompt_tokens)
    prompt_squared = max(prompt * prompt, shape.prompt_tokens_squared)
    context = context_tokens(shape)
    computed = min(prompt, max(0.0, shape.computed_tokens))
    uncached = computed / prompt
    # chunk of h I tokens after (1 - h) I others: X = h I ((1 - h) I + h I / 2)
    products = prompt_squared * uncached * (1.0 - uncached / 2.0)
    variation = max(0.0, prompt_squared / (prompt * prompt) - 1.0)
    linear_s, square_s = cost.prompt_token_s * computed, cost.prompt_product_s * products
    return Work(
        fixed_s=cost.fixed_s,
        experts_s=cost.experts_s,
        expert_share=cost.expert_share,
        slope_s=cost.sequence_s + cost.context_token_s * context,
        context_slope_s=cost.context_token_s * context,
        steps=output / accepted,
        prompt_tokens=computed,
        prompt_cv=math.sqrt(variation),
        prompt_s=linear_s + square_s,
        prompt_linear_s=linear_s,
        prompt_s_cv=_seconds_cv(linear_s, square_s, variation),
        context_tokens=context,
        memory_tokens=context - shared * min(context, prompt - computed),
        context_variance=_context_variance(shape, context),
        prompt_context_tokens=prompt_squared / prompt,
        accepted=accepted,
    )


def _seconds_cv(linear_s: float, square_s: float, variation: float) -> float:
    """Return the coefficient of variation of b I + e X, where lengths are lognormal.

    Attention within a prompt grows with its square, so times vary more than lengths: with
    E[I^k] = m^k (1 + v)^(k (k - 1) / 2). Worked: Llama 70B, 12 000 tokens of cv 1.3: 0.63 s and
    0.45 s on average vary by 3.5 times the mean; as recorded, without prompts above 126 000, 2.1.
    """
    whole = 1.0 + variation
    spread = linear_s**2 * variation + 2.0 * linear_s * square_s * (whole**2 - 1.0)
    spread += square_s**2 * (whole**4 - 1.0)
    return math.sqrt(spread) / max(linear_s + square_s, _LEAST_S)


_LEAST_S = 1e-9


def context_tokens(shape: RequestShape) -> float:
    """Return ctx: the mean context of a decoding sequence, weighted by its length."""
    output = max(1.0, shape.output_tokens)
    squared = max(output * output, shape.output_tokens_squared)
    together = max(0.0, shape.prompt_output_product)
    return together / output + squared / (2.0 * output)


def _context_variance(shape: RequestShape, context: float) -> float:
    """Return the variance of contexts seen at one moment.

    E[ctx^2] = (E[O I^2] + E[I O^2] + E[O^3] / 3) / E[O]; what has long prompts is taken to be seen
    as much more often, or less often, in E[O I^2] as in E[O I], and E[O^3] as that of a gamma
    distribution: m^3 (1 + v)(1 + 2 v) of variance v m^2.
    """
    output = max(1.0, shape.output_tokens)
    variation = max(0.0, shape.output_tokens_squared / (output * output) - 1.0)
    squared, cubed = 1.0 + variation, (1.0 + variation) * (1.0 + 2.0 * variation)
    prompt_squared = max(shape.prompt_tokens**2, shape.prompt_tokens_squared)
    tilt = shape.prompt_output_product / max(_LEAST_S, shape.prompt_tokens * output)
    mean = tilt * (shape.prompt_tokens * squared * output + prompt_squared)
    mean += output * output * cubed / 3.0
    return max(0.0, mean - context * context)
