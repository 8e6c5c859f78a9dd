"""A service as a peer sees it, filled by hand: pods by state, and what their scrapes say."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from headroom.scaling.values.observation import Pod, PodState
from headroom.scaling.values.policy import Policy
from headroom.simulator.autoscaler import Autoscaler, GroundTruth, ScaleRequest, View
from headroom.simulator.cold_start import ColdStart
from headroom.simulator.compiled.plant_layout import BOUNDS_S, COLUMNS, Column
from headroom.simulator.metrics import Metrics
from headroom.simulator.plant import Server, ServiceSpec

SLOW = bisect_left(BOUNDS_S, 0.2)
P95_S = BOUNDS_S[SLOW - 1] + 0.95 * (BOUNDS_S[SLOW] - BOUNDS_S[SLOW - 1])
"""Value of p95 when every answer took 0.2 s: 95 % up the bucket that holds 0.2 s."""


def truth(
    *,
    latency_ratio: float = 1.0,
    arrivals_per_s: NDArray[np.float64] | None = None,
    capacity_rps: float = 150.0,
    min_replicas: int = 1,
    max_replicas: int = 50,
    server: Server | None = None,
    cold_start: ColdStart | None = None,
) -> GroundTruth:
    """A server of 20 + 1.5 b ms, B = 8; answers of 0.2 s lie at `latency_ratio` of the target."""
    policy = Policy(
        latency_target_s=P95_S / latency_ratio,
        min_replicas=min_replicas,
        max_replicas=max_replicas,
    )
    return GroundTruth(
        spec=ServiceSpec(
            name="resnet",
            policy=policy,
            server=server or Server(fixed_s=0.020, per_item_s=0.0015, max_batch=8),
            cold_start=cold_start or ColdStart.of(60.0),
        ),
        arrivals_per_s=np.zeros(0) if arrivals_per_s is None else arrivals_per_s,
        capacity_rps=capacity_rps,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """Load of one pod, constant for a while."""

    rps: float = 0.0
    """Arrivals, and answers of 0.2 s each."""
    busy: float = 0.0
    running: float = 0.0
    waiting: float = 0.0

    def over(self, seconds: float) -> NDArray[np.float64]:
        """Return the increase of the counters."""
        gain = np.zeros(COLUMNS + len(BOUNDS_S))
        gain[Column.ARRIVALS] = gain[Column.ANSWERED] = self.rps * seconds
        gain[Column.BUSY_S] = self.busy * seconds
        gain[Column.WAITING_S] = self.waiting * seconds
        gain[Column.IN_FLIGHT_S] = (self.waiting + self.running) * seconds
        gain[COLUMNS + SLOW] = self.rps * seconds
        return gain


@dataclass
class World:
    """Pods "a", "b", ... of one service, and the store that a peer queries."""

    replicas: int = 1
    now_s: float = 0.0
    metrics: Metrics = field(default_factory=Metrics)
    states: dict[str, PodState] = field(default_factory=dict)
    rows: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    @classmethod
    def of(cls, ready: int, *, warming: int = 0, unschedulable: int = 0) -> World:
        """A number of pods of each state, all of them wanted."""
        world = cls(replicas=ready + warming + unschedulable)
        states = (
            [PodState.READY] * ready
            + [PodState.WARMING] * warming
            + [PodState.UNSCHEDULABLE] * unschedulable
        )
        world.states = {f"pod-{index}": state for index, state in enumerate(states)}
        return world

    def run(
        self,
        seconds: float,
        flow: Flow = Flow(),
        *,
        every_s: float = 15.0,
        flows: Mapping[str, Flow] | None = None,
        lost: Collection[str] = (),
    ) -> World:
        """Let ready pods live on, scraped every `every_s`; `lost` do not answer."""
        end_s = self.now_s + seconds
        if self.metrics.scraped_s is None:
            self.scrape(flow, flows or {}, lost)
        while self.now_s < end_s:
            self.now_s += every_s
            for uid in self.ready:
                own = (flows or {}).get(uid, flow)
                self.rows[uid] = self.rows.get(uid, Flow().over(0)) + own.over(every_s)
            self.scrape(flow, flows or {}, lost)
        return self

    def scrape(self, flow: Flow, flows: Mapping[str, Flow], lost: Collection[str]) -> None:
        """Answer one scrape: counters as they stand, gauges of the present flow."""
        answering = [uid for uid in self.ready if uid not in lost]
        rows = []
        for uid in answering:
            row = self.rows.get(uid, Flow().over(0)).copy()
            row[Column.WAITING] = flows.get(uid, flow).waiting
            row[Column.RUNNING] = flows.get(uid, flow).running
            rows.append(row)
        self.metrics.scrape(self.now_s, answering, np.array(rows))

    def silence(self, seconds: float, every_s: float) -> World:
        """Let time pass with scrapes without answers."""
        return self.run(seconds, every_s=every_s, lost=self.ready)

    @property
    def ready(self) -> tuple[str, ...]:
        """UIDs of the ready pods."""
        return tuple(uid for uid, state in self.states.items() if state is PodState.READY)

    def view(self) -> View:
        """Return the present view of the peer."""
        pods = tuple(Pod(uid=uid, state=state, created_s=0.0) for uid, state in self.states.items())
        return View(
            now_s=self.now_s,
            replicas=self.replicas,
            pods=pods,
            metrics=self.metrics,
            samples=(),
        )

    def ask(self, peer: Autoscaler) -> ScaleRequest:
        """One evaluation, now."""
        return peer.evaluate(self.view())
