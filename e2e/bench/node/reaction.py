"""Time from a tripled arrival rate to the write of more replicas, on several services at once."""

from __future__ import annotations

import contextlib
import math
import statistics
import time
from collections.abc import Sequence

from bench.figures import Figure, at_most, shown
from bench.node import stage
from bench.node.replay import Phase, replaying
from bench.node.watching import Watch, watching
from cluster import ClusterError, Node
from cluster.progress import Progress
from headroom.scaling import Policy
from scenarios.world import Service

SERVICES = 6
BEFORE, AFTER = Phase(5.0, 50), Phase(15.0, 60)
STAGGER_S = 0.7
"""Between the services, so that the steps meet the ticks at different moments."""
PATIENCE_S = 40.0
READY_PATIENCE_S = 90.0


def measure(target: Node, progress: Progress) -> Sequence[Figure]:
    """Step the load of every service and time the operator's answer."""
    with stage.namespace(target, "reaction") as namespace:
        with progress.step(f"Starting {SERVICES} services"):
            services = [
                Service.create(target, namespace, stage.manifest(f"step-{number}"))
                for number in range(SERVICES)
            ]
            for service in services:
                stage.wait_for_replicas(service, 1, READY_PATIENCE_S)
        title = f"{BEFORE.rate_rps:g}/s for {BEFORE.seconds} s, then {AFTER.rate_rps:g}/s"
        with progress.step(title):
            times_s = _times_s(target, namespace, services)
    policy = Policy(latency_target_s=1.5)
    return _figures(times_s, policy)


def _times_s(target: Node, namespace: str, services: Sequence[Service]) -> list[float]:
    """Seconds from the step to the write, of those services that had one replica before."""
    paths = (".metadata.name", ".spec.replicas")
    with (
        watching(target, "deployments", namespace, *paths) as watch,
        contextlib.ExitStack() as loads,
    ):
        steps_s = {}
        for number, service in enumerate(services):
            replay = loads.enter_context(replaying(service, (BEFORE, AFTER), seed=number))
            steps_s[service.name] = replay.began_s + BEFORE.seconds
            time.sleep(STAGGER_S)
        last_s = max(steps_s.values()) + PATIENCE_S
        while time.time() < last_s:
            time.sleep(0.5)
            if all(_write_s(watch, name) is not None for name in steps_s):
                break
        written_s = {name: _write_s(watch, name) for name in steps_s}
    times_s = [
        math.inf if at_s is None else at_s - steps_s[name] for name, at_s in written_s.items()
    ]
    # A chance burst may have asked for a replica before the step, which then asks for none.
    counted = [time_s for time_s in times_s if time_s >= 0]
    if not counted:
        raise ClusterError("every service was scaled up before its load step.")
    return counted


def _write_s(watch: Watch, name: str) -> float | None:
    """Return when more than one replica was first requested."""
    return next(
        (
            seen.time_s
            for seen in watch.since(0.0)
            if seen.columns[0] == name and int(seen.columns[1] or 1) > 1
        ),
        None,
    )


def _figures(times_s: Sequence[float], policy: Policy) -> Sequence[Figure]:
    ticks_s = 2 * policy.tick_s
    longest_s, shortest_s = max(policy.burst_windows_s), min(policy.burst_windows_s)
    counted = f"{len(times_s)} of {SERVICES} steps"
    in_time = sum(time_s <= shortest_s + ticks_s for time_s in times_s)
    return (
        at_most(
            f"tripled load to the write, median ({counted})",
            statistics.median(times_s),
            longest_s + ticks_s,
            " s",
        ),
        at_most(f"the slowest ({counted})", max(times_s), longest_s + ticks_s, " s"),
        shown(
            f"within the shortest burst window and two ticks, {shortest_s + ticks_s:g} s",
            f"{in_time} of {len(times_s)}",
        ),
    )
