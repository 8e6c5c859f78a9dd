"""Compares plans with and without a setting."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.planner.generation.token_plan import GenerationPlan
from headroom.scaling.values.tokens import Binding

SAME = "same number of replicas"
"""The effect of a setting that changes no promise and no replica."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One setting of the server or of the service."""

    name: str
    value: str
    reason: str
    effect: str
    """Change in the number of replicas that the settings before it need."""


def next_bound(plan: GenerationPlan) -> str:
    """Return the bound that binds next after the memory."""
    return next(name.value for name, _ in plan.bounds_rps if name is not Binding.MEMORY)


def broken_promises(plan: GenerationPlan) -> set[Binding]:
    """Return the promises that the plan does not keep."""
    return {name for name, _ in plan.infeasible} | {name for name, *_ in plan.missed}


def breaks(before: GenerationPlan, after: GenerationPlan) -> bool:
    """Return whether a change breaks a promise: replicas are then saved because it is given up."""
    given_up = dict(after.infeasible).keys() - dict(before.infeasible).keys()
    return bool(given_up) or not broken_promises(after) <= broken_promises(before)


def is_better(before: GenerationPlan, after: GenerationPlan) -> bool:
    """Return whether a change keeps another promise, or saves a replica and breaks none."""
    if breaks(before, after):
        return False
    return after.replicas < before.replicas or broken_promises(after) < broken_promises(before)


def effect_of(before: GenerationPlan, after: GenerationPlan, *, on: bool = True) -> str:
    """Return the effect of a change, also of one that is not recommended."""
    parts = []
    if after.replicas != before.replicas:
        parts.append(f"{before.replicas} -> {after.replicas} replicas")
    parts += [
        f"{one.value} can be kept"
        for one in sorted(broken_promises(before) - broken_promises(after))
    ]
    parts += [
        f"{one.value} can no longer be kept"
        for one in sorted(broken_promises(after) - broken_promises(before))
    ]
    return ("" if on or not parts else "on: ") + (", ".join(parts) or SAME)
