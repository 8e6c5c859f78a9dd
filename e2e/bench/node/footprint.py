"""CPU and memory of the operator with ten services of three pods."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence

from bench.figures import Figure, at_most, shown
from bench.node import stage
from bench.node.replay import Phase, replaying
from bench.processes import Process, of_container
from cluster import ClusterError, Node
from cluster.progress import Progress
from scenarios.world import OPERATOR, SYSTEM, Service

SERVICES, REPLICAS = 10, 3
RATE_RPS = 1.0
SETTLE_S, MEASURED_S = 30, 60
SLICE_S = 10
CORE_PERCENT, RSS_MB = 5.0, 120.0
READY_PATIENCE_S = 180.0


def measure(target: Node, progress: Progress) -> Sequence[Figure]:
    """Start the services, load all of them lightly, and read the kernel's accounts."""
    with stage.namespace(target, "footprint") as namespace, contextlib.ExitStack() as loads:
        with progress.step(f"Starting {SERVICES} services of {REPLICAS} pods"):
            services = [_create(target, namespace, number) for number in range(SERVICES)]
            for service in services:
                stage.wait_for_replicas(service, REPLICAS, READY_PATIENCE_S)
        phases = [Phase(RATE_RPS, SETTLE_S + MEASURED_S + 60)]
        with progress.step("Sending load until the windows are full"):
            for number, service in enumerate(services):
                loads.enter_context(replaying(service, phases, seed=number))
            time.sleep(SETTLE_S)
        operator = _operator(target)
        with progress.step(f"Watching the operator for {MEASURED_S} s"):
            shares, rss_mb = _watch(operator)
    name = f"operator, {SERVICES} services of {REPLICAS} pods"
    return (
        at_most(f"{name}: share of a core", sum(shares) / len(shares), CORE_PERCENT, " %", 2),
        shown(f"the highest of {len(shares)} slices of {SLICE_S} s", f"{max(shares):.2f} %"),
        at_most(f"{name}: resident memory", max(rss_mb), RSS_MB, " MB", 0),
    )


def _create(target: Node, namespace: str, number: int) -> Service:
    bounds = {"minReplicas": REPLICAS, "maxReplicas": 2 * REPLICAS}
    return Service.create(target, namespace, stage.manifest(f"service-{number}", scaling=bounds))


def _operator(target: Node) -> Process:
    pods = target.get("pods", "--namespace", SYSTEM, "-l", f"app.kubernetes.io/name={OPERATOR}")[
        "items"
    ]
    statuses = [status for pod in pods for status in pod["status"]["containerStatuses"]]
    if len(statuses) != 1:
        raise ClusterError(f"the operator must run in one container; got {len(statuses)}.")
    container = statuses[0]["containerID"].removeprefix("containerd://")
    found = of_container(container)
    if len(found) != 1:
        raise ClusterError(f"the operator must be one process; its container has {len(found)}.")
    return found[0]


def _watch(operator: Process) -> tuple[list[float], list[float]]:
    """Return percent of a core, and memory, of each slice."""
    shares, rss_mb = [], []
    for _ in range(MEASURED_S // SLICE_S):
        began_s, used_s = time.monotonic(), operator.cpu_s
        time.sleep(SLICE_S)
        shares.append(100 * (operator.cpu_s - used_s) / (time.monotonic() - began_s))
        rss_mb.append(operator.rss_mb)
    return shares, rss_mb
