"""Runs a scenario under an autoscaler on a virtual clock, from the first arrival to the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from headroom.scaling.values.observation import GatewayRejections, PodSample
from headroom.simulator import observing
from headroom.simulator.autoscaler import Autoscaler, AutoscalerFactory, DirectScraper, View
from headroom.simulator.compiled import kernel
from headroom.simulator.event_queue import EventQueue, Priority
from headroom.simulator.fault_injection import FaultInjection
from headroom.simulator.fleet import Fleet
from headroom.simulator.gpu_pool import Pool
from headroom.simulator.ground_truth import initial_replicas, truth_of
from headroom.simulator.metrics import Metrics
from headroom.simulator.outcome import Move, Outcome
from headroom.simulator.run_samples import RunSamples, sample_s
from headroom.simulator.scenario import Fault, Scenario, Times, Workload
from headroom.simulator.scores import score


def simulate(
    scenario: Scenario,
    make: AutoscalerFactory,
    seed: int,
    *,
    on_progress: Callable[[float], None] | None = None,
) -> tuple[Outcome, ...]:
    """Return one outcome per service. Same scenario, autoscaler and seed: same outcome.

    `on_progress` is called with the elapsed share of the virtual time, once per sample.
    """
    events, pool = EventQueue(), Pool(scenario.cluster)
    duration_s = scenario.duration_s
    runs = [
        _Run(scenario, workload, make, events, pool, _service_seed(seed, number))
        for number, workload in enumerate(scenario.workloads)
    ]
    pool.begin()
    if on_progress is not None:
        events.every(
            sample_s(duration_s),
            Priority.SAMPLE,
            lambda now_s: on_progress(min(1.0, now_s / duration_s)),
            start_s=0.0,
        )
    while events.next_s <= duration_s:
        now_s = events.next_s
        for run in runs:
            run.advance(now_s)
        events.run_next()
    return tuple(run.outcome(scenario.name, seed) for run in runs)


def _service_seed(seed: int, number: int) -> int:
    return (seed * 1_000_003 + number * 7919) % (1 << 62)


class _Run:
    """One service of a run: its arrivals, its fleet, its autoscaler."""

    def __init__(
        self,
        scenario: Scenario,
        workload: Workload,
        make: AutoscalerFactory,
        events: EventQueue,
        pool: Pool,
        seed: int,
    ) -> None:
        self.spec = workload.spec
        self.seed = seed
        self.duration_s = scenario.duration_s
        self.fleet = Fleet(self.spec, pool, events, seed, self.duration_s)
        self.moves: list[Move] = []
        # Users make their own arrivals; those of the workload are only what they would be.
        closed = self.spec.clients.users is not None
        self._chunks: Iterator[Times] = iter(()) if closed else workload.arrivals.chunks(seed)
        self._times: Times = np.empty(0)
        self._following: Times | None = next(self._chunks, None)
        self._index = 0
        truth = truth_of(workload, seed)
        self.autoscaler: Autoscaler = make(truth)
        self.metrics = Metrics()
        self._faults = FaultInjection(
            events=events,
            fleet=self.fleet,
            pool=pool,
            metrics=self.metrics,
            autoscaler=self.autoscaler,
            seed=seed,
        )
        self._samples = RunSamples()
        self.fleet.begin(initial_replicas(truth))
        self._enter(events, scenario.faults)

    def _enter(self, events: EventQueue, faults: tuple[Fault, ...]) -> None:
        autoscaler = self.autoscaler
        events.every(
            autoscaler.period_s, Priority.DECIDE, self._decide, start_s=autoscaler.period_s
        )
        if math.isfinite(autoscaler.scrape_s):
            events.every(autoscaler.scrape_s, Priority.SCRAPE, self._scrape, start_s=0.0)
        every_s = sample_s(self.duration_s)
        events.every(every_s, Priority.SAMPLE, self._sample, start_s=every_s)
        self._faults.enter(faults, self.spec.name)

    def advance(self, until_s: float) -> None:
        """Run the plant until then; loads the next chunk before a chunk's last arrival."""
        while self._following is not None:
            last_s = float(self._times[-1]) if len(self._times) else 0.0
            if last_s >= until_s:
                break
            self._index = self.fleet.plant.advance(self._times, self._index, last_s)
            self._times = np.concatenate((self._times[self._index :], self._following))
            self._index = 0
            self._following = next(self._chunks, None)
        self._index = self.fleet.plant.advance(self._times, self._index, until_s)

    def outcome(self, scenario: str, seed: int) -> Outcome:
        """Compute the outcome; requests still in the system get one latency target to finish."""
        end_s = self.duration_s
        self.advance(end_s)
        gpu = self.fleet.gpu_seconds(end_s)
        self._sample(end_s)
        timeline = self._samples.timeline()
        last_s = end_s + self.spec.policy.latency_target_s
        self.fleet.plant.end_load()
        self.fleet.plant.advance(np.empty(0), 0, last_s)
        return Outcome(
            scenario=scenario,
            service=self.spec.name,
            autoscaler=self.autoscaler.name,
            seed=seed,
            target_s=self.spec.policy.latency_target_s,
            percentile=self.spec.policy.latency_percentile,
            score=score(self.fleet, self.moves, timeline, last_s, gpu),
            timeline=timeline,
            moves=tuple(self.moves),
            minute_requests=self.fleet.plant.tables.minute_requests.copy(),
            minute_missed=self.fleet.plant.tables.minute_missed.copy(),
        )

    def _decide(self, now_s: float) -> None:
        fleet = self.fleet
        samples: tuple[PodSample, ...] = ()
        rejected: GatewayRejections | None = None
        if isinstance(self.autoscaler, DirectScraper):
            rejected = observing.rejected_in_front(fleet, now_s)
            answering = observing.answering(fleet, self._faults.silences, self.seed)
            samples = observing.pod_samples(fleet, answering, now_s)
        view = View(
            now_s=now_s,
            replicas=fleet.desired,
            pods=tuple(replica.as_pod() for replica in fleet.replicas),
            metrics=self.metrics,
            samples=samples,
            rejected=rejected,
        )
        request = self.autoscaler.evaluate(view)
        policy = self.spec.policy
        replicas = max(policy.min_replicas, min(policy.max_replicas, request.replicas))
        if replicas != fleet.desired:
            self.moves.append(
                Move(
                    time_s=now_s,
                    before=fleet.desired,
                    after=replicas,
                    reason=request.reason,
                    message=request.message,
                )
            )
            fleet.scale(replicas, now_s)
        if request.replace is not None:
            fleet.replace(request.replace, now_s)

    def _scrape(self, now_s: float) -> None:
        answering = observing.answering(self.fleet, self._faults.silences, self.seed)
        self.metrics.scrape(
            now_s,
            [replica.uid for replica in answering],
            observing.rows(self.fleet, answering, now_s),
        )

    def _sample(self, now_s: float) -> None:
        policy = self.spec.policy
        kernel.settle(self.fleet.plant.tables, now_s)
        self._samples.take(self.fleet, policy.latency_target_s, policy.latency_percentile, now_s)
