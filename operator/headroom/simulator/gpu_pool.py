"""The pods of a service as the simulator tracks them, and the GPUs that services share."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from headroom.scaling.values.observation import Pod, PodState
from headroom.simulator.compiled.plant_layout import NONE
from headroom.simulator.plant import Cluster


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


class PodOwner(Protocol):
    """A service whose pods wait for GPUs."""

    @property
    def priority(self) -> int:
        """Higher ones get GPUs first."""
        ...

    def draw_start_s(self) -> float:
        """Return the duration of a cold start."""
        ...

    def placed(self, replica: Replica, now_s: float, node_s: float) -> None:
        """Start a pod on a node that becomes available at node_s."""
        ...


class Pool:
    """The GPUs that all services share; pods wait for them by priority, then age."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._held = 0
        self.lost = 0
        """GPUs of lost nodes."""
        self._pending: list[tuple[int, float, int, PodOwner, Replica]] = []
        self._serial = 0

    def enqueue(self, owner: PodOwner, replica: Replica) -> None:
        """Add a pod to the queue for a GPU."""
        self._serial += 1
        self._pending.append((-owner.priority, replica.created_s, self._serial, owner, replica))
        self._pending.sort(key=lambda entry: entry[:3])

    def dequeue(self, replica: Replica) -> None:
        """Remove a pod from the queue."""
        self._pending = [entry for entry in self._pending if entry[-1] is not replica]

    def restore(self, gpus: int, now_s: float) -> None:
        """Return lost GPUs to the pool."""
        self.lost -= gpus
        self.place(now_s)

    def release(self, now_s: float) -> None:
        """Free one GPU and assign it to the next pod in the queue."""
        self._held -= 1
        self.place(now_s)

    def begin(self) -> None:
        """Assign GPUs at time zero, nodes included; pods without one get a cold start later."""
        self._place(0.0, provision_s=0.0)
        for *_, owner, replica in self._pending:
            replica.start_s = owner.draw_start_s()

    def place(self, now_s: float) -> None:
        """Assign free GPUs to pods in the queue."""
        self._place(now_s, self._cluster.provision_s)

    def _place(self, now_s: float, provision_s: float) -> None:
        limit = math.inf if self._cluster.gpus is None else self._cluster.gpus - self.lost
        while self._pending and self._held < limit:
            *_, owner, replica = self._pending.pop(0)
            self._held += 1
            owner.placed(replica, now_s, now_s + provision_s)
