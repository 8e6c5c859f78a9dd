"""`slo.timeToFirstToken` and `slo.timePerOutputToken`: promises of servers that generate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.values import Rule, Value, Within
from headroom.profiles import PROFILES, Profile


class TokenObjective(Value):
    """A bound on a percentile of what the server's own histogram says."""

    percentile: Annotated[Literal[90, 95, 99], Field()] = 95
    """Percentile that the target bounds."""
    target: Annotated[Duration, Within("1ms", "10m")]
    """The percentile must stay below this."""


def _told(field: str, attribute: str, has: Callable[[Profile], bool]) -> Rule:
    """Only of servers that have the histogram: nobody else could say whether it is kept."""
    able = [name for name, profile in PROFILES.items() if has(profile)]

    def holds(spec: Any) -> bool:
        return getattr(spec.slo, attribute) is None or spec.runtime.profile in able

    return Rule(
        field=f"slo.{field}",
        cel=f"!has(self.slo.{field}) || self.runtime.profile in {able}",
        holds=holds,
        message=f"slo.{field} needs a runtime.profile whose server measures it: {', '.join(able)}",
    )


TOKEN_RULES = (
    _told("timeToFirstToken", "time_to_first_token", lambda one: one.first_token is not None),
    _told("timePerOutputToken", "time_per_output_token", lambda one: one.output_token is not None),
)
"""Rules of the spec, since they look at the profile too."""
