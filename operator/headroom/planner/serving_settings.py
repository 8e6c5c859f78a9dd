"""Recommends settings of the server for a load; each is planned on top of those before it.

So all of them together are a plan too: what fits into a quantized cache needs seats, and how much
may queue depends on the tokens of an iteration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from headroom.planner.generating_service import GeneratingService
from headroom.planner.generation import (
    GenerationPlan,
    iteration_tokens,
    plan_generation,
    plan_split,
)
from headroom.scaling.generation.occupancy import occupancy_of
from headroom.scaling.generation.replica import MEMORY_PERCENTILE
from headroom.scaling.generation.work import work_of
from headroom.scaling.values.policy import Routing
from headroom.scaling.values.tokens import Binding

SPECULATION_ACCEPTED = 1.8
"""Tokens per step with a small draft model or prompt lookup on usual text; measure your own."""
SPECULATION_STEP = 1.25
"""An iteration that verifies drafts takes so many times as long at small batches."""
DRAFTS = 4
"""Draft tokens verified per sequence and step."""
SMALLEST_CHUNK, LARGEST_CHUNK = 512, 16_384
SHORT_TASKS_S = 10.0
SPARE_SEATS, MOST_SEATS = 1.25, 16_384
TAIL = f"{100 * MEMORY_PERCENTILE:g}"
"""Percentile of memory and seats, in percent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of the server or of the service."""

    name: str
    value: str
    reason: str
    effect: str
    """On the replicas that the settings before it need."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All settings, and the plan with them."""

    settings: tuple[Setting, ...]
    plan: GenerationPlan


Change = tuple[GeneratingService, Setting]


def recommend(service: GeneratingService, arrival_rps: float) -> Advice:
    """Return the settings for this load."""
    given = plan_generation(service, arrival_rps)
    routing = _routing(service, given, arrival_rps)
    service = replace(service, limits=replace(service.limits, sequences=None))
    plans, changed = [plan_generation(service, arrival_rps)], []
    for change in (_cache, _speculation, _chunk):
        service, setting = change(service, plans[-1], arrival_rps)
        plans.append(plan_generation(service, arrival_rps))
        changed.append(setting)
    service, plan = _with_seats(service, plans, arrival_rps)
    settings = (
        routing,
        _sequences(given, plans, service.limits.sequences or 0),
        *changed,
        _memory(plan),
        _pools(service, plan, arrival_rps),
        _limits(service, plan, arrival_rps),
    )
    return Advice(settings=settings, plan=plan)


def _with_seats(
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


def _sequences(given: GenerationPlan, plans: list[GenerationPlan], seats: int) -> Setting:
    most = max(one.sequences for one in plans)
    return Setting(
        name="sequences at once",
        value=f"{seats} (vLLM: --max-num-seqs)",
        reason=f"{TAIL} % of the time at most {most:.0f} decode at one replica, also with the "
        "settings below; a quarter more for bursts",
        effect=_effect(given, plans[0]),
    )


def _cache(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
    name = "quantized cache (fp8)"
    if service.limits.kv_tokens is None:
        reason, effect = "the KV tokens are not known", "none on the replicas"
        return service, Setting(name=name, value="off", reason=reason, effect=effect)
    limits = replace(service.limits, kv_tokens=2.0 * service.limits.kv_tokens)
    changed = replace(service, limits=limits)
    doubled = plan_generation(changed, arrival_rps)
    pays = _better(plan, doubled)
    setting = Setting(
        name=name,
        value="on (vLLM: --kv-cache-dtype fp8)" if pays else "off",
        reason="memory binds: 8 bits hold twice the tokens"
        if pays
        else f"twice the tokens in memory save no replica: {_next(plan)} binds next",
        effect=_effect(plan, doubled, on=pays),
    )
    return changed if pays else service, setting


def _speculation(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
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
    pays = _better(plan, drafted)
    setting = Setting(
        name="speculation",
        value="on" if pays else "off",
        reason=f"if {SPECULATION_ACCEPTED} tokens are accepted per step, {DRAFTS} verified, the "
        f"time per token becomes {1000 * drafted.output_token_s:.0f} ms instead of "
        f"{1000 * plan.output_token_s:.0f} ms",
        effect=_effect(plan, drafted, on=pays),
    )
    return changed if pays else service, setting


def _chunk(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Change:
    """Return the chunk with which an iteration stays within the time per token."""
    token, usual = service.targets.output_token, iteration_tokens(service)

    def setting(tokens: int, reason: str, effect: str) -> Setting:
        return Setting(
            name="tokens of an iteration",
            value=f"{tokens} (vLLM: --max-num-batched-tokens)",
            reason=reason,
            effect=effect,
        )

    none = "none on the replicas"
    if token is None or Binding.TIME_PER_OUTPUT_TOKEN in dict(plan.infeasible):
        reason = "no promise on the time per token binds it: large chunks compute prompts soonest"
        return service, setting(usual, reason, none)
    decode_s, token_s = _iteration(service, plan, arrival_rps)
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
    if within.replicas > plan.replicas or _breaks(plan, within):
        return service, setting(usual, f"{took}; but: {_effect(plan, within)}", none)
    return changed, setting(chunk, took, _effect(plan, within))


def _iteration(
    service: GeneratingService, plan: GenerationPlan, arrival_rps: float
) -> tuple[float, float]:
    """Return the seconds of an iteration without its prompt tokens, and of one prompt token.

    A prompt token is the mean one, with its attention: at 8000 tokens a third more than b.
    """
    work = work_of(service.cost, service.shape)
    occupancy = occupancy_of(work, arrival_rps / plan.replicas)
    decoding = 0.0 if occupancy is None else occupancy.mean
    decode_s = work.iteration_fixed_s(math.inf) + work.slope_s * decoding
    return decode_s, max(work.prompt_s / max(1.0, work.prompt_tokens), _LEAST_S)


def _memory(plan: GenerationPlan) -> Setting:
    share = "not known" if plan.memory_share is None else f"{100 * plan.memory_share:.0f} %"
    return Setting(
        name="share of the GPU's memory",
        value="0.90 (vLLM: --gpu-memory-utilization)",
        reason=f"of the KV tokens that fit into it, in use at the {TAIL}th percentile: {share}"
        + (", which binds" if plan.binding is Binding.MEMORY else "")
        + "; above 95 % sequences are preempted and computed again",
        effect="none on the replicas",
    )


def _routing(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return what a gateway is worth. Worked: 10/s of 4000 + 1000 tokens at nine pairs of H100.

    Simulated, requests to a random replica keep 3 s to the first token for 93 % of them, requests
    to the one with the fewest in flight for 99.6 %.
    """
    name, reason = "routing", "replicas with as many requests in flight each share their variation"
    if service.routing.sees_load:
        value = "to the fewest requests in flight (routing.mode: Gateway)"
        return Setting(name=name, value=value, reason=reason, effect="none on the replicas")
    level = plan_generation(replace(service, routing=Routing.LEAST_IN_FLIGHT), arrival_rps)
    effect = _effect(plan, level)
    if _better(plan, level):
        effect = f"with routing.mode Gateway: {effect}"
    value = "without regard to requests in flight (routing.mode: Service)"
    return Setting(name=name, value=value, reason=reason, effect=effect)


def _pools(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    name, split = "prefill and decode pools", plan_split(service, arrival_rps)
    if split is None:
        reason, effect = "split pools do not keep the promises either", "none on the replicas"
        return Setting(name=name, value="one pool", reason=reason, effect=effect)
    pays = split.replicas < plan.replicas or (
        bool(_broken(plan)) and split.replicas <= 2 * plan.replicas
    )
    return Setting(
        name=name,
        value=f"{split.prefill} prefill, {split.decode} decode" if pays else "one pool",
        reason=f"split: {split.prefill} prefill and {split.decode} decode replicas, "
        f"together {split.replicas}; one pool: {plan.replicas}",
        effect=f"{plan.replicas} -> {split.replicas} replicas" if pays else "none on the replicas",
    )


def _limits(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> Setting:
    """Return what to bound: requests are bounds of tokens only where all are alike.

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
    (decode_s, token_s), chunk = _iteration(service, plan, arrival_rps), iteration_tokens(service)
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
        effect="none on the replicas",
    )


def _next(plan: GenerationPlan) -> str:
    return next(name.value for name, _ in plan.bounds_rps if name is not Binding.MEMORY)


def _broken(plan: GenerationPlan) -> set[Binding]:
    """Return the promises that the plan does not keep."""
    return {name for name, _ in plan.infeasible} | {name for name, *_ in plan.missed}


def _breaks(before: GenerationPlan, after: GenerationPlan) -> bool:
    """Whether a change breaks a promise: replicas are then saved because it is given up."""
    given_up = dict(after.infeasible).keys() - dict(before.infeasible).keys()
    return bool(given_up) or not _broken(after) <= _broken(before)


def _better(before: GenerationPlan, after: GenerationPlan) -> bool:
    """Whether a change keeps another promise, or saves a replica and breaks none."""
    if _breaks(before, after):
        return False
    return after.replicas < before.replicas or _broken(after) < _broken(before)


def _effect(before: GenerationPlan, after: GenerationPlan, *, on: bool = True) -> str:
    """Return what a change does, or would do where it is not recommended."""
    parts = []
    if after.replicas != before.replicas:
        parts.append(f"{before.replicas} -> {after.replicas} replicas")
    parts += [f"{one.value} can be kept" for one in sorted(_broken(before) - _broken(after))]
    parts += [
        f"{one.value} can no longer be kept" for one in sorted(_broken(after) - _broken(before))
    ]
    return ("" if on or not parts else "on: ") + (", ".join(parts) or "none on the replicas")


_LEAST_S = 1e-12
