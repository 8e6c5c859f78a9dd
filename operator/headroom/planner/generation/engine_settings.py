"""Recommends settings that change the plan: cache, speculation, chunk and seats."""

from __future__ import annotations

import math
from dataclasses import replace

from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.iteration_time import iteration_times
from headroom.planner.generation.setting_effects import (
    SAME,
    Setting,
    breaks,
    effect_of,
    is_better,
    next_bound,
)
from headroom.planner.generation.token_plan import GenerationPlan, iteration_tokens, plan_generation
from headroom.scaling.generation.replica_model.replica import MEMORY_PERCENTILE
from headroom.scaling.values.tokens import Binding

SPECULATION_ACCEPTED = 1.8
"""Tokens per step with a small draft model or prompt lookup on usual text; measure your own."""
SPECULATION_STEP = 1.25
"""An iteration that verifies drafts takes this many times as long at small batches."""
DRAFTS = 4
"""Draft tokens verified per sequence and step."""
SMALLEST_CHUNK, LARGEST_CHUNK = 512, 16_384
SPARE_SEATS, MOST_SEATS = 1.25, 16_384
TAIL = f"{100 * MEMORY_PERCENTILE:g}"
"""Percentile of memory and seats, in percent."""


Change = tuple[GeneratingService, Setting]


def with_seats(
    service: GeneratingService, plans: list[GenerationPlan], arrival_rps: float
) -> tuple[GeneratingService, GenerationPlan]:
    """Return the service with the fewest seats that cost no replica, and its plan."""
    most = SPARE_SEATS * max(one.sequences for one in plans)
    while True:
        seats = max(8, 8 * math.ceil(most / 8))
        seated = replace(service, limits=replace(service.limits, sequences=seats))
        plan = plan_generation(seated, arrival_rps)
        if plan.replicas <= plans[-1].replicas or seats > MOST_SEATS:
            return seated, plan
        most = SPARE_SEATS * seats


def for_sequences(given: GenerationPlan, plans: list[GenerationPlan], seats: int) -> Setting:
    """Return how many sequences a replica should run at once."""
    most = max(one.sequences for one in plans)
    return Setting(
        name="sequences at once",
        value=f"{seats} (vLLM: --max-num-seqs)",
        reason=f"{TAIL} % of the time at most {most:.0f} decode at one replica, also with the "
        "settings below; a quarter more for bursts",
        effect=effect_of(given, plans[0]),
    )


def for_cache(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
    """Return whether a quantized cache pays."""
    name = "quantized cache (fp8)"
    if service.limits.kv_tokens is None:
        reason, effect = "the KV tokens are not known", SAME
        return service, Setting(name=name, value="off", reason=reason, effect=effect)
    limits = replace(service.limits, kv_tokens=2.0 * service.limits.kv_tokens)
    changed = replace(service, limits=limits)
    doubled = plan_generation(changed, arrival_rps)
    pays = is_better(plan, doubled)
    setting = Setting(
        name=name,
        value="on (vLLM: --kv-cache-dtype fp8)" if pays else "off",
        reason="memory binds: 8 bits hold twice the tokens"
        if pays
        else f"twice the tokens in memory save no replica: {next_bound(plan)} binds next",
        effect=effect_of(plan, doubled, on=pays),
    )
    return changed if pays else service, setting


def for_speculation(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
    """Return whether drafts pay: they need an engine that waits for memory, not for arithmetic."""
    cost = service.cost
    verified = replace(
        cost,
        fixed_s=SPECULATION_STEP * cost.fixed_s,
        sequence_s=cost.sequence_s + DRAFTS * cost.prompt_token_s,
    )
    shape = replace(service.shape, accepted_per_step=SPECULATION_ACCEPTED)
    changed = replace(service, cost=verified, shape=shape)
    drafted = plan_generation(changed, arrival_rps)
    pays = is_better(plan, drafted)
    setting = Setting(
        name="speculation",
        value="on" if pays else "off",
        reason=f"if {SPECULATION_ACCEPTED} tokens are accepted per step, {DRAFTS} verified, the "
        f"time per token becomes {1000 * drafted.output_token_s:.0f} ms instead of "
        f"{1000 * plan.output_token_s:.0f} ms",
        effect=effect_of(plan, drafted, on=pays),
    )
    return changed if pays else service, setting


def for_chunk(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
    """Return the chunk with which an iteration stays within the time per token."""
    token, usual = service.targets.output_token, iteration_tokens(service)

    def setting(tokens: int, reason: str, effect: str) -> Setting:
        return Setting(
            name="tokens of an iteration",
            value=f"{tokens} (vLLM: --max-num-batched-tokens)",
            reason=reason,
            effect=effect,
        )

    if token is None or Binding.TIME_PER_OUTPUT_TOKEN in dict(plan.infeasible):
        reason = "no promise on the time per token binds it: large chunks compute prompts fastest"
        return service, setting(usual, reason, SAME)
    decode_s, token_s = iteration_times(service, plan, arrival_rps)
    promised_s = token.seconds * max(1.0, service.shape.accepted_per_step)
    room_s = promised_s - decode_s
    chunk = int(min(LARGEST_CHUNK, max(SMALLEST_CHUNK, room_s / token_s)))
    chunk = 2 ** int(math.log2(chunk))
    changed = replace(service, limits=replace(service.limits, iteration_tokens=chunk))
    within = plan_generation(changed, arrival_rps)
    took = (
        f"a full iteration of {chunk} takes {1000 * (decode_s + chunk * token_s):.0f} ms, "
        f"the promise is {1000 * promised_s:.0f} ms per iteration"
    )
    if within.replicas > plan.replicas or breaks(plan, within):
        return service, setting(usual, f"{took}; but: {effect_of(plan, within)}", SAME)
    return changed, setting(chunk, took, effect_of(plan, within))
