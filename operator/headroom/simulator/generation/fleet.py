"""The pods of a generating service: starting, ready, terminating; and what they cost."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.values.observation import Pod, PodState
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.layout import NONE, Row
from headroom.simulator.generation.compiled.state import TokenState
from headroom.simulator.generation.plant import TokenService

LEAST_START_SHARE = 0.5


@dataclass(slots=True)
class Replica:
    """One pod."""

    uid: str
    created_s: float
    ready_at_s: float
    older_s: float = 0.0
    """Age at the start of the run."""
    row: int = NONE
    state: PodState = PodState.WARMING
    leaves_at_s: float = math.inf
    """Time when its grace period ends, once it terminates."""

    def as_pod(self) -> Pod:
        """Return it as the API server lists it."""
        ready = self.state is PodState.READY
        return Pod(
            uid=self.uid,
            state=self.state,
            created_s=self.created_s - self.older_s,
            scheduled_s=self.created_s - self.older_s,
            ready_s=self.ready_at_s if ready else None,
        )


@dataclass(slots=True)
class TokenFleet:
    """All pods; `update` before each look, `scale` after each decision."""

    service: TokenService
    plant: TokenState
    seed: int
    replicas: list[Replica] = field(default_factory=list)
    desired: int = 0
    gone_s: float = 0.0
    """Seconds of pods that are gone."""
    aborted: int = 0
    _made: int = 0
    _random: np.random.Generator = field(init=False)

    def __post_init__(self) -> None:
        """Seed the start-up times."""
        self._random = np.random.default_rng(self.seed)

    def begin(self, count: int) -> None:
        """Open the first replicas, which have just become ready."""
        self.desired = count
        for _ in range(count):
            replica = self._create(0.0)
            replica.older_s, replica.ready_at_s = replica.ready_at_s, 0.0
        self.update(0.0)

    @property
    def next_s(self) -> float:
        """Return the time at which a pod next becomes ready or loses its grace."""
        times = [
            one.ready_at_s if one.state is PodState.WARMING else one.leaves_at_s
            for one in self.replicas
        ]
        return min(times, default=math.inf)

    def update(self, now_s: float) -> None:
        """Make pods ready whose start is over, and remove those that have drained."""
        for one in list(self.replicas):
            if one.state is PodState.WARMING and one.ready_at_s <= now_s:
                one.row, one.state = self._row(), PodState.READY
                kernel.admit(self.plant, one.row)
            elif one.state is PodState.TERMINATING:
                left = int(self.plant.rows[one.row, Row.IN_FLIGHT])
                if left and one.leaves_at_s <= now_s:
                    kernel.kill(self.plant, one.row)
                    self.aborted += left
                    left = 0
                if not left:
                    self._remove(one, now_s)

    def scale(self, count: int, now_s: float) -> None:
        """Create or remove pods; those that start go first, then the youngest."""
        self.desired = count
        alive = [one for one in self.replicas if one.state is not PodState.TERMINATING]
        for _ in range(count - len(alive)):
            self._create(now_s)
        if count < len(alive):
            alive.sort(key=lambda one: (one.state is PodState.READY, -one.created_s))
            for one in alive[: len(alive) - count]:
                self._terminate(one, now_s)

    def gpu_seconds(self, now_s: float) -> float:
        """Return the GPU seconds of all pods until now, from creation to the end of the drain."""
        alive_s = sum(now_s - one.created_s for one in self.replicas)
        return (self.gone_s + alive_s) * self.service.engine.gpus

    def ready(self) -> list[Replica]:
        """Return the pods that take requests."""
        return [one for one in self.replicas if one.state is PodState.READY]

    def _create(self, now_s: float) -> Replica:
        service = self.service
        spread = 1.0 + service.start_cv * float(self._random.standard_normal())
        start_s = service.start_s * max(LEAST_START_SHARE, spread)
        one = Replica(f"pod-{self._made}", now_s, now_s + start_s)
        self._made += 1
        self.replicas.append(one)
        return one

    def _terminate(self, one: Replica, now_s: float) -> None:
        if one.state is PodState.WARMING:
            self._remove(one, now_s)
            return
        one.state, one.leaves_at_s = PodState.TERMINATING, now_s + self.service.drain_s
        kernel.close(self.plant, one.row)

    def _remove(self, one: Replica, now_s: float) -> None:
        self.gone_s += now_s - one.created_s
        self.replicas.remove(one)

    def _row(self) -> int:
        taken = {one.row for one in self.replicas}
        return next(row for row in range(len(self.plant.rows)) if row not in taken)
