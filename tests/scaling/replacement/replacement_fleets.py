"""A settled fleet in which replicas may be replaced, for tests."""

from __future__ import annotations

from dataclasses import replace

from headroom.scaling.values.policy import Policy
from support.fakes_replicas import Replicas


def settled(factors: tuple[float, ...] = (1.0,) * 5, **more: object) -> Replicas:
    """Return replicas that have been watched for ten minutes, all as fast as usual."""
    fleet = Replicas(factors=(1.0,) * len(factors), **more)  # type: ignore[arg-type]
    fleet.run(600)
    for one, factor in zip(fleet.replicas, factors, strict=False):
        one.factor = factor
    return fleet


def policy(**changes: object) -> Policy:
    base = Policy(latency_target_s=1.5, max_replicas=20, min_replicas=5)
    return replace(base, **changes)  # type: ignore[arg-type]


def opted_out(fleet: Replicas) -> None:
    fleet.policy = replace(fleet.policy, replacement_objection="replaceSlowReplicas is false")
