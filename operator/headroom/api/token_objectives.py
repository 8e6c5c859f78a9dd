"""`slo.timeToFirstToken` and `slo.timePerOutputToken`: SLOs of generative servers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.values import Rule, Value, Within
from headroom.profiles import PROFILES, Profile


class TokenObjective(Value):
    """Target at a percentile of the server's own histogram."""

    percentile: Annotated[Literal[90, 95, 99], Field()] = 95
    """Percentile that must meet the target."""
    target: Annotated[Duration, Within("1ms", "10m")]
    """Maximum time at the percentile."""


def _requires_histogram(field: str, attribute: str, has: Callable[[Profile], bool]) -> Rule:
    """Admit only servers that have the histogram; others cannot be measured."""
    able = [name for name, profile in PROFILES.items() if has(profile)]

    def holds(spec: Any) -> bool:
        return getattr(spec.slo, attribute) is None or spec.runtime.profile in able

    return Rule(
        field=f"slo.{field}",
        cel=f"!has(self.slo.{field}) || self.runtime.profile in {able}",
        holds=holds,
        message=f"runtime.profile must be one of {', '.join(able)} where slo.{field} is set",
    )


TOKEN_RULES = (
    _requires_histogram(
        "timeToFirstToken", "time_to_first_token", lambda one: one.first_token is not None
    ),
    _requires_histogram(
        "timePerOutputToken", "time_per_output_token", lambda one: one.output_token is not None
    ),
)
"""Rules of the spec, because they read the profile too."""
