"""Pages of a generating replica that the others contradict add no replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np

from headroom.scaling.values.latency_counts import LatencyCounts
from headroom.scaling.values.observation import PodSample
from headroom.simulator.autoscaler import ScaleRequest, View
from headroom.simulator.generation.autoscalers.headroom import TokenHeadroom
from headroom.simulator.generation.models import ENGINES, targets
from headroom.simulator.generation.plant import TokenService
from headroom.simulator.generation.requests import Requests
from headroom.simulator.generation.run import simulate_tokens
from headroom.simulator.generation.workloads import lognormal_lengths, poisson

FROM_S = 500.0


class TwoProcesses(TokenHeadroom):
    """The first pod has two processes, and each scrape meets the other one."""

    kind: ClassVar[str] = "two-processes"

    def evaluate(self, view: View) -> ScaleRequest:
        """Decide with the pages of one process each."""
        first, *others = view.samples
        if view.now_s >= FROM_S:
            first = _part(first, 0.7 if view.now_s % 4.0 < 2.0 else 0.3)
        return super().evaluate(replace(view, samples=(first, *others)))


def _part(page: PodSample, share: float) -> PodSample:
    counts = tuple(float(round(share * count)) for count in page.latency.counts)
    latency = LatencyCounts(bounds_s=page.latency.bounds_s, counts=counts)
    return replace(page, arrivals=float(round(share * page.arrivals)), latency=latency)


def test_counters_that_fall_again_and_again_are_no_requests() -> None:
    """Each fall looked like a restart with the arrivals of a lifetime: two replicas became 20."""
    random = np.random.default_rng(1)
    arrival_s = poisson(np.full(160, 30.0), 5.0, 1)
    requests = Requests(
        arrival_s=arrival_s,
        prompt_tokens=lognormal_lengths(np.full(len(arrival_s), 1000.0), 0.8, random),
        output_tokens=lognormal_lengths(np.full(len(arrival_s), 200.0), 0.8, random),
    )
    service = TokenService(
        engine=ENGINES["llama-8b-h100"],
        targets=targets(1.0, 0.05),
        min_replicas=2,
        max_replicas=20,
        initial_replicas=2,
    )
    outcome = simulate_tokens(service, requests, lambda truth: TwoProcesses(truth=truth), 1)
    assert outcome.score.peak_replicas == 2
    assert outcome.score.kept
