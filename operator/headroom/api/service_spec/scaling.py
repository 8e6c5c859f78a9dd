"""`spec.scaling`: bounds, mode, and how fast replicas change."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from headroom.api.durations import Duration
from headroom.api.service_spec.schedules import Schedule
from headroom.api.values import MapBy, Rule, Value, Within
from headroom.scaling.values.policy import RateLimit

StabilizationWindow = Annotated[Duration, Within("0s", "1h")]


class Rate(Value):
    """Maximum change within a period; the larger of replicas and percent applies."""

    period: Annotated[Duration, Within("1s", "30m")]
    """Period over which changes are summed."""
    replicas: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum change per period, in replicas."""
    percent: Annotated[int, Field(ge=1, le=1000)] | None = None
    """Maximum change per period, in percent of the replicas at its start."""

    rules = (
        Rule(
            cel="has(self.replicas) || has(self.percent)",
            holds=lambda rate: rate.replicas is not None or rate.percent is not None,
            message="rate must set replicas, percent or both",
        ),
    )

    def to_limit(self) -> RateLimit:
        """Return the limit in the form that the decision uses."""
        return RateLimit(
            period_s=self.period.seconds, replicas=self.replicas or 0, percent=self.percent or 0
        )


class ScaleUp(Value):
    """Limits on adding replicas."""

    stabilization_window: StabilizationWindow = Duration.parse("0s")
    """Time for which more replicas must be recommended before they are added."""
    rate: Rate | None = None
    """Maximum rate of adding replicas. Default: unlimited."""


class ScaleDown(Value):
    """Limits on removing replicas."""

    stabilization_window: StabilizationWindow = Duration.parse("90s")
    """Time for which all rules must recommend fewer replicas before any is removed. At least the
    measured cold start. Before one has been measured: three times as long, and never shorter
    than the longest start in progress."""
    rate: Rate | None = None
    """Maximum rate of removing replicas. Default: unlimited."""


class ScaleToZero(Value):
    """Removal of the last replica. The next request starts one; an activator holds it."""

    idle_timeout: Annotated[Duration, Within("10s", "24h")] = Duration.parse("10m")
    """Time without requests after which the last replica is removed. Requires minReplicas 0."""


def _bounds(scaling: Scaling) -> str:
    return f"minReplicas {scaling.min_replicas}, maxReplicas {scaling.max_replicas}"


def _floor_above_maximum(scaling: Scaling) -> str:
    highest = max(scaling.schedules, key=lambda one: one.min_replicas)
    return (
        f"minReplicas {highest.min_replicas} in {highest.name}, maxReplicas {scaling.max_replicas}"
    )


class Scaling(Value):
    """Limits and mode of scaling."""

    mode: Literal["Auto", "Recommend", "External"] = "Auto"
    """Auto: the operator sets the number of replicas. Recommend: it writes its decision to the
    status only, after setting the replicas at creation. External: it follows spec.replicas, which
    kubectl scale, an HPA or KEDA may set."""
    min_replicas: Annotated[int, Field(ge=0, le=1000)] = 1
    """Minimum number of replicas. 0 requires routing.mode Gateway."""
    scale_to_zero: ScaleToZero = ScaleToZero()
    """Removal of the last replica. Requires minReplicas 0."""
    max_replicas: Annotated[int, Field(ge=1, le=1000)] = 20
    """Maximum number of replicas, even if the SLO needs more."""
    priority: Annotated[int, Field(ge=-1000, le=1000)] = 0
    """Order in which services get accelerators when these run out: the highest priority first.
    Services with a lower priority yield replicas, but never below their minReplicas."""
    scale_up: ScaleUp = ScaleUp()
    """Limits on adding replicas."""
    scale_down: ScaleDown = ScaleDown()
    """Limits on removing replicas."""
    replace_slow_replicas: bool = True
    """Whether a ready replica that takes at least twice as long as the others, or answers nothing
    while they answer, is evicted and so replaced: one at a time, at most a tenth of the replicas
    (at least one) within 10 minutes. PodDisruptionBudgets are respected. Requires mode Auto."""
    rebalance_connections: bool = True
    """Whether the most loaded replicas are evicted where kept connections stay with them and their
    requests are late, so that the clients connect to other ready replicas: only if these would
    carry all arrivals, at most half of the replicas (at least four) within 10 minutes.
    PodDisruptionBudgets are respected. Requires mode Auto and routing.mode Service."""
    schedules: Annotated[
        tuple[Schedule, ...], Field(max_length=16, strict=False), MapBy("name")
    ] = ()
    """Higher minimums at certain times."""

    rules = (
        Rule(
            field="schedules",
            cel="self.schedules.all(one, one.minReplicas <= self.maxReplicas)",
            holds=lambda scaling: all(
                one.min_replicas <= scaling.max_replicas for one in scaling.schedules
            ),
            message="minReplicas of each entry in scaling.schedules must be at most "
            "scaling.maxReplicas",
            got=_floor_above_maximum,
        ),
        Rule(
            field="minReplicas",
            cel="self.minReplicas <= self.maxReplicas",
            holds=lambda scaling: scaling.min_replicas <= scaling.max_replicas,
            message="scaling.minReplicas must be at most scaling.maxReplicas",
            got=_bounds,
        ),
    )
