"""The rules of the error budget: replicas for the learned margin, and spare ones for a surge."""

from __future__ import annotations

from headroom.scaling.promise.margin import Margin
from headroom.scaling.promise.reserve import Reserve, Usual
from headroom.scaling.values.decision import Recommendation
from headroom.scaling.values.decision_reason import Reason
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.tuning import HOUR_S


def for_error_budget(margin: Margin, carrying: int) -> Recommendation | None:
    """N_budget: the replicas for arrivals and the learned margin; None without one."""
    replicas = margin.replicas(carrying)
    if replicas <= carrying:
        return None
    return Recommendation(
        rule=Reason.ERROR_BUDGET,
        replicas=replicas,
        detail=f"{carrying} for the arrivals and a learned margin of {replicas - carrying}",
    )


def for_reserve(
    policy: Policy, reserve: Reserve, carrying: int, start_s: float, usual: Usual | None = None
) -> Recommendation | None:
    """N_reserve: the replicas for arrivals and spare ones for a surge; None without any."""
    allowed = 1.0 - policy.latency_percentile
    replicas = reserve.replicas(carrying, start_s, allowed, usual)
    if replicas <= carrying:
        return None
    budget = f"an hour's error budget lasts {HOUR_S * allowed:.3g}s"
    if usual is not None:
        budget += f", {usual.left(allowed):.3g}s are left"
    return Recommendation(
        rule=Reason.RESERVE,
        replicas=replicas,
        detail=f"{carrying} for the arrivals and {replicas - carrying} in reserve: "
        f"a start takes {start_s:.3g}s, {budget}",
    )
