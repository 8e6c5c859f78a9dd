"""Plans prefill and decode in pools of their own.

They are two engines, one without sequences and one without prompts; their ratio is a result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from headroom.planner.ceiling import rounded_up
from headroom.planner.generation.generating_service import GeneratingService
from headroom.scaling.values.tokens import TokenTargets

TRANSFER_TOKENS_PER_S = 200_000.0
"""Keys and values between pools: 131 kB per token over 200 Gbit/s is 190 000 tokens per second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitPlan:
    """Prefill and decode in pools of their own."""

    prefill: int
    decode: int
    moved_s: float = 0.0
    """Part of the time to first token that the transfer of a mean prompt takes."""

    @property
    def replicas(self) -> int:
        """Replicas of both pools."""
        return self.prefill + self.decode


def plan_split(service: GeneratingService, arrival_rps: float) -> SplitPlan | None:
    """Return the replicas of both pools; None where a promise cannot be kept by them.

    Prefill computes prompts alone, so no sequence makes an iteration longer; decode has no prompts,
    so nothing interrupts it. Each keeps the promise that it decides; the transfer is a part of the
    time to first token.
    """
    shape, targets = service.shape, service.targets
    moved_s = shape.prompt_tokens / TRANSFER_TOKENS_PER_S
    first, token = targets.first_token, targets.output_token
    if first is not None:
        if first.seconds <= moved_s:
            return None
        first = replace(first, seconds=first.seconds - moved_s)
    alone = replace(
        shape,
        output_tokens=1.0,
        output_tokens_squared=1.0,
        prompt_output_product=shape.prompt_tokens,
    )
    no_prompts = replace(shape, computed_tokens=0.0)
    pools = []
    for part, promises in (
        (alone, TokenTargets(first_token=first)),
        (no_prompts, TokenTargets(output_token=token)),
    ):
        fleet = replace(service, shape=part, targets=promises).fleet()
        number = fleet.replicas_for(arrival_rps, fleet.target_s, 1.0)
        if number is None or fleet.capacity.infeasible:
            return None
        usable_rps = service.ceiling * fleet.capacity.full_rps
        number = max(1, number, rounded_up(arrival_rps / usable_rps))
        pools.append(number)
    return SplitPlan(prefill=pools[0], decode=pools[1], moved_s=moved_s)
