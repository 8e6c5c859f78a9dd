"""PURE. What the demo replays against what: the one place where its numbers stand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from load.arrivals import Replay

REPOSITORY = Path(__file__).resolve().parents[2]
TRACE = Path(__file__).parent / "traces" / "azfunc2019_queue_0c0c478d_60s.csv.gz"
TRACE_TITLE = "one queue-triggered function of Azure Functions, July 2019, minutes 271 to 276"

WINDOW_START_S = 271 * 60.0
DURATION_S = 360.0
SHORTEST_S, LONGEST_S = 30.0, 7200.0
SCALE = 10.0
SEED = 1

GPUS = 8
GPU = "nvidia.com/gpu"
NAMESPACE = "headroom-demo"
OPERATOR_NAMESPACE = "headroom-system"
OPERATOR = "headroom-operator"
MANIFESTS = REPOSITORY / "deploy" / "overlays" / "local"
SAMPLES = REPOSITORY / "deploy" / "samples"
LOAD_IMAGE = "localhost/headroom-load:dev"
LOAD_DOCKERFILE = "e2e/load/Dockerfile"
LOAD_JOB = "load"

LEAST_ATTAINMENT = 0.95
"""Of the whole replay, its start from nothing included: the promise itself, since a p95 permits
five misses in a hundred."""
LAST_STRETCH_S = 120.0
"""At the end of the replay, when replicas have been removed, the promise must hold by itself."""
LONGEST_UNANSWERED_S = 16.0
"""The longest of the operator's short windows, 12 s, and two ticks of 2 s."""
LATEST_SEND_S = 0.1
"""Above it the generator, not the service, would be measured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """One run of the demo."""

    duration_s: float = DURATION_S
    keep: bool = False

    @property
    def replay(self) -> Replay:
        """The window of the recording."""
        return Replay(start_s=WINDOW_START_S, duration_s=self.duration_s, scale=SCALE, seed=SEED)
