"""Reads the status and each replica's share of the requests during a step of load."""

from __future__ import annotations

import re
import time
from typing import Any

from cluster import ClusterError, Node
from third_party.clients import Sending, Step
from third_party.scalers import Headroom, Scaler
from third_party.workload import NAME

STATUS_READ_AFTER_S = (10.0, 20.0, 40.0, 70.0)
"""Seconds after the step at which the status is read."""
SHARES_S = (15.0, 3.0)
"""Seconds before the end of the step between which each replica's requests are counted."""
_COUNTERS = re.compile(r"^sleeping_(requests|connections)_total (\d+)", re.MULTILINE)


def statuses_of(
    node: Node, namespace: str, scaler: Scaler, running: Sending, step: Step
) -> tuple[str, ...]:
    """Read the status at some times after the step; empty where another autoscaler scales."""
    if not isinstance(scaler, Headroom):
        return ()
    path = f"/apis/headroom.dev/v1alpha1/namespaces/{namespace}/inferenceservices/{NAME}"
    found = []
    for after_s in STATUS_READ_AFTER_S:
        if after_s < step.high_s:
            _sleep_until(running.began_s + step.before_s + after_s)
            found.append(f"{after_s:g} s: {_as_text(node.raw.ask('GET', path)['status'])}")
    return tuple(found)


def _as_text(status: dict[str, Any]) -> str:
    decision = status.get("decision", {})
    rules = "; ".join(
        f"{one['rule']}={one['replicas']} ({one['detail']})"
        for one in decision.get("recommendations", ())
    )
    conditions = ", ".join(
        f"{one['type']}={one['status']}/{one['reason']}" for one in status.get("conditions", ())
    )
    return f"{status.get('readyReplicas')} ready; {rules}; {conditions}"


def shares_of(node: Node, namespace: str, running: Sending, step: Step) -> tuple[float, ...]:
    """Return the requests per second of each ready replica late in the step, the most first."""
    end_s = running.began_s + step.before_s + step.high_s
    counts, times_s = [], []
    for before_s in SHARES_S:
        _sleep_until(end_s - before_s)
        times_s.append(time.time())
        counts.append(_requests_of_pods(node, namespace))
    first, last = counts
    seconds = times_s[1] - times_s[0]
    rates = ((count - first.get(pod, 0)) / seconds for pod, count in last.items())
    return tuple(sorted(rates, reverse=True))


def _requests_of_pods(node: Node, namespace: str) -> dict[str, int]:
    """Return the requests that each ready pod has had, without pods evicted while they are read."""
    counts = {}
    for name in _ready_pods(node, namespace):
        path = f"/api/v1/namespaces/{namespace}/pods/{name}:8000/proxy/metrics"
        try:
            page = node.kubectl("get", "--raw", path)
        except ClusterError:
            if name in _ready_pods(node, namespace):
                raise
            continue
        counts[name] = int(dict(_COUNTERS.findall(page))["requests"])
    return counts


def _ready_pods(node: Node, namespace: str) -> list[str]:
    """Return the names of the ready pods that are not being deleted."""
    return [
        pod["metadata"]["name"]
        for pod in node.raw.ask("GET", f"/api/v1/namespaces/{namespace}/pods")["items"]
        if "deletionTimestamp" not in pod["metadata"]
        and any(
            (one["type"], one["status"]) == ("Ready", "True")
            for one in pod.get("status", {}).get("conditions", ())
        )
    ]


def _sleep_until(unix_s: float) -> None:
    time.sleep(max(0.0, unix_s - time.time()))
