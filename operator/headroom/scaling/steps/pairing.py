"""Connects a decision with the other pool of a pair: the announcements of each to the other."""

from __future__ import annotations

from headroom.scaling.forecast.forecast import Expected
from headroom.scaling.frozen import replace
from headroom.scaling.generation.pools.announcing import announced, with_announced
from headroom.scaling.generation.pools.holding import reason_to_hold
from headroom.scaling.state.state import State
from headroom.scaling.steps.generating import Generating
from headroom.scaling.values.decision import Decision
from headroom.scaling.values.observation import Observation, PodState
from headroom.scaling.values.partner import PairDecision, PoolReport, PoolRole
from headroom.scaling.values.signals import Freshness, Signals
from headroom.scaling.values.time_text import format_seconds


def expect(
    state: State, observation: Observation, signals: Signals, expected: Expected | None
) -> tuple[State, Expected | None]:
    """Return the state, and the rates a decode pool expects with its partner's announcement.

    A service without a partner, and a prefill pool, expect what they did.
    """
    partner = observation.partner
    if partner is None or partner.role is not PoolRole.PREFILL:
        return state, expected
    own, now_s = signals.arrival_rps, observation.now_s
    passing = state.passing.observe(now_s, partner.report, own.value if own.fresh else None)
    state = replace(state, passing=passing)
    if expected is None:
        return state, None
    known = announced(partner, passing, now_s)
    return state, with_announced(expected, known, own.value)


def explained(
    state: State,
    observation: Observation,
    generating: Generating | None,
    expected: Expected | None,
    decision: Decision,
) -> Decision:
    """Return the decision with the partner's announcement, and the report to the partner."""
    partner = observation.partner
    if partner is None:
        return decision
    known = announced(partner, state.passing, observation.now_s)
    pair = PairDecision(
        partner=partner,
        report=_report(generating, expected, decision, observation),
        passed_share=state.passing.share if partner.role is PoolRole.PREFILL else None,
        unrelated=partner.role is PoolRole.PREFILL and state.passing.unrelated,
        announced_rps=None if known is None else known.later_rps,
        held_for=reason_to_hold(partner),
    )
    return replace(decision, pair=pair)


def _report(
    generating: Generating | None,
    expected: Expected | None,
    decision: Decision,
    observation: Observation,
) -> PoolReport:
    signals, fleet = decision.signals, None if generating is None else generating.fleet
    rate_rps = decision.demand.rate_rps
    if rate_rps is None:
        rate_rps = signals.arrival_rps.value
    strongest = decision.strongest
    report = PoolReport(
        time_s=decision.time_s,
        fresh=signals.freshness is Freshness.FRESH,
        arrival_rps=rate_rps,
        waiting=signals.waiting.value or 0.0,
        replica_rps=None if fleet is None else fleet.capacity.most_rps,
        needed=0 if strongest is None else strongest.replicas,
        ready=decision.counts.ready,
        replicas=decision.replicas,
        lacks_accelerators=observation.count(PodState.UNSCHEDULABLE) > 0,
        missed=_missed(decision),
    )
    if expected is None:
        return report
    return replace(
        report,
        present_rps=max(rate_rps or 0.0, expected.burst_rps or 0.0),
        steady_rps=expected.later.for_ceiling_rps,
        later_rps=max(expected.later.for_latency_rps, expected.burst_rps or 0.0),
        most_rps=expected.most.for_latency_rps,
    )


def _missed(decision: Decision) -> str:
    """Return the promise that is missed although an idle replica would keep it."""
    generation = decision.generation
    if generation is None:
        return ""
    for name, one in (
        ("time to first token", generation.first_token),
        ("time per output token", generation.output_token),
    ):
        if one is None or one.late_share is None or one.measured_s is None or not one.feasible:
            continue
        if one.late_share > 1.0 - one.target.percentile:
            measured, target = format_seconds(one.measured_s), format_seconds(one.target.seconds)
            return f"p{100 * one.target.percentile:g} of {name} {measured} (target {target})"
    return ""
