"""The last scaling decision in status."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.service_status.status_types import Count, Text, Time, Word
from headroom.api.values import Value


class CounterfactualStatus(Value):
    """Prediction for another number of ready replicas at the current arrival rate."""

    replicas: Count
    """Number of ready replicas."""
    latency: Word
    """Latency at the SLO percentile, or `unbounded`. Where status.generation.sizedBy is Model it
    summarizes all promises and is not the time of a request; `headroom explain` shows its share."""
    utilization: float | None = None
    """Arrival rate divided by full-batch throughput."""


class RecommendationStatus(Value):
    """Recommendation of one rule, before limits."""

    rule: Word
    """Name of the rule."""
    replicas: int
    """Recommended replicas."""
    detail: Text
    """Computation of the number, as text."""


class DecisionStatus(Value):
    """The last scaling decision."""

    replicas: Count
    """Desired replicas."""
    current: Count
    """Replicas of the workload before the decision."""
    direction: Word
    """Up, Down or None."""
    reason: Word
    """The rule or limit that determined the desired replicas."""
    strongest_rule: Word
    """The rule that recommended the most replicas, before limits."""
    message: Text
    """The decision as text."""
    time: Time
    """Time of the decision."""
    counterfactuals: Annotated[
        tuple[CounterfactualStatus, ...], Field(max_length=16, strict=False)
    ] = ()
    """Predictions for one replica less, the decided number and one more."""
    recommendations: Annotated[
        tuple[RecommendationStatus, ...], Field(max_length=16, strict=False)
    ] = ()
    """Recommendation of each rule, before limits."""
