"""Refuses promises that an idle replica breaks: no number of replicas keeps them. Pure."""

from __future__ import annotations

from headroom.planner.errors import ImpossiblePlan
from headroom.planner.generation.engine_settings import SPECULATION_ACCEPTED, for_speculation
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.token_plan import GenerationPlan, plan_generation
from headroom.scaling.values.tokens import Binding

_NAMES = {
    Binding.TIME_TO_FIRST_TOKEN: "the time to first token",
    Binding.TIME_PER_OUTPUT_TOKEN: "the time per output token",
    Binding.LATENCY: "the time of the whole answer",
}


def check_floors(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> None:
    """Raise ImpossiblePlan for targets below the latency of an idle replica."""
    if not plan.infeasible:
        return
    promised = service.fleet().capacity.replica.promised
    broken = " ".join(
        f"The target of {_NAMES[name]} must be at least {1000 * floor_s:.3g} ms "
        f"(p{100 * promised[name].percentile:g} of an idle replica); "
        f"got {1000 * promised[name].seconds:.3g} ms."
        for name, floor_s in plan.infeasible
    )
    raise ImpossiblePlan(
        f"{broken[0].lower()}{broken[1:]} Raise the target, or use a faster model or accelerator"
        f"{_speculation(service, plan, arrival_rps)}; more replicas cannot help."
    )


def _speculation(service: GeneratingService, plan: GenerationPlan, arrival_rps: float) -> str:
    """Return that drafts keep all of them; empty if they do not."""
    changed, _ = for_speculation(service, plan, arrival_rps)
    if changed is service or plan_generation(changed, arrival_rps).infeasible:
        return ""
    return f", or a server that speculates (--accepted {SPECULATION_ACCEPTED:g})"
