"""The plugin for vLLM: sums per iteration, against what vLLM 0.32 passes to a stat logger."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, Counter, generate_latest

from headroom.profiles import PROFILES
from headroom.telemetry.samples.accounts import Batch
from headroom.telemetry.samples.pod_samples import PodSamples

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "tests/telemetry/pages/vllm_kvfull.prom"
LABELS = ("model_name", "engine")


@dataclass
class Details:
    """vLLM's `SchedulerIterationDetails`, as far as it is read."""

    num_ctx_requests: int
    num_ctx_tokens: int
    num_generation_requests: int
    elapsed_ms: float
    is_dummy: bool = False


@pytest.fixture(scope="module")
def cost_sums() -> Any:
    folder = str(ROOT / "model_server/vllm_plugin")
    sys.path.insert(0, folder)
    try:
        return import_module("headroom_vllm_plugin.cost_sums")
    finally:
        sys.path.remove(folder)


class World:
    def __init__(self, cost_sums: Any) -> None:
        self.registry = CollectorRegistry()
        xx, xy = (
            Counter(name, "Sums.", (*LABELS, *more), registry=self.registry)
            for name, more in (
                ("headroom_iteration_cost_xx_total", ("row", "column")),
                ("headroom_iteration_cost_xy_total", ("row",)),
            )
        )
        self.counters = cost_sums.CostCounters(xx, xy, ("tiny", "0"))

    @property
    def page(self) -> str:
        """Return the page that vLLM exposes with the plugin."""
        return PAGE.read_text() + generate_latest(self.registry).decode()


def test_features_of_a_mixed_iteration(cost_sums: Any) -> None:
    """Two chunks of 100 tokens: X = 2 x 100 x 50."""
    found = cost_sums.features_of(Details(2, 200, 5, 20.0), 6400.0)
    assert found == (1.0, 200.0, 5.0, 6400.0, 10_000.0)
    assert cost_sums.features_of(Details(0, 0, 5, 20.0), 64.0)[4] == 0.0


def test_cost_of_iterations_is_fitted_from_the_page_that_the_operator_reads(cost_sums: Any) -> None:
    world = World(cost_sums)
    cost = np.array((0.012, 1.7e-4, 4e-4, 3e-6, 2e-7))
    random = np.random.default_rng(7)
    for _ in range(200):
        prompts = int(random.integers(0, 4))
        tokens = prompts * int(random.integers(1, 300))
        one = Details(prompts, tokens, int(random.integers(0, 16)), 0.0)
        kv = float(random.integers(0, 6400))
        one.elapsed_ms = 1000.0 * float(cost @ np.array(cost_sums.features_of(one, kv)))
        world.counters.add(one, kv)
    world.counters.add(Details(0, 0, 0, 5.0, is_dummy=True), 0.0)
    sample = PodSamples(PROFILES["vllm"], None, Batch(largest=16)).take(
        world.page, pod="u", time_s=1.0
    )
    assert sample is not None
    tokens_read = sample.generation
    assert tokens_read is not None
    sums = tokens_read.cost_sums
    assert sums is not None
    assert tokens_read.iterations == 200.0
    assert tokens_read.engine_seconds == sums.xy[0]
    matrix = np.zeros((5, 5))
    matrix[np.triu_indices(5)] = sums.xx
    matrix += np.triu(matrix, 1).T
    np.testing.assert_allclose(np.linalg.solve(matrix, np.array(sums.xy)), cost, rtol=1e-6)


def test_names_and_labels_are_those_that_the_profile_reads(cost_sums: Any) -> None:
    metrics = PROFILES["vllm"].generation
    assert metrics is not None
    assert metrics.cost is not None
    assert metrics.cost.features == cost_sums.FEATURES
    plugin = (ROOT / "model_server/vllm_plugin/headroom_vllm_plugin/stat_logger.py").read_text()
    for name in (metrics.cost.xx, metrics.cost.xy, metrics.iteration_tokens[0].name):
        assert f'"{name}"' in plugin
