"""Leaves out replicas that work off a queue from before, where routing sees load.

Such routing sends no request to a replica that has more than the others. What waits there came when
it was alone, says nothing about the clients now, and can take minutes after enough replicas are
ready: one of nine replicas of 4/s with a queue of 1500 answers 4/s for six minutes. Its answers and
the usual chance of the other eight look like nine saturated replicas.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median_low

from headroom.scaling.demand.throughput import Throughput, works_at_limit
from headroom.scaling.frozen import replace
from headroom.scaling.serving_model import ReplicaCost
from headroom.scaling.values.policy import Policy
from headroom.scaling.windows.sliding_windows import Windows


def without_old_queues(
    policy: Policy,
    windows: Windows,
    load: Throughput,
    cost: ReplicaCost,
    ready: Sequence[str],
    now_s: float,
) -> Throughput:
    """Return the load of those ready replicas that new requests go to."""
    behind = _behind(windows, ready, cost.full_batch_rps * policy.latency_target_s)
    if not behind:
        return load
    columns = windows.columns_of(behind)
    rest = load.ready - len(behind)
    share = rest / load.ready
    answered = load.answered - float(windows.ended(load.window_s)[columns].sum())
    return replace(
        load,
        in_flight=load.in_flight - sum(behind.values()),
        answered=max(0.0, answered),
        ready=rest,
        standing_queue=share * load.standing_queue,
        queue_bound=share * load.queue_bound,
        busy=works_at_limit(policy, windows, cost, rest, load.window_s, now_s, without=columns),
    )


def _behind(windows: Windows, ready: Sequence[str], most: float) -> dict[str, int]:
    """Return the requests of replicas that have over `most` more than the median replica."""
    lasts = windows.latest(ready)
    inside = [one.waiting + one.running for one in lasts]
    if max(inside, default=0) <= most:
        return {}
    usual = median_low(inside)
    found = zip(lasts, inside, strict=True)
    return {one.pod: requests for one, requests in found if requests - usual > most}
