"""Summarizes the outcomes of several seeds: one row per scenario, service and autoscaler."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from headroom.simulator.outcome import Outcome, Score
from headroom.simulator.report.comparison import (
    CLAIRVOYANT,
    Estimate,
    estimate,
    family,
    front,
    is_bound,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The figures of one autoscaler on one service of one scenario, over its seeds."""

    scenario: str
    service: str
    autoscaler: str
    target_s: float
    percentile: float
    seeds: tuple[int, ...]
    requests: Estimate
    attainment: Estimate
    """Share of the requests answered within the target."""
    p95_s: Estimate
    p99_s: Estimate
    violation_minutes: Estimate
    gpu_hours: Estimate
    starting_gpu_hours: Estimate
    clairvoyant_ratio: Estimate | None
    """GPU-hours over the clairvoyant's, seed by seed; None without a common seed."""
    operations: Estimate
    flaps: Estimate
    recover_s: Estimate
    peak_unsent: Estimate
    """Most requests that waited at clients for a connection."""
    tries: Estimate
    """Requests that servers got, for each that clients wanted answered."""
    on_front: bool
    """No other autoscaler is better in misses or GPU-hours and no worse in the other.

    Bounds are neither on the front nor do they dominate.
    """

    @property
    def misses(self) -> float:
        """Share of the requests that missed."""
        return 1.0 - self.attainment.mean

    @property
    def cost(self) -> float:
        """GPU-hours."""
        return self.gpu_hours.mean


@dataclass(frozen=True, slots=True)
class _Mean:
    autoscaler: str
    misses: float
    cost: float


def summarized(outcomes: Sequence[Outcome]) -> tuple[Summary, ...]:
    """Return one summary per scenario, service and autoscaler, in the order of their first outcome.

    Rows are grouped by scenario and service. If a seed occurs twice, the last one counts.
    """
    runs: dict[tuple[str, str], dict[str, dict[int, Outcome]]] = {}
    for outcome in outcomes:
        service = runs.setdefault((outcome.scenario, outcome.service), {})
        service.setdefault(outcome.autoscaler, {})[outcome.seed] = outcome
    scenarios = list(dict.fromkeys(scenario for scenario, _ in runs))
    ordered = sorted(runs, key=lambda key: scenarios.index(key[0]))
    return tuple(row for key in ordered for row in _of_service(runs[key]))


def _of_service(runs: Mapping[str, Mapping[int, Outcome]]) -> list[Summary]:
    yardstick = next((runs[name] for name in runs if family(name) == CLAIRVOYANT), {})
    means = [
        _Mean(
            name,
            1.0 - estimate([one.score.attainment for one in by_seed.values()]).mean,
            estimate([one.score.gpu_hours for one in by_seed.values()]).mean,
        )
        for name, by_seed in runs.items()
        if not is_bound(name)
    ]
    best = {each.autoscaler for each in front(means)}
    return [_of(by_seed, yardstick, on_front=name in best) for name, by_seed in runs.items()]


def _of(
    runs: Mapping[int, Outcome], yardstick: Mapping[int, Outcome], *, on_front: bool
) -> Summary:
    seeds = tuple(sorted(runs))
    first = runs[seeds[0]]

    def over_seeds(read: Callable[[Score], float]) -> Estimate:
        return estimate([read(runs[seed].score) for seed in seeds])

    return Summary(
        scenario=first.scenario,
        service=first.service,
        autoscaler=first.autoscaler,
        target_s=first.target_s,
        percentile=first.percentile,
        seeds=seeds,
        requests=over_seeds(lambda score: score.requests),
        attainment=over_seeds(lambda score: score.attainment),
        p95_s=over_seeds(lambda score: score.p95_s),
        p99_s=over_seeds(lambda score: score.p99_s),
        violation_minutes=over_seeds(lambda score: score.violation_minutes),
        gpu_hours=over_seeds(lambda score: score.gpu_hours),
        starting_gpu_hours=over_seeds(lambda score: score.starting_gpu_hours),
        clairvoyant_ratio=_ratio(runs, yardstick),
        operations=over_seeds(lambda score: score.operations),
        flaps=over_seeds(lambda score: score.flaps),
        recover_s=over_seeds(lambda score: score.recover_s),
        peak_unsent=over_seeds(lambda score: score.peak_unsent),
        tries=over_seeds(lambda score: score.tries / max(1, score.requests)),
        on_front=on_front,
    )


def _ratio(runs: Mapping[int, Outcome], yardstick: Mapping[int, Outcome]) -> Estimate | None:
    shared = [
        (runs[seed].score.gpu_hours, yardstick[seed].score.gpu_hours)
        for seed in sorted(runs)
        if seed in yardstick and yardstick[seed].score.gpu_hours > 0
    ]
    return estimate([hours / least for hours, least in shared]) if shared else None
