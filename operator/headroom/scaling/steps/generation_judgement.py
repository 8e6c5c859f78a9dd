"""Judges a generating service by its promises on tokens, where more replicas would help."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial

from headroom.scaling.frozen import replace
from headroom.scaling.generation.fleet.generating_fleet import GeneratingFleet
from headroom.scaling.generation.learning.learned import GenerationState
from headroom.scaling.generation.promises.class_judgement import ClassState
from headroom.scaling.generation.promises.token_promises import (
    Measured,
    attainment_of,
    outcomes_of,
    worst_ratio,
)
from headroom.scaling.generation.replica_model import first_token
from headroom.scaling.promise.error_budget import Outcomes
from headroom.scaling.state.state import State
from headroom.scaling.values.policy import Policy
from headroom.scaling.values.signals import Signal, Signals
from headroom.scaling.values.tokens import Binding, TokenTargets
from headroom.scaling.windows.counter_series import MISSED


def judge_outcomes(
    policy: Policy,
    state: State,
    learned: GenerationState,
    kept: TokenTargets,
    latest: Mapping[Binding, Measured],
    begun: float,
    fleet: GeneratingFleet | None,
    classes: ClassState,
) -> tuple[GenerationState, Outcomes]:
    """Return the state, and the outcomes since the last tick without those late by own length.

    `begun` requests of those that missed had their first token.
    """
    judgement = classes.judgement
    if judgement is None:
        outcomes = _outcomes(policy, state, kept, latest, begun)
    else:
        outcomes = judgement.outcomes(1.0 - policy.latency_percentile, classes.hopeless)
    if fleet is None:
        return learned, outcomes
    late_alone = partial(first_token.late_alone, fleet.capacity.replica.work)
    if judgement is not None:
        share = judgement.mean_of_first_token(late_alone)
    elif kept.first_token is not None:
        share = late_alone(kept.first_token.seconds)
    else:
        return learned, outcomes
    return learned.without_late_alone(outcomes, share)


def without_infeasible(targets: TokenTargets, infeasible: Collection[Binding]) -> TokenTargets:
    """Return the promises that an idle replica keeps; misses of others mean nothing."""
    if not infeasible:
        return targets
    first, token = Binding.TIME_TO_FIRST_TOKEN, Binding.TIME_PER_OUTPUT_TOKEN
    return TokenTargets(
        first_token=None if first in infeasible else targets.first_token,
        output_token=None if token in infeasible else targets.output_token,
        latency=None if Binding.LATENCY in infeasible else targets.latency,
    )


def _outcomes(
    policy: Policy,
    state: State,
    targets: TokenTargets,
    latest: Mapping[Binding, Measured],
    begun: float,
) -> Outcomes:
    """Return how many requests ended since the last tick, and how many broke a promise."""
    added = state.windows.series.added
    missed = float(added[:, MISSED].sum()) if len(added) else 0.0
    missed = max(0.0, missed - begun)
    outcomes = outcomes_of(latest, 1.0 - policy.latency_percentile)
    found = Outcomes(ended=outcomes.ended + missed, late=outcomes.late + missed)
    if targets.latency is None:
        return found
    whole = Outcomes.of(state.windows, targets.latency.seconds)
    ended = max(found.ended, whole.ended)
    return Outcomes(ended=ended, late=min(ended, max(found.late, whole.late)))


def with_latency(
    measured: Mapping[Binding, Measured], targets: TokenTargets, signals: Signals
) -> dict[Binding, Measured]:
    """Return the measured promises, with that of the whole answer if there is one."""
    if targets.latency is None:
        return dict(measured)
    attained = signals.attainment.value
    whole = Measured(
        target=targets.latency,
        value_s=signals.latency_s.value,
        late_share=None if attained is None else 1.0 - attained,
        requests=0.0,
    )
    return {**measured, Binding.LATENCY: whole}


def judged_signals(
    policy: Policy,
    signals: Signals,
    measured: Mapping[Binding, Measured],
    fleet: GeneratingFleet | None,
    classes: ClassState,
) -> tuple[Signals, Signals]:
    """Return the shown signals, and the judged ones: without promises that no replica keeps."""
    infeasible = fleet.capacity.infeasible if fleet is not None else frozenset[Binding]()
    attained = attainment_of(measured)
    worst = worst_ratio({name: one for name, one in measured.items() if name not in infeasible})
    if (found := classes.judgement) is not None:
        attained, worst = found.attainment, found.worst_ratio(classes.hopeless)
    known, shown = signals.arrival_rps, signals
    if known.value is None:
        return shown, shown

    def as_known(value: float) -> Signal:
        return Signal(freshness=known.freshness, value=value, age_s=known.age_s)

    if attained is not None:
        shown = replace(signals, attainment=as_known(attained))
    if worst is None:
        return shown, shown
    return shown, replace(shown, latency_s=as_known(worst * policy.latency_target_s))
