"""Recommends settings of the server for a load; each is planned on top of those before it.

So all of them together are a plan too: what fits into a quantized cache needs seats, and how much
may queue depends on the tokens of an iteration.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.planner.generation.engine_settings import (
    for_cache,
    for_chunk,
    for_sequences,
    for_speculation,
    with_seats,
)
from headroom.planner.generation.fleet_settings import (
    for_limits,
    for_memory,
    for_pools,
    for_routing,
)
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.setting_effects import Setting
from headroom.planner.generation.token_plan import GenerationPlan, plan_generation


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """All settings, and the plan with them."""

    settings: tuple[Setting, ...]
    plan: GenerationPlan


def recommend(service: GeneratingService, arrival_rps: float) -> Advice:
    """Return the settings for this load."""
    given = plan_generation(service, arrival_rps)
    routing = for_routing(service, given, arrival_rps)
    service = replace(service, limits=replace(service.limits, sequences=None))
    plans, changed = [plan_generation(service, arrival_rps)], []
    for change in (for_cache, for_speculation, for_chunk):
        service, setting = change(service, plans[-1], arrival_rps)
        plans.append(plan_generation(service, arrival_rps))
        changed.append(setting)
    service, plan = with_seats(service, plans, arrival_rps)
    settings = (
        routing,
        for_sequences(given, plans, service.limits.sequences or 0),
        *changed,
        for_memory(plan),
        for_pools(service, plan, arrival_rps),
        for_limits(service, plan, arrival_rps),
    )
    return Advice(settings=settings, plan=plan)
