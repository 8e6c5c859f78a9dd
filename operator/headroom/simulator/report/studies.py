"""Studies over many runs: sweeps of the knobs of peers, and ablations of Headroom's decision.

A sweep finds the best front of each peer, and its points that beat Headroom. Tuning is in hindsight
and per service of a scenario: a tuned peer knows which setting works. An ablation compares runs
without one component of the decision with runs of all of them, paired by seed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

from headroom.simulator.outcome import Outcome
from headroom.simulator.report.comparison import (
    OURS,
    Estimate,
    dominates,
    estimate,
    family,
    front,
    is_bound,
)
from headroom.simulator.report.summary import Summary


@dataclass(frozen=True, slots=True, kw_only=True)
class Tuned:
    """One peer on one service, over all its settings."""

    scenario: str
    service: str
    peer: str
    settings: int
    """Number of settings tried."""
    front: tuple[Summary, ...]
    """Cheapest first; no setting of this peer is better in one of misses and cost and no worse in
    the other."""
    beating: tuple[Summary, ...] | None
    """Points of the front that beat Headroom; None if Headroom did not run."""


def settings_of(
    peers: Sequence[str], grids: Mapping[str, Sequence[Mapping[str, float]]]
) -> tuple[tuple[str, Mapping[str, float]], ...]:
    """Return every setting to try, peer by peer; a peer without a grid is tried at its defaults."""
    return tuple((peer, setting) for peer in peers for setting in grids.get(peer, ({},)))


def tuned(summaries: Sequence[Summary]) -> tuple[Tuned, ...]:
    """Return each peer's best front on each service, without bounds.

    Summaries must be grouped by service, as `summarized` returns them.
    """
    found: list[Tuned] = []
    for (scenario, service), group in groupby(summaries, key=lambda s: (s.scenario, s.service)):
        rows = list(group)
        ours = [row for row in rows if family(row.autoscaler) == OURS]
        for peer in dict.fromkeys(family(row.autoscaler) for row in rows):
            if peer == OURS or is_bound(peer):
                continue
            tried = [row for row in rows if family(row.autoscaler) == peer]
            best = front(tried)
            beating = tuple(point for point in best if any(dominates(point, our) for our in ours))
            found.append(
                Tuned(
                    scenario=scenario,
                    service=service,
                    peer=peer,
                    settings=len(tried),
                    front=best,
                    beating=beating if ours else None,
                )
            )
    return tuple(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Effect:
    """The effect of disabling one component on one service; runs are paired by seed."""

    scenario: str
    service: str
    component: str
    attainment: float
    """Without the component, mean over seeds."""
    attainment_lost: Estimate
    """With all minus without it, as a ratio: above 0 the component improves attainment."""
    cost_ratio: Estimate
    """GPU-hours without it over those with all: above 1 the component saves GPUs."""
    flaps_added: Estimate
    """Flaps without it minus those with all: above 0 the component prevents flaps."""


def effects(
    whole: Sequence[Outcome], without: Mapping[str, Sequence[Outcome]]
) -> tuple[Effect, ...]:
    """Return one effect per service and component, services first.

    Skips runs without a partner of the same seed, and those that cost nothing with all components.
    """
    partners = {(one.scenario, one.service, one.seed): one for one in whole}
    services = dict.fromkeys((one.scenario, one.service) for one in whole)
    found: list[Effect] = []
    for scenario, service in services:
        for component, outcomes in without.items():
            pairs = [
                (partners[key], one)
                for one in outcomes
                if (key := (one.scenario, one.service, one.seed)) in partners
                and key[:2] == (scenario, service)
                and partners[key].score.gpu_hours > 0
            ]
            if pairs:
                found.append(_effect(component, pairs))
    return tuple(found)


def _effect(component: str, pairs: Sequence[tuple[Outcome, Outcome]]) -> Effect:
    scores = [(whole.score, less.score) for whole, less in pairs]
    return Effect(
        scenario=pairs[0][0].scenario,
        service=pairs[0][0].service,
        component=component,
        attainment=estimate([less.attainment for _, less in scores]).mean,
        attainment_lost=estimate([all_.attainment - less.attainment for all_, less in scores]),
        cost_ratio=estimate([less.gpu_hours / all_.gpu_hours for all_, less in scores]),
        flaps_added=estimate([float(less.flaps - all_.flaps) for all_, less in scores]),
    )
