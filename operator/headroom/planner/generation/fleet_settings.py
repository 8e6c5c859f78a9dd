"""Recommends settings around the engines: memory share, routing, pools and limits of clients."""

from __future__ import annotations

import math
from dataclasses import replace

from headroom.planner.generation.engine_settings import TAIL
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.iteration_time import iteration_times
from headroom.planner.generation.setting_effects import (
    SAME,
    Setting,
    broken_promises,
    effect_of,
    is_better,
)
from headroom.planner.generation.split_pools import plan_split
from headroom.planner.generation.token_plan import GenerationPlan, iteration_tokens, plan_generation
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding

SHORT_TASKS_S = 10.0


def for_memory(plan: GenerationPlan) -> Setting:
    """Return the share of the GPU's memory that the engine should take."""
    share = "not known" if plan.memory_share is None else f"{100 * plan.memory_share:.0f} %"
    return Setting(
        name="share of the GPU's memory",
        value="0.90 (vLLM: --gpu-memory-utilization)",
        reason=f"of the KV tokens that fit into it, in use at the {TAIL}th percentile: {share}"
        + (", which binds" if plan.binding is Binding.MEMORY else "")
        + "; above 95 % sequences are preempted and computed again",
        effect=SAME,
    )


def for_routing(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return the effect of a gateway. Worked: 10/s of 4000 + 1000 tokens at nine pairs of H100.

    Simulated, requests to a random replica keep 3 s to the first token for 93 % of them, requests
    to the one with the fewest in flight for 99.6 %.
    """
    name, reason = (
        "routing",
        "replicas with equally many requests in flight share their variation",
    )
    if service.routing.sees_load:
        value = "to the fewest requests in flight (routing.mode: Gateway)"
        return Setting(name=name, value=value, reason=reason, effect=SAME)
    level = plan_generation(replace(service, routing=Routing.LEAST_IN_FLIGHT), arrival_rps)
    effect = effect_of(plan, level)
    if is_better(plan, level):
        effect = f"with routing.mode Gateway: {effect}"
    value = "without regard to requests in flight (routing.mode: Service)"
    return Setting(name=name, value=value, reason=reason, effect=effect)


def for_pools(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return whether separate replicas for prompts and for tokens pay."""
    name, split = "prefill and decode pools", plan_split(service, arrival_rps)
    if split is None:
        reason, effect = "split pools do not keep the promises either", SAME
        return Setting(name=name, value="one pool", reason=reason, effect=effect)
    pays = split.replicas < plan.replicas or (
        bool(broken_promises(plan)) and split.replicas <= 2 * plan.replicas
    )
    return Setting(
        name=name,
        value=f"{split.prefill} prefill, {split.decode} decode" if pays else "one pool",
        reason=f"split: {split.prefill} prefill and {split.decode} decode replicas, "
        f"together {split.replicas}; one pool: {plan.replicas}",
        effect=f"{plan.replicas} -> {split.replicas} replicas" if pays else SAME,
    )


def for_limits(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return the bound to set: requests bound tokens only where all are alike.

    Prompts that wait are computed by chunks, in iterations that also decode. Worked: Qwen3 32B on
    two H100, chunks of 1024 in 95 ms: 10 800 tokens per second, not the 18 100 of prompts alone.
    """
    shape = service.shape
    squares = shape.prompt_tokens_squared + shape.output_tokens_squared
    means = shape.prompt_tokens**2 + shape.output_tokens**2
    varied = math.sqrt(max(0.0, squares / means - 1.0))
    first = service.targets.first_token
    kept = first is not None and Binding.TIME_TO_FIRST_TOKEN not in dict(plan.infeasible)
    waits_s = first.seconds if first is not None and kept else SHORT_TASKS_S
    (decode_s, token_s), chunk = (
        iteration_times(service, plan, arrival_rps),
        iteration_tokens(service),
    )
    per_s = chunk / (decode_s + chunk * token_s) * shape.prompt_tokens / shape.computed_tokens
    queued = max(1.0, (waits_s - min(waits_s, plan.first_token_s / 2)) * per_s)
    alike = varied < 0.3
    return Setting(
        name="limits of clients",
        value=f"{queued:.0f} prompt tokens queue at a replica, at most (vLLM: "
        "--max-num-queued-tokens)",
        reason=(
            f"more would be late. Lengths vary by {100 * varied:.0f} % of their mean, so limit "
            "clients by "
        )
        + ("requests, all alike" if alike else "tokens: one request may cost what ten others do"),
        effect=SAME,
    )
