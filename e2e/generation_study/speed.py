"""The speed of the plant: iterations per second of one core.

An iteration counts once, whether it was computed alone or within a run of decodes in closed form;
`events` are the computations. Runs are long where few requests come and go, so that the first
number depends on the workload; the second hardly does.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np
from rich.console import Console

from headroom.scaling.values.tokens import TokenTargets
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.layout import Plant
from headroom.simulator.generation.compiled.state import allocate
from headroom.simulator.generation.models import ENGINES
from headroom.simulator.generation.plant import Engine, TokenService
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.workloads import llmd_stages, traced


class Speed(NamedTuple):
    """One workload on one core."""

    workload: str
    requests: int
    iterations: int
    events: int
    seconds: float

    @property
    def per_second(self) -> float:
        """Iterations per second of one core."""
        return self.iterations / self.seconds


def _drawn(rate_rps: float, prompt: float, output: float, count: int) -> Requests:
    random = np.random.default_rng(7)
    return Requests(
        arrival_s=np.cumsum(random.exponential(1.0 / rate_rps, count)),
        prompt_tokens=np.maximum(1, random.exponential(prompt, count)).astype(np.int64),
        output_tokens=np.maximum(1, random.exponential(output, count)).astype(np.int64),
    )


def measured(workload: str, engine: Engine, requests: Requests, replicas: int) -> Speed:
    """Return the speed with the replicas fixed; the first call compiles and is not counted."""
    service = TokenService(engine=engine, targets=TokenTargets())
    bounded = requests.bounded(engine.context_tokens)
    seconds, plant = math.inf, None
    for _ in range(3):
        plant = allocate(service, bounded, replicas, 1)
        for row in range(replicas):
            kernel.admit(plant, row)
        began_s = time.process_time()
        kernel.advance(plant, math.inf)
        seconds = min(seconds, time.process_time() - began_s)
    assert plant is not None
    whole = plant.whole
    return Speed(
        workload,
        len(requests),
        int(whole[Plant.ITERATIONS]),
        int(whole[Plant.EVENTS]),
        max(seconds, 1e-9),
    )


def speeds() -> list[Speed]:
    """Return the speed on llm-d's stages, on short answers, on Azure's trace."""
    h100 = ENGINES["llama-8b-h100"]
    return [
        measured("llm-d's stages", ENGINES["qwen3-32b-tp2-h100"], llmd_stages(), 8),
        measured("1000/300 tokens, 8 replicas", h100, _drawn(40, 1000, 300, 100_000), 8),
        measured("1000/300 tokens, 32 replicas", h100, _drawn(200, 1000, 300, 200_000), 32),
        measured("Azure conversation", h100, traced("azure_llm_2023_conv"), 2),
    ]


def compiled() -> None:
    """Compile the plant, or load what was compiled before."""
    measured("compile", ENGINES["llama-8b-h100"], _drawn(10, 100, 10, 10), 1)


def main(console: Console) -> int:
    """Print the speeds; exits 1 below 2 million iterations per second on any workload."""
    found = speeds()
    for each in found:
        events = each.events / each.seconds / 1e6
        console.print(
            f"{each.workload:<30} {each.requests:>8,} requests  {each.iterations:>10,} iterations"
            f"  {each.per_second / 1e6:6.2f} M/s  {events:5.2f} M events/s",
            soft_wrap=True,
        )
    return 0 if min(each.per_second for each in found) >= 2e6 else 1
