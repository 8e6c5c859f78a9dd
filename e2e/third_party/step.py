"""One step of load on an existing Deployment: what clients got, what it cost, who asked when."""

from __future__ import annotations

import contextlib
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.node.watching import Watch, watching
from cluster import ClusterError, Node, wait_until
from load.messages import Summary
from load.outcomes import Outcome
from third_party.clients import Clients, Sending, Step, sending
from third_party.scalers import Headroom, Scaler
from third_party.workload import Workload

NAME = "ranker"
LOOKS_S = (10.0, 20.0, 40.0, 70.0)
"""Seconds after the step at which the status is read."""
SHARES_S = (15.0, 3.0)
"""Seconds before the end of the step between which each replica's requests are counted."""
READY_PATIENCE_S = 90.0
GONE_PATIENCE_S = 120.0
_COUNTERS = re.compile(r"^sleeping_(requests|connections)_total (\d+)", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What a run came to."""

    scaler: str
    clients: str
    in_time: float
    """Share of all requests answered within the target, counted from the instant they were due."""
    replica_s: float
    """Integral of the Deployment's desired replicas over the run."""
    p50_s: float
    p95_s: float
    refused: int
    lost: int
    late_p99_s: float = 0.0
    """How late the generator itself began to send: a machine too busy to measure shows here."""
    requested_s: dict[int, float] = field(default_factory=dict)
    """Seconds from the step to the first request for so many replicas."""
    shares: tuple[float, ...] = ()
    """Requests per second of each ready replica late in the step, the busiest first."""
    looks: tuple[str, ...] = ()
    """What the operator said meanwhile."""
    failures: tuple[tuple[str, int], ...] = ()


def measure(
    node: Node, namespace: str, scaler: Scaler, clients: Clients, step: Step, *, seed: int = 1
) -> Measured:
    """Run the step once, in a namespace that it makes and removes."""
    with _namespace(node, namespace):
        return run(node, namespace, scaler, clients, step, seed=seed)


def run(
    node: Node, namespace: str, scaler: Scaler, clients: Clients, step: Step, *, seed: int = 1
) -> Measured:
    """Run the step once, in a namespace that is there and empty."""
    service = deploy(node, namespace, scaler)
    address = node.get("service", service, "--namespace", namespace)["spec"]["clusterIP"]
    with (
        watching(node, "deployments", namespace, ".spec.replicas") as watch,
        tempfile.TemporaryDirectory(prefix="headroom-step-") as folder,
        sending(node, f"http://{address}", NAME, step, clients, Path(folder), seed=seed) as running,
    ):
        looks = _looks(node, namespace, scaler, running, step)
        shares = _shares(node, namespace, running, step)
        summary = running.finish()
        return _measured(scaler, clients, step, running, watch, summary, looks, shares)


@contextlib.contextmanager
def _namespace(node: Node, name: str) -> Iterator[None]:
    """Make a namespace; at the end of the block nothing of it takes CPU any more."""
    node.create_namespace(name)
    yield
    node.delete_namespace(name)
    wait_until(
        lambda: not node.raw.ask("GET", f"/api/v1/namespaces/{name}/pods")["items"],
        what=f"the pods of {name} are gone",
        timeout_s=GONE_PATIENCE_S,
        every_s=0.5,
    )


def deploy(node: Node, namespace: str, scaler: Scaler, workload: Workload | None = None) -> str:
    """Have the Deployment and what scales it stand, ready and measured; return the Service."""
    workload = workload or Workload(name=NAME, replicas=scaler.replicas)
    node.apply(
        *(
            {**one, "metadata": {**one["metadata"], "namespace": namespace}}
            for one in workload.manifests()
        )
    )
    path = f"/apis/apps/v1/namespaces/{namespace}/deployments/{NAME}"

    def ready() -> bool:
        status = node.raw.ask("GET", path).get("status", {})
        return bool(status.get("readyReplicas") == scaler.replicas)

    wait_until(ready, what=f"{NAME} is ready", timeout_s=READY_PATIENCE_S, every_s=0.5)
    return scaler.begin(node, namespace, workload)


def requested_s(watch: Watch, step_s: float) -> dict[int, float]:
    """Return when each number of replicas was first asked for, in seconds from the step."""
    first: dict[int, float] = {}
    for seen in watch.since(0.0):
        for count in range(1, _count(seen.columns[0]) + 1):
            first.setdefault(count, seen.time_s - step_s)
    return {count: at_s for count, at_s in first.items() if at_s > 0.0}


def replica_seconds(watch: Watch, begin_s: float, end_s: float) -> float:
    """Integrate the desired replicas."""
    changes = [(seen.time_s, _count(seen.columns[0])) for seen in watch.since(0.0)]
    edges = [*changes, (end_s, 0)]
    return sum(
        count * max(0.0, min(until_s, end_s) - max(from_s, begin_s))
        for (from_s, count), (until_s, _) in pairwise(edges)
    )


def _count(text: str) -> int:
    return int(text or 0)


def _looks(
    node: Node, namespace: str, scaler: Scaler, running: Sending, step: Step
) -> tuple[str, ...]:
    if not isinstance(scaler, Headroom):
        return ()
    path = f"/apis/headroom.dev/v1alpha1/namespaces/{namespace}/inferenceservices/{NAME}"
    looks = []
    for after_s in LOOKS_S:
        if after_s < step.high_s:
            _sleep_until(running.began_s + step.before_s + after_s)
            looks.append(f"{after_s:g} s: {_said(node.raw.ask('GET', path)['status'])}")
    return tuple(looks)


def _said(status: dict[str, Any]) -> str:
    decision = status.get("decision", {})
    rules = "; ".join(
        f"{one['rule']}={one['replicas']} ({one['detail']})"
        for one in decision.get("recommendations", ())
    )
    conditions = ", ".join(
        f"{one['type']}={one['status']}/{one['reason']}" for one in status.get("conditions", ())
    )
    return f"{status.get('readyReplicas')} ready; {rules}; {conditions}"


def _shares(node: Node, namespace: str, running: Sending, step: Step) -> tuple[float, ...]:
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


def _measured(
    scaler: Scaler,
    clients: Clients,
    step: Step,
    running: Sending,
    watch: Watch,
    summary: Summary,
    looks: tuple[str, ...],
    shares: tuple[float, ...],
) -> Measured:
    began_s, tally = running.began_s, summary.tally
    return Measured(
        scaler=scaler.name,
        clients=str(clients),
        in_time=tally.attainment or 0.0,
        replica_s=replica_seconds(watch, began_s, began_s + step.duration_s),
        p50_s=tally.quantile_s(0.5) or 0.0,
        p95_s=tally.quantile_s(0.95) or 0.0,
        refused=tally.outcomes[Outcome.REFUSED],
        lost=tally.missed - tally.outcomes[Outcome.REFUSED],
        late_p99_s=summary.late_p99_s,
        requested_s=requested_s(watch, began_s + step.before_s),
        shares=shares,
        looks=looks,
        failures=summary.failures,
    )
