"""`slo.timeToFirstToken` and `slo.timePerOutputToken`: SLOs of generative servers."""

from __future__ import annotations

from typing import Any

from headroom.api.values import Rule
from headroom.profiles import PROFILES


def profiles_with(histogram: str) -> list[str]:
    """Return the profiles whose servers have this histogram; others cannot be measured."""
    return [name for name, one in PROFILES.items() if getattr(one, histogram) is not None]


def _requires_histogram(field: str, attribute: str, able: list[str]) -> Rule:
    """Admit only servers that have the histogram."""

    def holds(spec: Any) -> bool:
        return getattr(spec.slo, attribute) is None or spec.runtime.profile in able

    return Rule(
        field=f"slo.{field}",
        cel=f"!has(self.slo.{field}) || self.runtime.profile in {able}",
        holds=holds,
        message=f"runtime.profile must be one of {', '.join(able)} where slo.{field} is set",
    )


TOKEN_RULES = (
    _requires_histogram("timeToFirstToken", "time_to_first_token", profiles_with("first_token")),
    _requires_histogram(
        "timePerOutputToken", "time_per_output_token", profiles_with("output_token")
    ),
)
"""Rules of the spec, because they read the profile too."""
