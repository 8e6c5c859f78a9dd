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
LLAMA_70B = IterationCost(
    fixed_s=1.376e-2,
    prompt_token_s=5.305e-5,
    sequence_s=4.153e-5,
    context_token_s=2.63e-8,
    prompt_product_s=2.38e-9,
)
"""Llama 70B on four H100."""
LLAMA_8B_A100 = IterationCost(
    fixed_s=1.015e-2,
    prompt_token_s=5.40e-5,
    sequence_s=4.45e-5,
    context_token_s=8.54e-8,
    prompt_product_s=1.41e-9,
)
"""Llama 8B on an A100."""
QWEN_8B_L40S = IterationCost(
    fixed_s=2.12e-2,
    prompt_token_s=5.94e-5,
    sequence_s=3.78e-5,
    context_token_s=2.12e-7,
    prompt_product_s=3.66e-9,
)
"""Qwen3 8B on an L40S."""
QWEN_30B_A3B = IterationCost(
    fixed_s=3.07e-3,
    prompt_token_s=1.146e-5,
    sequence_s=1.382e-5,
    context_token_s=3.07e-8,
    prompt_product_s=3.3e-10,
    experts_s=2.085e-2,
    expert_share=8 / 128,
)
"""Qwen3 30B-A3B on an H100: 8 of 128 experts per token."""


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
