"""The cost of simulating: requests per second, a recorded evening, memory by length."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

from bench.figures import Figure, at_least, at_most, shown

STEADY_MILLION_RPS = 1.0
TRACE_S = 10.0
LENGTHS = (10_000_000, 40_000_000)
GROWTH = 1.05
"""Peak memory of the longest run over that of the shortest: nothing but the allocator's noise."""


def measure() -> Sequence[Figure]:
    """Run the timings, each part in a process of its own so that its memory is its own."""
    found = _run("speed")
    figures = [
        at_least(
            f"plant, 12 replicas, {routing}: requests per CPU second",
            rps / 1e6,
            STEADY_MILLION_RPS,
            " million",
            digits=2,
        )
        for routing, rps in found["steady_rps"].items()
    ]
    figures += [
        at_most(f"4 h, {requests} requests under {name}, CPU time", seconds, TRACE_S, " s")
        for name, (seconds, requests) in found["trace"].items()
    ]
    peaks = [float(_run(str(length))["peak_mib"]) for length in LENGTHS]
    figures += [
        shown(f"peak memory, {length // 1_000_000} million requests", f"{peak:.0f} MiB")
        for length, peak in zip(LENGTHS, peaks, strict=True)
    ]
    figures.append(
        at_most("the longer run's peak over the shorter's", peaks[-1] / peaks[0], GROWTH, "", 2)
    )
    return figures


def _run(part: str) -> Any:
    done = subprocess.run(
        [sys.executable, "-m", "bench.simulator_cost", part],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    return json.loads(done.stdout)
