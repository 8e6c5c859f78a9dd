"""One step of load on an existing Deployment: answers, cost, and the times of requests."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from bench.node.watching import Watch, watching
from cluster import Node, wait_until
from load.messages import Summary
from load.outcomes import Outcome
from third_party.clients import Clients, Sending, Step, sending
from third_party.observations import shares_of, statuses_of
from third_party.scalers import Scaler
from third_party.workload import NAME, Workload

READY_PATIENCE_S = 90.0
GONE_PATIENCE_S = 120.0


@dataclass(frozen=True, kw_only=True)
class Measured:
    """The result of a run."""

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
    """Delay with which the generator itself began to send: it shows a machine too busy to
    measure."""
    requested_s: dict[int, float] = field(default_factory=dict)
    """Seconds from the step to the first request for this many replicas."""
    shares: tuple[float, ...] = ()
    """Requests per second of each ready replica late in the step, the busiest first."""
    statuses: tuple[str, ...] = ()
    """The operator's decision and conditions at some times after the step."""
    failures: tuple[tuple[str, int], ...] = ()


def measure(
    node: Node, namespace: str, scaler: Scaler, clients: Clients, step: Step, *, seed: int = 1
) -> Measured:
    """Run the step once, in a namespace of its own."""
    with _namespace(node, namespace):
        return run(node, namespace, scaler, clients, step, seed=seed)


def run(
    node: Node, namespace: str, scaler: Scaler, clients: Clients, step: Step, *, seed: int = 1
) -> Measured:
    """Run the step once, in an empty namespace that exists."""
    service = deploy(node, namespace, scaler)
    address = node.get("service", service, "--namespace", namespace)["spec"]["clusterIP"]
    with (
        watching(node, "deployments", namespace, ".spec.replicas") as watch,
        tempfile.TemporaryDirectory(prefix="headroom-step-") as folder,
        sending(node, f"http://{address}", NAME, step, clients, Path(folder), seed=seed) as running,
    ):
        statuses = statuses_of(node, namespace, scaler, running, step)
        shares = shares_of(node, namespace, running, step)
        summary = running.finish()
        return _measured(scaler, clients, step, running, watch, summary, statuses, shares)


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
    """Create the Deployment and its autoscaler, wait for both, and return the Service's name."""
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


def _measured(
    scaler: Scaler,
    clients: Clients,
    step: Step,
    running: Sending,
    watch: Watch,
    summary: Summary,
    statuses: tuple[str, ...],
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
        statuses=statuses,
        failures=summary.failures,
    )
