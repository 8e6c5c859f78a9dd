"""`spec.slo`: the targets, and the share of time in which they must be met."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.objectives import LatencyObjective, TokenObjective, target_of
from headroom.api.values import Rule, Value
from headroom.scaling.values.tokens import TokenTargets


class ServiceLevel(Value):
    """Service level objectives."""

    latency: LatencyObjective | None = None
    """Tail latency, measured by the server from the arrival of a request to its response. Required
    unless timeToFirstToken or timePerOutputToken is set."""
    time_to_first_token: TokenObjective | None = None
    """Time from the arrival of a request to its first token, for generative servers."""
    time_per_output_token: TokenObjective | None = None
    """Mean time between tokens after the first, per request, for generative servers."""
    queue_depth: Annotated[int, Field(ge=1, le=100_000)] | None = None
    """Queued requests per replica that are tolerated. Default: the maximum batch size of the
    model."""
    utilization_ceiling: float = 0.8
    """Maximum utilization after any decision: arrival rate divided by the full-batch throughput of
    the ready replicas. From 0.01 to 0.95."""
    objective: float = 0.99
    """Share of one-minute windows that must meet the latency target; the rest, over 28 days, is the
    error budget. It is used for reports and alerts, not for decisions. From 0.5 to
    0.9999."""

    @property
    def whole_answer(self) -> Duration:
        """Time within which an answer is of use: the latency target, where there is one.

        Without one it bounds requests in flight and warm-up, and no condition depends on it.
        """
        if self.latency is not None:
            return self.latency.target
        return Duration.of_seconds(self._token_targets.whole_answer_s)

    @property
    def token_targets(self) -> TokenTargets | None:
        """The promises of a generating service; None without one on tokens."""
        if self.time_to_first_token is None and self.time_per_output_token is None:
            return None
        return self._token_targets

    @property
    def _token_targets(self) -> TokenTargets:
        return TokenTargets(
            first_token=target_of(self.time_to_first_token),
            output_token=target_of(self.time_per_output_token),
            latency=target_of(self.latency),
        )

    rules = (
        Rule(
            field="latency",
            cel="has(self.latency) || has(self.timeToFirstToken) || has(self.timePerOutputToken)",
            holds=lambda slo: (
                slo.latency is not None
                or slo.time_to_first_token is not None
                or slo.time_per_output_token is not None
            ),
            message="slo must set latency, timeToFirstToken or timePerOutputToken",
        ),
        Rule(
            field="objective",
            cel="self.objective >= 0.5 && self.objective <= 0.9999",
            holds=lambda slo: 0.5 <= slo.objective <= 0.9999,
            message="slo.objective must be a share from 0.5 to 0.9999, such as 0.99",
        ),
        # Not as minimum and maximum: the API server prints such bounds without decimals, and would
        # say of 80 that it "should be less than or equal to 0".
        Rule(
            field="utilizationCeiling",
            cel="self.utilizationCeiling >= 0.01 && self.utilizationCeiling <= 0.95",
            holds=lambda slo: 0.01 <= slo.utilization_ceiling <= 0.95,
            message="slo.utilizationCeiling must be a share from 0.01 to 0.95, such as 0.8",
        ),
    )
