"""Replicas of published models on published GPUs: cost of an iteration and KV memory.

Coefficients: least squares over AIConfigurator 0.12's measured tables of vLLM 0.24 (mean error 4 to
6 %; the mixture of experts 3 %). KV tokens: memory left at 0.92 of the GPU after the weights, over
2 x layers x KV heads x head size x 2 bytes.
"""

from __future__ import annotations

from headroom.scaling.values.tokens import IterationCost, Target, TokenTargets
from headroom.simulator.generation.plant import Engine

_MS = 1e-3


def _cost(
    a: float, b: float, d: float, c: float, e: float, f: float = 0.0, share: float = 0.0
) -> IterationCost:
    """Return a cost from coefficients in milliseconds."""
    return IterationCost(
        fixed_s=a * _MS,
        prompt_token_s=b * _MS,
        sequence_s=d * _MS,
        context_token_s=c * _MS,
        prompt_product_s=e * _MS,
        experts_s=f * _MS,
        expert_share=share,
    )


ENGINES: dict[str, Engine] = {
    "llama-8b-h100": Engine(
        cost=_cost(5.71, 0.01676, 0.01436, 4.10e-5, 1.0e-6), kv_tokens=450_000, gpus=1
    ),
    "qwen3-32b-tp2-h100": Engine(
        cost=_cost(13.16, 0.04415, 0.03026, 4.15e-5, 1.76e-6), kv_tokens=350_000, gpus=2
    ),
    "llama-70b-tp4-h100": Engine(
        cost=_cost(13.76, 0.05305, 0.04153, 2.63e-5, 2.38e-6), kv_tokens=480_000, gpus=4
    ),
    "qwen3-30b-a3b-h100": Engine(
        cost=_cost(3.07, 0.01146, 0.01382, 3.07e-5, 3.3e-7, 20.85, 8 / 128),
        kv_tokens=130_000,
        gpus=1,
    ),
    "qwen3-8b-l40s": Engine(
        cost=_cost(21.2, 0.0594, 0.0378, 2.12e-4, 3.66e-6), kv_tokens=180_000, gpus=1
    ),
}


def scaled(engine: Engine, factor: float) -> Engine:
    """Return the engine with every time multiplied: measured tables are 7 to 10 % fast."""
    cost = engine.cost
    return Engine(
        cost=IterationCost(
            fixed_s=cost.fixed_s * factor,
            prompt_token_s=cost.prompt_token_s * factor,
            sequence_s=cost.sequence_s * factor,
            context_token_s=cost.context_token_s * factor,
            prompt_product_s=cost.prompt_product_s * factor,
            experts_s=cost.experts_s * factor,
            expert_share=cost.expert_share,
        ),
        kv_tokens=engine.kv_tokens,
        sequences=engine.sequences,
        iteration_tokens=engine.iteration_tokens,
        block_tokens=engine.block_tokens,
        noise_cv=engine.noise_cv,
        gpus=engine.gpus,
    )


def targets(first_s: float, output_s: float, percentile: float = 0.95) -> TokenTargets:
    """Return promises on both times at one percentile."""
    return TokenTargets(
        first_token=Target(percentile=percentile, seconds=first_s),
        output_token=Target(percentile=percentile, seconds=output_s),
    )
