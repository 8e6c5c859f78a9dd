"""The GPUs that services share: pods wait for them by priority, then age."""

from __future__ import annotations

import math
from typing import Protocol

from headroom.simulator.plant import Cluster
from headroom.simulator.replica import Replica


class PodOwner(Protocol):
    """The pods of one service."""

    @property
    def priority(self) -> int:
        """Return the service's priority; the highest gets GPUs first."""
        ...

    def draw_start_s(self) -> float:
        """Draw the duration of one cold start."""
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
        priority = -owner.priority
        self._pending.append((priority, replica.created_s, self._serial, owner, replica))
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
