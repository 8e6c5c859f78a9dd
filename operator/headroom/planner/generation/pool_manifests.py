"""The InferenceServices of a planned prefill and decode pool, as a user applies them. Pure."""

from __future__ import annotations

import re
from typing import Any

from headroom.api.durations import Duration
from headroom.api.inference_service import MAX_NAME_LENGTH, NAME_PATTERN
from headroom.api.kind import API_VERSION, KIND
from headroom.planner.errors import ImpossiblePlan, require
from headroom.planner.generation.generating_service import GeneratingService
from headroom.planner.generation.split_pools import plan_split

USUAL_SEQUENCES = 256
ROOM = 2
"""maxReplicas over the planned replicas: a plan is for one rate, and lengths change."""
LEAST_S = 0.001


def pool_manifests(
    service: GeneratingService, arrival_rps: float, name: str
) -> list[dict[str, Any]]:
    """Return the prefill pool and the decode pool that names it.

    The time to first token is promised without the transfer between the pools.

    Raises:
        ImpossiblePlan: if a promise is missing, no split keeps it, or the name is not one.
    """
    longest = f"{name}-prefill"
    valid = len(longest) <= MAX_NAME_LENGTH and re.fullmatch(NAME_PATTERN, longest)
    rule = f"--pools must be a name of at most {MAX_NAME_LENGTH - len('-prefill')} characters"
    require(bool(valid), rule, name, "Use lower-case letters, digits and -, a letter first")
    first, token = service.targets.first_token, service.targets.output_token
    if first is None or token is None:
        raise ImpossiblePlan(
            "--pools must have one promise for each pool; got fewer. Give --first-token and "
            "--output-token."
        )
    split = plan_split(service, arrival_rps)
    if split is None:
        raise ImpossiblePlan(
            "No prefill and decode pools keep these promises. Raise --first-token or "
            "--output-token, or plan one pool without --pools."
        )
    percentile = round(100 * service.percentile)
    left_s = max(LEAST_S, first.seconds - split.moved_s)
    sequences = service.limits.sequences or USUAL_SEQUENCES
    prefill = _pool(longest, "timeToFirstToken", left_s, percentile, split.prefill, sequences)
    decode = _pool(
        f"{name}-decode", "timePerOutputToken", token.seconds, percentile, split.decode, sequences
    )
    decode["spec"]["prefillRef"] = {"name": longest}
    return [prefill, decode]


def _pool(
    name: str, promise: str, target_s: float, percentile: int, replicas: int, sequences: int
) -> dict[str, Any]:
    target = str(Duration.of_seconds(round(target_s, 3)))
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": name},
        "spec": {
            "targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "runtime": {"profile": "vllm", "maxBatchSize": sequences},
            "slo": {promise: {"percentile": percentile, "target": target}},
            "scaling": {"minReplicas": 1, "maxReplicas": ROOM * replicas},
        },
    }
