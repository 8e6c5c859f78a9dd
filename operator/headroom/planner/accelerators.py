"""Published iteration costs: models on accelerators, with the KV tokens that fit.

The coefficients were fitted to AIConfigurator 0.12's measured tables of vLLM 0.24 (NVIDIA, Apache
2.0): mean error 4 to 6 %, the mixture of experts 3 %. Measured replicas are 7 to 10 % slower than
these tables, so a plan multiplies them by `PUBLISHED_FACTOR`; a running service learns its own.
"""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.errors import require
from headroom.scaling.values.tokens import IterationCost

PUBLISHED_FACTOR = 1.08
"""llm-d's published 1.45/s per replica of Qwen3 32B against 1.60 to 1.66/s by the table."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Accelerator:
    """A model on a kind of accelerator, one replica."""

    name: str
    gpus: int
    """GPUs of a replica."""
    cost: IterationCost
    kv_tokens: float
    """Tokens whose keys and values fit next to the weights, with 90 % of the memory in use."""


def _cost(
    a: float, b: float, d: float, c: float, e: float, f: float = 0.0, share: float = 0.0
) -> IterationCost:
    """Return a cost from coefficients in milliseconds."""
    return IterationCost(
        fixed_s=a / 1e3,
        prompt_token_s=b / 1e3,
        sequence_s=d / 1e3,
        context_token_s=c / 1e3,
        prompt_product_s=e / 1e3,
        experts_s=f / 1e3,
        expert_share=share,
    )


TABLE = (
    # KV bytes per token in bf16, 2 x layers x KV heads x 128 x 2: Llama 8B 131 kB, Qwen3 8B 147 kB,
    # Qwen3 32B 262 kB, Llama 70B 328 kB, 30B-A3B 98 kB. They have 0.9 of the GPUs' 80 GB (H100,
    # A100), 141 GB (H200) or 48 GB (L40S), less two bytes per parameter. Worked: Qwen3 32B on two
    # H100: (144 - 65) GB / 262 kB = 300 000 tokens.
    Accelerator(
        name="llama-8b/h100",
        gpus=1,
        cost=_cost(5.71, 0.01676, 0.01436, 4.10e-5, 1.0e-6),
        kv_tokens=400_000,
    ),
    Accelerator(
        name="llama-8b/h200",
        gpus=1,
        cost=_cost(4.37, 0.01727, 0.01546, 3.02e-5, 9.1e-7),
        kv_tokens=820_000,
    ),
    Accelerator(
        name="qwen3-32b/2xh100",
        gpus=2,
        cost=_cost(13.16, 0.04415, 0.03026, 4.15e-5, 1.76e-6),
        kv_tokens=300_000,
    ),
    Accelerator(
        name="llama-70b/4xh100",
        gpus=4,
        cost=_cost(13.76, 0.05305, 0.04153, 2.63e-5, 2.38e-6),
        kv_tokens=440_000,
    ),
    Accelerator(
        name="llama-8b/a100",
        gpus=1,
        cost=_cost(10.15, 0.0540, 0.0445, 8.54e-5, 1.41e-6),
        kv_tokens=400_000,
    ),
    Accelerator(
        name="qwen3-8b/l40s",
        gpus=1,
        cost=_cost(21.2, 0.0594, 0.0378, 2.12e-4, 3.66e-6),
        kv_tokens=180_000,
    ),
    Accelerator(
        name="qwen3-30b-a3b/h100",
        gpus=1,
        cost=_cost(3.07, 0.01146, 0.01382, 3.07e-5, 3.3e-7, 20.85, 8 / 128),
        kv_tokens=110_000,
    ),
)


def accelerator(name: str) -> Accelerator:
    """Return the row of this name; raise ImpossiblePlan with the known names otherwise."""
    found = {one.name: one for one in TABLE}
    known = ", ".join(found)
    require(
        name in found,
        f"--on must be one of {known}",
        repr(name),
        "Or give the cost of an iteration: --iteration-ms, --prompt-token-ms",
    )
    return found[name]
