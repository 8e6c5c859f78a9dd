"""Engines and requests that the tests of generation share: measured costs, published lengths."""

from __future__ import annotations

from headroom.scaling.values.tokens import RequestShape
from headroom.simulator.generation.models import ENGINES

LLAMA_8B = ENGINES["llama-8b-h100"].cost
QWEN_32B = ENGINES["qwen3-32b-tp2-h100"].cost
LLAMA_70B = ENGINES["llama-70b-tp4-h100"].cost
QWEN_8B_L40S = ENGINES["qwen3-8b-l40s"].cost
QWEN_30B_A3B = ENGINES["qwen3-30b-a3b-h100"].cost
"""A mixture of experts: 8 of 128 per token."""


def requests(
    prompt: float,
    output: float,
    *,
    prompt_cv: float = 0.0,
    output_cv: float = 0.0,
    cached: float = 0.0,
    accepted: float = 1.0,
) -> RequestShape:
    """Return requests whose lengths are independent and vary this much."""
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
