"""`routing.classes` with promises of their own: their rules, and what the decision gets of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from headroom.api.service_spec.objectives import target_of
from headroom.api.service_spec.token_objectives import profiles_with
from headroom.api.service_spec.traffic import RequestClass
from headroom.api.values import Rule
from headroom.scaling.generation.promises.classes import SERVICE, ClassPromise
from headroom.scaling.values.tokens import TokenTargets

_OWN = "has(one.timeToFirstToken) || has(one.timePerOutputToken) || has(one.latency)"


def _needs_histogram(field: str, attribute: str, able: list[str]) -> Rule:
    """Admit a class's promise only for servers that have its histogram, as in `slo`."""

    def holds(spec: Any) -> bool:
        classes = spec.routing.classes
        return spec.runtime.profile in able or all(
            getattr(one, attribute) is None for one in classes
        )

    return Rule(
        field="routing.classes",
        cel=f"self.runtime.profile in {able} || "
        f"!self.routing.classes.exists(one, has(one.{field}))",
        holds=holds,
        message=f"runtime.profile must be one of {', '.join(able)} where an entry in "
        f"routing.classes sets {field}",
    )


CLASS_RULES = (
    Rule(
        field="routing.classes",
        cel="has(self.slo.timeToFirstToken) || has(self.slo.timePerOutputToken) || "
        f"!self.routing.classes.exists(one, {_OWN} || one.bestEffort)",
        holds=lambda spec: (
            spec.slo.token_targets is not None
            or not any(one.best_effort or one.promises for one in spec.routing.classes)
        ),
        message="slo must set timeToFirstToken or timePerOutputToken where an entry in "
        "routing.classes sets timeToFirstToken, timePerOutputToken, latency or bestEffort",
    ),
    _needs_histogram("timeToFirstToken", "time_to_first_token", profiles_with("first_token")),
    _needs_histogram("timePerOutputToken", "time_per_output_token", profiles_with("output_token")),
)
"""Rules of the spec, because they read slo and the profile too."""


def class_promises(
    own: TokenTargets | None, classes: Iterable[RequestClass]
) -> tuple[ClassPromise, ...]:
    """Return the service's promise, then those of each class that differ from it.

    Empty where no class differs, or where the service has no promise on tokens.
    """
    if own is None:
        return ()
    found = [ClassPromise(name=one.name, targets=_targets(own, one)) for one in classes]
    found = [one for one in found if one.targets != own]
    return (ClassPromise(name=SERVICE, targets=own), *found) if found else ()


def _targets(own: TokenTargets, one: RequestClass) -> TokenTargets:
    """Return the promises of a class: its own, and the service's for what it does not set."""
    if one.best_effort:
        return TokenTargets()
    return TokenTargets(
        first_token=target_of(one.time_to_first_token) or own.first_token,
        output_token=target_of(one.time_per_output_token) or own.output_token,
        latency=target_of(one.latency) or own.latency,
    )
