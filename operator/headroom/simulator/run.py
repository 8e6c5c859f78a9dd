"""Runs a scenario under an autoscaler on a virtual clock, from the first arrival to the score."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from headroom.scaling.values.observation import GatewayRejections, PodSample, PodState
from headroom.simulator import observing
from headroom.simulator.autoscaler import (
    Autoscaler,
    AutoscalerFactory,
    DirectScraper,
    GroundTruth,
    View,
)
from headroom.simulator.capacity import capacity_rps
from headroom.simulator.compiled import kernel
from headroom.simulator.event_queue import EventQueue, Priority
from headroom.simulator.fleet import Fleet
from headroom.simulator.gpu_pool import Pool
from headroom.simulator.metrics import Metrics
from headroom.simulator.outcome import Move, Outcome
from headroom.simulator.run_samples import _SAMPLES, _SHORTEST_SAMPLE_S, RunSamples
from headroom.simulator.scenario import Fault, FaultKind, Scenario, Times, Workload
from headroom.simulator.scores import score

_WINDOW_S = 30
"""Initial replicas are sized for the busiest such window before new ones can be ready."""


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
            _sample_s(duration_s),
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


def _sample_s(duration_s: float) -> float:
    return max(_SHORTEST_SAMPLE_S, duration_s / _SAMPLES)


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
        self.pool, self.seed = pool, seed
        self.duration_s = scenario.duration_s
        self.fleet = Fleet(self.spec, pool, events, seed, self.duration_s)
        self.moves: list[Move] = []
        # Users make their own arrivals; those of the workload are only what they would be.
        closed = self.spec.clients.users is not None
        self._chunks: Iterator[Times] = iter(()) if closed else workload.arrivals.chunks(seed)
        self._times: Times = np.empty(0)
        self._following: Times | None = next(self._chunks, None)
        self._index = 0
        truth = _truth(workload, seed)
        self.autoscaler: Autoscaler = make(truth)
        self.metrics = Metrics()
        self._silences: list[Fault] = []
        self._samples = RunSamples()
        self.fleet.begin(_initial(truth))
        self._enter(events, scenario.faults)

    def _enter(self, events: EventQueue, faults: tuple[Fault, ...]) -> None:
        autoscaler = self.autoscaler
        events.every(
            autoscaler.period_s, Priority.DECIDE, self._decide, start_s=autoscaler.period_s
        )
        if math.isfinite(autoscaler.scrape_s):
            events.every(autoscaler.scrape_s, Priority.SCRAPE, self._scrape, start_s=0.0)
        sample_s = _sample_s(self.duration_s)
        events.every(sample_s, Priority.SAMPLE, self._sample, start_s=sample_s)
        for fault in faults:
            if fault.service in (None, self.spec.name):
                events.at(fault.start_s, Priority.FAULTS, self._beginning(events, fault))

    def advance(self, until_s: float) -> None:
        """Run the plant until then; loads the next chunk before a chunk's last arrival."""
        while self._following is not None:
            last_s = float(self._times[-1]) if len(self._times) else 0.0
            if last_s >= until_s:
                break
            self._index = self.fleet.advance(self._times, self._index, last_s)
            self._times = np.concatenate((self._times[self._index :], self._following))
            self._index = 0
            self._following = next(self._chunks, None)
        self._index = self.fleet.advance(self._times, self._index, until_s)

    def outcome(self, scenario: str, seed: int) -> Outcome:
        """Compute the outcome; requests still in the system get one latency target to finish."""
        end_s = self.duration_s
        self.advance(end_s)
        gpu = self.fleet.gpu_seconds(end_s)
        self._sample(end_s)
        timeline = self._samples.timeline()
        last_s = end_s + self.spec.policy.latency_target_s
        self.fleet.end_load()
        self.fleet.advance(np.empty(0), 0, last_s)
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
            minute_requests=self.fleet.tables.minute_requests.copy(),
            minute_missed=self.fleet.tables.minute_missed.copy(),
        )

    def _decide(self, now_s: float) -> None:
        fleet = self.fleet
        samples: tuple[PodSample, ...] = ()
        rejected: GatewayRejections | None = None
        if isinstance(self.autoscaler, DirectScraper):
            rejected = observing.rejected_in_front(fleet, now_s)
            answering = observing.answering(fleet, self._silences, self.seed)
            samples = observing.pod_samples(fleet, answering, now_s)
        view = View(
            now_s=now_s,
            replicas=fleet.desired,
            pods=tuple(replica.as_pod() for replica in fleet.replicas),
            metrics=self.metrics,
            samples=samples,
            rejected=rejected,
        )
        wish = self.autoscaler.evaluate(view)
        policy = self.spec.policy
        replicas = max(policy.min_replicas, min(policy.max_replicas, wish.replicas))
        if replicas != fleet.desired:
            self.moves.append(
                Move(
                    time_s=now_s,
                    before=fleet.desired,
                    after=replicas,
                    reason=wish.reason,
                    message=wish.message,
                )
            )
            fleet.scale(replicas, now_s)
        if wish.replace is not None:
            fleet.replace(wish.replace, now_s)

    def _scrape(self, now_s: float) -> None:
        answering = observing.answering(self.fleet, self._silences, self.seed)
        self.metrics.scrape(
            now_s,
            [replica.uid for replica in answering],
            observing.rows(self.fleet, answering, now_s),
        )

    def _sample(self, now_s: float) -> None:
        policy = self.spec.policy
        kernel.settle(self.fleet.tables, now_s)
        self._samples.take(self.fleet, policy.latency_target_s, policy.latency_percentile, now_s)

    def _beginning(self, events: EventQueue, fault: Fault) -> Callable[[float], None]:
        """Return the action that starts a fault and schedules its end."""
        fleet, pool = self.fleet, self.pool

        def begin(now_s: float) -> None:
            ending: Callable[[float], None] | None = None
            ready = fleet.in_state(PodState.READY)
            victims = observing.chosen(ready, fault, self.seed) if ready else []
            match fault.kind:
                case FaultKind.SCRAPE_LOSS:
                    self._silences.append(fault)
                    ending = lambda _: self._silences.remove(fault)  # noqa: E731
                case FaultKind.METRICS_RESTART:
                    self.metrics.restart()
                    if isinstance(self.autoscaler, DirectScraper):
                        self.autoscaler.restart()
                case FaultKind.POD_KILL:
                    fleet.kill(victims, now_s)
                case FaultKind.NODE_LOSS:
                    count = len(victims)
                    pool.lost += count
                    fleet.kill(victims, now_s)
                    ending = lambda end_s: pool.restore(count, end_s)  # noqa: E731
                case FaultKind.SLOW_PODS:
                    fleet.slow(victims, fault.factor)
                    ending = lambda _: fleet.slow(victims, 1.0)  # noqa: E731
                case FaultKind.COSTLY_REQUESTS:
                    fleet.make_costly(fault.factor)
                    ending = lambda _: fleet.make_costly(1 / fault.factor)  # noqa: E731
                case FaultKind.SLOW_STARTS:
                    fleet.slow_starts(fault.factor)
                    ending = lambda _: fleet.slow_starts(1 / fault.factor)  # noqa: E731
            if ending is not None and math.isfinite(fault.end_s):
                events.at(fault.end_s, Priority.FAULTS, ending)

        return begin


def _truth(workload: Workload, seed: int) -> GroundTruth:
    """Count arrivals per second, and measure the plant's capacity at its mean size."""
    spec, duration_s = workload.spec, workload.arrivals.duration_s
    counts = np.zeros(max(1, math.ceil(duration_s)))
    for times_s in workload.arrivals.chunks(seed):
        counts += np.bincount(times_s.astype(np.int64), minlength=len(counts))
    mean_rps = float(counts.sum()) / duration_s
    replicas = max(1, round(mean_rps / (0.65 * spec.server.full_rps)))
    return GroundTruth(
        spec=spec, arrivals_per_s=counts, capacity_rps=capacity_rps(spec, min(replicas, 40))
    )


def _initial(truth: GroundTruth) -> int:
    """Return the initial replicas: enough for the first arrivals below capacity and ceiling."""
    spec, policy = truth.spec, truth.spec.policy
    if spec.initial_replicas is not None:
        return max(policy.min_replicas, min(policy.max_replicas, spec.initial_replicas))
    first_s = int(spec.cold_start.median_s) + 60
    counts = truth.arrivals_per_s[:first_s]
    windows = np.convolve(counts, np.ones(min(_WINDOW_S, len(counts))), mode="valid")
    first_rps = float(windows.max()) / min(_WINDOW_S, len(counts))
    each_rps = min(truth.capacity_rps, policy.utilization_ceiling * spec.server.full_rps)
    needed = math.ceil(first_rps / each_rps) if each_rps > 0 else policy.max_replicas
    return max(policy.min_replicas, min(policy.max_replicas, needed))
