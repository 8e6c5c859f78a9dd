"""Compares runs without one component of Headroom's decision with runs of all, by seed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from headroom.simulator.outcome import Outcome
from headroom.simulator.report.comparison import Estimate, estimate


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
