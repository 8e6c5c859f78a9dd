"""Plans and reports of `headroom plan generation`, for tests."""

from __future__ import annotations

from dataclasses import replace

from headroom.planner.accelerators import PUBLISHED_FACTOR, TABLE
from headroom.planner.generation.generating_service import GeneratingService
from headroom.scaling.generation.learning.model_inputs import scaled
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import EngineLimits, Target, TokenTargets
from support.generating_plants import QWEN_32B, requests

PUBLISHED = GeneratingService(
    shape=requests(4000, 1000),
    cost=QWEN_32B,
    limits=EngineLimits(kv_tokens=350_000, sequences=256, iteration_tokens=8192),
    targets=TokenTargets(
        first_token=Target(percentile=0.9, seconds=3.0),
        output_token=Target(percentile=0.9, seconds=0.1),
    ),
    gpus=2,
    price_per_hour=3.0,
    routing=Routing.LEAST_IN_FLIGHT,
)
VARIED = replace(
    PUBLISHED,
    shape=requests(4000, 1000, prompt_cv=1.0, output_cv=1.0),
    cost=scaled(QWEN_32B, PUBLISHED_FACTOR),
    limits=replace(PUBLISHED.limits, kv_tokens=300_000),
    targets=TokenTargets(
        first_token=Target(percentile=0.95, seconds=3.0),
        output_token=Target(percentile=0.95, seconds=0.1),
    ),
)
_LLAMA_70B = next(one for one in TABLE if one.name == "llama-70b/4xh100")
LONG_PROMPTS = replace(
    VARIED,
    shape=requests(8000, 300, prompt_cv=1.0, output_cv=1.0),
    cost=scaled(_LLAMA_70B.cost, PUBLISHED_FACTOR),
    limits=replace(VARIED.limits, kv_tokens=_LLAMA_70B.kv_tokens),
)
LINE = (
    "generation 10 --prompt 4000 --answer 1000 --prompt-cv 0 --answer-cv 0 --on qwen3-32b/2xh100 "
    "--routing least"
)
