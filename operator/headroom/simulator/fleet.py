"""The pods of one service and their GPUs: create, place, warm up, serve, drain, kill.

Behaves as a Deployment: replaces lost pods, and on scale-down removes first unschedulable pods,
then warming ones, then those that became ready last (the order of a ReplicaSet).
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from headroom.scaling.values.observation import PodState
from headroom.simulator.compiled.plant_layout import NONE
from headroom.simulator.event_queue import EventQueue, Priority
from headroom.simulator.gpu_pool import Pool
from headroom.simulator.plant import ServiceSpec
from headroom.simulator.replica import Replica
from headroom.simulator.service_plant import ServicePlant

_DRAIN_CHECK_S = 1.0


class Fleet:
    """The pods of one service on its compiled plant."""

    def __init__(
        self, spec: ServiceSpec, pool: Pool, events: EventQueue, seed: int, duration_s: float
    ) -> None:
        self.spec = spec
        self.desired = 0
        self.replicas: list[Replica] = []
        """Existing pods in order of creation, draining ones included."""
        self.plant = ServicePlant(spec, seed, duration_s)
        self._start_factor = 1.0
        self._gpu_s = self._starting_s = 0.0
        """GPU-seconds of pods that have ended, and the part of them before they were ready."""
        self._pool = pool
        self._events = events
        self._random = np.random.Generator(np.random.PCG64([seed, 1]))
        self._serial = 0

    @property
    def priority(self) -> int:
        """Return the service's priority."""
        return self.spec.policy.priority

    def scale(self, replicas: int, now_s: float) -> None:
        """Set the desired replicas."""
        self.desired = replicas
        self._reconcile(now_s)

    def begin(self, replicas: int) -> None:
        """Create the initial replicas, which are ready as soon as the pool assigns GPUs."""
        for _ in range(replicas):
            self._create(0.0, start_s=0.0)
        self.desired = replicas

    def existing(self) -> list[Replica]:
        """Return the pods that count as replicas: all but the terminating."""
        return [one for one in self.replicas if one.state is not PodState.TERMINATING]

    def in_state(self, state: PodState) -> list[Replica]:
        """Return the pods in one state, oldest first."""
        return [one for one in self.replicas if one.state is state]

    def placed(self, replica: Replica, now_s: float, node_s: float) -> None:
        """Start a pod on a node that becomes available at node_s."""
        replica.row = _PLACED

        def scheduled(at_s: float) -> None:
            if replica.removed_s is not None:
                return
            replica.state, replica.scheduled_s = PodState.WARMING, at_s
            if replica.start_s == 0.0:
                self._ready(replica, at_s)
            else:
                self._events.at(
                    at_s + replica.start_s,
                    Priority.PODS,
                    lambda time_s: self._ready(replica, time_s),
                )

        if node_s <= now_s:
            scheduled(now_s)
        else:
            self._events.at(node_s, Priority.PODS, scheduled)

    def kill(self, victims: Iterable[Replica], now_s: float) -> None:
        """Kill ready pods and their requests in flight; the Deployment replaces them."""
        for replica in victims:
            self.plant.kill(replica.row, now_s)
            replica.removed_s = now_s
            self._gone(replica, now_s)
        self._reconcile(now_s)

    def replace(self, uid: str, now_s: float) -> None:
        """Drain and delete a ready pod; the Deployment creates another, at its usual speed."""
        for replica in self.in_state(PodState.READY):
            if replica.uid == uid:
                self._remove(replica, now_s)
        self._reconcile(now_s)

    def slow(self, victims: Iterable[Replica], factor: float) -> None:
        """Multiply the time of all later executions of these pods by `factor`."""
        for replica in victims:
            if replica in self.replicas:  # the row of a deleted pod may be another's now
                self.plant.slow(replica.row, factor)

    def slow_starts(self, factor: float) -> None:
        """Multiply the time of all cold starts that are drawn from now on."""
        self._start_factor *= factor

    def gpu_seconds(self, now_s: float) -> tuple[float, float]:
        """Return the GPU-seconds held up to now, and the part of them spent before ready."""
        held_s, starting_s = self._gpu_s, self._starting_s
        for replica in self.replicas:
            more_s, more_starting_s = replica.gpu_seconds(now_s)
            held_s, starting_s = held_s + more_s, starting_s + more_starting_s
        return held_s, starting_s

    def draw_start_s(self) -> float:
        """Draw the duration of one cold start."""
        return self._start_factor * float(
            sum(
                phase.median_s * math.exp(math.log(phase.spread) * self._random.standard_normal())
                for phase in self.spec.cold_start.phases
            )
        )

    def _reconcile(self, now_s: float) -> None:
        existing = self.existing()
        for _ in range(self.desired - len(existing)):
            self._create(now_s, start_s=self.draw_start_s())
        self._pool.place(now_s)
        for replica in sorted(existing, key=_removal_order)[: max(0, len(existing) - self.desired)]:
            self._remove(replica, now_s)

    def _create(self, now_s: float, start_s: float) -> None:
        replica = Replica(uid=f"{self.spec.name}-{self._serial}", created_s=now_s, start_s=start_s)
        self._serial += 1
        self.replicas.append(replica)
        self._pool.enqueue(self, replica)

    def _ready(self, replica: Replica, now_s: float) -> None:
        if replica.removed_s is not None:
            return
        replica.row = self.plant.admit(now_s)
        replica.state, replica.ready_s = PodState.READY, now_s

    def _remove(self, replica: Replica, now_s: float) -> None:
        replica.removed_s = now_s
        if replica.state is not PodState.READY:
            if replica.row == NONE:
                self._pool.dequeue(replica)
            self._gone(replica, now_s)
            return
        replica.state = PodState.TERMINATING
        self.plant.close(replica.row)
        self._drain(replica, now_s)

    def _drain(self, replica: Replica, now_s: float) -> None:
        """Delete a draining pod when it is empty or its time is over."""
        assert replica.removed_s is not None
        if self.plant.is_idle(replica.row):
            self._gone(replica, now_s)
        elif now_s >= replica.removed_s + self.spec.drain_s:
            self.plant.kill(replica.row, now_s)
            self._gone(replica, now_s)
        else:
            next_s = min(now_s + _DRAIN_CHECK_S, replica.removed_s + self.spec.drain_s)
            self._events.at(next_s, Priority.PODS, lambda time_s: self._drain(replica, time_s))

    def _gone(self, replica: Replica, end_s: float) -> None:
        self.replicas.remove(replica)
        if replica.row >= 0:
            self.plant.release(replica.row)
        if replica.row == NONE:
            return  # it never got a GPU
        held_s, starting_s = replica.gpu_seconds(end_s)
        self._gpu_s, self._starting_s = self._gpu_s + held_s, self._starting_s + starting_s
        self._pool.release(end_s)


_PLACED = -2
"""Row of a pod that has a GPU and is not ready."""


def _removal_order(replica: Replica) -> tuple[int, float]:
    rank = {PodState.UNSCHEDULABLE: 0, PodState.WARMING: 1}.get(replica.state, 2)
    since_s = replica.created_s if replica.ready_s is None else replica.ready_s
    return rank, -since_s
