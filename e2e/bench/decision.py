"""The CPU time of one evaluation of a service, by its number of pods."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

from bench.figures import Figure, at_most, shown

MOST_MS = {50: 1.0, 1000: 20.0}


def measure() -> Sequence[Figure]:
    """Run the timing with the linear algebra's threads as the operator's image sets them."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.decision_cost"],
        check=True,
        stdout=subprocess.PIPE,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    found = json.loads(done.stdout)
    figures = []
    for pods, cost_ms in found["decisions"].items():
        name = f"decide() for {pods} pods, median CPU time"
        most_ms = MOST_MS.get(int(pods))
        if most_ms is None:
            figures.append(shown(name, f"{cost_ms:.2f} ms"))
        else:
            figures.append(at_most(name, cost_ms, most_ms, " ms", digits=2))
    figures += [
        shown(f"first latency curve, batches up to {batch}", f"{cost_ms:.1f} ms")
        for batch, cost_ms in found["curves"].items()
    ]
    return figures
