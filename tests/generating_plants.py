"""Engines and requests that the tests of generation share: measured costs, published lengths."""

from __future__ import annotations

from headroom.scaling.token_values import IterationCost, RequestShape

LLAMA_8B = IterationCost(
    fixed_s=5.71e-3,
    prompt_token_s=1.676e-5,
    sequence_s=1.436e-5,
    context_token_s=4.10e-8,
    prompt_product_s=1.0e-9,
)
"""Llama 8B on an H100."""
QWEN_32B = IterationCost(
    fixed_s=1.316e-2,
    prompt_token_s=4.415e-5,
    sequence_s=3.026e-5,
    context_token_s=4.15e-8,
    prompt_product_s=1.76e-9,
)
"""Qwen3 32B on two H100."""


def requests(
    prompt: float,
    output: float,
    *,
    prompt_cv: float = 0.0,
    output_cv: float = 0.0,
    cached: float = 0.0,
    accepted: float = 1.0,
) -> RequestShape:
    """Return requests whose lengths are independent and vary so much."""
    return RequestShape(
        prompt_tokens=prompt,
        computed_tokens=prompt * (1.0 - cached),
        output_tokens=output,
        prompt_tokens_squared=prompt**2 * (1.0 + prompt_cv**2),
        output_tokens_squared=output**2 * (1.0 + output_cv**2),
        prompt_output_product=prompt * output,
        accepted_per_step=accepted,
    )


LONG = requests(4000, 1000)
"""llm-d's published load: 4000 tokens in, 1000 out."""
