"""Time from the write of more replicas to readiness, beyond the loading of the model."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench.figures import Figure, at_most, shown
from bench.node import stage
from bench.node.watching import Seen, Watch, watching
from cluster import Node, wait_until
from cluster.progress import Progress
from scenarios.world import Service

LOAD_S = 1.0
BEYOND_LOAD_S = 3.0
SINGLY = 6
TOGETHER, TOGETHER_TIMES = 3, 3
PATIENCE_S = 60.0
SETTLE_S = 2.0
FAST_PLANT = {
    "HEADROOM_MAX_BATCH_SIZE": "8",
    "HEADROOM_EMULATED_FIXED_COST_S": "0.006",
    "HEADROOM_EMULATED_PER_ITEM_COST_S": "0.0005",
}
"""Warms in a third of a second, so that the start itself is what is measured."""
POD_PATHS = (
    *(".metadata.name", '.status.conditions[?(@.type=="Ready")].status', ".spec.nodeName"),
    ".status.containerStatuses[0].started",
    ".status.containerStatuses[0].state.running.startedAt",
)


@dataclass(frozen=True, slots=True)
class Start:
    """One replica, in seconds from the write that asked for it."""

    scheduled_s: float
    running_s: float
    """Time when the runtime had started its container; whole seconds, so up to one too early."""
    ready_s: float


def measure(target: Node, progress: Progress) -> Sequence[Figure]:
    """Raise the minimum step by step and watch what follows."""
    with stage.namespace(target, "starts") as namespace:
        with progress.step("Starting a service whose model loads in 1 s"):
            service = Service.create(target, namespace, _manifest())
            stage.wait_for_replicas(service, 1, PATIENCE_S)
        with progress.step(f"Adding {SINGLY} replicas, one at a time"):
            singly = [_add(target, service, 1)[0] for _ in range(SINGLY)]
        with progress.step(f"Adding {TOGETHER} at once, {TOGETHER_TIMES} times"):
            together = [
                start for _ in range(TOGETHER_TIMES) for start in _add(target, service, TOGETHER)
            ]
    return (
        *_figures("one added", singly),
        *_figures(f"{TOGETHER} added at once", together),
    )


def _manifest() -> dict[str, object]:
    most = 1 + SINGLY + TOGETHER * TOGETHER_TIMES
    return stage.manifest(
        "fast",
        load_s=LOAD_S,
        env=FAST_PLANT,
        scaling={"minReplicas": 1, "maxReplicas": most},
        slo={"latency": {"target": "500ms"}},
    )


def _add(target: Node, service: Service, count: int) -> list[Start]:
    """Ask for this many more through the resource, and wait until all of them are ready."""
    wanted = service.replicas() + count
    time.sleep(SETTLE_S)
    with (
        watching(
            target, "deployments", service.namespace, ".metadata.name", ".spec.replicas"
        ) as deployments,
        watching(target, "pods", service.namespace, *POD_PATHS) as pods,
    ):
        wait_until(
            lambda: deployments.changes and pods.changes, what="the watches", timeout_s=PATIENCE_S
        )
        time.sleep(SETTLE_S)  # existing pods have been seen by then
        before = {seen.columns[0] for seen in pods.changes}
        patch = {"spec": {"scaling": {"minReplicas": wanted}}}
        target.kubectl(
            *("patch", "hisvc", service.name, "--namespace", service.namespace),
            *("--type=merge", "-p", json.dumps(patch)),
        )
        wait_until(
            lambda: len(_ready(pods) - before) == count,
            what=f"{count} more replicas ready",
            timeout_s=PATIENCE_S,
        )
        written = deployments.first(service.name, str(wanted))
        assert written is not None
        return [_start(pods, name, written.time_s) for name in sorted(_ready(pods) - before)]


def _ready(pods: Watch) -> set[str]:
    return {seen.columns[0] for seen in pods.since(0.0) if seen.columns[1] == "True"}


def _start(pods: Watch, name: str, written_s: float) -> Start:
    own = [seen for seen in pods.since(0.0) if seen.columns[0] == name]
    return Start(
        scheduled_s=_first(own, 2) - written_s,
        running_s=_first(own, 4) - written_s,
        ready_s=next(seen.time_s for seen in own if seen.columns[1] == "True") - written_s,
    )


def _first(own: Sequence[Seen], column: int) -> float:
    return next(seen.time_s for seen in own if seen.columns[column])


def _figures(what: str, starts: Sequence[Start]) -> Sequence[Figure]:
    bound_s = LOAD_S + BEYOND_LOAD_S
    ready_s = [start.ready_s for start in starts]
    return (
        at_most(
            f"write to ready, {what}: median of {len(starts)}", _median(ready_s), bound_s, " s"
        ),
        at_most("the slowest", max(ready_s), bound_s, " s"),
        shown(
            "of which, median: to its node, to the running container",
            f"{_median([s.scheduled_s for s in starts]):.1f} s, "
            f"{_median([s.running_s for s in starts]):.1f} s",
        ),
    )


def _median(values: Sequence[float]) -> float:
    return statistics.median(values)
