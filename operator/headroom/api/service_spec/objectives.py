"""Targets at a percentile: of the whole answer, and of the parts of a generated one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.warmup import Latency
from headroom.api.values import Value, Within
from headroom.scaling.values.tokens import Target


class LatencyObjective(Value):
    """Latency target at a percentile."""

    percentile: Literal[90, 95, 99] = 95
    """Percentile that must meet the target. A rejected, expired, failed or lost request counts as
    infinitely slow."""
    target: Latency
    """Maximum latency at the percentile."""


class TokenObjective(Value):
    """Target at a percentile of the server's own histogram."""

    percentile: Annotated[Literal[90, 95, 99], Field()] = 95
    """Percentile that must meet the target."""
    target: Annotated[Duration, Within("1ms", "10m")]
    """Maximum time at the percentile."""


def target_of(objective: LatencyObjective | TokenObjective | None) -> Target | None:
    """Return an objective as the decision uses it; None without one."""
    if objective is None:
        return None
    return Target(percentile=objective.percentile / 100, seconds=objective.target.seconds)
