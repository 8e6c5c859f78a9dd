"""Stretches the windows of a service whose replicas get few requests each. Pure.

A window in which a replica cannot even serve one request shows chance: where R replicas are needed
at r requests per second each, a window of w seconds tells R to sqrt(R / (r w)). Worked: 0.3 per
second that take 45 s each need 13.5 replicas. 4 s tell 13.5 +- 12: seven requests in 4 s, which
come about once an hour, seem to need 79. The windows of a service with 0.1 s per request tell it to
a tenth, and these are as good if none is shorter than a replica takes for a request.
"""

from __future__ import annotations

from headroom.scaling.frozen import replace
from headroom.scaling.values.observation import CostModel
from headroom.scaling.values.policy import Policy

LONGEST_S = 120.0
"""Requests that take longer count as this long: a window of 15 minutes is slow enough."""


def at_pace(policy: Policy, cost: CostModel | None) -> Policy:
    """Return the policy with no window shorter than a replica takes for a request at this cost."""
    if cost is None or not policy.burst_windows_s:
        return policy
    pace = min(1.0 / cost.full_batch_rps, LONGEST_S) / policy.shortest_window_s
    if pace <= 1.0:
        return policy
    return replace(
        policy,
        burst_windows_s=tuple(pace * one for one in policy.burst_windows_s),
        stable_window_s=pace * policy.stable_window_s,
        pace=pace,
    )
