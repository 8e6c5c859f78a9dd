"""Recommends how to serve: each setting with its reason and its effect on the replicas.

The effect is that of planning again with the setting, so it is what the model says of this workload
and no rule of thumb. A setting without an effect is said to have none.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headroom.planner.generation import (
    GeneratingService,
    GenerationPlan,
    iteration_tokens,
    plan_generation,
    plan_split,
)
from headroom.scaling.generation.occupancy import occupancy_of
from headroom.scaling.generation.work import work_of
from headroom.scaling.token_values import Binding

SPECULATION_ACCEPTED = 1.8
"""Tokens per step with a small draft model or prompt lookup on usual text; measure your own."""
SPECULATION_STEP = 1.25
"""An iteration that verifies drafts takes so many times as long at small batches."""
DRAFTS = 4
"""Draft tokens verified per sequence and step."""
SMALLEST_CHUNK, LARGEST_CHUNK = 512, 16_384
SHORT_TASKS_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of the server or of the service."""

    name: str
    value: str
    reason: str
    effect: str


def recommend(service: GeneratingService, arrival_rps: float) -> tuple[Setting, ...]:
    """Return the settings for this load."""
    plan = plan_generation(service, arrival_rps)
    return (
        _sequences(plan),
        _memory(plan),
        _chunk(service, plan, arrival_rps),
        _speculation(service, plan, arrival_rps),
        _cache(service, plan, arrival_rps),
        _pools(service, plan, arrival_rps),
        _limits(service, plan),
    )


def _sequences(plan: GenerationPlan) -> Setting:
    most = 8 * math.ceil(1.25 * plan.sequences_p95 / 8)
    return Setting(
        name="sequences at once",
        value=f"{most:.0f} (vLLM: --max-num-seqs)",
        reason=f"95 % of the time at most {plan.sequences_p95:.0f} decode at one replica; "
        "a quarter more for bursts",
        effect="with more, the memory could overflow; with fewer, requests would wait for a seat",
    )


def _memory(plan: GenerationPlan) -> Setting:
    share = "not known" if plan.memory_share is None else f"{100 * plan.memory_share:.0f} %"
    return Setting(
        name="share of the memory for keys and values",
        value="0.90 (vLLM: --gpu-memory-utilization)",
        reason=f"{share} of the KV tokens are in use at the 95th percentile"
        + (", which binds" if plan.binding is Binding.MEMORY else ""),
        effect="above 95 % sequences are preempted and computed again",
    )


def _chunk(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return the chunk with which an iteration stays within the time per token."""
    token = service.targets.output_token
    usual = iteration_tokens(service)
    if token is None:
        return Setting(
            name="tokens of an iteration",
            value=f"{usual} (vLLM: --max-num-batched-tokens)",
            reason="no promise on the time per token: large chunks compute prompts soonest",
            effect="none on the replicas",
        )
    work = work_of(service.cost, service.shape)
    occupancy = occupancy_of(work, arrival_rps / plan.replicas)
    decode_s = work.fixed_s if occupancy is None else work.fixed_s + work.slope_s * occupancy.mean
    room_s = token.seconds * work.accepted - decode_s
    tokens = room_s / max(service.cost.prompt_token_s, 1e-12)
    chunk = int(min(LARGEST_CHUNK, max(SMALLEST_CHUNK, tokens)))
    chunk = 2 ** int(math.log2(chunk))
    full_s = decode_s + chunk * service.cost.prompt_token_s
    changed = replace(service, limits=replace(service.limits, iteration_tokens=chunk))
    return Setting(
        name="tokens of an iteration",
        value=f"{chunk} (vLLM: --max-num-batched-tokens)",
        reason=f"a full iteration takes {1000 * full_s:.0f} ms, "
        f"the promise is {1000 * token.seconds:.0f} ms per token",
        effect=_effect(plan, plan_generation(changed, arrival_rps)),
    )


def _speculation(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return whether drafts pay: they need an engine that waits for memory, not for arithmetic."""
    cost = service.cost
    verified = replace(
        cost,
        fixed_s=SPECULATION_STEP * cost.fixed_s,
        sequence_s=cost.sequence_s + DRAFTS * cost.prompt_token_s,
    )
    shape = replace(service.shape, accepted_per_step=SPECULATION_ACCEPTED)
    drafted = plan_generation(replace(service, cost=verified, shape=shape), arrival_rps)
    pays = drafted.replicas < plan.replicas or len(drafted.infeasible) < len(plan.infeasible)
    return Setting(
        name="speculation",
        value="on" if pays else "off",
        reason=f"{SPECULATION_ACCEPTED} tokens accepted per step, {DRAFTS} verified: the time per "
        f"token becomes {1000 * drafted.output_token_s:.0f} ms instead of "
        f"{1000 * plan.output_token_s:.0f} ms",
        effect=_effect(plan, drafted),
    )


def _cache(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    if service.limits.kv_tokens is None:
        return Setting(
            name="quantized cache", value="off", reason="the KV tokens are not known", effect="none"
        )
    limits = replace(service.limits, kv_tokens=2.0 * service.limits.kv_tokens)
    doubled = plan_generation(replace(service, limits=limits), arrival_rps)
    pays = doubled.replicas < plan.replicas
    return Setting(
        name="quantized cache (fp8)",
        value="on" if pays else "off",
        reason="memory binds: 8 bits hold twice the tokens"
        if pays
        else f"twice the tokens in memory save no replica: {_next(plan)} binds next",
        effect=_effect(plan, doubled),
    )


def _pools(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    split = plan_split(service, arrival_rps)
    if split is None:
        return Setting(
            name="prefill and decode pools",
            value="one pool",
            reason="split pools do not keep the promises either",
            effect="none",
        )
    pays = split.replicas < plan.replicas or (
        bool(plan.infeasible) and split.replicas <= 2 * plan.replicas
    )
    return Setting(
        name="prefill and decode pools",
        value=f"{split.prefill} prefill, {split.decode} decode" if pays else "one pool",
        reason=f"split: {split.prefill} prefill and {split.decode} decode replicas, "
        f"together {split.replicas}; one pool: {plan.replicas}",
        effect=f"{plan.replicas} -> {split.replicas} replicas" if pays else "none",
    )


def _limits(service: GeneratingService, plan: GenerationPlan) -> Setting:
    """Return what to bound: requests are bounds of tokens only where all are alike."""
    shape = service.shape
    squares = shape.prompt_tokens_squared + shape.output_tokens_squared
    means = shape.prompt_tokens**2 + shape.output_tokens**2
    varied = math.sqrt(max(0.0, squares / means - 1.0))
    first = service.targets.first_token
    waits_s = first.seconds if first is not None else SHORT_TASKS_S
    per_s = shape.computed_tokens / max(work_of(service.cost, shape).prompt_s, 1e-9)
    queued = max(1.0, (waits_s - min(waits_s, plan.first_token_s / 2)) * per_s)
    alike = varied < 0.3
    return Setting(
        name="limits of clients",
        value="requests" if alike else "tokens",
        reason=f"lengths vary by {100 * varied:.0f} % of their mean: "
        + ("a request is a fair unit" if alike else "one request may cost what ten others do"),
        effect=f"queue at most {queued:.0f} prompt tokens per replica "
        "(vLLM: --max-num-queued-tokens): more would miss the time to first token",
    )


def _next(plan: GenerationPlan) -> str:
    return next(name.value for name, _ in plan.bounds_rps if name is not Binding.MEMORY)


def _effect(before: GenerationPlan, after: GenerationPlan) -> str:
    kept = sorted({name for name, _ in before.infeasible} - {name for name, _ in after.infeasible})
    broken = sorted(
        {name for name, _ in after.infeasible} - {name for name, _ in before.infeasible}
    )
    parts = []
    if after.replicas != before.replicas:
        parts.append(f"{before.replicas} -> {after.replicas} replicas")
    parts += [f"{name.value} can be kept" for name in kept]
    parts += [f"{name.value} can no longer be kept" for name in broken]
    return ", ".join(parts) or "none on the replicas"
