"""The time of an engine's iteration at a plan's load."""

from __future__ import annotations

import math

from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.token_plan import GenerationPlan
from headroom.scaling.generation.replica_model.occupancy import occupancy_of
from headroom.scaling.generation.replica_model.work import work_of


def iteration_times(
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


_LEAST_S = 1e-12
