"""Runs a generating service under an autoscaler on a virtual clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from headroom.scaling.values.observation import GatewayRejections, PodState
from headroom.simulator.autoscaler import Autoscaler, View
from headroom.simulator.generation import observing
from headroom.simulator.generation.compiled import kernel
from headroom.simulator.generation.compiled.layout import Plant, Row
from headroom.simulator.generation.compiled.state import TokenState, allocate
from headroom.simulator.generation.fleet import TokenFleet
from headroom.simulator.generation.outcome import (
    Move,
    TokenOutcome,
    TokenScore,
    allowed_share,
    broken,
    kept,
    latencies,
    missed,
    quantiles,
)
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import Requests
from headroom.simulator.metrics import Metrics

LOOK_S = 5.0
FULL = 0.95
FLAP_S = 60.0
_SPARE_ROWS = 8
"""Rows for pods that drain while others have their places."""
_EMPTY_METRICS = Metrics()


@dataclass(frozen=True, slots=True, kw_only=True)
class Truth:
    """Facts that only bounds may use."""

    service: TokenService
    requests: Requests


TokenAutoscalerFactory = Callable[[Truth], Autoscaler]


def simulate_tokens(
    service: TokenService,
    requests: Requests,
    make: TokenAutoscalerFactory,
    seed: int,
) -> TokenOutcome:
    """Return the outcome. Same service, requests, autoscaler and seed: same outcome."""
    began_s = time.perf_counter()
    bounded = requests.bounded(service.engine.context_tokens)
    run = Run(service, bounded, make(Truth(service=service, requests=bounded)), seed)
    run.until(bounded.duration_s)
    return run.outcome(time.perf_counter() - began_s)


@dataclass
class Run:
    """One run between its steps."""

    service: TokenService
    requests: Requests
    autoscaler: Autoscaler
    seed: int
    moves: list[Move] = field(default_factory=list)
    looks: list[tuple[float, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Allocate the plant, and start the first replicas."""
        service = self.service
        rows = 2 * service.max_replicas + _SPARE_ROWS
        self.plant: TokenState = allocate(service, self.requests, rows, self.seed)
        self.fleet = TokenFleet(service=service, plant=self.plant, seed=self.seed)
        first = service.initial_replicas
        self.fleet.begin(service.min_replicas if first is None else first)
        self._decide_s, self._look_s = self.autoscaler.period_s, 0.0

    def until(self, end_s: float) -> None:
        """Run to the end of the load."""
        while True:
            now_s = min(self.next_s, end_s)
            kernel.advance(self.plant, now_s)
            self.fleet.update(now_s)
            if now_s >= end_s:
                return
            self.act(now_s)

    @property
    def next_s(self) -> float:
        """Return the time at which the autoscaler decides, a pod changes or a look is due next."""
        return min(self._decide_s, self._look_s, self.fleet.next_s)

    def act(self, now_s: float) -> None:
        """Look and decide, where it is time."""
        if self._look_s <= now_s:
            self._look(now_s)
            self._look_s += LOOK_S
        if self._decide_s <= now_s:
            self._decide(now_s)
            self._decide_s += self.autoscaler.period_s

    def _decide(self, now_s: float) -> None:
        fleet, service = self.fleet, self.service
        kernel.settle(self.plant, now_s)
        view = View(
            now_s=now_s,
            replicas=fleet.desired,
            pods=tuple(one.as_pod() for one in fleet.replicas),
            metrics=_EMPTY_METRICS,
            rejected=GatewayRejections(
                time_s=now_s, requests=float(self.plant.whole[Plant.REJECTED])
            ),
            samples=tuple(
                observing.pod_sample(self.plant, service, one.uid, one.row, now_s)
                for one in fleet.ready()
            ),
        )
        request = self.autoscaler.evaluate(view)
        self.plant.whole[Plant.MOST_IN_FLIGHT] = request.most_in_flight or 0
        count = max(service.min_replicas, min(service.max_replicas, request.replicas))
        if count != fleet.desired:
            self.moves.append(
                Move(
                    time_s=now_s,
                    before=fleet.desired,
                    after=count,
                    reason=request.reason,
                    message=request.message,
                )
            )
            fleet.scale(count, now_s)

    def _look(self, now_s: float) -> None:
        fleet = self.fleet
        kernel.settle(self.plant, now_s)
        rows = [one.row for one in fleet.replicas if one.state is not PodState.WARMING]
        fullest = observing.fullest(self.plant, self.service, rows)
        inside = int(self.plant.rows[rows, Row.IN_FLIGHT].sum()) if rows else 0
        ready = len(fleet.ready())
        alive = len(fleet.replicas)
        self.looks.append((now_s, fleet.desired, ready, fullest, inside, alive))

    def outcome(self, wall_s: float) -> TokenOutcome:
        """Compute the figures; requests in the system get ten minutes to finish."""
        end_s, plant, targets = self.requests.duration_s, self.plant, self.service.targets
        gpu_s = self.fleet.gpu_seconds(end_s)
        kernel.advance(plant, end_s + 600.0)
        first, output, _ = latencies(plant)
        lost = missed(plant, targets)
        any_missed = np.maximum(np.maximum(lost[0], lost[1]), lost[2])
        minutes, longest_s = broken(plant.arrival_s, any_missed, allowed_share(targets))
        table = np.array(self.looks)
        flaps = self._flaps()
        points = [
            0.95 if one is None else one.percentile
            for one in (targets.first_token, targets.output_token)
        ]
        score = TokenScore(
            requests=len(self.requests),
            attainment=1.0 - float(any_missed.mean()),
            kept=kept(plant, targets),
            first_token_s=quantiles(first, points[0]),
            output_token_s=quantiles(output, points[1]),
            missed_first=int(lost[0].sum()),
            missed_output=int(lost[1].sum()),
            unanswered=int(np.isnan(plant.end_s).sum()),
            gpu_hours=gpu_s / 3600.0,
            mean_replicas=gpu_s / self.service.engine.gpus / end_s,
            peak_replicas=int(table[:, 5].max()),
            full_share=float((table[:, 3] > FULL).mean()),
            preempted=int((plant.preempted > 0).sum()),
            moves=len(self.moves),
            flaps=flaps,
            flaps_per_hour=flaps / (end_s / 3600.0),
            broken_minutes=minutes,
            longest_broken_s=longest_s,
            iterations=int(plant.whole[Plant.ITERATIONS]),
            wall_s=wall_s,
        )
        return TokenOutcome(
            score=score,
            moves=tuple(self.moves),
            timeline=table,
            arrival_s=plant.arrival_s,
            first_token_s=first,
            output_token_s=output,
        )

    def _flaps(self) -> int:
        window_s, last_down_s, flaps = self.service.start_s + FLAP_S, -math.inf, 0
        for move in self.moves:
            if move.after < move.before:
                last_down_s = move.time_s
            elif move.time_s - last_down_s <= window_s:
                flaps += 1
        return flaps
