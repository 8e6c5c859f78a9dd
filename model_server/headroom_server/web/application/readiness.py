"""The report of /v2/health/ready on the models that batch."""

from __future__ import annotations

import statistics
from typing import Any

from headroom_server.errors import public
from headroom_server.runtime.batching.runner import Runner
from headroom_server.runtime.registry import Models


def readiness(models: Models) -> dict[str, Any]:
    """Return the state of the only model, or of each by name."""
    served = list(models.all())
    if len(served) == 1:
        return _of_one(served[0].runner)
    each = [{"name": one.name, "version": one.version} | _of_one(one.runner) for one in served]
    return {"ready": models.ready, "models": each}


def _warmth(runner: Runner) -> dict[str, Any]:
    """Return every warmed shape with its first execution and the median of later ones."""
    warm = runner.warm
    if warm is None:
        return {"shapes": [], "compile": None}
    shapes = [
        {
            "items": shape.items,
            "length": shape.length,
            "first_seconds": round(shape.first_s, 6),
            "seconds": round(statistics.median(one.total_s for one in shape.later), 6),
        }
        for shape in warm.shapes
    ]
    return {"shapes": shapes, "compile": warm.compiled or None}


def _of_one(runner: Runner) -> dict[str, Any]:
    lifecycle, test = runner.lifecycle, runner.self_test
    seconds = lifecycle.seconds(runner.clock())
    return {
        "ready": runner.ready,
        "phase": lifecycle.phase,
        "phase_seconds": {str(phase): round(spent, 3) for phase, spent in seconds.items()},
        "self_test": test
        and {"p95_s": test.p95_s, "max_latency_s": test.max_latency_s, "passed": test.passed},
        "engine": runner.engine.name,
        "device": runner.engine.device,
        "emulated": runner.engine.emulated,
        **_warmth(runner),
        "devices_fit": runner.devices_fit,
        "suspected": runner.suspected,
        "failure": runner.failure and public(runner.failure),
    }
