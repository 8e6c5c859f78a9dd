"""One pod of a service as the simulator tracks it: its times, its state, its row in the plant."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.scaling.values.observation import Pod, PodState
from headroom.simulator.compiled.plant_layout import NONE


@dataclass(slots=True)
class Replica:
    """One pod and its row in the plant's arrays."""

    uid: str
    created_s: float
    start_s: float
    """Duration of its cold start."""
    state: PodState = PodState.UNSCHEDULABLE
    scheduled_s: float | None = None
    ready_s: float | None = None
    removed_s: float | None = None
    row: int = NONE
    shown: Pod | None = None
    """Cached result of `as_pod`, valid while the state is the same."""

    def gpu_seconds(self, until_s: float) -> tuple[float, float]:
        """Return how long it has held its GPU, and the part of that before it was ready."""
        if self.scheduled_s is None:
            return 0.0, 0.0
        ready_s = until_s if self.ready_s is None else self.ready_s
        return until_s - self.scheduled_s, ready_s - self.scheduled_s

    def as_pod(self) -> Pod:
        """Return it as the API server shows it to the decision."""
        if self.shown is None or self.shown.state is not self.state:
            self.shown = Pod(
                uid=self.uid,
                state=self.state,
                created_s=self.created_s,
                scheduled_s=self.scheduled_s,
                ready_s=self.ready_s if self.state is PodState.READY else None,
            )
        return self.shown
