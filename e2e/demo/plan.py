"""All numbers of the demo: the recorded workload, its speed, and the required results.

The workload ships with the simulator, whose `traces/README.md` names its source and licences. Each
recorded request of minutes 271 to 276 is sent as ten, in real time. The recording has counts per
minute only, so arrivals within a minute are a Poisson process with a fixed seed:

    minute                                    0     1     2     3     4     5
    recorded requests                        50    80   102   139    84    42
    sent per second                         8.3  13.3  17.0  23.2  14.0   7.0
    replicas needed by the latency rule       2     2     3     4     2     1
    replicas needed by the ceiling            2     2     3     3     2     1

A replica of the sample takes 150 ms + 60 ms per item, four at a time: 10.26 requests per second in
full batches, 8.2 under the ceiling of 0.8, 8.9 within the target of p95 1.5 s. The last fall comes
60 s before the end, so that the hold of 30 s before a removal ends within the replay. Steps are at
most 1.6-fold: steeper ones would chiefly show how long a cold start takes.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from demo.scene import Scene
from load.arrivals import Replay

REPOSITORY = Path(__file__).resolve().parents[2]
TRACES = REPOSITORY / "operator" / "headroom" / "simulator" / "traces"
TRACE = TRACES / "azfunc2019_queue_0c0c478d_60s.csv.gz"
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
SAMPLE = REPOSITORY / "deploy" / "samples" / "demo.yaml"
LOAD_IMAGE = "localhost/headroom-load:dev"
LOAD_DOCKERFILE = "e2e/load/Dockerfile"
LOAD_JOB = "load"

LEAST_ATTAINMENT = 0.95
"""Attainment of the whole replay, its start from nothing included: the promise itself, since a p95
permits five misses in a hundred."""
LAST_STRETCH_S = 120.0
"""The SLO must also hold at the end of the replay alone, after replicas were removed."""
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
    def scene(self) -> Scene:
        """Return the scene of the demo."""
        return Scene(
            cluster="demo",
            namespace=NAMESPACE,
            sample=SAMPLE,
            duration_s=self.duration_s,
            keep=self.keep,
        )

    @property
    def replay(self) -> Replay:
        """The window of the recording."""
        return Replay(start_s=WINDOW_START_S, duration_s=self.duration_s, scale=SCALE, seed=SEED)
